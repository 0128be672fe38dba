"""The shared index over a Redis Cluster: pages and tables spread over its masters.

How it comes that of two twins exactly one is kept is said in `dedup.index.redis.cluster.protocol`; what is stored, in
`dedup.index.redis.cluster.keys`.  Of one slot are only a header, leases, and what is known of hosts.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any
from uuid import uuid4

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.index.batching import Confirmations, end
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.cluster import protocol
from dedup.index.redis.cluster.judging import Judge, Kept
from dedup.index.redis.cluster.keys import CommonKeys, SpreadKeys
from dedup.index.redis.cluster.nodes import Cluster
from dedup.index.redis.cluster.protocol import Outcome
from dedup.index.redis.cluster.record import Phase, Record, state_of
from dedup.index.redis.cluster.store import Met, Store
from dedup.index.redis.cluster.survey import count_pages, survey_cluster
from dedup.index.redis.cluster.tables import Tables, bucket_bits
from dedup.index.redis.hosts import SharedHosts
from dedup.index.redis.keys import LEASE_MS
from dedup.index.redis.record import header_digest
from dedup.index.survey import Survey
from dedup.index.verdict import Verdict
from dedup.page.urls import host
from dedup.printing import many
from dedup.printing import octets as shown

__all__ = ["ClusterIndex"]

logger = logging.getLogger(__name__)

#: Changes whenever its keys would be read differently.
FORMAT = 1
#: Pages that are confirmed, added, forgotten or looked at, at once.
PAGES = 50
#: Seconds for which a page that was filed is remembered, and how many are at most: a replica may have missed them.
REMEMBERED, MOST_REMEMBERED = 60.0, 10_000
#: How many claims are remembered at most whose release could not be made yet.
MAX_RELEASING = 10_000


class ClusterIndex(Index):
    """`redis+cluster://` and `rediss+cluster://`: shared by any number of crawlers, on any number of masters."""

    format = FORMAT

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        self._cluster = Cluster(address)
        self._cluster.on_change = self._masters_changed
        self._namespace = namespace
        self._common = CommonKeys(namespace)
        self._store: Store
        self._pending: dict[str, Record] = {}  # this run's claims that are neither confirmed nor released
        self._confirming: dict[str, Record] = {}  # and those whose confirmation is on its way
        self._releasing: dict[str, None] = {}  # pages that are to be released as soon as the nodes answer
        self._replacing: dict[str, str] = {}  # pages of earlier runs, by those in whose place these were met
        self._recent: OrderedDict[str, tuple[float, Record]] = OrderedDict()  # done a short while ago
        self._locks: dict[str, tuple[asyncio.Lock, list[None]]] = {}  # of pages that something is done with
        self._last = 0  # the last number that was given to a claim
        self._nonces = count()
        self._refusal: IndexMismatchError | None = None
        self._confirmations = Confirmations(self._write)
        self._changed = asyncio.Event()
        self.lost = 0  #: pages that this run had filed, of which something was lost with a master; they are filed anew
        self._hosts: SharedHosts | None = None
        if self.hosts is not None:
            self._hosts = SharedHosts(
                detector.sketcher, self.hosts.min_own, self._cluster, self._common, self._call
            )
            self.hosts = self._hosts

    @property
    def where(self) -> str:
        return f"{self._cluster.where} ({self._namespace})"

    # --- Opening

    async def _open(self) -> None:
        info = await self._cluster.check()
        self._loop = asyncio.get_running_loop()
        stored = await self._open_header()
        if "maxmemory_policy" not in info:
            logger.warning(
                "Can't see the maxmemory-policy of %s; it has to be 'noeviction'", self._cluster.where
            )
        if info.get("aof_enabled") == 0:
            logger.warning(
                "A master of %s has appendonly off: what it holds is lost if it crashes, and no replica takes over",
                self._cluster.where,
            )
        self.parameters = self._adopt(stored)
        self._digest = stored["digest"]
        bits = int(stored["bucket_bits"])
        keys = SpreadKeys(self._namespace, stored["created"], self.plan, bits)
        tables = Tables(keys, self.plan, bits)
        self._store = Store(
            self._cluster, self._common, keys, tables, self.detector.radius, self._digest, self.run
        )
        (self._store.began,) = await self._renew(LEASE_MS)
        self._changed.clear()
        self._tasks = [asyncio.create_task(self._keep_lease()), asyncio.create_task(self._keep_filed())]
        if self._hosts is not None:
            self._hosts.start()

    async def _open_header(self) -> dict[str, str]:
        wanted = self.parameters.texts | {
            "bucket_bits": str(bucket_bits(self.plan, self.expected_pages)),
            "created": uuid4().hex[:16],
        }
        wanted["digest"] = header_digest(wanted)
        flat = [text for item in wanted.items() for text in item]
        reply: Any = None
        with suppress(IndexCorruptError):  # it is of another type
            reply = await self._cluster.run("open", [self._common.header, self._common.sequence], flat)
        texts = [bytes(text).decode("utf-8", "replace") for text in reply or []]
        stored = dict(zip(texts[::2], texts[1::2], strict=False))
        if not {"digest", "bucket_bits", "tables", "created"} <= stored.keys():
            raise IndexMismatchError(
                f"{shown(self._common.header)} in {self._cluster.where} is not the header of an index"
            )
        return stored

    # --- Claims

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        self._check_use()
        async with self._cluster.turn(claiming=True), self._alone_with(entry.page_id):
            try:
                return await self._judge(entry, page)
            except BaseException as error:
                if not isinstance(error, IndexMismatchError | IndexCorruptError):
                    self._release_later(entry.page_id)
                raise

    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        judge = Judge(self.detector, self._hosts if page.own is not None else None, entry, page)
        name = self._name(entry.page_id)
        met = [Met((), False, 0)]

        async def ready(records: Mapping[bytes, Record | None]) -> None:
            others = {host(record.entry.url) for other, record in records.items() if record and other != name}
            if self._hosts is not None and page.own is not None and others:
                await self._hosts.bring((host(entry.url), *others))

        # Most duplicates are equal to a page that is kept: then nothing has to be written.
        equal, own = await asyncio.gather(
            self._store.file(entry, only=1, look_only=True), self._store.look((name,))
        )
        if own[0][name] is None and equal.pages:
            records, leases = await self._store.look(equal.pages)
            if found := judge.equal({other: record for other, record in records.items() if record}, leases):
                return self._duplicate(entry, found.of, 1.0, done=found.done)
        outcome: Outcome = await self._store.carry_out(
            protocol.claim(name, entry, self._number(), judge),
            seen=own,
            ready=ready,
            note=lambda one: met.append(one),
        )
        crowded = met[-1].crowded
        self._releasing.pop(entry.page_id, None)
        if outcome.status == "duplicate":
            of, resemblance, done, rule, evidence = outcome.judgement.verdict
            return self._duplicate(entry, of, resemblance, done=done, evidence=evidence, rule=rule)
        if outcome.record and entry.page_id not in self._confirming:
            self._pending[entry.page_id] = outcome.record
        if outcome.status == "same":
            return Verdict.same(known=outcome.known, crowded=crowded)
        kept: Kept = outcome.judgement.kept
        if kept.replaced and kept.replaced != entry.page_id:
            self._replacing[entry.page_id] = kept.replaced
        return Verdict.new(kept.near, known=kept.known, crowded=crowded)

    def _number(self) -> int:
        """A number for a claim: by the clock, and never twice."""
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return self._last

    def _name(self, page_id: str) -> bytes:
        return self._store.keys.name(page_id)

    @asynccontextmanager
    async def _alone_with(self, page_id: str) -> AsyncIterator[None]:
        """What this run does with a page, it does in a row."""
        lock, waiting = self._locks.setdefault(page_id, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if not waiting:
                del self._locks[page_id]

    # --- What becomes of them

    async def _confirm(self, page_id: str) -> None:
        if record := self._pending.pop(page_id, None):
            self._confirming[page_id] = record
            self._confirmations.add(page_id)

    async def _write(self, batch: list[str]) -> None:
        for start in range(0, len(batch), PAGES):
            await self._each(self._confirm_now, batch[start : start + PAGES])

    async def _confirm_now(self, page_id: str) -> None:
        record = self._confirming.get(page_id)
        if record is None:
            return
        async with self._alone_with(page_id):
            done, lost = await self._store.carry_out(protocol.confirm(self._name(page_id), record))
            if lost:
                await self._note_lost([done])
            self._remember(page_id, done)
            if replaced := self._replacing.get(page_id):
                await self._forget_now(replaced, State.EARLIER)
            self._replacing.pop(page_id, None)
            self._confirming.pop(page_id, None)

    def _remember(self, page_id: str, record: Record) -> None:
        now = time.monotonic()
        self._recent[page_id] = now, record
        self._recent.move_to_end(page_id)
        while self._recent:
            oldest = next(iter(self._recent))
            if len(self._recent) <= MOST_REMEMBERED and self._recent[oldest][0] > now - REMEMBERED:
                break
            del self._recent[oldest]

    async def _release(self, page_id: str) -> None:
        self._replacing.pop(page_id, None)
        if self._pending.pop(page_id, None):
            self._release_later(page_id)
        if page_id in self._releasing:
            await self._each(self._release_now, [page_id])

    def _release_later(self, page_id: str) -> None:
        """A claim is to be released, or nobody knows what has become of it."""
        if page_id in self._pending or page_id in self._confirming:
            return
        self._releasing[page_id] = None
        if len(self._releasing) > MAX_RELEASING:
            del self._releasing[next(iter(self._releasing))]

    async def _release_now(self, page_id: str) -> None:
        async with self._alone_with(page_id):
            if page_id in self._releasing:
                await self._store.carry_out(protocol.release(self._name(page_id), self.run))
                self._releasing.pop(page_id, None)

    async def _release_all(self) -> None:
        for start in range(0, len(waiting := list(self._releasing)), PAGES):
            await self._each(self._release_now, waiting[start : start + PAGES])

    async def _each(self, do: Any, page_ids: Sequence[str]) -> list[Any]:
        """Does something with pages at once; raises the first error, when all have ended."""
        self._check_use()
        async with self._cluster.turn():
            found = await asyncio.gather(*(do(page_id) for page_id in page_ids), return_exceptions=True)
        for result in found:
            if isinstance(result, BaseException):
                raise result
        return list(found)

    # --- What is filed

    async def _find(self, page_id: str) -> Entry | None:
        self._check_use()
        async with self._cluster.turn():
            records, _ = await self._store.look((self._name(page_id),))
        record = records[self._name(page_id)]
        return record.settled.entry if record and record.settled else None

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        self._check_use()
        found: list[State] = []
        for start in range(0, len(page_ids), PAGES):
            names = [*map(self._name, page_ids[start : start + PAGES])]
            async with self._cluster.turn():
                records, leases = await self._store.look(names)
            found += [state_of(records[name], leases) for name in names]
        return found

    async def _count(self) -> int:
        self._check_use()
        async with self._cluster.turn():
            return await count_pages(self._cluster, self._store.keys.pages)

    async def _add(self, entries: Sequence[Entry]) -> int:
        added = 0
        for start in range(0, len(entries), PAGES):
            some = {entry.page_id: entry for entry in reversed(entries[start : start + PAGES])}
            added += sum(
                await self._each(lambda page_id, some=some: self._add_now(some[page_id]), list(some))
            )
        return added

    async def _add_now(self, entry: Entry) -> bool:
        """Row add absent: it is one of an earlier run, whichever that was."""
        record = Record(Phase.DONE, self._number(), 0, entry)
        if await self._store.carry_out(protocol.add(self._name(entry.page_id), record)):
            await self._store.file(entry)
            return True
        return False

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        if self._hosts is not None:
            self._hosts.merge(tables)
            await self._hosts.flush()

    async def _forget(self, page_ids: Sequence[str]) -> int:
        await self._confirmations.flush()
        for page_id in page_ids:
            for known in (self._pending, self._releasing, self._recent):
                known.pop(page_id, None)
        forgotten = 0
        for start in range(0, len(names := list(dict.fromkeys(page_ids))), PAGES):
            forgotten += sum(await self._each(self._forget_now, names[start : start + PAGES]))
        return forgotten

    async def _forget_now(self, page_id: str, wanted: State | None = None) -> bool:
        return await self._store.carry_out(protocol.forget(self._name(page_id), self.run, wanted))

    async def survey(self) -> Survey | None:
        return await survey_cluster(self._cluster, self._common, self._namespace, self.where, self._adopt)

    # --- Masters that fail

    def _masters_changed(self) -> None:
        if self._opened:
            self._changed.set()

    async def _keep_filed(self) -> None:
        """Whenever another node has become a master, files anew what it may have missed."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(DedupError):
                await self._file_anew()

    async def _file_anew(self) -> None:
        filed = {page_id: record for page_id, (_, record) in self._recent.items()}
        filed |= self._confirming | self._pending
        lost: list[Record] = []

        async def restore(page_id: str) -> None:
            async with self._alone_with(page_id):
                record = self._pending.get(page_id) or self._confirming.get(page_id) or filed[page_id]
                if (
                    page_id not in self._pending
                    and page_id not in self._confirming
                    and page_id not in self._recent
                ):
                    return  # it was released, or forgotten
                was_lost, there = await self._store.carry_out(protocol.restore(self._name(page_id), record))
                if (there and (await self._store.file(record.entry)).lacking) or was_lost:
                    lost.append(record)

        names = list(filed)
        for start in range(0, len(names), PAGES):
            await self._each(restore, names[start : start + PAGES])
        if lost:
            self._tell_lost(len(lost))

    async def _note_lost(self, records: Sequence[Record]) -> None:
        for record in records:
            await self._store.file(record.entry)
        self._tell_lost(len(records))

    def _tell_lost(self, pages: int) -> None:
        self.lost += pages
        logger.warning(
            "A master of %s was lost, and with it something of %s that this crawl had filed; it is filed again. Copies "
            "that were met meanwhile may have been kept",
            self._cluster.where,
            many(pages, "page"),
        )

    # --- The run

    async def _renew(self, lease: int | str) -> list[Any]:
        return await self._call("renew", [self._common.released], [lease])

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(LEASE_MS / 3000)
            with suppress(DedupError):
                await self._renew(LEASE_MS)
                await self._release_all()
                await self._watch_nodes()

    async def _watch_nodes(self) -> None:
        """Notices a policy that was changed in mid-run, and masters that have changed while nothing was asked."""
        try:
            async with self._cluster.turn():
                await self._cluster.check()
            self._refusal = None
        except IndexMismatchError as error:
            self._refusal = error

    async def close(self, *, finished: bool = True) -> None:
        if self._opened:
            self._check_loop()
        try:
            if self._opened:
                for task in self._tasks:
                    await end(task)
                await self._confirmations.close()
                self._releasing |= dict.fromkeys(self._pending)
                self._pending.clear()
                await self._release_all()
                if self._hosts is not None:
                    await self._hosts.close()
                await self._renew("finished" if finished else 0)
        finally:
            self._opened = False
            await self._cluster.close()

    async def _call(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a script of the slot that all share, and returns its answer."""
        self._check_use()
        nonce = str(next(self._nonces)).encode()
        own = self._common
        # No number is said to have been seen: a replica that was promoted may have missed it.
        known = (self._digest, 0, nonce, f"{self.run} {LEASE_MS} {self._store.began}")
        async with self._cluster.turn():
            reply = await self._cluster.run(
                verb, [own.header, own.sequence, own.runs, own.pending, *keys], [*known, *arguments]
            )
        match reply:
            case [echo, int(), b"gone" | b"older"] if echo == nonce:
                raise self._store.gone()
            case [echo, int(), *answer] if echo == nonce:
                return answer
        raise IndexUnavailableError(f"the index {self._cluster.where} gave an answer that no index gives")

    def _check_use(self) -> None:
        self._check_loop()
        if self._refusal is not None:
            raise self._refusal

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise IndexUnavailableError(
                f"the index {self.where} was opened in another event loop, to which its connections belong; open "
                "one for each call of asyncio.run, and for each thread"
            )
