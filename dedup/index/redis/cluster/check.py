"""Which invariants of an index over a cluster don't hold, told apart from what a crawl is just changing.

Nothing needs a moment at which all nodes stand still: what looks wrong is looked at again.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from dedup.fingerprint.plans import EXACT
from dedup.index.entry import Entry
from dedup.index.parameters import Parameters
from dedup.index.redis.cluster.keys import BUCKET, COMMON
from dedup.index.redis.cluster.reading import Reading, batches, contents, whole
from dedup.index.redis.keys import ID_OCTETS
from dedup.index.redis.reading import RUN, damaged_table
from dedup.index.redis.record import header_digest
from dedup.index.survey import Finding, unsound
from dedup.printing import octets as shown

__all__ = ["Invariants"]

#: Pages whose buckets are looked at, at once.
PAGES = 100
#: Members of buckets that are told one by one.
SUSPECTS = 1000


class Invariants:
    """The check of one survey."""

    def __init__(self, reading: Reading, parameters: Parameters, header: Mapping[str, str]) -> None:
        self.reading = reading
        self.cluster = reading.cluster
        self.keys = reading.keys
        self.parameters = parameters
        self.header = header
        self.tables = len(EXACT) + reading.tables.plan.size

    async def findings(self) -> AsyncIterator[Finding]:
        """Every invariant that does not hold."""
        if self.header.get("digest") != header_digest(self.header):
            yield Finding("the header", "its digest is not that of its fields: a field was changed")
        filed = 0
        async for findings, places in self._look_at_pages():
            filed += places
            for finding in findings:
                yield finding
        async for finding in self._look_at_keys(filed):
            yield finding
        async for keys in self.cluster.scan(self.reading.common.tables):
            for key, octets in zip(keys, await self.reading.values(keys), strict=True):
                if octets and (damage := damaged_table(self.reading.common, key, octets)):
                    yield damage
        for run in (await self.reading.leases())[0]:
            if not RUN.fullmatch(run):
                yield Finding(
                    "leases that no crawl can have",
                    shown(run),
                    f"ZREM {shown(self.reading.common.runs)} each of them",
                )

    async def _look_at_pages(self) -> AsyncIterator[tuple[list[Finding], int]]:
        """What is wrong with some pages at a time, and in how many buckets they are."""
        some: list[tuple[bytes, bytes]] = []
        async for page in self.reading.records():
            some.append(page)
            if len(some) == PAGES:
                yield await self._look_at(some)
                some = []
        if some:
            yield await self._look_at(some)

    async def _look_at(self, pages: Sequence[tuple[bytes, bytes]]) -> tuple[list[Finding], int]:
        found: list[Finding] = []
        filed: dict[bytes, tuple[bytes, Entry]] = {}
        places = 0
        for key, octets in pages:
            name, record = f"page {shown(key)}", whole(octets)
            if record is None:
                found.append(Finding("unreadable pages", f"{name}: its record is torn or changed"))
                continue
            places += len({bucket for entry in contents(record) for bucket in self.reading.buckets(entry)})
            settled = record.settled
            if settled and (flaw := unsound(self.parameters, name, settled.entry)):
                found.append(flaw)
            elif settled and self.keys.page_id(settled.entry.page_id) != key:
                found.append(Finding("page ids that do not lead to their pages", name))
            elif record is settled:  # else it is on its way
                filed[key] = octets, record.entry
        for _ in range(2):  # what seems to lack may have been taken out, or filed anew, meanwhile
            lacking = await self._lacking({key: entry for key, (_, entry) in filed.items()})
            again = dict(zip(lacking, await self.reading.values(list(lacking)), strict=True))
            filed = {key: filed[key] for key in lacking if again[key] == filed[key][0]}
        for key in filed:
            tables = ", ".join(map(str, lacking[key]))
            what = f"page {shown(key)}: {tables} of {self.tables}"
            repair = "export it, and import those pages again: they are then filed in all their tables"
            found.append(Finding("pages missing from tables", what, repair))
        return found, places

    def _places(self, entry: Entry) -> Iterator[tuple[bytes, int]]:
        return ((probe.bucket, probe.own) for probe in self.reading.tables.probes(entry))

    async def _lacking(self, entries: Mapping[bytes, Entry]) -> dict[bytes, list[int]]:
        """The pages that are not where they belong, and in which tables."""
        places = [
            (key, table, bucket, own)
            for key, entry in entries.items()
            for table, (bucket, own) in enumerate(self._places(entry))
        ]
        start = len(self.keys.pages)
        scores = await self.cluster.ask([("ZSCORE", bucket, key[start:]) for key, _, bucket, _ in places])
        lacking: dict[bytes, list[int]] = {}
        for score, (key, table, _, own) in zip(scores, places, strict=True):
            if score is None or float(score) != own:
                lacking.setdefault(key, []).append(table)
        return lacking

    async def _look_at_keys(self, filed: int) -> AsyncIterator[Finding]:
        """Whether each key is one of an index, and whether there is anything in the buckets but pages."""
        buckets: list[bytes] = []
        members, start = 0, len(self.keys.prefix)
        async for keys in self.reading.all_keys():
            kinds = await self.cluster.ask([("TYPE", key) for key in keys])
            lives = await self.cluster.ask([("PTTL", key) for key in keys])
            about = zip(keys, kinds, lives, strict=True)
            found = [(key, kind, life) for key, kind, life in about if kind != b"none"]
            for key, kind, life in found:
                wanted = self._kind(key)
                if not wanted:
                    repair = "delete them, if you know that they are not yours"
                    yield Finding("unknown keys", shown(key), repair)
                elif kind != wanted:
                    yield Finding("keys of another type", f"{shown(key)} is not a {wanted.decode()}")
                elif int(life) >= 0:
                    yield Finding("keys that will expire", shown(key), "PERSIST each of them")
            own = [key for key, kind, _ in found if kind == b"zset" and BUCKET.fullmatch(key, start)]
            buckets += own
            members += sum(await self.cluster.ask([("ZCARD", key) for key in own]))
        if members != filed:
            async for finding in self._strays(buckets):
                yield finding

    def _kind(self, key: bytes) -> bytes:
        """The type that a key should have; nothing if no index has such a key."""
        common = self.reading.common.prefix
        if key.startswith(common):
            return next((kind for name, kind in COMMON if name.fullmatch(key, len(common))), b"")
        if not key.startswith(self.keys.prefix):
            return b""
        if key.startswith(self.keys.pages):
            return b"string" if len(key) == len(self.keys.pages) + ID_OCTETS else b""
        bucket = BUCKET.fullmatch(key, len(self.keys.prefix))
        if not bucket or int(bucket[1]) >= self.tables:
            return b""
        return b"" if int(bucket[2], 16) >> self.reading.tables.bucket_bits else b"zset"

    async def _strays(self, buckets: Sequence[bytes]) -> AsyncIterator[Finding]:
        """What is in buckets and does not belong there."""
        told = 0
        for some in batches(buckets):
            strays = await self._stray(await self._members(some))
            strays = await self._stray(strays)  # once more: they may have been new
            still_there = set(await self._members(list({bucket for bucket, _ in strays})))
            for bucket, page in strays:
                told += (bucket, page) in still_there
                if (bucket, page) in still_there and told <= SUSPECTS:
                    repair = "nothing has to be done: they are passed over"
                    yield Finding("members without a page", f"{shown(page)} in {shown(bucket)}", repair)

    async def _members(self, buckets: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Buckets, and pages that are in them."""
        found = await self.cluster.ask([("ZRANGE", bucket, 0, -1) for bucket in buckets])
        return [(bucket, page) for bucket, pages in zip(buckets, found, strict=True) for page in pages]

    async def _stray(self, members: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Those members whose pages don't belong into their buckets."""
        pages = list({page for _, page in members})
        places: dict[bytes, set[bytes]] = {}
        for some in batches(pages):
            records = await self.reading.values([self.keys.record(page) for page in some])
            for page, record in zip(some, map(whole, records), strict=True):
                filed = contents(record) if record else ()
                places[page] = {bucket for entry in filed for bucket in self.reading.buckets(entry)}
        return [(bucket, page) for bucket, page in members if bucket not in places[page]]
