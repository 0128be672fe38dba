"""The tables of hosts that the crawlers of an index in Redis share.

Each crawler holds the tables of the hosts that it met last.  A table is read when a host is met first, and again
half a minute later; it is written when it has grown by an eighth, or half a minute later.  A table that another
crawler has written meanwhile is taken over, and what was learned here since is counted into it: so nothing that
any crawler has learned is lost, or counted twice.

==========  ======================================================  =========================
Bytes       What they are                                           Type
==========  ======================================================  =========================
0 to 7      the version: random, new whenever it is written
8 ...       the name of the host, UTF-8                             after its length, 4 bytes
the rest    the table, as `Chrome.to_bytes` gives it                zlib
==========  ======================================================  =========================
"""

import asyncio
import logging
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from dedup.errors import DedupError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.sketch import Sketcher
from dedup.index.hosts import MAX_HOSTS, Hosts, packed, unpacked
from dedup.index.redis.session import Session
from dedup.page.urls import host
from dedup.settings import IndexSettings

logger = logging.getLogger(__name__)

#: No more tables are stored than this; then the one that was written the longest ago is forgotten.
MAX_TABLES = 10_000
#: Seconds after which a table is read again, and after which what was learned is written at the latest.
REFRESH = 30.0
#: A table is written at once when it has grown by this share.
GROWTH = 1 / 8
#: How often a table is written again at once because others have written it meanwhile.
ATTEMPTS = 8
#: Bytes of a version, and of the length of a name.
VERSION, NAME_LENGTH = 8, 4


def pack_table(version: bytes, name: str, table: Chrome) -> bytes:
    """Returns what is stored of a host."""
    host = name.encode()
    return version + len(host).to_bytes(NAME_LENGTH, "big") + host + packed(table.to_bytes())


def unpack_table(octets: bytes) -> tuple[str, Chrome]:
    """Returns the name of a host and its table.  Raises ValueError if `pack_table` makes no such bytes.

    >>> table = unpack_table(pack_table(b"version ", "example.org", Chrome()))
    >>> table[0], table[1].pages
    ('example.org', 0)
    """
    start = VERSION + NAME_LENGTH
    end = start + int.from_bytes(octets[VERSION:start], "big")
    return octets[start:end].decode(), Chrome.from_bytes(unpacked(octets[end:]))


@dataclass(slots=True)
class _Shared:
    """How far a table is the one that all crawlers share."""

    version: bytes = b""  # of the table that was read or written last; empty if none was there
    read: float = -math.inf  # when that was, by the monotonic clock
    changes: list[Callable[[Chrome], object]] = field(default_factory=list)  # to the table since then
    #: The version that was to be written last, and how many changes it has.
    tried: tuple[bytes, int] = b"", 0


class SharedHosts(Hosts):
    """The tables of hosts, by name, as one run has them."""

    def __init__(
        self, sketcher: Sketcher, settings: IndexSettings, session: Callable[[str], Session]
    ) -> None:
        """``session`` tells where the table of a host is stored."""
        super().__init__(sketcher, settings)
        self._session = session
        self._shared: dict[str, _Shared] = {}
        self._due: dict[str, None] = {}  # hosts to be written now, in this order
        self._grown = asyncio.Event()
        self._lock = asyncio.Lock()
        self._writing: str | None = None
        self._writer: asyncio.Task[None] | None = None
        self._closing = False
        self._told = ""

    def start(self) -> None:
        """Has tables written from now on."""
        self._closing = False
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._keep_writing())

    async def close(self) -> None:
        """Writes what was learned, for the last time."""
        self._closing = True
        self._grown.set()
        if self._writer is not None:
            # It is not cancelled: the client may swallow that while it connects.
            await asyncio.wait([self._writer])
        await self.flush()

    # --- What is stored

    async def bring(self, urls: Iterable[str]) -> None:
        """Reads the tables that are not here, or not fresh: of a host that is not yet known, every time."""
        stale = time.monotonic() - REFRESH
        old = [
            name
            for name in dict.fromkeys(map(host, urls))
            if self._about(name).read <= stale or not self.table(name).is_known
        ]
        where = defaultdict[Session, list[str]](list)
        for name in old:
            where[self._session(name)].append(name)
        for session, names in where.items():
            versions = [self._about(name).version for name in names]
            found = await session.server.values([*map(session.keys.host, names)])
            for name, octets, version in zip(names, found, versions, strict=True):
                # A table that is being written, or was written or read meanwhile, is known better.
                if name != self._writing and version == self._about(name).version:
                    self._take_over(name, octets)

    def _about(self, name: str) -> _Shared:
        """Returns what is known of a host's being stored; nothing if its table is no longer here."""
        if name not in self._tables and name not in self._changed:
            self._shared.pop(name, None)
        if len(self._shared) > 2 * MAX_HOSTS:
            for gone in self._shared.keys() - self._tables.keys() - self._changed.keys():
                del self._shared[gone]
        return self._shared.setdefault(name, _Shared())

    def _take_over(self, name: str, octets: bytes | None) -> None:
        """Takes over a stored table, and changes it as the one here was changed since then."""
        shared, table = self._about(name), self.table(name)
        version = (octets or b"")[:VERSION]
        if version == shared.tried[0]:  # it was written, but nobody heard of it
            del shared.changes[: shared.tried[1]]
            shared.tried = b"", 0
        elif octets and version != shared.version:
            with suppress(ValueError):  # a damaged one will be written over
                stored, table = unpack_table(octets)
                for change in shared.changes if stored == name else ():
                    change(table)
        shared.version, shared.read = version, time.monotonic()
        self._tables[name] = table
        if name in self._changed:
            self._changed[name] = table

    async def flush(self) -> None:
        """Writes every table that was changed."""
        self._due |= dict.fromkeys(self._changed)
        await self._write_due()

    async def _keep_writing(self) -> None:
        loop = asyncio.get_running_loop()
        sweep = loop.time() + REFRESH
        while not self._closing:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(sweep):
                    await self._grown.wait()
            self._grown.clear()
            if loop.time() >= sweep:
                sweep = loop.time() + REFRESH
                self._due |= dict.fromkeys(self._changed)
            try:
                await self._write_due()
                self._told = ""
            except DedupError as error:
                if str(error) != self._told:  # a trouble is told once
                    self._told = str(error)
                    logger.warning(
                        "What was learned of hosts can't be written yet; it will be tried again: %s", error
                    )

    async def _write_due(self) -> None:
        async with self._lock:
            while self._due:
                self._writing = next(iter(self._due))
                try:
                    await self._write(self._writing)
                    self._due.pop(self._writing)
                finally:
                    self._writing = None

    async def _write(self, name: str) -> None:
        """Writes a table; if others write it all the time, it is left for the next time."""
        shared, session = self._about(name), self._session(name)
        keys, key = session.keys, session.keys.host(name)
        for _ in range(ATTEMPTS if shared.changes else 0):
            shared.tried = os.urandom(VERSION), len(shared.changes)
            version, octets = shared.tried[0], pack_table(shared.tried[0], name, self.table(name))
            arguments = [keys.tables, key[len(keys.tables) :], shared.version, version]
            (stored,) = await session.call("learn", [keys.hosts, key], [*arguments, MAX_TABLES, octets])
            self._take_over(name, stored)
            if shared.version == version:
                break
        if not shared.changes:
            self._changed.pop(name, None)

    # --- What is learned

    def _change(self, name: str, change: Callable[[Chrome], object]) -> None:
        shared, table = self._about(name), self.table(name)
        change(table)
        shared.changes.append(change)
        self._changed[name] = table
        if len(shared.changes) >= GROWTH * table.pages:
            self._due[name] = None
            self._grown.set()
