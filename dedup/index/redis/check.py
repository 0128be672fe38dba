"""Which invariants of an index in Redis don't hold, told apart from what a crawl is just changing.

Whatever looks wrong is judged by what the server says in one moment: pages come and go, but each script
adds or takes out a page as a whole.  Memory: 8 bytes a page, and 8 more for every 64 tables.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import accumulate, chain, groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.index.parameters import Parameters
from dedup.index.redis.buckets import ENTRY, numbers_of
from dedup.index.redis.keys import BUCKET, KINDS, PAGE
from dedup.index.redis.reading import RUN, Numbers, Reading, batches, damaged_table
from dedup.index.redis.record import header_digest, key_at, whole
from dedup.index.survey import BATCH, Finding, unsound
from dedup.printing import octets as shown

__all__ = ["Invariants"]

#: Entries of buckets that one script looks at: 5 ms of the server's time.
MEMBERS = 1000
#: Pages that are looked at one by one; a table that was lost as a whole needs no more.
SUSPECTS = 1000
#: A lease that ends later than this, in ms from now, was given by another clock.
LONGEST_LEASE = 24 * 3600 * 1000
#: What is said of a page id that is lost.
LOST_ID = "page ids that do not lead to their pages"
_COUNT = re.compile(rb"[0-9]{1,15}")
_MEMBER = np.dtype([*ENTRY.descr, ("scope", ">u8"), ("own", ">u8")])


class _Part(NamedTuple):
    """A part of a bucket."""

    key: bytes
    table: int
    bucket: int
    first: int  # of the entries that are looked at
    members: int  # how many are


class Invariants:
    """The check of one survey."""

    def __init__(self, reading: Reading, parameters: Parameters, header: Mapping[str, str]) -> None:
        self.reading = reading
        self.server = reading.server
        self.key = reading.keys
        self.parameters = parameters
        self.header = header
        self.buckets = reading.buckets
        self.tables = self.buckets.tables
        self.ids = len(self.tables)  #: stands for the table of page ids
        banded = parameters.detector.finder.own_keys > 0
        #: Where in a record the key is that each table holds.
        self.places = [*(key_at(table.column, banded=banded) for table in self.tables), -1]
        self._looked_at = 0

    async def findings(self) -> AsyncIterator[Finding]:
        """Every invariant that does not hold."""
        if self.header.get("digest") != header_digest(self.header):
            yield Finding("the header", "its digest is not that of its fields: a field was changed")
        before = await self._counters()
        numbers = await self.reading.numbers()
        for finding in self._counted(numbers, before, await self._counters()):
            yield finding
        seen = np.zeros((len(numbers), (self.ids + 64) // 64), np.uint64)  # a bit for each table
        for findings in (self._keys(numbers, seen), self._records(numbers, seen), self._claims()):
            async for finding in findings:
                yield finding

    # --- Counters

    async def _counters(self) -> list[int]:
        """How many numbers were given out, and how many taken back; nothing if that is not to be read."""
        given, released = await self.server.ask([("GET", self.key.sequence), ("GET", self.key.released)])
        texts = given or b"", released or b"0"  # the first release makes it
        return [int(text) for text in texts] if all(map(_COUNT.fullmatch, texts)) else []

    def _counted(self, numbers: Numbers, before: list[int], after: list[int]) -> Iterator[Finding]:
        """Whether the counters say how many pages there are; while a crawl is running, they bound it."""
        kind, sequence, back = "the counters", shown(self.key.sequence), shown(self.key.released)
        if not before or not after:
            yield Finding(kind, f"{sequence} is missing, or it or {back} is not a number")
            return
        (given, released), (last, taken) = before, after
        filed, highest = len(numbers), int(numbers.max(initial=0))
        if last < highest:
            repair = f"SET {sequence} {highest}, before the next crawl overwrites pages"
            yield Finding(kind, f"{sequence} is {last}, but page {highest} is filed", repair)
        elif not given - taken <= filed <= last - released:
            what = f"{sequence} {last} less {back} {taken} is {last - taken}, but {filed} pages are filed"
            yield Finding(kind, what, f"SET {back} {last - filed}, while no crawl is running")

    # --- Keys: their names, types and times to live; page ids; buckets

    async def _keys(self, numbers: Numbers, seen: Numbers) -> AsyncIterator[Finding]:
        prefix = len(self.key.prefix)
        async for keys in self.server.scan(self.key.prefix):
            kinds = [next((kind for name, kind in KINDS if name.fullmatch(key, prefix)), b"") for key in keys]
            parts, hosts = [], []
            sizes = await self.server.run("kinds", keys, kinds) if keys else []
            for key, kind, size, expires in zip(keys, kinds, sizes[::2], sizes[1::2], strict=True):
                bucket = BUCKET.fullmatch(key, prefix)
                table = self.ids if bucket is None or bucket[1] is None else int(bucket[1])
                place = int(bucket[2], 16) if bucket else 0
                is_beyond = bucket and bucket[1] and table >= self.ids
                if not kind or is_beyond or place >> self.buckets.bucket_bits:
                    repair = "delete them, if you know that they are not yours"
                    yield Finding("unknown keys", shown(key), repair)
                    continue
                if expires:
                    yield Finding("keys that will expire", shown(key), "PERSIST each of them")
                if size == -1:
                    yield Finding("keys of another type", f"{shown(key)} is not a {kind.decode()}")
                elif bucket:
                    members, rest = divmod(size, ENTRY.itemsize)
                    if rest:
                        yield Finding("torn buckets", f"{shown(key)} has {size} bytes")
                    firsts = range(0, members, MEMBERS)
                    parts += [
                        _Part(key, table, place, first, min(members - first, MEMBERS)) for first in firsts
                    ]
                elif key.startswith(self.key.tables):
                    hosts.append(key)
            for findings in (self._members(parts, numbers, seen), self._hosts(hosts)):
                async for finding in findings:
                    yield finding

    async def _members(self, parts: list[_Part], numbers: Numbers, seen: Numbers) -> AsyncIterator[Finding]:
        """Compares entries of buckets with their pages; notes in ``seen`` which were right."""
        found: list[tuple[_Part, bytes]] = []
        for some in _parcels(parts):
            ranges = ((self.places[one.table], *_octets(one)) for one in some)
            arguments = [self.key.pages, *chain.from_iterable(ranges)]
            packed, strays = await self.server.run("members", [one.key for one in some], arguments)
            found += zip(some, packed, strict=True)
            for place, number in zip(strays[::2], strays[1::2], strict=True):
                kind = LOST_ID if some[place - 1].table == self.ids else "entries without a page"
                yield Finding(kind, f"page {number} in {shown(some[place - 1].key)}")
        if not found:
            return
        members = np.frombuffer(b"".join(packed for _, packed in found), _MEMBER)
        counts = [len(packed) // _MEMBER.itemsize for _, packed in found]
        tables = np.repeat([one.table for one, _ in found], counts)
        placed = np.repeat(np.array([one.bucket for one, _ in found], np.uint64), counts)
        below = np.uint64(64 - self.buckets.bucket_bits)
        for table in np.unique(tables).tolist():
            own = tables == table
            page = members["number"][own].astype(np.uint64)
            if table == self.ids:
                right = await self._led_to(members[own], placed[own])
            else:
                keys = members["own"][own].astype(np.uint64) ^ members["scope"][own].astype(np.uint64)
                right = self.tables[table].permute(keys) >> below == placed[own]
                right &= keys == members["key"][own]
            for number, bucket in zip(page[~right].tolist(), placed[own][~right].tolist(), strict=True):
                name = f"table {table}" if table != self.ids else "page ids"
                kind = "entries of a wrong bucket or key" if table != self.ids else LOST_ID
                yield Finding(kind, f"page {number} in bucket {bucket:x} of {name}")
            at = np.minimum(np.searchsorted(numbers, page[right]), max(0, len(numbers) - 1))
            known = at[numbers[at] == page[right]] if len(numbers) else at[:0]
            seen[known, table // 64] |= np.uint64(1 << table % 64)

    async def _led_to(self, members: Any, buckets: Numbers) -> npt.NDArray[np.bool_]:
        """Whether page ids lead to their pages."""
        records = list[bytes | None]()
        numbers = members["number"].tolist()
        for start in range(0, len(numbers), BATCH):
            records += await self.reading.records(numbers[start : start + BATCH])
        right = np.ones(len(numbers), bool)
        for at, record in enumerate(records):
            key, bucket = members["key"][at].tobytes(), self.key.bucket(None, int(buckets[at]))
            if not self._leads_to(bucket, key, record):
                commands = [("GET", bucket), ("GET", self.key.page(numbers[at]))]
                entries, again = await self.server.ask(commands, together=True)
                is_filed = numbers[at] in numbers_of(entries or b"", key)
                right[at] = not is_filed or self._leads_to(bucket, key, again)
        return right

    async def _hosts(self, keys: list[bytes]) -> AsyncIterator[Finding]:
        """Whether the tables of hosts can be read, and are counted."""
        for key in keys:
            commands = [("GET", key), ("ZSCORE", self.key.hosts, key[len(self.key.tables) :])]
            octets, written = await self.server.ask(commands, together=True)
            if octets is None:
                continue  # taken out meanwhile
            if finding := damaged_table(self.key, key, octets):
                yield finding
            if written is None:
                repair = "delete them, else they are never taken out; they will be learned anew"
                yield Finding("tables of hosts that are not listed", shown(key), repair)

    def _leads_to(self, bucket: bytes, key: bytes, record: bytes | None) -> bool:
        entry = whole(record or b"")
        return entry is not None and self.buckets.id_place(entry.page_id) == (bucket, key)

    # --- Pages

    async def _records(self, numbers: Numbers, seen: Numbers) -> AsyncIterator[Finding]:
        """Reads every page; looks closer at those that were not met in every table, or not by their id."""
        tables = np.arange(64 * seen.shape[1]).reshape(-1, 64) <= self.ids
        everywhere = (seen == np.packbits(tables, axis=1, bitorder="little").view("<u8").ravel()).all(axis=1)
        suspects: list[int] = []
        for start, some in enumerate(batches(numbers)):
            records = await self.reading.records(some)
            entries = [whole(record or b"") for record in records]
            places = everywhere[start * BATCH : (start + 1) * BATCH].tolist()
            for number, record, entry, placed in zip(some, records, entries, places, strict=True):
                name = f"page {number}"
                if entry is None:
                    if record is not None:  # else taken out meanwhile, or of another type
                        yield Finding("unreadable pages", f"{name}: its record is torn or changed")
                elif finding := unsound(self.parameters, name, entry):
                    yield finding
                elif not placed:
                    suspects.append(number)
            while suspects:
                if self._looked_at == SUSPECTS:
                    what = f"{len(suspects)} from {suspects[0]} on"
                    yield Finding("pages not looked at any closer", what)
                    suspects.clear()
                else:
                    for finding in await self._look_at(suspects.pop(0)):
                        yield finding

    async def _look_at(self, number: int) -> list[Finding]:
        """What is wrong with where a page is filed, at one moment."""
        key = self.key.page(number)
        (record,) = await self.server.ask([("GET", key)])
        entry = whole(record or b"")
        if entry is None:
            return []
        places = self.buckets.places(entry)
        commands: list[tuple[Any, ...]] = [("GET", place.bucket) for place in places]
        *buckets, again = await self.server.ask([*commands, ("GET", key)], together=True)
        if again != record:
            return []
        found = []
        filed = [
            number in numbers_of(entries or b"", place.key)
            for entries, place in zip(buckets, places, strict=True)
        ]
        lacking = [str(table) for table, is_there in enumerate(filed[1:]) if not is_there]
        if not filed[0]:
            found.append(Finding("pages that their ids do not lead to", f"page {number}"))
        if lacking:
            what = f"page {number}: {', '.join(lacking)} of {self.ids}"
            found.append(Finding("pages missing from tables", what))
        self._looked_at += bool(found)
        return found

    # --- Claims

    async def _claims(self) -> AsyncIterator[Finding]:
        """Whether pending claims are of pages and runs, and leases end in time."""
        pending, cursor = self.key.pending, 0
        repair = f"HDEL {shown(pending)} each of them"
        while True:
            (answer,) = await self.server.ask([("HSCAN", pending, cursor, "COUNT", MEMBERS)])
            if answer is None:
                break  # of another type
            cursor, owners = answer
            numbers = [number for number in owners if PAGE.fullmatch(b"p:" + number)]
            for number, run in owners.items():
                if number not in numbers or not RUN.fullmatch(run):
                    what = f"{shown(number)}: {shown(run)}"
                    yield Finding("pending claims without a number or a run", what, repair)
            there = await self.server.ask([("EXISTS", self.key.pages + number) for number in numbers])
            for number, exists in zip(numbers, there, strict=True):
                commands = [("HEXISTS", pending, number), ("EXISTS", self.key.pages + number)]
                if not exists and await self.server.ask(commands, together=True) == [1, 0]:
                    yield Finding("pending claims without a page", f"page {number.decode()}", repair)
            if cursor == 0:
                break
        leases, now = await self.reading.leases()
        repair = f"ZREM {shown(self.key.runs)} each of them"
        for run, ends in leases.items():
            if not RUN.fullmatch(run) or not ends - now < LONGEST_LEASE:
                what = f"{shown(run)} until {ends:.0f} ms"
                yield Finding("leases that no crawl can have", what, repair)


def _octets(part: _Part) -> tuple[int, int]:
    """The first and the last byte of a part."""
    return part.first * ENTRY.itemsize, (part.first + part.members) * ENTRY.itemsize - 1


def _parcels(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Parts of buckets for one script each, which together have about `MEMBERS` members."""
    before = accumulate((part.members for part in parts), initial=0)
    for _, parcel in groupby(zip(parts, before, strict=False), lambda placed: placed[1] // MEMBERS):
        yield [part for part, _ in parcel]
