"""Which invariants of an index in Redis don't hold, told apart from what a crawl is just changing.

The record of a page says where it belongs: an entry in one bucket of each table.  What the records say, and what is in the
buckets, is added up for each page, 8 bytes a page beside its number.  A page is looked at closer if the sums differ, or if there
is no record for its entries: what looks wrong then, at one moment, is wrong.  Pages come and go meanwhile.
"""

import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence

import numpy as np
import xxhash

from dedup.index.entry import Entry
from dedup.index.parameters import Parameters
from dedup.index.redis.buckets import ENTRY, GAP
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import BUCKET, KINDS, PAGE
from dedup.index.redis.reading import RUN, Numbers, Reading, batches
from dedup.index.redis.record import header_digest, whole
from dedup.index.survey import Finding
from dedup.printing import octets as shown

#: No more findings about single pages are yielded than this; a table that was lost as a whole needs no more.
SUSPECTS = 1000
#: Claims that are read at once.
CLAIMS = 1000
#: A lease that ends later than this, in ms from now, was given by another clock.
LONGEST_LEASE = 24 * 3600 * 1000
#: Bytes of an entry, and of the number at its end.
SIZE, NUMBER = ENTRY.itemsize, 4
_GAP = GAP.to_bytes(NUMBER, "little")

#: A bucket and an entry in it.
Spot = tuple[bytes, bytes]


class Check:
    """The check of one survey."""

    def __init__(self, reading: Reading, parameters: Parameters, header: Mapping[str, str]) -> None:
        self._reading = reading
        self._server = reading.server
        self._keys = reading.keys
        self._buckets = reading.buckets
        self._parameters = parameters
        self._header = header
        self._tables = [
            "page ids",
            *map(str, range(len(self._buckets.tables))),
        ]  # in the order of a page's spots

    async def findings(self) -> AsyncIterator[Finding]:
        """Yields every invariant that does not hold."""
        if self._header.get("digest") != header_digest(self._header):
            yield Finding("the header", "its digest is not that of its fields: a field was changed")
        before = await self._reading.counters()
        listed = await self._reading.numbers()
        self._told, self._unknown, torn = 0, set[int](), set[int]()
        numbers, sums = list[int](), list[int]()
        for some in batches(listed.tolist()):
            for number, record in zip(some, await self._reading.records(some), strict=True):
                if record is None:
                    continue  # taken out meanwhile, or of another type
                if (entry := whole(record)) is None:
                    yield Finding("unreadable pages", f"page {number}: its record is torn or changed")
                elif flaw := self._parameters.flaw(entry):
                    yield Finding("unreadable pages", f"page {number}: {flaw}")
                else:
                    numbers.append(number)
                    sums.append(_sum(self._spots(number, entry)))
                    continue
                torn.add(number)
        self._numbers, self._sums = np.array(numbers, np.uint64), np.array(sums, np.uint64)
        async for keys in self._server.scan(self._keys.prefix):
            async for finding in self._look_at_keys(list(dict.fromkeys(keys))):
                yield finding
        suspects = self._numbers[self._sums != 0].tolist()
        for findings in (self._lacking(suspects), self._strays(self._unknown.union(suspects) - torn)):
            async for finding in findings:
                yield finding
        for finding in self._counted(before, await self._reading.counters(), listed):
            yield finding
        async for finding in self._claims():
            yield finding
        leases, now = await self._reading.leases()
        for run, ends in leases.items():
            if not RUN.fullmatch(run) or not ends - now < LONGEST_LEASE:
                what = f"{shown(run)} until {ends:.0f} ms"
                repair = f"ZREM {shown(self._keys.runs)} each of them"
                yield Finding("leases that no crawl can have", what, repair)

    def _spots(self, number: int, entry: Entry) -> list[Spot]:
        octets = number.to_bytes(NUMBER, "little")
        return [(bucket, key + octets) for bucket, key in self._buckets.places(entry)]

    def _kind(self, key: bytes) -> tuple[bytes, bool]:
        """Returns the type that a key should have, or nothing if an index has no such key; and whether it is a bucket."""
        start = len(self._keys.prefix)
        bucket = BUCKET.fullmatch(key, start)
        if bucket and (
            int(bucket[1] or 0) >= len(self._buckets.tables)
            or int(bucket[2], 16) >> self._buckets.bits_of(int(bucket[1] or 0))
        ):
            return b"", False
        return next((kind for name, kind in KINDS if name.fullmatch(key, start)), b""), bool(bucket)

    async def _look_at_keys(self, keys: Sequence[bytes]) -> AsyncIterator[Finding]:
        """Yields what is wrong with keys, by their names and types; adds up what is in the buckets."""
        types = await self._server.ask([("TYPE", key) for key in keys])
        lives = await self._server.ask([("PTTL", key) for key in keys])
        buckets, tables = [], []
        for key, there, life in zip(keys, types, lives, strict=True):
            wanted, is_bucket = self._kind(key)
            if there == b"none":
                continue  # taken out meanwhile
            if not wanted:
                repair = "delete them, if you know that they are not yours"
                yield Finding("unknown keys", shown(key), repair)
                continue
            if there != wanted:
                yield Finding("keys of another type", f"{shown(key)} is not a {wanted.decode()}")
            elif is_bucket:
                buckets.append(key)
            elif key.startswith(self._keys.tables):
                tables.append(key)
            if life >= 0:
                yield Finding("keys that will expire", shown(key), "PERSIST each of them")
        async for bucket, octets in self._read(buckets):
            if len(octets) % SIZE:
                yield Finding("torn buckets", f"{shown(bucket)} has {len(octets)} bytes")
            self._add_up(bucket, _entries(octets))
        for key in tables:
            if finding := await self._look_at_table(key):
                yield finding

    async def _read(self, buckets: Collection[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
        found = await self._server.ask([("GET", bucket) for bucket in buckets])
        for bucket, octets in zip(buckets, found, strict=True):
            if octets:
                yield bucket, octets

    def _add_up(self, bucket: bytes, entries: Sequence[bytes]) -> None:
        numbers: Numbers = np.array([*map(_number, entries)], np.uint64)
        sums = np.array([_sum([(bucket, entry)]) for entry in entries], np.uint64)
        at = self._numbers.searchsorted(numbers)
        known = at < len(self._numbers)
        known[known] = self._numbers[at[known]] == numbers[known]
        np.bitwise_xor.at(self._sums, at[known], sums[known])
        self._unknown.update(numbers[~known].tolist())

    async def _look_at_table(self, key: bytes) -> Finding | None:
        """Returns a finding if the table of a host can't be read, or is not counted."""
        commands = [("GET", key), ("ZSCORE", self._keys.hosts, key[len(self._keys.tables) :])]
        octets, written = await self._server.ask(commands, together=True)
        if octets is None:
            return None  # taken out meanwhile
        try:
            name, _ = unpack_table(octets)
        except ValueError:
            name = ""
        if self._keys.host(name) != key:
            repair = "delete them: what is known of those hosts will be learned anew"
            return Finding("unreadable tables of hosts", shown(key), repair)
        repair = "delete them, else they are never taken out; they will be learned anew"
        return None if written else Finding("tables of hosts that are not listed", shown(key), repair)

    async def _lacking(self, numbers: Sequence[int]) -> AsyncIterator[Finding]:
        """Yields the pages that are not in all their tables."""
        for at, number in enumerate(numbers):
            if self._told == SUSPECTS:
                yield Finding("pages not looked at any closer", f"{len(numbers) - at} from page {number} on")
                return
            if lacking := await self._tables_without(number):
                self._told += 1
                what = f"page {number}: {', '.join(lacking)} of {len(self._tables)}"
                yield Finding("pages missing from tables", what)

    async def _tables_without(self, number: int) -> list[str]:
        key = self._keys.page(number)
        (octets,) = await self._server.ask([("GET", key)])
        if (filed := whole(octets or b"")) is None:
            return []
        spots = self._spots(number, filed)
        commands = [*(("GET", bucket) for bucket, _ in spots), ("GET", key)]
        *found, again = await self._server.ask(commands, together=True)
        if again != octets:
            return []
        places = zip(self._tables, spots, found, strict=True)
        return [table for table, (_, entry), bucket in places if not _has(bucket, entry)]

    async def _strays(self, numbers: Collection[int]) -> AsyncIterator[Finding]:
        """Yields the entries of these pages that do not belong where they are."""
        if not numbers:
            return
        async for keys in self._server.scan(self._keys.prefix):
            async for bucket, octets in self._read([key for key in keys if self._kind(key)[1]]):
                for entry in _entries(octets):
                    is_told = self._told < SUSPECTS and _number(entry) in numbers
                    if is_told and await self._is_stray(bucket, entry):
                        self._told += 1
                        what = f"page {_number(entry)} in {shown(bucket)}"
                        yield Finding("entries that do not belong there", what)

    async def _is_stray(self, bucket: bytes, entry: bytes) -> bool:
        number = _number(entry)
        commands = ("GET", bucket), ("GET", self._keys.page(number))
        found, octets = await self._server.ask(commands, together=True)
        filed = whole(octets or b"")
        return _has(found, entry) and not (filed and (bucket, entry) in self._spots(number, filed))

    def _counted(self, before: list[int], after: list[int], listed: Numbers) -> Iterator[Finding]:
        """Yields a finding if the counters, read ``before`` and ``after`` the pages, do not say how many there are."""
        kind, sequence, back = "the counters", shown(self._keys.sequence), shown(self._keys.released)
        if not before or not after:
            yield Finding(kind, f"{sequence} is missing, or it or {back} is not a number")
            return
        (given, released), (last, taken) = before, after
        filed, highest = len(listed), int(listed.max(initial=0))
        if last < highest:
            repair = f"SET {sequence} {highest}, before the next crawl overwrites pages"
            yield Finding(kind, f"{sequence} is {last}, but page {highest} is filed", repair)
        elif not given - taken <= filed <= last - released:  # while a crawl is running, they bound it
            what = f"{sequence} {last} less {back} {taken} is {last - taken}, but {filed} pages are filed"
            yield Finding(kind, what, f"SET {back} {last - filed}, while no crawl is running")

    async def _claims(self) -> AsyncIterator[Finding]:
        """Yields pending claims that are of no page or of no run."""
        pending, cursor = self._keys.pending, 0
        repair = f"HDEL {shown(pending)} each of them"
        while True:
            (answer,) = await self._server.ask([("HSCAN", pending, cursor, "COUNT", CLAIMS)])
            if answer is None:
                break  # of another type
            cursor, owners = answer
            numbers = [number for number in owners if PAGE.fullmatch(b"p:" + number)]
            for number, run in owners.items():
                if number not in numbers or not RUN.fullmatch(run):
                    what = f"{shown(number)}: {shown(run)}"
                    yield Finding("pending claims without a number or a run", what, repair)
            there = await self._server.ask([("EXISTS", self._keys.pages + number) for number in numbers])
            for number, exists in zip(numbers, there, strict=True):
                commands = [("HEXISTS", pending, number), ("EXISTS", self._keys.pages + number)]
                if not exists and await self._server.ask(commands, together=True) == [1, 0]:
                    yield Finding("pending claims without a page", f"page {number.decode()}", repair)
            if cursor == 0:
                break


def _entries(octets: bytes) -> list[bytes]:
    found = (octets[at : at + SIZE] for at in range(0, len(octets) - SIZE + 1, SIZE))
    return [entry for entry in found if entry[-NUMBER:] != _GAP]


def _has(octets: bytes | None, entry: bytes) -> bool:
    return any(found.start() % SIZE == 0 for found in re.finditer(re.escape(entry), octets or b""))


def _number(entry: bytes) -> int:
    return int.from_bytes(entry[-NUMBER:], "little")


def _sum(spots: Sequence[Spot]) -> int:
    """Returns what is added up of some entries."""
    total = 0
    for bucket, entry in spots:
        total ^= xxhash.xxh3_64_intdigest(bucket + b" " + entry)
    return total
