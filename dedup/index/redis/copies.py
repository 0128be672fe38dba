"""What a crawler has read of crowded buckets, so that the next claim reads only what was filed since.

Entries are appended to a bucket, and taken out: then a gap is left in the place of one, or the bucket is written anew
without its gaps.  So a copy reaches as far as it did if its last entry still is where it was.  An entry that was
taken out stays in a copy: it is a number whose page is gone, and numbers are never given out twice.  No copy ends with
a gap, as one gap is like another.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from dedup.errors import IndexCorruptError
from dedup.index.redis import buckets, client
from dedup.index.redis.buckets import ENTRY, GAP, Entries, nearest
from dedup.index.redis.client import Server, deadline
from dedup.index.weighing import MAX_LOOKED

#: Buckets of more entries are copied; others are read each time.
CROWD = 1000
#: Entries of one answer: .2 ms of the server's time.
PART = 1 << 15
#: Entries of all copies together: 12 MB.
MAX_HELD = 1 << 20


class _Copy:
    """The entries of a bucket, as far as they have been read."""

    def __init__(self) -> None:
        self.upto = -1  #: up to this number, every page that belongs here is here
        self.entries = np.empty(0, ENTRY)

    @property
    def rest(self) -> tuple[int, int]:
        """The first and the last byte of the part that is to be read next; it begins with the last entry."""
        first = max(0, len(self.entries) - 1) * ENTRY.itemsize
        return first, first + PART * ENTRY.itemsize - 1

    def extend(self, found: Entries) -> bool:
        """Appends what was read; forgets everything if that does not begin with the last entry."""
        if len(self.entries) and (not len(found) or found[0] != self.entries[-1]):
            self.entries = self.entries[:0]
            return False
        self.entries = np.concatenate((self.entries[:-1], found))
        return True

    def end(self, last: int) -> None:
        """All of the bucket has been read, as it was when ``last`` was the last number given out, or is now."""
        self.upto = last
        while len(self.entries) and self.entries["number"][-1] == GAP:
            self.entries = self.entries[:-1]


class Copies:
    """The copies of one crawler, those that were used last."""

    def __init__(self, server: Server, radius: int) -> None:
        self._server = server
        self._radius = radius
        self._held = OrderedDict[bytes, _Copy]()
        self._lock = asyncio.Lock()

    async def near(
        self, names: Sequence[bytes], sizes: Sequence[int], last: int, key: int, *, tables: int
    ) -> tuple[bytes, bool]:
        """Returns the pages near a key, as a look says them, in buckets of these sizes in bytes, and whether that is all.

        The buckets are read as they were when ``last`` was the last number given out, `MAX_READ` entries of them at most.
        """
        crowded = [name for name, size in zip(names, sizes, strict=True) if size > CROWD * ENTRY.itemsize]
        others = [name for name in names if name not in crowded]
        with self._server.errors():
            async with deadline(client.DEADLINE), self._lock:
                texts = await self._server.values(others) if others else []
                found = [_entries(None), *map(_entries, texts), *await self._copied(crowded, last)]
        entries = np.concatenate(found)
        pages, is_all = nearest(entries[: buckets.MAX_READ], key, self._radius, MAX_LOOKED, tables)
        return pages, is_all and len(entries) <= buckets.MAX_READ

    async def _copied(self, names: Sequence[bytes], last: int) -> list[Entries]:
        """Returns what is in buckets; at least `MAX_READ` entries of a bucket that has more."""
        copies = {name: self._held.get(name) or _Copy() for name in names}
        for name, copy in copies.items():
            self._held[name] = copy
            self._held.move_to_end(name)
        while stale := {
            name: copy
            for name, copy in copies.items()
            if copy.upto < last and len(copy.entries) <= buckets.MAX_READ
        }:
            commands = [("GETRANGE", name, *copy.rest) for name, copy in stale.items()]
            for copy, octets in zip(stale.values(), await self._server.ask(commands), strict=True):
                if octets is None:
                    raise IndexCorruptError(
                        f"the index in {self._server.where} is damaged: a bucket is of another type"
                    )
                if copy.extend(_entries(octets)) and len(octets) < PART * ENTRY.itemsize:
                    copy.end(last)
        while (
            self._held.keys() > copies.keys()
            and sum(len(copy.entries) for copy in self._held.values()) > MAX_HELD
        ):
            self._held.popitem(last=False)
        return [copy.entries for copy in copies.values()]


def _entries(octets: bytes | None) -> Entries:
    return np.frombuffer(octets or b"", ENTRY, len(octets or b"") // ENTRY.itemsize)
