"""A Redis Cluster as a server: the keys of an index are in one slot, so that one master has all of them.

When another master has the slot, connections are made to that one, and the call is made again until its time is over.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from redis import exceptions
from redis.asyncio.connection import Connection, SSLConnection
from redis.crc import key_slot

from dedup.errors import IndexMismatchError
from dedup.index.redis import client
from dedup.index.redis.client import Server, deadline
from dedup.index.redis.keys import Keys
from dedup.index.redis.scripts import source
from dedup.printing import redact
from dedup.settings import SETTINGS

#: Seconds between two attempts of a call.
PAUSE = 0.05
#: What is said of a slot that is elsewhere, or that nobody serves at the moment.
ELSEWHERE = (
    exceptions.AskError,  # MOVED is one, too
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.ReadOnlyError,
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    OSError,
)
#: Numbers that are passed over when another master takes over: more than one may have given out without its replica.
PASSED_OVER = 1_000_000
Node = tuple[str, int]
T = TypeVar("T")


class Master(NamedTuple):
    """Who has the slot."""

    host: str
    port: int
    name: bytes  #: in the cluster


class ClusterServer(Server):
    """The master of a cluster that has the slot of an index, whichever node that is."""

    def __init__(self, address: str, namespace: str) -> None:
        with self._well_formed(address):
            self._nodes, first = parse(address)
        super().__init__(first, shown=address)
        keys = Keys(namespace)
        self._slot = key_slot(keys.header)
        self._kept = keys.master, keys.sequence, keys.released
        self._master: Master | None = None
        self._options = dict(self._pool.connection_kwargs)
        self._plain: Any = self._pool.connection_class
        self._pool.connection_class = _TLS if issubclass(self._plain, SSLConnection) else _Led
        self._pool.connection_kwargs |= {"find": self._find, "redis_connect_func": self._lead}

    async def _again(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Makes a call until the master of the slot answers."""
        trouble: Exception = exceptions.TimeoutError("no answer in time")
        end = time.monotonic() + client.DEADLINE
        try:
            async with deadline(client.DEADLINE):
                while True:
                    try:
                        await self._find()
                        return await attempt()
                    except exceptions.AuthenticationError:
                        raise
                    except ELSEWHERE as error:
                        trouble, self._master = error, None
                        if time.monotonic() > end:  # asyncio.wait_for swallows some cancellations
                            raise
                        await self.disconnect()
                        await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise trouble from None

    async def _find(self) -> Master:
        """Returns who has the slot, by the first node that answers."""
        trouble: Exception = exceptions.ConnectionError("no node answers")
        for node in self._nodes if self._master is None else ():
            try:
                self._take(await self._slots(node), node)
            except exceptions.AuthenticationError:
                raise
            except (exceptions.RedisError, OSError) as error:
                if "cluster support disabled" in str(error):
                    raise IndexMismatchError(
                        f"{self.where} is no cluster, but a single server; its address begins with redis://"
                    ) from None
                trouble = error
            else:
                break
        if self._master is None:
            raise trouble
        return self._master

    async def _slots(self, node: Node) -> Any:
        connection = self._plain(**self._options | {"host": node[0], "port": node[1]})
        try:
            async with asyncio.timeout(client.TIMEOUT / 2):
                await connection.connect()
                await connection.send_command("CLUSTER", "SLOTS")
                return await connection.read_response()
        finally:
            await connection.disconnect()

    def _take(self, found: Any, asked: Node) -> None:
        """Takes over what a node says of all; a node without a name of its own is the one that was asked."""
        nodes = dict.fromkeys(self._nodes)
        master = None
        for first, last, *those in found:
            named = [
                Master(host.decode() if host and host != b"?" else asked[0], port, name)
                for host, port, name, *_ in those
            ]
            nodes |= dict.fromkeys(node[:2] for node in named)
            if first <= self._slot <= last:
                master = named[0]
        if master is None:
            raise exceptions.ClusterDownError("nobody has the slot of the index")
        self._nodes, self._master = [*nodes], master

    async def _lead(self, connection: Any) -> None:
        """Begins a connection to a master."""
        await connection.on_connect()
        told = *self._kept, connection.master.name, PASSED_OVER
        await connection.send_command("EVAL", source("lead"), len(self._kept), *told)
        await connection.read_response()


def parse(address: str) -> tuple[list[Node], str]:
    """Returns the nodes that an address names, and the address of the first.

    >>> parse("redis+cluster://me:secret@a,[::1]:7001?protocol=3")
    ([('a', 6379), ('::1', 7001)], 'redis://me:secret@a:6379/0?protocol=3')
    """
    scheme, _, rest = address.partition("+cluster://")
    rest, question, options = rest.partition("?")
    user, at, hosts = rest.rpartition("@")
    hosts, _, database = hosts.partition("/")
    if database not in ("", "0"):
        raise SETTINGS["index"].refusal(redact(address), "which names a database, and a cluster has only one")
    nodes = []
    for name in hosts.split(","):
        parts = urlsplit(f"//{name}")
        if not parts.hostname:
            raise SETTINGS["index"].refusal(redact(address), "which names no host where one should be")
        nodes.append((parts.hostname, parts.port or 6379))
    host, port = nodes[0]
    shown = f"[{host}]" if ":" in host else host
    return nodes, f"{scheme}://{user}{at}{shown}:{port}/0{question}{options}"


class _Led(Connection):
    """A connection that leads to whoever is the master when it is made."""

    def __init__(self, *, find: Callable[[], Awaitable[Master]], **options: Any) -> None:
        super().__init__(**options)
        self._find = find

    async def _connect(self) -> None:
        self.master = await self._find()
        self.host, self.port = self.master[:2]
        await super()._connect()  # type: ignore[no-untyped-call]


class _TLS(_Led, SSLConnection):
    """One with TLS."""
