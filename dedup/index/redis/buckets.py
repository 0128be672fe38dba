"""The tables of an index in Redis: in which buckets a page is, and which entries of buckets are near a key.

A bucket is a string of entries; lua/tables.lua writes them.
"""

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.plans import EXACT, Plan, Table
from dedup.fingerprint.simhash import distances
from dedup.index.entry import Entry
from dedup.index.redis.keys import Keys

#: A bucket is planned to hold this many pages: what Redis stores for the bucket itself is then a fifth of their entries.
BUCKET_PAGES = 32
#: The fewest bits that name a bucket, and how many fewer name one whose entries are only looked through for an equal key.
MIN_BITS, FEWER = 8, 2
#: The script of a look searches this many entries by itself, in .1 ms.  The caller searches more, and is faster.
MAX_HERE = 2000
#: The caller searches this many, 6 MB; a page that is kept among more of them is `Verdict.crowded`.
MAX_READ = 1 << 19
#: A script searches this many entries of one bucket for an equal key; beyond them, the page is crowded, too.
MAX_EXACT = 1 << 17
#: What a bucket holds of a page.
ENTRY = np.dtype([("key", "<u8"), ("number", "<u4")])
Entries = npt.NDArray[np.void]
#: The number in a gap, where an entry was taken out.
GAP = 0xFFFFFFFF
#: A page that is near, for a claim: its number, and its distance.
NEAR = np.dtype([("number", "<u4"), ("distance", "u1")])
_KEY = struct.Struct("<Q")


class Place(NamedTuple):
    """Where a page is in a table."""

    bucket: bytes  #: the name of the bucket in Redis
    key: bytes  #: as in an entry


@dataclass(frozen=True)
class Buckets:
    """How an index that exists spreads pages over buckets."""

    keys: Keys
    plan: Plan
    bucket_bits: int
    created: str  #: what the header says; page ids are hashed with it, so that nobody can forge equal hashes

    def id_place(self, page_id: str) -> Place:
        """Returns where a page id is."""
        octets = hashlib.blake2b(page_id.encode(), digest_size=16, key=self.created.encode()[:64]).digest()
        bucket = int.from_bytes(octets[8:], "big") >> (64 - self.bits_of(0))
        return Place(b"%si:%x" % (self.keys.prefix, bucket), octets[:8])

    def bits_of(self, table: int) -> int:
        """Returns how many bits name a bucket of a table; page ids are in buckets like those of the first."""
        return self.bucket_bits - FEWER * (table < len(EXACT))

    def places(self, entry: Entry) -> list[Place]:
        """Returns where a page is, in each table, that of page ids the first."""
        keys = entry.keys
        octets = [_KEY.pack(key) for key in keys]
        found = [self.id_place(entry.page_id)]
        for front, column, permute, below in self._named:
            found.append(Place(b"%s%x" % (front, permute(keys[column]) >> below), octets[column]))
        return found

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables, but for that of page ids."""
        return (*EXACT, *self.plan.tables)

    @cached_property
    def _named(self) -> list[tuple[bytes, int, Callable[[int], int], int]]:
        """How the buckets of each table begin, which of a page's keys it holds, how the bits that name them are moved, and how many do not."""
        named = list[tuple[bytes, int, Callable[[int], int], int]]()
        for number, table in enumerate(self.tables):
            below = 64 - self.bits_of(number)
            moves = tuple(move for move in table.moves if move[1] << move[2] >> below)
            front = b"%st:%d:" % (self.keys.prefix, number)
            named.append((front, table.column, table._replace(moves=moves).permute, below))
        return named


def bucket_bits(plan: Plan, pages: int) -> int:
    """Returns how many bits name a bucket.

    >>> from dedup.fingerprint.plans import plan
    >>> bucket_bits(plan(6, 1_000_000), 1_000_000)
    15
    """
    bits = math.ceil(math.log2(max(1, pages / BUCKET_PAGES)))
    return min(max(MIN_BITS, bits), *(table.prefix for table in plan.tables))


def numbers_of(entries: bytes, key: bytes) -> list[int]:
    """Returns the numbers of pages with a key, of the entries of a bucket.

    >>> numbers_of(bytes(8) + b"\\7\\0\\0\\0" + bytes(8) + b"\\xff\\xff\\xff\\xff", bytes(8))
    [7]
    """
    found = np.frombuffer(entries, ENTRY, len(entries) // ENTRY.itemsize)
    same = (found["key"] == np.uint64(_KEY.unpack(key)[0])) & (found["number"] != GAP)
    return [int(number) for number in found["number"][same]]


def nearest(entries: Entries, query: int, radius: int, most: int, tables: int) -> tuple[bytes, bool]:
    """Returns the pages within ``radius`` bits of a ``query``, among the entries of buckets, as a look packs them.

    There are ``most`` of them at most, the nearest first, and those filed first; also returns whether that is all.
    A page may be in as many of the buckets as there are ``tables``.
    """
    apart = distances(entries["key"], query)
    near = (apart <= radius) & (entries["number"] != GAP)
    ranks = apart[near].astype(np.uint64) << np.uint64(32) | entries["number"][near]
    enough = most * tables
    if len(ranks) > enough:
        ranks = np.partition(ranks, enough)[: enough + 1]
    ranks = np.unique(ranks)
    answer = np.empty(min(len(ranks), most), NEAR)
    answer["number"], answer["distance"] = ranks[:most] & np.uint64(GAP), ranks[:most] >> np.uint64(32)
    return answer.tobytes(), len(ranks) <= most


def numbers_in(octets: bytes) -> list[int]:
    """Returns numbers of pages, of 4 bytes each."""
    found: list[int] = np.frombuffer(octets, "<u4").tolist()
    return found


def packed(numbers: Sequence[int]) -> bytes:
    """Returns the same, packed."""
    return np.array(numbers, "<u4").tobytes()


def groups(near: bytes) -> Iterator[list[int]]:
    """Yields the pages at each distance, of what a look says of those that are near."""
    found = np.frombuffer(near, NEAR)
    numbers = found["number"].tolist()
    ends = np.bincount(found["distance"]).cumsum().tolist()
    yield from (numbers[start:end] for start, end in pairwise((0, *ends)) if start < end)
