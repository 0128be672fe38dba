"""Which invariants of an index in Redis don't hold, told apart from what a crawl is just changing.

Whatever looks wrong is judged by what the server says in one moment: pages come and go, but each script
adds or takes out a page as a whole.  Memory: 8 bytes a page, and 8 more for every 64 tables.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import accumulate, chain, groupby
from typing import Any, NamedTuple

import numpy as np

from dedup.fingerprint.plans import EXACT
from dedup.index.parameters import Parameters
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import BUCKET, KINDS, PAGE
from dedup.index.redis.reading import Numbers, Reading, batches
from dedup.index.redis.record import header_digest, key_at, whole
from dedup.index.survey import BATCH, Finding, unsound
from dedup.printing import octets as shown

__all__ = ["Invariants"]

#: Members of buckets that one script looks at: 5 ms of the server's time.
MEMBERS = 1000
#: Pages that are looked at one by one; a table that was lost as a whole needs no more.
SUSPECTS = 1000
#: A lease that ends later than this, in ms from now, was given by another clock.
LONGEST_LEASE = 24 * 3600 * 1000
_RUN = re.compile(rb"[0-9a-f]{32}")
_COUNT = re.compile(rb"[0-9]{1,15}")
_MEMBER = np.dtype([("number", ">u8"), ("score", ">f8"), ("scope", ">u8"), ("key", ">u8")])


class _Part(NamedTuple):
    """A part of a bucket."""

    key: bytes
    table: int
    bucket: int
    first: int  # of the members that are looked at
    members: int  # how many are


class Invariants:
    """The check of one survey."""

    def __init__(self, reading: Reading, parameters: Parameters, header: Mapping[str, str]) -> None:
        self.reading = reading
        self.server = reading.server
        self.key = reading.keys
        self.parameters = parameters
        self.header = header
        self.bucket_bits = reading.tables.bucket_bits
        self.tables = (*EXACT, *parameters.plan.tables)
        banded = parameters.detector.finder.own_keys > 0
        #: Where in a record the key is that each table holds.
        self.places = [key_at(table.column, banded=banded) for table in self.tables]
        self._looked_at = 0

    async def findings(self) -> AsyncIterator[Finding]:
        """Every invariant that does not hold."""
        if self.header.get("digest") != header_digest(self.header):
            yield Finding("the header", "its digest is not that of its fields: a field was changed")
        before = await self._counters()
        numbers = await self.reading.numbers()
        for finding in self._counted(numbers, before, await self._counters()):
            yield finding
        seen = np.zeros((len(numbers), (len(self.tables) + 63) // 64), np.uint64)  # a bit for each table
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
            parts, ids, hosts = [], [], []
            sizes = await self.server.run("kinds", keys, kinds) if keys else []
            for key, kind, size, expires in zip(keys, kinds, sizes[::2], sizes[1::2], strict=True):
                bucket = BUCKET.fullmatch(key, prefix)
                place = (int(bucket[1]), int(bucket[2], 16)) if bucket else (0, 0)
                if not kind or place[0] >= len(self.tables) or place[1] >> self.bucket_bits:
                    repair = "delete them, if you know that they are not yours"
                    yield Finding("unknown keys", shown(key), repair)
                    continue
                if expires:
                    yield Finding("keys that will expire", shown(key), "PERSIST each of them")
                if size == -1:
                    yield Finding("keys of another type", f"{shown(key)} is not a {kind.decode()}")
                elif bucket:
                    firsts = range(0, size, MEMBERS)
                    parts += [_Part(key, *place, first, min(size - first, MEMBERS)) for first in firsts]
                elif key[prefix : prefix + 2] == b"i:":
                    ids.append(key)
                elif key.startswith(self.key.tables):
                    hosts.append(key)
            for findings in (self._members(parts, numbers, seen), self._ids(ids), self._hosts(hosts)):
                async for finding in findings:
                    yield finding

    async def _members(self, parts: list[_Part], numbers: Numbers, seen: Numbers) -> AsyncIterator[Finding]:
        """Compares members of buckets with their pages; notes in ``seen`` which were right."""
        found: list[tuple[_Part, bytes]] = []
        for some in _parcels(parts):
            ranges = ((self.places[one.table], one.first, one.first + one.members - 1) for one in some)
            arguments = [self.key.pages, *chain.from_iterable(ranges)]
            packed, strays = await self.server.run("members", [one.key for one in some], arguments)
            found += zip(some, packed, strict=True)
            for place, member in zip(strays[::2], strays[1::2], strict=True):
                name = shown(some[place - 1].key)
                yield Finding("members without a page", f"{shown(member)} in {name}")
        if not found:
            return
        members = np.frombuffer(b"".join(packed for _, packed in found), _MEMBER)
        counts = [len(packed) // _MEMBER.itemsize for _, packed in found]
        tables = np.repeat([one.table for one, _ in found], counts)
        placed = np.repeat(np.array([one.bucket for one, _ in found], np.uint64), counts)
        below = np.uint64(64 - self.bucket_bits)
        for table in np.unique(tables).tolist():
            own = tables == table
            page, score = members["number"][own].astype(np.uint64), members["score"][own]
            keys = members["key"][own].astype(np.uint64) ^ members["scope"][own].astype(np.uint64)
            permuted = self.tables[table].permute(keys)
            rest = permuted & ((np.uint64(1) << below) - np.uint64(1))
            right = (permuted >> below == placed[own]) & (rest.astype(np.float64) == score)
            for number, bucket in zip(page[~right].tolist(), placed[own][~right].tolist(), strict=True):
                what = f"page {number} in bucket {bucket:x} of table {table}"
                yield Finding("members of a wrong bucket or score", what)
            at = np.minimum(np.searchsorted(numbers, page[right]), max(0, len(numbers) - 1))
            known = at[numbers[at] == page[right]] if len(numbers) else at[:0]
            seen[known, table // 64] |= np.uint64(1 << table % 64)

    async def _ids(self, keys: list[bytes]) -> AsyncIterator[Finding]:
        """Whether page ids lead to their pages."""
        if not keys:
            return
        (values,) = await self.server.ask([("MGET", *keys)])
        (records,) = await self.server.ask([("MGET", *(self.key.pages + (value or b"") for value in values))])
        for key, value, record in zip(keys, values, records, strict=True):
            if value is not None and not self._leads_to(key, record):
                page = self.key.pages + value
                again, record = await self.server.ask([("GET", key), ("GET", page)], together=True)
                if again == value and not self._leads_to(key, record):
                    what = f"{shown(key)} to {shown(page)}"
                    yield Finding("page ids that do not lead to their pages", what)

    async def _hosts(self, keys: list[bytes]) -> AsyncIterator[Finding]:
        """Whether the tables of hosts can be read, and are counted."""
        for key in keys:
            commands = [("GET", key), ("ZSCORE", self.key.hosts, key[len(self.key.tables) :])]
            octets, written = await self.server.ask(commands, together=True)
            if octets is None:
                continue  # taken out meanwhile
            try:
                name, _ = unpack_table(octets, self.parameters.detector.sketcher.slots)
            except ValueError:
                name = ""
            if self.key.host(name) != key:
                repair = "delete them: what is known of those hosts will be learned anew"
                yield Finding("unreadable tables of hosts", shown(key), repair)
            if written is None:
                repair = "delete them, else they are never taken out; they will be learned anew"
                yield Finding("tables of hosts that are not listed", shown(key), repair)

    def _leads_to(self, key: bytes, record: bytes | None) -> bool:
        entry = whole(record or b"")
        return entry is not None and self.key.page_id(entry.page_id) == key

    # --- Pages

    async def _records(self, numbers: Numbers, seen: Numbers) -> AsyncIterator[Finding]:
        """Reads every page; looks closer at those that were not met in every table, or not by their id."""
        tables = np.arange(64 * seen.shape[1]).reshape(-1, 64) < len(self.tables)
        everywhere = (seen == np.packbits(tables, axis=1, bitorder="little").view("<u8").ravel()).all(axis=1)
        suspects: list[int] = []
        for start, some in enumerate(batches(numbers)):
            records = await self.reading.records(some)
            entries = [whole(record or b"") for record in records]
            ids = [self.key.page_id(entry.page_id if entry else "") for entry in entries]
            (values,) = await self.server.ask([("MGET", *ids)])
            places = everywhere[start * BATCH : (start + 1) * BATCH].tolist()
            found = zip(some, records, entries, values, places, strict=True)
            for number, record, entry, value, placed in found:
                name = f"page {number}"
                if entry is None:
                    if record is not None:  # else taken out meanwhile, or of another type
                        yield Finding("unreadable pages", f"{name}: its record is torn or changed")
                elif finding := unsound(self.parameters, name, entry):
                    yield finding
                elif value != b"%d" % number or not placed:
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
        probes = list(self.reading.tables.probes(entry))
        commands: list[tuple[Any, ...]] = [("ZSCORE", bucket, number) for bucket, *_ in probes]
        commands += [("GET", key), ("GET", self.key.page_id(entry.page_id))]
        *scores, again, value = await self.server.ask(commands, together=True)
        if again != record:
            return []
        found = []
        lacking = [str(table) for table, probe in enumerate(probes) if scores[table] != probe.own]
        if value != b"%d" % number:
            found.append(Finding("pages that their ids do not lead to", f"page {number}"))
        if lacking:
            what = f"page {number}: {', '.join(lacking)} of {len(probes)}"
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
                if number not in numbers or not _RUN.fullmatch(run):
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
            if not _RUN.fullmatch(run) or not ends - now < LONGEST_LEASE:
                what = f"{shown(run)} until {ends:.0f} ms"
                yield Finding("leases that no crawl can have", what, repair)


def _parcels(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Parts of buckets for one script each, which together have about `MEMBERS` members."""
    before = accumulate((part.members for part in parts), initial=0)
    for _, parcel in groupby(zip(parts, before, strict=False), lambda placed: placed[1] // MEMBERS):
        yield [part for part, _ in parcel]
