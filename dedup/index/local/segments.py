"""The keys of a file's pages, packed in segments: all that is read of the pages when an index is opened.

A segment holds the pages of `SPAN` row numbers that follow each other, with a checksum.  It is written in the transaction
that writes or deletes their rows.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import xxhash

from dedup.fingerprint.shingles import Hashes
from dedup.index.local.table import Numbers

#: A segment spans this many row numbers: a batch of new pages writes 27 kB once more.
SPAN = 1 << 10

SCHEMA = """
CREATE TABLE segments (             -- for each 1,024 numbers, of which some may be free
    place INTEGER PRIMARY KEY,      -- number / 1024
    keys BLOB NOT NULL,             -- number % 1024, 2 bytes a page, then its keys, 8 bytes each; little-endian
    checksum BLOB NOT NULL          -- XXH3 of the keys, seeded with the place, 8 bytes, big-endian
);
"""
#: No page has a number beyond this, so that four bytes are enough.
HIGHEST = (1 << 32) - 1

Segment = tuple[int, bytes, bytes]


def pack(numbers: Numbers, keys: Hashes) -> Iterator[Segment]:
    """Yields the segments of pages, which come in the order of their numbers; ``keys`` has shape (n, columns)."""
    ends = np.flatnonzero(np.diff(numbers // SPAN)) + 1
    for some, own in zip(np.split(numbers, ends), np.split(keys, ends), strict=True):
        if len(some):
            place = int(some[0]) // SPAN
            octets = (some % SPAN).astype("<u2").tobytes() + own.astype("<u8").tobytes()
            yield place, octets, xxhash.xxh3_64_digest(octets, seed=place)


def unpack(segment: Sequence[Any], columns: int) -> tuple[Numbers, Hashes]:
    """Returns the numbers of pages, ascending, and their keys, shape (n, columns).  Raises ValueError if they are not as written."""
    place, octets, seal = segment
    right = type(place) is int and type(octets) is bytes and 0 <= place <= HIGHEST // SPAN
    if not right or seal != xxhash.xxh3_64_digest(octets, seed=place):
        raise ValueError("the keys of some pages are not as they were written")
    pages, rest = divmod(len(octets), 2 + 8 * columns)
    numbers = np.frombuffer(octets, "<u2", pages).astype(np.uint32)
    if rest or not pages or numbers[-1] >= SPAN or np.any(numbers[1:] <= numbers[:-1]):
        raise ValueError("the keys of some pages are not as they were written")
    keys = np.frombuffer(octets, "<u8", pages * columns, 2 * pages).reshape(pages, columns)
    return numbers + np.uint32(place * SPAN), keys.astype(np.uint64, copy=False)


def stored(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Yields the segments that are there, in the order of their numbers, unchecked."""
    return connection.execute("SELECT place, keys, checksum FROM segments ORDER BY place")


def put(connection: sqlite3.Connection, segments: Iterator[Segment]) -> None:
    """Writes segments as they are."""
    connection.executemany("REPLACE INTO segments VALUES (?, ?, ?)", segments)


def update(
    connection: sqlite3.Connection, gone: Collection[int], added: Mapping[int, tuple[int, ...]], columns: int
) -> None:
    """Takes pages out of the segments, then adds others, by number, with their keys.

    Raises ValueError if a segment is not as it was written.  O(SPAN) for each that is touched.
    """
    touched = sorted({*gone, *added})
    for place, group in groupby(touched, lambda number: number // SPAN):
        query = "SELECT place, keys, checksum FROM segments WHERE place = ?"
        found = connection.execute(query, (place,)).fetchone()
        numbers, keys = (
            unpack(found, columns) if found else (np.empty(0, np.uint32), np.empty((0, columns), "u8"))
        )
        here = list(group)
        fresh = [number for number in here if number in added]
        kept = ~np.isin(numbers, np.array(here, np.uint32))
        numbers = np.concatenate((numbers[kept], np.array(fresh, np.uint32)))
        own = np.array([added[number] for number in fresh], np.uint64).reshape(-1, columns)
        keys = np.concatenate((keys[kept], own))
        order = numbers.argsort()
        if len(order):
            put(connection, pack(numbers[order], keys[order]))
        else:
            connection.execute("DELETE FROM segments WHERE place = ?", (place,))
