"""The shared index, in Redis or Valkey >= 6.2: one Lua script per verb.

The keys are described in `dedup.index.redis.keys`.  Redis needs maxmemory-policy noeviction, else it
drops parts of the tables without a word; it should have appendonly on, else a crash loses the index.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from dedup.errors import IndexCorruptError, IndexMismatchError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import Plan
from dedup.index.batching import Confirmations
from dedup.index.claiming import claim
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.lifecycle import State, run_of_crawl
from dedup.index.redis.buckets import MIN_BITS, Buckets, bucket_bits, numbers_of
from dedup.index.redis.claims import Claims
from dedup.index.redis.client import Server
from dedup.index.redis.clustered import ClusterServer
from dedup.index.redis.hosts import MAX_TABLES, SharedHosts
from dedup.index.redis.keys import Keys
from dedup.index.redis.reading import Reading, batches
from dedup.index.redis.record import pack, whole
from dedup.index.redis.releases import Releases
from dedup.index.redis.session import Session
from dedup.index.redis.survey import RedisSurvey, read_header
from dedup.index.survey import Survey
from dedup.index.verdict import Verdict

#: Changes whenever its keys would be read differently.
FORMAT = 9

#: Pages that one call of a script confirms, or tells the states of; and that one adds, or takes out, in .5 ms of the server's time.
PAGES, CHANGED = 500, 50


class RedisIndex(Index):
    """An index that any number of crawlers share; all they share is stored, but for what one has claimed itself."""

    format = FORMAT
    is_shared = reads_many = True
    hosts: SharedHosts | None
    _confirmations: Confirmations[int]

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        self._server = ClusterServer(address, namespace) if "+cluster:" in address else Server(address)
        self._keys = Keys(namespace)
        self._session = Session(self._server, self._keys, namespace, self.run, self.settings.lease)
        self._confirmations = Confirmations(self._write)
        self._claims = Claims(detector, self._session, self._confirmations)
        self._releases = Releases(self._release_claim)  # claims to be released as soon as there is an answer
        if self.hosts is not None:
            self.hosts = SharedHosts(detector.sketcher, self.settings, lambda _: self._session)

    @property
    def where(self) -> str:
        return self._session.where

    async def _open(self) -> None:
        bits = bucket_bits(self.plan, self.settings.expected_pages)
        made_up = {"bucket_bits": str(bits), "created": uuid4().hex}  # the latter tells it from all others
        stored = await self._session.open(self.parameters.texts | made_up)
        self.parameters = self._adopt(stored)
        self._buckets = self._spread(stored, self.plan)
        self._claims.lay_out(self._buckets, self.hosts)
        await self._session.begin(self._releases.make_all)
        if self.hosts is not None:
            self.hosts.start()

    def _spread(self, header: Mapping[str, str], plan: Plan) -> Buckets:
        bits = header.get("bucket_bits", "")
        if not re.fullmatch("[1-9][0-9]?", bits) or not MIN_BITS <= int(bits) <= 64:
            raise IndexCorruptError(f"the index {self.where} is damaged: bucket_bits is {bits!r}")
        return Buckets(self._keys, plan, int(bits), header.get("created", ""))

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        self._session.check()
        async with self._server.turn(claiming=True):
            unknown = await self._releases.forget(entry.page_id)
            try:
                return await claim(self._claims, entry, page)
            except BaseException as error:
                is_answer = isinstance(error, IndexMismatchError | IndexCorruptError)
                if unknown or not (is_answer or self._claims.has(entry.page_id)):
                    self._releases.add(entry.page_id)
                raise

    async def _confirm(self, page_id: str) -> None:
        if number := self._claims.pending.pop(page_id, None):
            self._confirmations.add(page_id, number)

    async def _write(self, batch: dict[str, int]) -> None:
        replacing = self._claims.replacing
        run = run_of_crawl(self.run) if self.is_inherited() else self.run
        for some in batches(list(batch), PAGES):
            arguments = [self._keys.pages, bytes.fromhex(run), *(batch[page_id] for page_id in some)]
            filed = await self._session.call("confirm", [self._keys.released], arguments)
            if len(filed) != len(some):
                raise self._session.no_answer()
            there = [page_id for page_id, is_filed in zip(some, filed, strict=True) if is_filed]
            replaced = [replacing[page_id] for page_id in there if page_id in replacing]
            await self._take_out(replaced, State.EARLIER)
            for page_id in some:
                replacing.pop(page_id, None)

    async def _release(self, page_id: str) -> None:
        self._claims.replacing.pop(page_id, None)
        if self._claims.pending.pop(page_id, None):
            self._releases.add(page_id)
        await self._releases.make(page_id)

    async def _release_claim(self, page_id: str) -> None:
        await self._server.settle()  # the claim itself may be under way
        await self._take_back(page_id, whose="own")

    async def _annul(self, page_id: str) -> bool:
        return await self._take_back(page_id, whose="any")

    async def _take_back(self, page_id: str, whose: str) -> bool:
        number, entry = await self._filed(page_id)
        if entry is None:
            return False
        keys = [self._keys.released, *(place.bucket for place in self._buckets.places(entry))]
        (taken,) = await self._session.call("release", keys, [self._keys.pages, number, whose])
        return bool(taken)

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        found: list[State] = []
        for some in batches(page_ids, PAGES):
            places = [*map(self._buckets.id_place, some)]
            hashes = b"".join(place.key for place in places)
            keys = [place.bucket for place in places]
            states = await self._session.call("state", keys, [self._keys.pages, hashes])
            found += map(self._session.state, states)
        return found

    async def _find(self, page_id: str) -> Entry | None:
        return (await self._filed(page_id))[1]

    async def _filed(self, page_id: str) -> tuple[int, Entry | None]:
        """Returns the number and the entry of a page; None if it is not filed."""
        ((number, record),) = await self._records([page_id])
        entry = whole(record or b"")
        if record and entry is None:
            raise IndexCorruptError(
                f"the index {self.where} is damaged: the record of a page is torn; see scrapy index check"
            )
        return number, entry

    async def _records(self, page_ids: Sequence[str]) -> list[tuple[int, bytes | None]]:
        """Returns the number and the record of each page; 0 and None for one that is not filed."""
        places = [*map(self._buckets.id_place, page_ids)]
        async with self._server.turn():
            buckets = await self._server.values([place.bucket for place in places])
            found = (
                numbers_of(entries or b"", place.key) for entries, place in zip(buckets, places, strict=True)
            )
            numbers = [next(iter(those), 0) for those in found]
            records = await self._server.values([*map(self._keys.page, numbers)])
        return list(zip(numbers, records, strict=True))

    async def _count(self) -> int:
        async with self._server.turn():
            given, released = await self._server.values([self._keys.sequence, self._keys.released])
        with self._server.errors():
            return int(given or 0) - int(released or 0)

    async def survey(self) -> Survey | None:
        header = await read_header(self._server, self._keys, self.where)
        if not header:
            return None
        parameters = self._adopt(header)
        reading = Reading(self._server, self._spread(header, parameters.plan))
        return RedisSurvey(self.where, parameters, header, reading)

    async def _add(self, entries: Sequence[Entry]) -> int:
        added = 0
        for some in batches(entries, CHANGED):
            keys, arguments = list[bytes](), list[Any]()
            for entry in some:
                places = self._buckets.places(entry)
                keys += [place.bucket for place in places]
                arguments += [pack(entry), b"".join(place.key for place in places)]
            added += await self._changed("add", keys, arguments)
        return added

    async def _take_out(self, page_ids: Sequence[str], wanted: State | None = None) -> int:
        """Takes pages out, or those of one state.  Pages whose record can't be read are left."""
        taken = 0
        for some in batches(page_ids, CHANGED):
            keys, hashes, numbers = [self._keys.released], b"", list[int]()
            for number, record in await self._records(some):
                if entry := whole(record or b""):
                    places = self._buckets.places(entry)
                    keys += [place.bucket for place in places]
                    hashes += places[0].key
                    numbers.append(number)
            taken += await self._changed("forget", keys, [wanted or "", hashes, *numbers])
        return taken

    async def _changed(self, verb: str, keys: list[bytes], arguments: list[Any]) -> int:
        """Returns how many pages a script has changed."""
        told = [self._keys.pages, len(self._buckets.tables), *arguments]
        (count,) = await self._session.call(verb, keys, told)
        return int(count)

    async def _leases(self, runs: Sequence[str]) -> list[float]:
        return await self._session.leases(runs)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        if self.hosts is not None:
            self.hosts.merge(tables)
            await self.hosts.flush()

    async def _remember(self, notes: Mapping[str, bytes]) -> None:
        for some in batches(list(notes), CHANGED):
            arguments = [part for host in some for part in (host, notes[host])]
            await self._session.call("note", [self._keys.notes], [MAX_TABLES, *arguments])

    async def _recall(self, host: str) -> bytes:
        async with self._server.turn():
            (octets,) = await self._server.ask([(b"HGET", self._keys.notes, host)])
        return octets or b""

    async def _forget(self, page_ids: Sequence[str]) -> int:
        await self._confirmations.flush()
        for page_id in page_ids:
            self._claims.pending.pop(page_id, None)
            await self._releases.forget(page_id)
        return await self._take_out(page_ids)

    async def close(self, *, finished: bool = True) -> None:
        if self._opened:
            self._session.check_loop()
        try:
            if self._opened:
                await self._session.stop()
                await self._confirmations.close()
                self._releases.add_all(self._claims.pending)
                self._claims.pending.clear()
                await self._releases.make_all()
                if self.hosts is not None:
                    await self.hosts.close()
                await self._session.renew("finished" if finished else 0)
        finally:
            self._opened = False
            await self._server.close()
