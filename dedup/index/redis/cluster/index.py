"""The shared index over a Redis Cluster: pages and tables spread over its masters.

How it comes that of two twins exactly one is kept is said in `dedup.index.redis.cluster.protocol`; what is stored, in
`dedup.index.redis.cluster.keys`.  Of one slot are only a header, leases, and what is known of hosts.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from dedup.errors import IndexCorruptError, IndexMismatchError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import MIN_PREFIX, Plan
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.buckets import bucket_bits
from dedup.index.redis.cluster import protocol
from dedup.index.redis.cluster.judging import Judge
from dedup.index.redis.cluster.keys import BUCKET_PAGES, CommonKeys, SpreadKeys
from dedup.index.redis.cluster.nodes import Cluster
from dedup.index.redis.cluster.own_pages import OwnPages
from dedup.index.redis.cluster.protocol import Outcome
from dedup.index.redis.cluster.reading import Reading, count_pages
from dedup.index.redis.cluster.record import Leases, Phase, Record, state_of
from dedup.index.redis.cluster.recovery import Recovery
from dedup.index.redis.cluster.store import PAGES, Neighbours, Store
from dedup.index.redis.cluster.survey import ClusterSurvey
from dedup.index.redis.reading import batches
from dedup.index.redis.record import bits_of
from dedup.index.redis.shared import SharedIndex
from dedup.index.survey import Survey
from dedup.index.verdict import Verdict
from dedup.printing import octets as shown

#: Changes whenever its keys would be read differently.
FORMAT = 1


class ClusterIndex(SharedIndex):
    """`redis+cluster://` and `rediss+cluster://`: shared by any number of crawlers, on any number of masters."""

    format = FORMAT

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        self._cluster = Cluster(address)
        self._common = CommonKeys(namespace)
        super().__init__(self._cluster, self._common, namespace, detector, **options)
        self._namespace = namespace
        self._store: Store
        self._recovery: Recovery
        self._filed = OwnPages()
        self._last = 0  # the last number that was given to a claim

    @property
    def lost(self) -> int:
        """How many pages of this run were filed again because a part of them was gone."""
        return self._recovery.lost

    def _made_up(self) -> dict[str, str]:
        bits = bucket_bits(self.plan, self.settings.expected_pages, BUCKET_PAGES, MIN_PREFIX)
        return {"bucket_bits": str(bits), "created": uuid4().hex[:16]}

    async def _open(self) -> None:
        await super()._open()
        self._session.beside(self._recovery.watch())

    def _lay_out(self, header: Mapping[str, str]) -> None:
        keys = self._spread(header, self.plan)
        self._store = Store(self._cluster, self._session, keys, self.detector.radius)
        self._recovery = Recovery(self._store, self._filed, self._cluster.where)
        self._cluster.on_change = self._recovery.due.set

    def _spread(self, header: Mapping[str, str], plan: Plan) -> SpreadKeys:
        bits = bits_of(header, MIN_PREFIX, self.where)
        return SpreadKeys(self._namespace, header["created"], plan, bits)

    # --- Claims

    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        async with self._filed.alone_with(entry.page_id):
            try:
                return await self._judge_alone(entry, page)
            except IndexCorruptError:  # which may be another page's; this one may be on trial already
                if not self._is_claimed(entry.page_id):
                    self._releases.add(entry.page_id)
                raise

    async def _judge_alone(self, entry: Entry, page: Fingerprint) -> Verdict:
        judge = Judge(self.detector, self.hosts, entry, page)
        name = self._store.name(entry.page_id)
        met = [Neighbours((), False, 0)]

        async def ready(records: Mapping[bytes, Record | None]) -> None:
            others = [record.entry.url for other, record in records.items() if record and other != name]
            if self.hosts is not None and page.own is not None and others:
                await self.hosts.bring((entry.url, *others))

        # Most duplicates are equal to a page that is kept: then nothing has to be written.
        equal, own = await asyncio.gather(
            self._store.file(entry, only=1, look_only=True), self._store.look((name,))
        )
        if own[0][name] is None and equal.pages:
            records, leases = await self._store.look(equal.pages)
            if verdict := judge.equal({other: record for other, record in records.items() if record}, leases):
                return verdict
        outcome: Outcome = await self._store.carry_out(
            protocol.claim(name, entry, self._number(), judge),
            seen=own,
            ready=ready,
            note=lambda one: met.append(one),
        )
        crowded = met[-1].crowded
        if outcome.status == "duplicate":
            duplicate: Verdict = outcome.judgement.verdict
            return duplicate
        if outcome.record and entry.page_id not in self._confirmations:
            self._filed[entry.page_id] = outcome.record
            self._note(entry.page_id, outcome.record.number)
        if outcome.status == "same":
            return Verdict.same(known=outcome.known, crowded=crowded)
        new, replaced = outcome.judgement.kept
        if replaced and replaced != entry.page_id:
            self._replacing[entry.page_id] = replaced
        refiled = own[0][name] is not None
        return Verdict.new(new.near, known=new.known, refiled=refiled, crowded=crowded)

    def _number(self) -> int:
        """Returns a number for a claim: by the clock, and never twice."""
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return self._last

    # --- What becomes of them

    async def _write(self, batch: dict[str, int]) -> None:
        await self._store.each(self._confirm_now, list(batch))

    async def _confirm_now(self, page_id: str) -> None:
        async with self._filed.alone_with(page_id):
            record = self._filed.get(page_id)
            if record and record.phase is not Phase.DONE:
                done, lost = await self._store.carry_out(protocol.confirm(self._store.name(page_id), record))
                if done is None:  # the page was claimed anew, once this claim had been annulled
                    self._filed.pop(page_id)
                    self._replacing.pop(page_id, None)
                    return
                if lost:
                    await self._recovery.file_lost(done)
                self._filed.confirm(page_id, done)
            if replaced := self._replacing.get(page_id):
                await self._forget_now(replaced, State.EARLIER)
            self._replacing.pop(page_id, None)

    async def _release(self, page_id: str) -> None:
        if page_id in self._pending:
            self._filed.pop(page_id, None)
        await super()._release(page_id)

    async def _release_claim(self, page_id: str) -> None:
        await self._store.each(self._release_now, [page_id])

    async def _release_now(self, page_id: str, *, annul: bool = False) -> bool:
        async with self._filed.alone_with(page_id):
            name = self._store.name(page_id)
            return await self._store.carry_out(protocol.release(name, self.run, annul=annul))

    async def _annul(self, page_id: str) -> bool:
        (annulled,) = await self._store.each(partial(self._release_now, annul=True), [page_id])
        return annulled

    # --- What is filed

    async def _find(self, page_id: str) -> Entry | None:
        ((record, _),) = await self._looked_at([page_id])
        return record.settled.entry if record and record.settled else None

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        return [state_of(record, leases) for record, leases in await self._looked_at(page_ids)]

    async def _looked_at(self, page_ids: Sequence[str]) -> list[tuple[Record | None, Leases]]:
        """Returns the record of each page, and the leases of its runs."""
        names = [*map(self._store.name, page_ids)]
        found: list[tuple[Record | None, Leases]] = []
        for some in batches(names, PAGES):
            self._session.check()
            async with self._cluster.turn():
                records, leases = await self._store.look(some)
            found += [(records[name], leases) for name in some]
        return found

    async def _count(self) -> int:
        self._session.check()
        async with self._cluster.turn():
            return await count_pages(self._cluster, self._store.keys.pages)

    async def _add(self, entries: Sequence[Entry]) -> int:
        first: dict[str, Entry] = {}
        for entry in entries:
            first.setdefault(entry.page_id, entry)
        return sum(await self._store.each(self._add_now, list(first.values())))

    async def _add_now(self, entry: Entry) -> bool:
        """Row add absent: it is one of an earlier run, whichever that was."""
        record = Record(Phase.DONE, self._number(), 0, entry)
        return await self._store.carry_out(protocol.add(self._store.name(entry.page_id), record))

    async def _take_out(self, page_ids: Sequence[str]) -> int:
        for page_id in page_ids:
            self._filed.pop(page_id, None)
        return sum(await self._store.each(self._forget_now, list(dict.fromkeys(page_ids))))

    async def _forget_now(self, page_id: str, wanted: State | None = None) -> bool:
        return await self._store.carry_out(protocol.forget(self._store.name(page_id), self.run, wanted))

    def _survey(self, header: Mapping[str, str]) -> Survey:
        if not {"digest", "tables", "created"} <= header.keys():
            raise IndexMismatchError(
                f"{shown(self._common.header)} in {self.where} is not the header of an index"
            )
        parameters = self._adopt(header)
        reading = Reading(self._cluster, self._common, self._spread(header, parameters.plan))
        return ClusterSurvey(self.where, parameters, header, reading)
