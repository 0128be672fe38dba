"""The shared index, in Redis or Valkey >= 6.2: one Lua script per verb, and for most claims one round trip.

The keys are described in `dedup.index.redis.keys`.  Redis needs maxmemory-policy noeviction, else it
drops parts of the tables without a word; it should have appendonly on, else a crash loses the index.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from dedup.errors import IndexCorruptError
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, is_same_name
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.buckets import MIN_BITS, Buckets, bucket_bits
from dedup.index.redis.bulk import Bulk
from dedup.index.redis.claim import ROUNDS, Claim
from dedup.index.redis.client import Server
from dedup.index.redis.copies import Copies
from dedup.index.redis.keys import Keys
from dedup.index.redis.reading import filed_as
from dedup.index.redis.record import bits_of, whole
from dedup.index.redis.shared import SharedIndex
from dedup.index.redis.survey import survey_redis
from dedup.index.survey import Survey
from dedup.index.verdict import Near, Verdict

__all__ = ["FORMAT", "RedisIndex"]

#: Changes whenever its keys would be read differently.
FORMAT = 5

#: Pages that one call of a script confirms, or tells the states of.
PAGES = 500


class RedisIndex(SharedIndex):
    """`redis://`, `rediss://` and `unix://`: shared by any number of crawlers."""

    format = FORMAT
    reads_many = True

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        self._server = Server(address)
        self._keys = Keys(namespace)
        self._copies = Copies(self._server)
        super().__init__(self._server, self._keys, namespace, detector, **options)

    def _made_up(self) -> dict[str, str]:
        bits = bucket_bits(self.plan, self.settings.expected_pages)
        return {"bucket_bits": str(bits), "created": uuid4().hex}

    def _lay_out(self, header: Mapping[str, str]) -> None:
        bits = bits_of(header, MIN_BITS, self.where)
        self._buckets = Buckets(self._keys, self.plan, bits, header["created"])
        self._bulk = Bulk(self._server, self._buckets, self._session.call)

    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        claim = Claim(entry, page, self.detector, self._buckets, self._hosts)
        await claim.prepare()
        for _ in range(3 * ROUNDS):
            match await self._session.call("claim", claim.keys, claim.arguments):
                case [b"same", int(known), int(crowded), int(number)]:
                    if number:
                        self._note(entry.page_id, number)
                    return Verdict.same(known=bool(known), crowded=bool(crowded))
                case [b"new", int(known), int(crowded), int(number)]:
                    self._note(entry.page_id, number)
                    return Verdict.new(known=bool(known), crowded=bool(crowded))
                case [b"new", int(known), int(crowded), int(number), bytes(replaced), *found]:
                    self._note(entry.page_id, number)
                    if replaced:
                        self._replacing[entry.page_id] = replaced.decode()
                    near: Near | None = None
                    if found:
                        other, evidence = self._weighed(claim, found)
                        near = Near(other.url, evidence, is_same_name(page, other.called))
                    return Verdict.new(near, known=bool(known), crowded=bool(crowded))
                case [b"many", int(last), bytes(names), bytes(sizes)]:
                    with self._server.errors():
                        await claim.bring_near(last, names, sizes, self._copies)
                case [b"changed", int(number), bytes(record)]:
                    with self._server.errors():
                        claim.bring_outdated(number, record)
                case [b"duplicate" | b"shown" as word, int(either), int(both), int(equal), int(done), *found]:
                    of, evidence = self._weighed(claim, found)
                    alike = self.detector.sketcher.estimate(either, both, equal)
                    rule = "view" if word == b"shown" else None
                    return self._duplicate(entry, of, alike, done=bool(done), evidence=evidence, rule=rule)
                case [b"hosts", *names]:
                    if not await claim.bring_hosts(names):
                        break
                case _:
                    break
        raise self._session.no_answer()

    def _weighed(self, claim: Claim, found: Sequence[Any]) -> tuple[Entry, Evidence | None]:
        with self._server.errors():
            return claim.weighed(found)

    async def _write(self, batch: dict[str, int]) -> None:
        page_ids = list(batch)
        for start in range(0, len(batch), PAGES):
            some = page_ids[start : start + PAGES]
            arguments = [self._keys.pages, bytes.fromhex(self.run), *(batch[page_id] for page_id in some)]
            filed = await self._session.call("confirm", [self._keys.released], arguments)
            if len(filed) != len(some):
                raise self._session.no_answer()
            there = [page_id for page_id, is_filed in zip(some, filed, strict=True) if is_filed]
            replaced = [self._replacing[page_id] for page_id in there if page_id in self._replacing]
            await self._bulk.forget(replaced, State.EARLIER)
            for page_id in some:
                self._replacing.pop(page_id, None)

    async def _release_claim(self, page_id: str) -> None:
        await self._server.settle()  # the claim itself may be under way
        await self._take_back(page_id, whose="own")

    async def _annul(self, page_id: str) -> bool:
        return await self._take_back(page_id, whose="any")

    async def _take_back(self, page_id: str, whose: str) -> bool:
        if (filed := await self._filed(page_id)) is None:
            return False
        number, entry = filed
        buckets = [place.bucket for place in self._buckets.places(entry)]
        arguments = [self._keys.pages, number, whose]
        (taken,) = await self._session.call("release", [self._keys.released, *buckets], arguments)
        return bool(taken)

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        found: list[State] = []
        for start in range(0, len(page_ids), PAGES):
            places = [*map(self._buckets.id_place, page_ids[start : start + PAGES])]
            hashes = b"".join(place.key for place in places)
            keys = [place.bucket for place in places]
            states = await self._session.call("state", keys, [self._keys.pages, hashes])
            found += [State(state.decode()) for state in states]
        return found

    async def _find(self, page_id: str) -> Entry | None:
        filed = await self._filed(page_id)
        return filed and filed[1]

    async def _filed(self, page_id: str) -> tuple[int, Entry] | None:
        """The number and the entry of a page."""
        async with self._server.turn():
            ((number, record),) = await filed_as(self._server, self._buckets, [page_id])
        if not number or not record:
            return None
        entry = whole(record)
        if entry is None:
            raise IndexCorruptError(
                f"the index {self.where} is damaged: the record of a page is torn; see scrapy index check"
            )
        return number, entry

    async def _count(self) -> int:
        async with self._server.turn():
            given, released = await self._server.values([self._keys.sequence, self._keys.released])
        with self._server.errors():
            return int(given or 0) - int(released or 0)

    async def survey(self) -> Survey | None:
        return await survey_redis(self._server, self._keys, self.where, self._adopt)

    async def _add(self, entries: Sequence[Entry]) -> int:
        return await self._bulk.add(entries)

    async def _take_out(self, page_ids: Sequence[str]) -> int:
        return await self._bulk.forget(page_ids)
