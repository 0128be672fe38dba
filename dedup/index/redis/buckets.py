"""The tables of an index in Redis: in which buckets a page is, and which entries of buckets are near a key.

A bucket is a string of entries; lua/tables.lua writes them.
"""

import hashlib
import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dedup.fingerprint.plans import EXACT, Plan, Table
from dedup.fingerprint.simhash import distances
from dedup.index.entry import Entry
from dedup.index.redis.keys import Keys

__all__ = ["ENTRY", "GAP", "Buckets", "Place", "bucket_bits", "nearest", "numbers_of"]

#: A bucket is planned to hold so many pages: what is stored of its own is then a fifth of their entries.
BUCKET_PAGES = 32
#: The fewest bits that name a bucket.
MIN_BITS = 8
#: So many entries the script of a claim compares by itself, in .2 ms; more are compared by the caller.
MAX_HERE = 2000
#: So many entries are read for a claim, 1.5 MB; a page that is kept among more of them is `Verdict.crowded`.
MAX_READ = 1 << 17
#: Up to so many pages, buckets are read at once, and whatever is in them.
MAX_WHOLE = 1 << 20
#: What a bucket holds of a page.
ENTRY = np.dtype([("key", "<u8"), ("number", "<u4")])
#: The number in a gap, where an entry was taken out.
GAP = 0xFFFFFFFF
#: What a claim is told of a page that is near: its number, and its distance.
_NEAR = np.dtype([("number", "<u4"), ("distance", "u1")])
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
        """Where a page id is."""
        octets = hashlib.blake2b(page_id.encode(), digest_size=16, key=self.created.encode()[:64]).digest()
        bucket = int.from_bytes(octets[8:], "big") >> (64 - self.bucket_bits)
        return Place(b"%si:%x" % (self.keys.prefix, bucket), octets[:8])

    def places(self, entry: Entry) -> list[Place]:
        """Where a page is, in each table, that of page ids the first."""
        below, keys, front = 64 - self.bucket_bits, entry.keys, self.keys.prefix
        found = [self.id_place(entry.page_id)]
        for number, table in enumerate(self.tables):
            key = keys[table.column]
            found.append(Place(b"%st:%d:%x" % (front, number, table.permute(key) >> below), _KEY.pack(key)))
        return found

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables, but for that of page ids."""
        return (*EXACT, *self.plan.tables)

    @property
    def flipped(self) -> int:
        """In how many tables buckets are read whose names differ in one bit, too: see lua/claim.lua."""
        return max(0, self.plan.max_distance + 1 - self.plan.size) if self.plan.flips else 0


def bucket_bits(plan: Plan, pages: int) -> int:
    """How many bits are the name of a bucket, so that buckets have about `BUCKET_PAGES` of so many pages."""
    bits = math.ceil(math.log2(max(1, pages / BUCKET_PAGES)))
    return min(max(MIN_BITS, bits), *(table.prefix for table in plan.tables))


def numbers_of(entries: bytes, key: bytes) -> list[int]:
    """The numbers of pages with a key, of the entries of a bucket.

    >>> numbers_of(bytes(8) + b"\\7\\0\\0\\0" + bytes(8) + b"\\xff\\xff\\xff\\xff", bytes(8))
    [7]
    """
    found = np.frombuffer(entries, ENTRY, len(entries) // ENTRY.itemsize)
    same = (found["key"] == np.uint64(_KEY.unpack(key)[0])) & (found["number"] != GAP)
    return [int(number) for number in found["number"][same]]


def nearest(entries: bytes, key: bytes, radius: int, most: int) -> tuple[bytes, bool]:
    """Of entries, the pages within ``radius`` bits of a key, as a claim is told of them, and whether that is all.

    At most ``most``, the nearest first, and those filed first.  O(n) for n entries, about 5 ns each.
    """
    found = np.frombuffer(entries, ENTRY)
    apart = distances(found["key"], _KEY.unpack(key)[0])
    near = np.flatnonzero((apart <= radius) & (found["number"] != GAP))
    numbers, first = np.unique(found["number"][near], return_index=True)
    apart = apart[near][first]
    order = apart.argsort(kind="stable")[:most]
    answer = np.empty(len(order), _NEAR)
    answer["number"], answer["distance"] = numbers[order], apart[order]
    return answer.tobytes(), len(numbers) <= most
