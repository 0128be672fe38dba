"""The nodes of a Redis Cluster: which of them has a slot, and calls that find their way.

Every call is of one slot, and may be repeated: a call whose answer was lost is made again.  A master that was
replaced, a slot that has moved or is on its way, a cluster that is down for a moment: the call is made again, where the
slot is now, until its time is over.

redis-py's own client for clusters is not used: after an error it closes the connections of all nodes, under the calls
of others, and it says ASKING on one connection, and what it asks for on another.
"""

import asyncio
import hashlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from dedup.errors import IndexMismatchError
from dedup.index.redis import client
from dedup.index.redis.client import CLAIMS, OTHERS, SCAN, TIMEOUT, Server, deadline
from dedup.index.redis.cluster.record import HEAD
from dedup.printing import redact
from dedup.settings import SETTINGS

__all__ = ["Call", "Cluster"]

Address = tuple[str, int]

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
SLOTS = 1 << 14


class Call(NamedTuple):
    """A command or a script, of one key or of several in one slot."""

    key: bytes  #: which tells the slot
    words: tuple[Any, ...]  #: the command; or the name of the script, its keys and arguments
    keys: int = 0  #: how many of these are keys of a script; 0: it is a command

    @classmethod
    def script(cls, verb: str, keys: Sequence[bytes], *arguments: Any) -> "Call":
        return cls(keys[0], (verb, *keys, *arguments), len(keys))

    @classmethod
    def command(cls, name: str, key: bytes, *arguments: Any) -> "Call":
        return cls(key, (name, key, *arguments))


class Cluster(Server):
    """The masters of a cluster, of which one node at least is named by the address."""

    def __init__(self, address: str) -> None:
        """Raises `SettingsError` for an address that can't be one."""
        scheme, _, rest = address.partition("+cluster://")
        refusal = SETTINGS["index"].refusal
        user, at, hosts = rest.partition("?")[0].rpartition("@")
        hosts, _, database = hosts.partition("/")
        options = rest.partition("?")[2]
        if database not in ("", "0"):
            raise refusal(redact(address), "which names a database, and a cluster has only one")
        seeds: list[Address] = []
        try:
            for host in hosts.split(","):
                parts = urlsplit(f"//{host}")
                if not parts.hostname:
                    raise ValueError
                seeds.append((parts.hostname, parts.port or 6379))
            self._url = f"{scheme}://{user}{at}{{}}:{{}}/0{'?' if options else ''}{options}"
            self._secure = {"ssl_check_hostname": True} if scheme == "rediss" else {}
            probe = self._connect(seeds[0])
            if probe.connection_pool.connection_kwargs.get("decode_responses"):
                raise ValueError
            probe.connection_pool.make_connection()  # checks the options that the address names
        except (ValueError, TypeError, exceptions.RedisError):  # whose text may hold the password
            raise refusal(redact(address), "which is malformed or has an unknown option") from None
        self.where = redact(address)
        self._seeds = seeds
        self._clients: dict[Address, Any] = {}
        self._slots: list[Address] = []
        self._known: dict[Address, None] = {}  # masters and replicas
        self._stale = True
        self._learning = asyncio.Lock()
        self._sources = {verb: source(verb) for verb in (*OWN, "open", "renew", "learn")}
        self._shas = {verb: hashlib.sha1(text).hexdigest() for verb, text in self._sources.items()}
        self.on_change: Callable[[], object] = lambda: None  #: called when another set of nodes has the slots
        self.redirections = 0  #: how often a call was sent elsewhere, or again
        self._claims, self._others = asyncio.Semaphore(CLAIMS), asyncio.Semaphore(OTHERS)
        self._answered, self._silent, self._trouble = 0.0, 0.0, ""

    def _connect(self, address: Address) -> Any:
        host, port = address
        pool = aioredis.BlockingConnectionPool.from_url(
            self._url.format(f"[{host}]" if ":" in host else host, port),
            max_connections=CLAIMS + OTHERS,
            timeout=TIMEOUT,
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            retry=Retry(NoBackoff(), 0),
            **self._secure,
        )
        return aioredis.Redis(connection_pool=pool)

    def _node(self, address: Address) -> Any:
        if address not in self._clients:
            self._clients[address] = self._connect(address)
        return self._clients[address]

    # --- Which node has a slot

    @property
    def masters(self) -> frozenset[Address]:
        """Who has slots, as far as is known."""
        return frozenset(self._slots)

    async def _learn(self) -> None:
        """Asks the first node that answers which of them has which slots."""
        async with self._learning:
            if not self._stale:
                return
            trouble: Exception = exceptions.ConnectionError("no node answers")
            for address in dict.fromkeys((*self.masters, *self._seeds, *self._known)):
                try:
                    async with asyncio.timeout(TIMEOUT / 2):
                        ranges = await self._node(address).execute_command("CLUSTER SLOTS")
                    self._take(ranges, address[0])
                except (exceptions.RedisError, OSError, TimeoutError) as error:
                    if "cluster support disabled" in str(error):
                        raise IndexMismatchError(
                            f"{self.where} is no cluster, but a single server; its address begins with redis://"
                        ) from None
                    trouble = error
                    continue
                self._stale = False
                return
            raise trouble

    def _take(self, found: Any, host: str) -> None:
        """Takes over an answer to CLUSTER SLOTS; a node without a name is the one that was asked."""
        slots: list[Address | None] = [None] * SLOTS
        for first, last, *nodes in found:
            shown = [((name or b"").decode() or host, int(port)) for name, port, *_ in nodes]
            slots[first : last + 1] = shown[:1] * (last + 1 - first)
            self._known |= dict.fromkeys(shown)
        if None in slots:
            raise exceptions.ClusterDownError("nobody has some of the slots")
        before, self._slots = self.masters, [address for address in slots if address]
        if before and self.masters != before:
            self.on_change()

    def _moved(self, slot: int, address: Address) -> None:
        before, self._slots[slot] = self.masters if self._slots[slot] != address else None, address
        if before is not None and address not in before:
            self._stale = True  # others have moved with it
            self.on_change()

    # --- Calls

    async def call_all(self, calls: Sequence[Call], *, of_any_type: bool = False) -> list[Any]:
        """The answers to calls, each of which goes to the node that has its slot; all nodes answer at once.

        Where a key is of another type, that is an error, or None if it may be ``of_any_type``.
        """
        answers: list[Any] = [None] * len(calls)
        left = list(range(len(calls)))
        asked: dict[int, Address] = {}  # where a slot is on its way to
        unknown: set[int] = set()  # scripts that a node does not know
        trouble: Exception | None = None
        with self.errors():
            try:
                async with deadline(client.DEADLINE):
                    while left:
                        if self._stale:
                            try:
                                await self._learn()
                            except (*ELSEWHERE, exceptions.ResponseError) as error:
                                trouble = error
                                await asyncio.sleep(PAUSE)
                                continue
                        left, trouble = await self._attempt(calls, left, asked, unknown, answers, trouble)
            except TimeoutError:
                raise trouble or exceptions.TimeoutError("no answer in time") from None
            for place, answer in enumerate(answers):
                if isinstance(answer, Exception):
                    if not of_any_type:
                        raise answer
                    answers[place] = None
        return answers

    async def _attempt(
        self,
        calls: Sequence[Call],
        left: list[int],
        asked: dict[int, Address],
        unknown: set[int],
        answers: list[Any],
        trouble: Exception | None,
    ) -> tuple[list[int], Exception | None]:
        """Makes the calls that are left once; which of them are to be made again, and why."""
        nodes = defaultdict[tuple[Address, bool], list[int]](list)
        for place in left:
            asking = place in asked
            address = asked.pop(place) if asking else self._slots[key_slot(calls[place].key)]
            nodes[address, asking].append(place)
        found = await asyncio.gather(
            *(
                self._ask(address, [self._words(calls[place], place in unknown) for place in places], asking)
                for (address, asking), places in nodes.items()
            )
        )
        again: list[int] = []
        wait = False
        for places, replies in zip(nodes.values(), found, strict=True):
            for place, reply in zip(places, replies, strict=True):
                match reply:
                    case exceptions.MovedError():  # which is an AskError, too
                        self._moved(reply.slot_id, (reply.host, int(reply.port)))
                    case exceptions.AskError():
                        asked[place] = reply.host, int(reply.port)
                    case exceptions.NoScriptError():
                        unknown.add(place)
                    case Exception() if isinstance(reply, ELSEWHERE):
                        trouble, wait = reply, True
                        self._stale = self._stale or not isinstance(reply, exceptions.TryAgainError)
                    case Exception() if "WRONGTYPE" not in str(reply):
                        raise reply
                    case _:
                        answers[place] = reply
                        continue
                again.append(place)
        self.redirections += len(again)
        if wait:
            await asyncio.sleep(PAUSE)
        return again, trouble

    def _words(self, call: Call, whole: bool) -> tuple[Any, ...]:
        if not call.keys:
            return call.words
        verb, *rest = call.words
        first = ("EVAL", self._sources[verb]) if whole else ("EVALSHA", self._shas[verb])
        return (*first, call.keys, *rest)

    async def _ask(self, address: Address, commands: list[tuple[Any, ...]], asking: bool) -> list[Any]:
        """The answers of one node to some commands; an error in place of each that has none."""
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
        pattern = re.sub(rb"([*?\[\]\\^-])", rb"\\\1", start) + b"*"
        with self.errors():
            await self._learn()
        for address in self.masters:
            cursor = 0
            while True:
                with self.errors():
                    cursor, keys = await self._node(address).scan(cursor, match=pattern, count=SCAN)
                yield keys
                if cursor == 0:
                    break

    async def size(self) -> int:
        """How many keys there are, whoever owns them."""
        with self.errors():
            await self._learn()
            return sum(await asyncio.gather(*(self._node(address).dbsize() for address in self.masters)))

    async def check(self) -> dict[str, Any]:
        """What the masters say of themselves; raises `IndexMismatchError` if one may lose parts of an index."""
        info: dict[str, Any] = {}
        with self.errors():
            async with deadline(client.DEADLINE):
                self._stale = True
                await self._learn()
                for address in self.masters:
                    for section in ("server", "memory", "persistence"):
                        with suppress(exceptions.NoPermissionError):
                            said = await self._node(address).info(section)
                            info |= {
                                name: said[name]
                                for name in said
                                if not (name == "aof_enabled" and said[name])
                            }
                            self.accept(said)
        return info

    async def refresh(self) -> None:
        """Asks anew who has which slots."""
        with self.errors():
            async with deadline(client.DEADLINE):
                self._stale = True
                await self._learn()

    async def disconnect(self) -> None:
        for node in self._clients.values():
            await node.connection_pool.disconnect()

    async def close(self) -> None:
        for node in self._clients.values():
            await node.aclose()
            await node.connection_pool.disconnect()


def source(verb: str) -> bytes:
    """The text of a script, with what it needs before it."""
    if verb not in OWN:
        return client.source(verb)
    text = (files("dedup.index.redis.cluster") / "lua" / f"{verb}.lua").read_text("utf-8")
    return f"local HEAD = {HEAD}\n{text}".encode()
