"""The shared index, in Redis or Valkey >= 6.2: one Lua script per verb, one round trip per page.

The keys are described in `dedup.index.redis.keys`.  Redis needs maxmemory-policy noeviction, else it
drops parts of the tables without a word; it should have appendonly on, else a crash loses the index.
"""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import numpy as np

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, is_same_name, weigh
from dedup.fingerprint.plans import MIN_PREFIX
from dedup.index.batching import Confirmations
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.bulk import Bulk
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import Brought, SharedHosts
from dedup.index.redis.keys import LEASE_MS, Keys, Tables
from dedup.index.redis.record import header_digest, pack, unpack
from dedup.index.redis.survey import survey_redis
from dedup.index.survey import Survey
from dedup.index.verdict import Near, Verdict
from dedup.page.urls import host
from dedup.printing import octets as shown

__all__ = ["RedisIndex"]

logger = logging.getLogger(__name__)

#: A bucket is planned to hold this many pages: half of what a listpack holds, so that it stays one.
BUCKET_PAGES = 64
#: How many hosts a claim may ask for at once, and how often; then others are looked at as the page's own host is.
ASKED, ROUNDS = 32, 4
#: Pages that one call of a script confirms, or tells the states of.
PAGES = 500
#: How many releases are remembered at most that could not be made yet; of the others, copies are dropped in doubt.
MAX_RELEASING = 10_000


@dataclass(slots=True, eq=False)
class _Release:
    """A claim that is to be released."""

    claimed: Entry
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # while it is on its way


class RedisIndex(Index):
    """`redis://`, `rediss://` and `unix://`: shared by any number of crawlers."""

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        self._server = Server(address)
        self._namespace = namespace
        self._keys = Keys(namespace)
        self._pending: dict[str, Entry] = {}  # this run's claims that are neither confirmed nor released
        self._releasing: dict[str, _Release] = {}  # and those to be released as soon as the server answers
        self._replacing: dict[str, str] = {}  # pages of earlier runs, by those in whose place these were met
        self._began = 0  # the last number that the server had given out then
        self._nonces = count()
        self._seen = 0  # the highest number that the server has said it gave out
        self._refusal: IndexMismatchError | None = None
        self._confirmations = Confirmations(self._write)
        self._hosts: SharedHosts | None = None
        if self.hosts is not None:
            self._hosts = SharedHosts(
                detector.sketcher, self.hosts.min_own, self._server, self._keys, self._call
            )
            self.hosts = self._hosts

    @property
    def where(self) -> str:
        return f"{self._server.where} ({self._namespace})"

    async def _open(self) -> None:
        info = await self._server.check()
        if info.get("role") == "slave":  # met in mid-run, it may become the master again
            raise IndexMismatchError(
                f"{self._server.where} is a replica, which can't be written; give the address of its master"
            )
        self._loop = asyncio.get_running_loop()
        stored = await self._open_header()
        if "maxmemory_policy" not in info:
            logger.warning(
                "Can't see the maxmemory-policy of %s; it has to be 'noeviction'", self._server.where
            )
        if info.get("aof_enabled") == 0:
            logger.warning(
                "%s has appendonly off: the index is lost if that server crashes", self._server.where
            )
        self.parameters = self._adopt(stored)
        self._digest = stored["digest"]
        self._tables = Tables(self._keys, self.plan, int(stored["bucket_bits"]))
        self._bulk = Bulk(self._server, self._tables, self._call)
        (self._began,) = await self._renew(LEASE_MS)
        self._lease = asyncio.create_task(self._keep_lease())
        if self._hosts is not None:
            self._hosts.start()

    async def _open_header(self) -> dict[str, str]:
        bits = math.ceil(math.log2(max(1, self.expected_pages / BUCKET_PAGES)))
        prefix = min(table.prefix for table in self.plan.tables)
        wanted = self.parameters.texts | {
            "bucket_bits": str(min(max(MIN_PREFIX, bits), prefix)),
            "created": uuid4().hex,
        }
        wanted["digest"] = header_digest(wanted)
        flat = [text for item in wanted.items() for text in item]
        reply = None
        with suppress(IndexCorruptError):  # it is of another type
            reply = await self._server.run("open", [self._keys.header, self._keys.sequence], flat)
            if not isinstance(reply, list) or not all(isinstance(text, bytes) for text in reply):
                raise self._no_answer()
        texts = [text.decode("utf-8", "replace") for text in reply or []]
        stored = dict(zip(texts[::2], texts[1::2], strict=False))
        if not {"digest", "bucket_bits", "tables"} <= stored.keys() or not stored["bucket_bits"].isdecimal():
            raise IndexMismatchError(
                f"{shown(self._keys.header)} in {self._server.where} is not the header of an index"
            )
        return stored

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        async with self._server.turn(claiming=True):
            unknown = None
            if release := self._releasing.get(entry.page_id):
                async with release.lock:  # else one that is on its way might come after the claim
                    unknown = self._releasing.pop(entry.page_id, None)
            try:
                return await self._judge(entry, page)
            except BaseException as error:
                is_answer = isinstance(error, IndexMismatchError | IndexCorruptError)
                if unknown or not (is_answer or self._is_claimed(entry.page_id)):
                    self._release_later(entry)
                raise

    def _is_claimed(self, page_id: str) -> bool:
        return page_id in self._pending or page_id in self._confirmations

    def _release_later(self, entry: Entry) -> None:
        """A claim is to be released, or nobody knows what has become of it: it was cancelled, or its answer is lost."""
        self._releasing[entry.page_id] = _Release(entry)
        if len(self._releasing) > MAX_RELEASING:
            del self._releasing[next(iter(self._releasing))]

    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        digests, shown, *others = self._tables.probes(entry)
        order = self.plan.nearest_first
        probes = [(digests, -1), (shown, -1), *((others[place], reach) for place, reach in order)]
        keys = [self._keys.page_id(entry.page_id), *(probe.bucket for probe, _ in probes)]
        detector = self.detector
        arguments: list[Any] = [
            detector.radius,
            repr(float(detector.min_resemblance)),
            detector.sketcher.bits,
            detector.sketcher.values,
            self._keys.pages,
            pack(entry),
        ]
        for (_, low, high, own), reach in probes:
            arguments += (low, high, own, reach)
        home, views = host(entry.url), dict[str, Brought]()
        weighs = self._hosts is not None and page.own is not None
        if self._hosts is not None and weighs:
            views = await self._hosts.views(page, home)
        outdated: list[bytes] = []
        number, asked = b"", [ASKED] * ROUNDS + [0]
        for _ in range(2 * ROUNDS):
            brought = self._brought(page, home, views, asked[0]) if weighs else []
            match await self._call("claim", keys + outdated, [*arguments, *brought, number, len(outdated)]):
                case [b"same", int(known), int(crowded)]:
                    self._note(entry)
                    return Verdict.same(known=bool(known), crowded=bool(crowded))
                case [b"new", int(known), int(crowded), bytes(replaced), *found]:
                    self._note(entry)
                    if replaced:
                        self._replacing[entry.page_id] = replaced.decode()
                    near: Near | None = None
                    if found:
                        other, evidence = self._weighed(page, home, views, found)
                        near = Near(other.url, evidence, is_same_name(page, other.called))
                    return Verdict.new(near, known=bool(known), crowded=bool(crowded))
                case [b"changed", bytes(number), bytes(record)]:
                    with self._server.errors():
                        buckets = [probe.bucket for probe in self._tables.probes(unpack(record))]
                    outdated = [self._keys.released, *buckets]
                case [b"duplicate" | b"shown" as word, int(either), int(both), int(equal), int(done), *found]:
                    of, evidence = self._weighed(page, home, views, found)
                    alike = detector.sketcher.estimate(either, both, equal)
                    rule = "view" if word == b"shown" else None
                    return self._duplicate(entry, of, alike, done=bool(done), evidence=evidence, rule=rule)
                case [b"hosts", *names] if self._hosts is not None and asked[0]:
                    asked.pop(0)
                    lacking = [bytes(name).decode() for name in names]
                    views |= await self._hosts.more_views(page, home, lacking)
                case _:
                    break
        raise self._no_answer()

    def _weighed(
        self, page: Fingerprint, home: str, views: Mapping[str, Brought], found: Sequence[Any]
    ) -> tuple[Entry, Evidence | None]:
        """A page whose record the server gave, and the evidence that the counts behind the record are."""
        with self._server.errors():
            record, *counts = found
            of = unpack(record)
        beside = [views[name] for name in (host(of.url), home) if name in views]
        view = max(beside, key=lambda brought: brought.pages).view if beside else None
        if not counts or view is None:
            return of, None
        return of, weigh(self.detector.sketcher, page, counts, of.called, view)

    def _brought(self, page: Fingerprint, own: str, views: Mapping[str, Brought], asked: int) -> list[Any]:
        """What a claim is told of a page's own, and of hosts; see claim.lua."""
        assert self.hosts is not None
        assert page.own is not None
        main = next((view.main for _, view in views.values() if view), b"")
        brought = [repr(float(self.hosts.min_own)), page.own.shingles, int(np.count_nonzero(page.own.filled))]
        brought += [page.said.to_bytes(8, "big"), main, own, asked, int(page.own.has_data)]
        for name, (pages, view) in views.items():
            tells = (int(view.heading_tells), int(view.shows_own)) if view else (0, 0)
            masks = (view.own_if_equal, view.own_if_new) if view else (b"", b"")
            brought += (name, pages, *masks, *tells)
        return brought

    def _note(self, entry: Entry) -> None:
        """A page was claimed, and is pending unless it was confirmed before."""
        if entry.page_id not in self._confirmations:
            self._pending[entry.page_id] = entry

    async def _confirm(self, page_id: str) -> None:
        if self._pending.pop(page_id, None) is None:
            return
        self._confirmations.add(page_id)

    async def _write(self, batch: list[str]) -> None:
        for start in range(0, len(batch), PAGES):
            some = batch[start : start + PAGES]
            keys = [self._keys.released, *map(self._keys.page_id, some)]
            await self._call("confirm", keys, [self._keys.pages, bytes.fromhex(self.run)])
            replaced = [self._replacing[page_id] for page_id in some if page_id in self._replacing]
            await self._bulk.forget(replaced, State.EARLIER)
            for page_id in some:
                self._replacing.pop(page_id, None)

    async def _release(self, page_id: str) -> None:
        self._replacing.pop(page_id, None)
        if entry := self._pending.pop(page_id, None):
            self._release_later(entry)
        await self._release_now(page_id)

    async def _release_now(self, page_id: str) -> None:
        release = self._releasing.get(page_id)
        if release is None:
            return
        async with release.lock:
            if self._releasing.get(page_id) is not release:
                return
            # A dead run may have filed it otherwise.  A cancelled claim has reached the server before this answer.
            entry = await self._find(page_id) or release.claimed
            keys = [self._keys.released, self._keys.page_id(page_id)]
            keys += [probe.bucket for probe in self._tables.probes(entry)]
            await self._call("release", keys, [self._keys.pages])
            self._releasing.pop(page_id, None)

    async def _release_all(self) -> None:
        """Releases what could not be released when it was asked for, and claims of which nobody knows."""
        releases = map(self._release_now, list(self._releasing))
        for error in await asyncio.gather(*releases, return_exceptions=True):
            if error is not None:
                raise error

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        found: list[State] = []
        for start in range(0, len(page_ids), PAGES):
            keys = [*map(self._keys.page_id, page_ids[start : start + PAGES])]
            found += [State(state.decode()) for state in await self._call("state", keys, [self._keys.pages])]
        return found

    async def _find(self, page_id: str) -> Entry | None:
        record: bytes | None = None
        async with self._server.turn():
            (number,) = await self._server.values([self._keys.page_id(page_id)])
            if number:
                (record,) = await self._server.values([self._keys.pages + number])
        return unpack(record) if record else None

    async def _count(self) -> int:
        async with self._server.turn():
            given, released = await self._server.values([self._keys.sequence, self._keys.released])
        with self._server.errors():
            return int(given or 0) - int(released or 0)

    async def survey(self) -> Survey | None:
        return await survey_redis(self._server, self._keys, self.where, self._adopt)

    async def _add(self, entries: Sequence[Entry]) -> int:
        return await self._bulk.add(entries)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        if self._hosts is not None:
            self._hosts.merge(tables)
            await self._hosts.flush()

    async def _forget(self, page_ids: Sequence[str]) -> int:
        await self._confirmations.flush()
        for page_id in page_ids:
            self._pending.pop(page_id, None)
            self._releasing.pop(page_id, None)
        return await self._bulk.forget(page_ids)

    async def _renew(self, lease: int | str) -> list[Any]:
        return await self._call("renew", [self._keys.released], [lease])

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(LEASE_MS / 3000)
            with suppress(DedupError):
                await self._renew(LEASE_MS)
                await self._release_all()
                await self._watch_server()

    async def _watch_server(self) -> None:
        """Notices a policy that was changed in mid-run; claims are refused for as long as it lasts."""
        try:
            async with self._server.turn():
                await self._server.check()
            self._refusal = None
        except IndexMismatchError as error:
            self._refusal = error

    async def close(self, *, finished: bool = True) -> None:
        if self._opened:
            self._check_loop()
        try:
            if self._opened:
                self._lease.cancel()
                await self._confirmations.close()
                self._releasing |= {page_id: _Release(entry) for page_id, entry in self._pending.items()}
                self._pending.clear()
                await self._release_all()
                if self._hosts is not None:
                    await self._hosts.close()
                await self._renew("finished" if finished else 0)
        finally:
            self._opened = False
            await self._server.close()

    async def _call(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a script, and returns its answer.

        Raises `IndexUnavailableError` if no answer comes in time, or one to another question,
        `IndexMismatchError` if the index is no longer the one that was opened, and `IndexCorruptError` if it is
        damaged.
        """
        self._check_loop()
        if self._refusal is not None:
            raise self._refusal
        nonce = str(next(self._nonces)).encode()
        own = self._keys
        known = (self._digest, self._seen, nonce, f"{self.run} {LEASE_MS} {self._began}")
        async with nullcontext() if verb == "claim" else self._server.turn():  # a claim has its turn
            reply = await self._server.run(
                verb, [own.header, own.sequence, own.runs, own.pending, *keys], [*known, *arguments]
            )
        match reply:
            case [echo, int(), b"gone"] if echo == nonce:
                raise IndexMismatchError(
                    f"the index {self.where} has vanished or was replaced while it was in use"
                )
            case [echo, int(last), b"older"] if echo == nonce:
                raise IndexMismatchError(
                    f"the index {self.where} was set back to an earlier state while it was in use: it has given "
                    f"out {max(last, 0):,} numbers and had given out {self._seen:,}; start the crawl anew to go on with it"
                )
            case [echo, int(last), *answer] if echo == nonce:
                self._seen = max(self._seen, last)
                return answer
        await self._server.disconnect()  # whatever else is on its way belongs to no question
        raise self._no_answer()

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise IndexUnavailableError(
                f"the index {self.where} was opened in another event loop, to which its connections belong; open "
                "one for each call of asyncio.run, and for each thread"
            )

    def _no_answer(self) -> IndexUnavailableError:
        return IndexUnavailableError(f"the index {self._server.where} gave an answer that no index gives")
