"""The survey of an index over a Redis Cluster, taken while crawls may be using it.

Nothing here writes, and nothing needs a moment at which all nodes stand still: what looks wrong is looked at again.
Memory: 24 bytes a page.
"""

import re
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.plans import EXACT
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.parameters import Parameters
from dedup.index.redis.cluster.keys import BUCKET, CommonKeys, SpreadKeys
from dedup.index.redis.cluster.nodes import Call, Cluster
from dedup.index.redis.cluster.record import Phase, Record, decode
from dedup.index.redis.cluster.tables import Tables
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import ID_OCTETS, LEASE_MS
from dedup.index.redis.record import header_digest
from dedup.index.survey import BATCH, Filed, Finding, KnownHost, Survey, unsound
from dedup.printing import octets as shown

__all__ = ["ClusterSurvey", "count_pages", "survey_cluster"]

#: Pages whose memory is measured.
SAMPLE = 30
#: Keys up to which pages are counted one by one; of more, so many are a sample.
COUNTED = 200_000
#: Pages whose buckets are looked at, at once.
PAGES = 100
#: Members of buckets that are told one by one.
SUSPECTS = 1000
_NUMBER = struct.Struct(">BQ")
_RUN = re.compile(rb"[0-9a-f]{32}")


async def survey_cluster(
    cluster: Cluster,
    common: CommonKeys,
    namespace: str,
    where: str,
    adopt: Callable[[Mapping[str, str]], Parameters],
) -> "ClusterSurvey | None":
    """The survey of a namespace; None if it has no header.  ``adopt`` checks the parameters that are stored."""
    (kind,) = await cluster.call_all([Call.command("TYPE", common.header)])
    if kind == b"none":
        return None
    (found,) = await cluster.call_all([Call.command("HGETALL", common.header)]) if kind == b"hash" else [None]
    if isinstance(found, list):
        found = dict(zip(found[::2], found[1::2], strict=True))
    header = {
        str(name, "utf-8", "replace"): str(value, "utf-8", "replace") for name, value in (found or {}).items()
    }
    bits = header.get("bucket_bits", "")
    if not {"digest", "tables", "created"} <= header.keys():
        raise IndexMismatchError(f"{shown(common.header)} in {where} is not the header of an index")
    parameters = adopt(header)
    if not re.fullmatch("1[1-9]|[2-5][0-9]|6[0-4]", bits):
        raise IndexCorruptError(f"the index {where} is damaged: bucket_bits is {bits!r}")
    keys = SpreadKeys(namespace, header["created"], parameters.plan, int(bits))
    return ClusterSurvey(
        where, parameters, header, cluster, common, keys, Tables(keys, parameters.plan, int(bits))
    )


async def count_pages(cluster: Cluster, pages: bytes) -> int:
    """How many keys begin with ``pages``: up to `COUNTED` keys exactly; of more, by a sample."""
    size, seen, found = await cluster.size(), 0, 0
    async for keys in cluster.scan(b""):
        seen += len(keys)
        found += sum(key.startswith(pages) for key in keys)
        if seen >= COUNTED:
            return round(size * found / seen)
    return found


class ClusterSurvey(Survey):
    """What one namespace holds."""

    def __init__(
        self,
        where: str,
        parameters: Parameters,
        header: dict[str, str],
        cluster: Cluster,
        common: CommonKeys,
        keys: SpreadKeys,
        tables: Tables,
    ) -> None:
        super().__init__(where, parameters, header)
        self._cluster = cluster
        self._common = common
        self._tables = tables
        self._keys = keys

    async def count(self) -> int:
        return await count_pages(self._cluster, self._keys.pages)

    async def _pages(self, run: str, before: float) -> AsyncIterator[Filed]:
        alive = await self._alive()
        async for _, octets in self._records():
            record = _whole(octets)
            if record is None:
                yield Filed(None, State.DONE)
            elif settled := record.settled:
                dead = settled.phase is Phase.KEPT and settled.entry.run not in alive
                if dead and settled.before:
                    settled = settled.before  # perhaps met again by a run that died
                states = {Phase.KEPT: State.DEAD if dead else State.PENDING}
                yield self.readable(settled.entry, states.get(settled.phase, State.DONE))

    async def _records(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """The keys of all records and what is there, in the order of their filing."""
        found: list[tuple[int, bytes]] = []
        async for keys in self._cluster.scan(self._keys.pages):
            heads = await self._cluster.call_all(
                [Call.command("GETRANGE", key, 0, _NUMBER.size - 1) for key in keys]
            )
            for key, head in zip(keys, heads, strict=True):
                found.append((_NUMBER.unpack(head)[1] if len(head) == _NUMBER.size else 0, key))
        for some in _batches([*dict.fromkeys(key for _, key in sorted(found))]):
            for key, octets in zip(some, await self._cluster.values(some), strict=True):
                if octets is not None:  # else taken out meanwhile
                    yield key, octets

    async def _alive(self) -> set[str]:
        leases, now = await self._leases()
        return {
            run.decode("ascii", "replace") for run, ends in leases.items() if now < ends <= now + LEASE_MS
        }

    async def _leases(self) -> tuple[dict[bytes, float], float]:
        runs = self._common.runs
        found, (_, _, now) = await self._cluster.call_all(
            [
                Call.command("ZRANGE", runs, 0, -1, "WITHSCORES"),
                Call.script("leases", [self._common.header, self._common.sequence, runs]),
            ]
        )
        if found and isinstance(found[0], bytes):  # RESP3 has pairs
            found = zip(found[::2], found[1::2], strict=True)
        return {run: float(ends) for run, ends in found}, float(now)

    async def hosts(self) -> AsyncIterator[KnownHost]:
        async for _, octets in self._host_tables():
            try:
                yield KnownHost(*unpack_table(octets, self.parameters.detector.sketcher.slots))
            except ValueError:
                yield KnownHost("", None)

    async def _host_tables(self) -> AsyncIterator[tuple[bytes, bytes]]:
        async for keys in self._cluster.scan(self._common.tables):
            for key, octets in zip(keys, await self._cluster.values(keys), strict=True):
                if octets:
                    yield key, octets

    # --- What is damaged

    async def findings(self) -> AsyncIterator[Finding]:
        if self.header.get("digest") != header_digest(self.header):
            yield Finding("the header", "its digest is not that of its fields: a field was changed")
        filed = 0
        async for findings, places in self._look_at_pages():
            filed += places
            for finding in findings:
                yield finding
        async for finding in self._look_at_keys(filed):
            yield finding
        async for key, octets in self._host_tables():
            try:
                name, _ = unpack_table(octets, self.parameters.detector.sketcher.slots)
            except ValueError:
                name = ""
            if self._common.host(name) != key:
                repair = "delete them: what is known of those hosts will be learned anew"
                yield Finding("unreadable tables of hosts", shown(key), repair)
        for run in (await self._leases())[0]:
            if not _RUN.fullmatch(run):
                yield Finding(
                    "leases that no crawl can have",
                    shown(run),
                    f"ZREM {shown(self._common.runs)} each of them",
                )

    async def _look_at_pages(self) -> AsyncIterator[tuple[list[Finding], int]]:
        """What is wrong with some pages at a time, and in how many buckets they are."""
        some: list[tuple[bytes, bytes]] = []
        async for page in self._records():
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
            name, record = f"page {shown(key)}", _whole(octets)
            if record is None:
                found.append(Finding("unreadable pages", f"{name}: its record is torn or changed"))
                continue
            places += len({bucket for entry in _contents(record) for bucket, _ in self._places(entry)})
            settled = record.settled
            if settled and (flaw := unsound(self.parameters, name, settled.entry)):
                found.append(flaw)
            elif settled and self._keys.page_id(settled.entry.page_id) != key:
                found.append(Finding("page ids that do not lead to their pages", name))
            elif record is settled:  # else it is on its way
                filed[key] = octets, record.entry
        for _ in range(
            2
        ):  # what seems to lack may have been taken out, or filed anew, meanwhile: it is looked at again
            lacking = await self._lacking({key: entry for key, (_, entry) in filed.items()})
            again = dict(zip(lacking, await self._cluster.values(list(lacking)), strict=True))
            filed = {key: filed[key] for key in lacking if again[key] == filed[key][0]}
        for key in filed:
            tables = ", ".join(map(str, lacking[key]))
            what = f"page {shown(key)}: {tables} of {len(EXACT) + self._tables.plan.size}"
            found.append(Finding("pages missing from tables", what))
        return found, places

    def _places(self, entry: Entry) -> Iterator[tuple[bytes, int]]:
        return ((probe.bucket, probe.own) for probe in self._tables.probes(entry))

    async def _lacking(self, entries: Mapping[bytes, Entry]) -> dict[bytes, list[int]]:
        """The pages that are not where they belong, and in which tables."""
        places = [
            (key, table, bucket, own)
            for key, entry in entries.items()
            for table, (bucket, own) in enumerate(self._places(entry))
        ]
        start = len(self._keys.pages)
        calls = [Call.command("ZSCORE", bucket, key[start:]) for key, _, bucket, _ in places]
        lacking: dict[bytes, list[int]] = {}
        for score, (key, table, _, own) in zip(await self._cluster.call_all(calls), places, strict=True):
            if score is None or float(score) != own:
                lacking.setdefault(key, []).append(table)
        return lacking

    async def _look_at_keys(self, filed: int) -> AsyncIterator[Finding]:
        """Whether each key is one of an index, and whether there is anything in the buckets but pages."""
        names = self._keys.prefix.removesuffix(self.header["created"].encode() + b":")
        buckets: list[bytes] = []
        members = 0
        async for keys in self._cluster.scan(names):
            kinds = await self._cluster.call_all([Call.command("TYPE", key) for key in keys])
            lives = await self._cluster.call_all([Call.command("PTTL", key) for key in keys])
            found = [
                (key, kind, life)
                for key, kind, life in zip(keys, kinds, lives, strict=True)
                if kind != b"none"
            ]
            for key, kind, life in found:
                wanted = self._kind(key)
                if not wanted:
                    yield Finding(
                        "unknown keys", shown(key), "delete them, if you know that they are not yours"
                    )
                elif kind != wanted:
                    yield Finding("keys of another type", f"{shown(key)} is not a {wanted.decode()}")
                elif int(life) >= 0:
                    yield Finding("keys that will expire", shown(key), "PERSIST each of them")
            own = [key for key, kind, _ in found if kind == b"zset" == self._kind(key)]
            buckets += own
            members += sum(await self._cluster.call_all([Call.command("ZCARD", key) for key in own]))
        if members != filed:
            async for finding in self._strays(buckets):
                yield finding

    def _kind(self, key: bytes) -> bytes:
        """The type that a key should have; nothing if no index has such a key."""
        start = len(self._keys.prefix)
        if not key.startswith(self._keys.prefix):
            return b""
        if key.startswith(self._keys.pages):
            return b"string" if len(key) == len(self._keys.pages) + ID_OCTETS else b""
        bucket = BUCKET.fullmatch(key, start)
        in_plan = bucket and int(bucket[1]) < len(EXACT) + self._tables.plan.size
        return b"zset" if in_plan and bucket and int(bucket[2], 16) >> self._tables.bucket_bits == 0 else b""

    async def _strays(self, buckets: Sequence[bytes]) -> AsyncIterator[Finding]:
        """What is in buckets and does not belong there."""
        told = 0
        for some in _batches(buckets):
            strays = await self._stray(
                await self._stray(await self._members(some))
            )  # once more: it may have been new
            still_there = set(await self._members(list({bucket for bucket, _ in strays})))
            for bucket, page in strays:
                told += (bucket, page) in still_there
                if (bucket, page) in still_there and told <= SUSPECTS:
                    repair = "nothing has to be done: they are passed over"
                    yield Finding("members without a page", f"{shown(page)} in {shown(bucket)}", repair)

    async def _members(self, buckets: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Buckets, and pages that are in them."""
        found = await self._cluster.call_all([Call.command("ZRANGE", bucket, 0, -1) for bucket in buckets])
        return [(bucket, page) for bucket, pages in zip(buckets, found, strict=True) for page in pages]

    async def _stray(self, members: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Those members whose pages don't belong into their buckets."""
        pages = list({page for _, page in members})
        places: dict[bytes, set[bytes]] = {}
        for some in _batches(pages):
            records = await self._cluster.values([self._keys.record(page) for page in some])
            for page, record in zip(some, map(_whole, records), strict=True):
                contents = _contents(record) if record else ()
                places[page] = {bucket for entry in contents for bucket, _ in self._places(entry)}
        return [(bucket, page) for bucket, page in members if bucket not in places[page]]

    async def stored(self) -> tuple[int | None, str]:
        octets, names = [], [key async for key, _ in self._records()]
        some = names[:: max(1, len(names) // SAMPLE)]
        for key, found in zip(some, await self._cluster.values(some) if some else [], strict=True):
            if record := _whole(found):
                buckets = [bucket for bucket, _ in self._places(record.entry)]
                calls = [Call(each, ("MEMORY USAGE", each)) for each in (key, *buckets)]
                calls += [Call.command("ZCARD", bucket) for bucket in buckets]
                try:
                    answers: list[Any] = [answer or 0 for answer in await self._cluster.call_all(calls)]
                except IndexUnavailableError:  # this user may not ask for it
                    return None, ""
                shared = zip(answers[1 : 1 + len(buckets)], answers[1 + len(buckets) :], strict=True)
                octets.append(answers[0] + sum(size / pages for size, pages in shared if pages))
        if not octets:
            return None, ""
        average = sum(octets) / len(octets)
        return round(len(names) * average), f"MEMORY USAGE of {len(octets)} pages, and what they share"

    async def close(self) -> None:
        """The connections are the index's, which closes them."""


def _batches(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _whole(octets: bytes | None) -> Record | None:
    """A record; None if it can't be read."""
    try:
        return decode(octets)
    except (ValueError, struct.error):
        return None


def _contents(record: Record) -> Iterator[Entry]:
    """All contents with which a page is in buckets."""
    yield record.entry
    if record.before:
        yield from _contents(record.before)
