"""The nodes of a Redis Cluster: which of them has a slot, and calls that find their way.

Every call is of one slot, and may be repeated: a call whose answer was lost is made again.  A master that was
replaced, a slot that has moved or is on its way, a cluster that is down for a moment: the call is made again, where the
slot is now, until its time is over.

redis-py's own client for clusters is not used: after an error it closes the connections of all nodes, under the calls
of others, and it says ASKING on one connection, and what it asks for on another.
"""

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from dedup.errors import IndexMismatchError
from dedup.index.redis import client, scripts
from dedup.index.redis.client import TIMEOUT, Server, deadline, pool_of
from dedup.index.redis.cluster.address import Address
from dedup.index.redis.cluster.record import HEAD
from dedup.index.redis.cluster.slots import Node, Slots

#: The scripts of a cluster, beside those of one server that work in one slot.
OWN = ("swap", "file", "leases")
#: Seconds between two attempts of a call that can't be answered yet.
PAUSE = 0.05
#: What is said of a slot that is elsewhere, or that nobody serves at the moment.
ELSEWHERE = (
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.TryAgainError,
    exceptions.ReadOnlyError,
    exceptions.BusyLoadingError,
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    OSError,
)


@dataclass(slots=True, eq=False)
class Call:
    """A command or a script, of one key or of several in one slot, and what came of it."""

    key: bytes  #: which tells the slot
    words: tuple[Any, ...]  #: the command; or the name of the script, its keys and arguments
    keys: int = 0  #: how many of these are keys of a script; 0: it is a command
    answer: Any = None  #: the last one, or an error
    asked: Node | None = None  #: where the slot is on its way to
    is_whole: bool = False  #: true if the node did not know the script

    @classmethod
    def script(cls, verb: str, keys: Sequence[bytes], *arguments: Any) -> "Call":
        return cls(keys[0], (verb, *keys, *arguments), len(keys))

    @classmethod
    def command(cls, name: str, key: bytes, *arguments: Any) -> "Call":
        return cls(key, (name, key, *arguments))


class Cluster(Server):
    """The masters of a cluster; the address names at least one of its nodes."""

    may_be_set_back = True  # by a replica that had missed something; see `Recovery`

    def __init__(self, address: str) -> None:
        """Raises `SettingsError` for an address that can't be one."""
        self._begin(address)
        with self._well_formed():
            self._address = Address.parse(address)
            self._connect(self._address.seeds[0])
        self._slots = Slots(self._address.seeds)
        self._clients: dict[Node, Any] = {}
        self._stale = True
        self._learning = asyncio.Lock()
        self._sources = {verb: source(verb) for verb in (*OWN, "open", "renew", "learn")}
        self._shas = {verb: hashlib.sha1(text).hexdigest() for verb, text in self._sources.items()}
        self._texts = {sha: self._sources[verb] for verb, sha in self._shas.items()}
        self.on_change: Callable[[], object] = lambda: None  #: called when another set of nodes has the slots

    def _connect(self, node: Node) -> Any:
        return aioredis.Redis(connection_pool=pool_of(self._address.of(node), Retry(NoBackoff(), 0)))

    def _node(self, node: Node) -> Any:
        if node not in self._clients:
            self._clients[node] = self._connect(node)
        return self._clients[node]

    async def _learn(self) -> None:
        """Asks the first node that answers which of them has which slots."""
        async with self._learning:
            if not self._stale:
                return
            trouble: Exception = exceptions.ConnectionError("no node answers")
            before = self._slots.masters
            for node in self._slots.nodes:
                try:
                    async with asyncio.timeout(TIMEOUT / 2):
                        found = await self._node(node).execute_command("CLUSTER SLOTS")
                    self._slots.take(found, node.host)
                except (exceptions.RedisError, OSError, TimeoutError, ValueError) as error:
                    if "cluster support disabled" in str(error):
                        raise IndexMismatchError(
                            f"{self.where} is no cluster, but a single server; its address begins with redis://"
                        ) from None
                    trouble = (
                        exceptions.ClusterDownError(str(error)) if isinstance(error, ValueError) else error
                    )
                    continue
                self._stale = False
                if before and self._slots.masters != before:
                    self.on_change()
                return
            raise trouble

    def _moved(self, slot: int, to: Node) -> None:
        if to not in self._slots.masters:
            self._stale = True  # others have moved with it
            self.on_change()
        self._slots.move(slot, to)

    # --- Calls

    async def call_all(self, calls: Sequence[Call], *, of_any_type: bool = False) -> list[Any]:
        """Returns the answers to calls, each of which goes to the node that has its slot; all nodes answer at once.

        Where a key is of another type, that is an error, or None if it may be ``of_any_type``.
        """
        left, trouble = list(calls), None
        with self.errors():
            try:
                async with deadline(client.DEADLINE):
                    end = time.monotonic() + 2 * client.DEADLINE
                    while left:
                        if time.monotonic() > end:  # asyncio.wait_for swallows some cancellations
                            raise TimeoutError
                        if self._stale:
                            try:
                                await self._learn()
                            except (*ELSEWHERE, exceptions.ResponseError) as error:
                                trouble = error
                                await asyncio.sleep(PAUSE)
                                continue
                        left = await self._attempt(left)
                        if waiting := [call.answer for call in left if isinstance(call.answer, ELSEWHERE)]:
                            trouble = waiting[-1]
                            await asyncio.sleep(PAUSE)
            except TimeoutError:
                raise trouble or exceptions.TimeoutError("no answer in time") from None
            for call in calls:
                if isinstance(call.answer, Exception):
                    if not of_any_type:
                        raise call.answer
                    call.answer = None
        return [call.answer for call in calls]

    async def _attempt(self, calls: Sequence[Call]) -> list[Call]:
        """Makes calls once, and returns which of them are to be made again."""
        nodes = defaultdict[tuple[Node, bool], list[Call]](list)
        for call in calls:
            nodes[call.asked or self._slots.of(call.key), call.asked is not None].append(call)
            call.asked = None
        found = await asyncio.gather(
            *(
                self._ask(node, [self._words(call) for call in those], asking)
                for (node, asking), those in nodes.items()
            )
        )
        again = list[Call]()
        for ((node, _), those), replies in zip(nodes.items(), found, strict=True):
            for call, reply in zip(those, replies, strict=True):
                call.answer = reply
                match reply:
                    case exceptions.MovedError():  # which is an AskError, too
                        self._moved(reply.slot_id, Node.named(reply.host, reply.port, node.host))
                    case exceptions.AskError():
                        call.asked = Node.named(reply.host, reply.port, node.host)
                    case exceptions.NoScriptError():
                        call.is_whole = True
                    case Exception() if isinstance(reply, ELSEWHERE):
                        self._stale = self._stale or not isinstance(reply, exceptions.TryAgainError)
                    case Exception() if "WRONGTYPE" not in str(reply):
                        raise reply
                    case _:
                        continue
                again.append(call)
        return again

    def _words(self, call: Call) -> tuple[Any, ...]:
        if not call.keys:
            return call.words
        verb, *rest = call.words
        first = ("EVAL", self._sources[verb]) if call.is_whole else ("EVALSHA", self._shas[verb])
        return (*first, call.keys, *rest)

    async def _ask(self, address: Node, commands: list[tuple[Any, ...]], asking: bool) -> list[Any]:
        """Returns the answers of one node to some commands; an error in place of each that has none."""
        try:
            async with self._node(address).pipeline(transaction=False) as pipeline:
                for command in commands:
                    if asking:
                        pipeline.execute_command("ASKING")
                    pipeline.execute_command(*command)
                answers: list[Any] = await pipeline.execute(raise_on_error=False)
                return answers[1::2] if asking else answers
        except (exceptions.RedisError, OSError) as error:
            return [error] * len(commands)

    async def run(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        (answer,) = await self.call_all([Call.script(verb, keys, *arguments)])
        return answer

    async def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self.call_all([Call.command("GET", key) for key in keys])

    async def ask(self, commands: Iterable[Sequence[Any]], *, together: bool = False) -> list[Any]:
        calls = [Call(command[1], tuple(command)) for command in commands]
        return await self.call_all(calls, of_any_type=True)

    async def scan(self, start: bytes) -> AsyncIterator[list[bytes]]:
        with self.errors():
            await self._learn()
        for master in self._slots.masters:
            async for keys in self._scan(self._node(master), start):
                yield keys

    async def size(self) -> int:
        """Returns how many keys there are, whoever owns them."""
        with self.errors():
            await self._learn()
            return sum(
                await asyncio.gather(*(self._node(address).dbsize() for address in self._slots.masters))
            )

    async def check(self) -> dict[str, Any]:
        """Returns what the masters say of themselves; raises `IndexMismatchError` if one may lose parts of an index."""
        info: dict[str, Any] = {}
        with self.errors():
            async with deadline(client.DEADLINE):
                self._stale = True
                await self._learn()
                sections = ("server", "memory", "persistence")
                masters = [self._node(address) for address in self._slots.masters]
                for said in await asyncio.gather(*(client.said_by(node, *sections) for node in masters)):
                    info |= {name: said[name] for name in said if not (name == "aof_enabled" and said[name])}
                    self.accept(said)
        return info

    async def disconnect(self) -> None:
        for node in self._clients.values():
            await node.connection_pool.disconnect()

    async def close(self) -> None:
        for node in self._clients.values():
            await node.aclose()
            await node.connection_pool.disconnect()


def source(verb: str) -> bytes:
    """Returns the text of a script, with what it needs before it."""
    if verb not in OWN:
        return scripts.source(verb)
    text = (files("dedup.index.redis.cluster") / "lua" / f"{verb}.lua").read_text("utf-8")
    return f"local HEAD = {HEAD}\n{text}".encode()
