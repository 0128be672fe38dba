"""Which invariants of an index in Redis don't hold, told apart from what a crawl is just changing.

The record of a page says where it belongs: an entry in one bucket of each table.  What the records say, and what is in the
buckets, is added up for each page, 8 bytes a page beside its name.  A page is looked at closer if the sums differ, or if there
is no record for its entries: what looks wrong then, twice, is wrong.  Pages come and go meanwhile.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xxhash

from dedup.index.entry import Entry
from dedup.index.parameters import Parameters
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import Keys
from dedup.index.redis.reading import RUN
from dedup.index.redis.record import header_digest
from dedup.index.survey import REBUILD, Finding, unsound
from dedup.printing import octets as shown

#: No more findings about single pages are yielded than this; a table that was lost as a whole needs no more.
SUSPECTS = 1000
#: A lease that ends later than this, in ms from now, was given by another clock.
LONGEST_LEASE = 24 * 3600 * 1000

#: Tells when the lease of each run ends, and what time it is there, in ms.
Leases = Callable[[], Awaitable[tuple[dict[bytes, float], float]]]
#: A bucket and an entry, as bytes that tell it from all others in the bucket.
Spot = tuple[bytes, bytes]


class Filed(NamedTuple):
    """A page, as its record says it."""

    entry: Entry | None  #: None if it is only being tried
    spots: Sequence[Spot]  #: where it belongs
    is_settled: bool = True  #: true if it has to be there by now


class Check(ABC):
    """The check of one survey.  The name of a page, in its entries, has ``width`` bytes, eight or more."""

    width = 8
    #: How to repair what a page lacks, and an entry that does not belong where it is.
    lacking, stray = REBUILD, REBUILD
    #: What its tables are called, in the order of a page's spots.
    tables: Sequence[str]

    def __init__(
        self, server: Server, keys: Keys, leases: Leases, parameters: Parameters, header: Mapping[str, str]
    ) -> None:
        self.server = server
        self.common = keys
        self._leases = leases
        self.parameters = parameters
        self._header = header

    # --- What a store has

    @abstractmethod
    def pages(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yields the name and the record of every page."""

    @abstractmethod
    def read(self, name: bytes, octets: bytes | None) -> Filed | None:
        """Returns what the record of a page says; None if it is torn, or not there."""

    @abstractmethod
    def key(self, name: bytes) -> bytes:
        """Returns the key of a page's record."""

    @abstractmethod
    def name(self, entry: bytes) -> bytes:
        """Returns the page of an entry."""

    @abstractmethod
    def called(self, name: bytes) -> str:
        """Returns what a page is called in messages."""

    @abstractmethod
    def keys(self) -> AsyncIterator[list[bytes]]:
        """Yields all keys of the index, some at a time."""

    @abstractmethod
    def kind(self, key: bytes) -> tuple[bytes, bool]:
        """Returns the type that a key should have, or nothing if an index has no such key; and whether it is a bucket."""

    @abstractmethod
    def content(self, bucket: bytes) -> tuple[Any, ...]:
        """Returns the command that reads a bucket."""

    @abstractmethod
    def entries(self, answer: Any) -> list[bytes]:
        """Returns the entries in a bucket, by the answer."""

    def has(self, answer: Any, entry: bytes) -> bool:
        """Returns whether a bucket has an entry, by the answer."""
        return entry in self.entries(answer)

    def rest(self, answer: Any) -> int:
        """Returns how many bytes a bucket has that are torn, by the answer."""
        return 0

    # --- What is wrong with it

    async def findings(self) -> AsyncIterator[Finding]:
        """Yields every invariant that does not hold."""
        if self._header.get("digest") != header_digest(self._header):
            yield Finding("the header", "its digest is not that of its fields: a field was changed")
        self._names, self._unknown, self._told = bytearray(), set[bytes](), 0
        torn, sums = set[bytes](), list[int]()
        async for name, octets in self.pages():
            filed, what = self.read(name, octets), self.called(name)
            if filed is None:
                yield Finding("unreadable pages", f"{what}: its record is torn or changed")
            elif flaw := filed.entry and unsound(self.parameters, what, filed.entry):
                yield flaw
            else:
                self._names += name
                sums.append(_sum(filed.spots))
                continue
            torn.add(name)
        numbers = np.frombuffer(self._names, ">u8")[:: self.width // 8].astype(np.uint64)
        self._order = numbers.argsort()
        self._numbers, self._sums = numbers[self._order], np.array(sums, np.uint64)[self._order]
        async for keys in self.keys():
            async for finding in self._look_at_keys(list(dict.fromkeys(keys))):
                yield finding
        suspects = [self._name(at) for at in self._order[self._sums != 0].tolist()]
        for findings in (self._lacking(suspects), self._strays(self._unknown.union(suspects) - torn)):
            async for finding in findings:
                yield finding
        leases, now = await self._leases()
        for run, ends in leases.items():
            if not RUN.fullmatch(run) or not ends - now < LONGEST_LEASE:
                what = f"{shown(run)} until {ends:.0f} ms"
                repair = f"ZREM {shown(self.common.runs)} each of them"
                yield Finding("leases that no crawl can have", what, repair)

    def _name(self, at: int) -> bytes:
        return bytes(self._names[at * self.width : (at + 1) * self.width])

    async def _look_at_keys(self, keys: Sequence[bytes]) -> AsyncIterator[Finding]:
        """Yields what is wrong with keys, by their names and types; adds up what is in the buckets."""
        types = await self.server.ask([("TYPE", key) for key in keys])
        lives = await self.server.ask([("PTTL", key) for key in keys])
        buckets, tables = [], []
        for key, there, life in zip(keys, types, lives, strict=True):
            wanted, is_bucket = self.kind(key)
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
            elif key.startswith(self.common.tables):
                tables.append(key)
            if life >= 0:
                yield Finding("keys that will expire", shown(key), "PERSIST each of them")
        async for bucket, answer in self._read(buckets):
            if self.rest(answer):
                yield Finding("torn buckets", f"{shown(bucket)} has {len(answer)} bytes")
            self._add_up(bucket, self.entries(answer))
        for key in tables:
            if finding := await self._look_at_table(key):
                yield finding

    async def _read(self, buckets: Collection[bytes]) -> AsyncIterator[tuple[bytes, Any]]:
        answers = await self.server.ask([*map(self.content, buckets)])
        for bucket, answer in zip(buckets, answers, strict=True):
            if answer:
                yield bucket, answer

    def _add_up(self, bucket: bytes, entries: Sequence[bytes]) -> None:
        names = [*map(self.name, entries)]
        numbers = np.frombuffer(b"".join(names), ">u8")[:: self.width // 8].astype(np.uint64)
        sums = np.array([_sum([(bucket, entry)]) for entry in entries], np.uint64)
        at = self._numbers.searchsorted(numbers)
        known = at < len(self._numbers)
        known[known] = self._numbers[at[known]] == numbers[known]
        np.bitwise_xor.at(self._sums, at[known], sums[known])
        self._unknown.update(names[place] for place in (~known).nonzero()[0].tolist())

    async def _look_at_table(self, key: bytes) -> Finding | None:
        """Returns a finding if the table of a host can't be read, or is not counted."""
        commands = [("GET", key), ("ZSCORE", self.common.hosts, key[len(self.common.tables) :])]
        octets, written = await self.server.ask(commands, together=True)
        if octets is None:
            return None  # taken out meanwhile
        try:
            name, _ = unpack_table(octets)
        except ValueError:
            name = ""
        if self.common.host(name) != key:
            repair = "delete them: what is known of those hosts will be learned anew"
            return Finding("unreadable tables of hosts", shown(key), repair)
        repair = "delete them, else they are never taken out; they will be learned anew"
        return None if written else Finding("tables of hosts that are not listed", shown(key), repair)

    async def _lacking(self, names: Sequence[bytes]) -> AsyncIterator[Finding]:
        """Yields the pages that are not in all their tables."""
        for at, name in enumerate(names):
            if self._told == SUSPECTS:
                what = f"{len(names) - at} from {self.called(name)} on"
                yield Finding("pages not looked at any closer", what)
                return
            if lacking := await self._tables_without(name):
                self._told += 1
                what = f"{self.called(name)}: {', '.join(lacking)} of {len(self.tables)}"
                yield Finding("pages missing from tables", what, self.lacking)

    async def _tables_without(self, name: bytes) -> list[str]:
        lacking, key = list[str](), self.key(name)
        for _ in range(2):
            (octets,) = await self.server.ask([("GET", key)])
            filed = self.read(name, octets)
            if filed is None or not filed.is_settled:
                return []
            commands = [*(self.content(bucket) for bucket, _ in filed.spots), ("GET", key)]
            *answers, again = await self.server.ask(commands, together=True)
            spots = zip(self.tables, filed.spots, answers, strict=True)
            lacking = [table for table, (_, entry), found in spots if not self.has(found, entry)]
            if again != octets:
                return []
        return lacking

    async def _strays(self, names: Collection[bytes]) -> AsyncIterator[Finding]:
        """Yields the entries of these pages that do not belong where they are."""
        if not names:
            return
        async for keys in self.keys():
            async for bucket, answer in self._read([key for key in keys if self.kind(key)[1]]):
                for entry in self.entries(answer):
                    is_told = self._told < SUSPECTS and self.name(entry) in names
                    if is_told and await self._is_stray(bucket, entry):
                        self._told += 1
                        what = f"{self.called(self.name(entry))} in {shown(bucket)}"
                        yield Finding("entries that do not belong there", what, self.stray)

    async def _is_stray(self, bucket: bytes, entry: bytes) -> bool:
        name = self.name(entry)
        commands = self.content(bucket), ("GET", self.key(name))
        for _ in range(2):
            answer, octets = await self.server.ask(commands, together=True)
            filed = self.read(name, octets)
            if not self.has(answer, entry) or (filed and (bucket, entry) in filed.spots):
                return False
        return True


def _sum(spots: Sequence[Spot]) -> int:
    """Returns what is added up of some entries."""
    total = 0
    for bucket, entry in spots:
        total ^= xxhash.xxh3_64_intdigest(bucket + b" " + entry)
    return total
