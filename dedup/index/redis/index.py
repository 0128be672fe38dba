"""The shared index, in Redis or Valkey >= 6.2: one Lua script per verb.

A claim takes a script that looks, which also files a page that nothing is like; and unless the page is equal to one that is kept,
one that files.  Neither knows the rule of the verdict: what lies between, the crawler weighs (see `dedup.index.claiming`).

The keys are described in `dedup.index.redis.keys`.  Redis needs maxmemory-policy noeviction, else it
drops parts of the tables without a word; it should have appendonly on, else a crash loses the index.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import sha1
from itertools import chain
from typing import Any
from uuid import uuid4

from dedup.errors import IndexCorruptError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import Plan
from dedup.fingerprint.shingles import Hashes
from dedup.index.claiming import Answer, Candidates, claim
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.buckets import MIN_BITS, Buckets, bucket_bits, groups, numbers_in, numbers_of, packed
from dedup.index.redis.client import CLAIMS, Server
from dedup.index.redis.copies import Copies
from dedup.index.redis.keys import Keys
from dedup.index.redis.pages import Pages
from dedup.index.redis.reading import Reading, batches
from dedup.index.redis.record import bits_of, pack, whole
from dedup.index.redis.shared import SharedIndex
from dedup.index.redis.survey import RedisSurvey
from dedup.index.survey import Survey
from dedup.index.verdict import Verdict
from dedup.index.weighing import Order
from dedup.latest import Latest

#: Changes whenever its keys would be read differently.
FORMAT = 6

#: The marks by which a look says whether a page is done; None if it casts no shadow.
MARKS = {ord("d"): True, ord("p"): False, ord("-"): None}
#: Pages that one call of a script confirms, or tells the states of; and that one adds, or takes out, in .5 ms of the server's time.
PAGES, CHANGED = 500, 50


class RedisIndex(SharedIndex):
    """`redis://`, `rediss://` and `unix://`: shared by any number of crawlers."""

    format = FORMAT
    reads_many = True

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        self._server = Server(address)
        self._keys = Keys(namespace)
        self._copies = Copies(self._server, detector.radius)
        self._pages = Pages(self._server, self._keys, detector.sketcher)
        # Pages that are being filed here, with 0, and that were filed last, with their numbers, by digests of their records.
        self._filing = Latest[str, tuple[int, Entry]](2 * CLAIMS)
        super().__init__(self._server, self._keys, namespace, detector, **options)

    def _made_up(self) -> dict[str, str]:
        bits = bucket_bits(self.plan, self.settings.expected_pages)
        return {"bucket_bits": str(bits), "created": uuid4().hex}

    def _lay_out(self, header: Mapping[str, str]) -> None:
        self._buckets = self._spread(header, self.plan)
        self._asked = lru_cache(CLAIMS)(self._ask)  # both scripts of a claim are asked the same

    def _spread(self, header: Mapping[str, str], plan: Plan) -> Buckets:
        return Buckets(self._keys, plan, bits_of(header, MIN_BITS, self.where), header.get("created", ""))

    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        return await claim(self, entry, page)

    async def look(self, entry: Entry) -> Candidates:
        keys, arguments = self._asked(entry)
        answer = await self._session.call(
            "look", keys, (*arguments, self.plan.flipped, self._buckets.bucket_bits)
        )
        match answer:
            case [
                int(last),
                bytes(own),
                int(more),
                bytes(equal),
                bytes(marks),
                bytes(alike),
                list(rare),
                *near,
            ]:
                numbers, others = numbers_in(equal), [*map(numbers_in, rare)]
                done, is_crowded = _done(numbers, marks), bool(more)
            case _:
                raise self._session.no_answer()
        looked = Candidates(last, self._state(own), numbers, numbers_in(alike), others, (), is_crowded, done)
        match near:
            case [b"filed", int(number)]:
                self._note(entry.page_id, number)
                self._pages.put(number, entry)
                return looked._replace(is_filed=True)
            case [b"copy", bytes(record)]:
                self._pages.hold(numbers[-1], record)
                return looked
            case [b"many", bytes(names), bytes(sizes)]:
                found, is_all = await self._copies.near(
                    names.split(b"\n"), numbers_in(sizes), last, entry.keys[-1], tables=len(keys) - 1
                )
                return looked._replace(near=groups(found), is_crowded=is_crowded or not is_all)
            case [bytes(found), bytes(marks), *records]:
                by_distance = [*groups(found)]
                if marks:
                    told = [*chain.from_iterable(by_distance)]
                    for number, record in zip(told, records, strict=True):
                        if record is not None:
                            self._pages.hold(number, record)
                    looked = looked._replace(done=done | _done(told, marks))
                return looked._replace(near=by_distance)
            case _:
                raise self._session.no_answer()

    async def read(self, numbers: Collection[int]) -> dict[int, Entry]:
        return await self._pages.read(numbers)

    async def sketches(self, numbers: Sequence[int]) -> tuple[list[int], Hashes]:
        return await self._pages.sketches(numbers)

    async def file(self, entry: Entry, order: Order[int], seen: int | None) -> Answer[int]:
        """Files a page.  The script need not tell of those that are being filed here before it: it is weighed against them now."""
        own = sha1(self._asked(entry)[1][2]).hexdigest()  # of its record
        fresh = {name: one for name, (at, one) in self._filing.items() if not 0 < at <= (seen or 0)}
        met = "".join(order.apart(fresh)) if fresh else ""
        self._filing[own] = 0, entry
        try:
            return await self._file(entry, order, seen, met)
        finally:
            self._filing.pop(own, None)
            if number := self._pending.get(entry.page_id):
                self._filing[own] = number, entry

    async def _file(self, entry: Entry, order: Order[int], seen: int | None, met: str) -> Answer[int]:
        keys, arguments = self._asked(entry)
        lists = map(packed, order[:3])
        told = (*arguments, "" if seen is None else seen, *lists, int(order.is_all), met)
        outdated = list[bytes]()
        number: int | str = ""
        while True:
            match await self._session.call("file", (*keys, *outdated), (*told, number, len(outdated))):
                case [b"same", int(known), int(own)]:
                    if own:
                        self._note(entry.page_id, own)
                    return Answer("same", known=bool(known))
                case [b"duplicate", int(of), int(done)]:
                    return Answer("duplicate", of, bool(done))
                case [b"new", int(known), int(own), int(replaced), int(near)]:
                    self._note(entry.page_id, own)
                    self._pages.put(own, entry)
                    if replaced:
                        earlier = await self._pages.read([replaced])
                        self._replacing[entry.page_id] = earlier[replaced].page_id
                    return Answer("new", known=bool(known), near=near or None)
                case [b"later", int(last), *later]:
                    return Answer("later", later=later, seen=last)
                case [b"again"]:
                    looked = await self.look(entry)
                    if looked.is_filed:
                        return Answer("new")
                    found = chain(looked.equal, looked.alike, *looked.rare, *looked.near)
                    later = [*dict.fromkeys(found)]
                    return Answer("later", later=later, seen=looked.seen)
                case [b"undecided"]:
                    return Answer("undecided")
                case [b"changed", int(number), bytes(record)]:
                    was = self._pages.hold(number, record)
                    outdated = [self._keys.released, *(place.bucket for place in self._buckets.places(was))]
                case _:
                    raise self._session.no_answer()

    def _ask(self, entry: Entry) -> tuple[Sequence[bytes], Sequence[Any]]:
        """Returns the buckets of a page, and what both scripts of a claim are told of it first."""
        places = self._buckets.places(entry)
        keys = b"".join(place.key for place in places)
        buckets = [place.bucket for place in places]
        return buckets, [self.detector.radius, self._keys.pages, pack(entry), keys]

    async def _write(self, batch: dict[str, int]) -> None:
        for some in batches(list(batch), PAGES):
            arguments = [self._keys.pages, bytes.fromhex(self.run), *(batch[page_id] for page_id in some)]
            filed = await self._session.call("confirm", [self._keys.released], arguments)
            if len(filed) != len(some):
                raise self._session.no_answer()
            there = [page_id for page_id, is_filed in zip(some, filed, strict=True) if is_filed]
            replaced = [self._replacing[page_id] for page_id in there if page_id in self._replacing]
            await self._take_out(replaced, State.EARLIER)
            for page_id in some:
                self._replacing.pop(page_id, None)

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
            found += map(self._state, states)
        return found

    def _state(self, word: bytes) -> State:
        """The state of a page in an answer.  Raises `IndexUnavailableError` if it is none."""
        try:
            return State(word.decode())
        except ValueError:
            raise self._session.no_answer() from None

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

    def _survey(self, header: Mapping[str, str]) -> Survey:
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


def _done(numbers: Sequence[int], marks: bytes) -> dict[int, bool | None]:
    return {number: MARKS[mark] for number, mark in zip(numbers, marks, strict=True)}
