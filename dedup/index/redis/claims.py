"""The claims of a run in Redis: a script that looks, which also files a page that nothing is like, and one that files.

Neither knows the rule of the verdict: what lies between, the crawler weighs (see `dedup.index.claiming`).
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha1
from itertools import chain
from typing import Any

from dedup.fingerprint.detector import Detector
from dedup.index.batching import Confirmations
from dedup.index.claiming import Answer, Candidates
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts
from dedup.index.redis.buckets import Buckets, groups, numbers_in, packed
from dedup.index.redis.client import CLAIMS
from dedup.index.redis.copies import Copies
from dedup.index.redis.pages import Pages
from dedup.index.redis.record import pack
from dedup.index.redis.session import Session
from dedup.index.weighing import Order
from dedup.latest import Latest

#: The marks by which a look says whether a page is done; None if it casts no shadow.
MARKS = {ord("d"): True, ord("p"): False, ord("-"): None}


class Claims:
    """Looks and files for one run, and knows what it has claimed."""

    hosts: Hosts | None
    _buckets: Buckets

    def __init__(self, detector: Detector, session: Session, confirmations: Confirmations[int]) -> None:
        self.detector = detector
        self.confirmations = confirmations
        #: Numbers of claims that are neither confirmed nor released, by page id.
        self.pending: dict[str, int] = {}
        #: Pages of earlier runs, by those in whose place these were met.
        self.replacing: dict[str, str] = {}
        self._session = session
        self._copies = Copies(session.server, detector.radius)
        self._pages = Pages(session.server, session.keys, detector.sketcher)
        self.read, self.sketches = self._pages.read, self._pages.sketches
        # Pages that are being filed here, with 0, and that were filed last, with their numbers, by digests of their records.
        self._filing = Latest[str, tuple[int, Entry]](2 * CLAIMS)
        self._asked = lru_cache(CLAIMS)(self._ask)  # both scripts of a claim are asked the same

    def lay_out(self, buckets: Buckets, hosts: Hosts | None) -> None:
        """Says with what pages are filed, and judged, from now on."""
        self._buckets, self.hosts = buckets, hosts
        self._asked.cache_clear()

    def has(self, page_id: str) -> bool:
        """Returns whether a page is pending here, or being confirmed."""
        return page_id in self.pending or page_id in self.confirmations

    def _note(self, page_id: str, number: int) -> None:
        if page_id not in self.confirmations:  # else it was confirmed before
            self.pending[page_id] = number

    async def look(self, entry: Entry) -> Candidates:
        keys, arguments = self._asked(entry)
        answer = await self._session.call(
            "look", keys, (*arguments, self._buckets.plan.flipped, self._buckets.bucket_bits)
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
        looked = Candidates(
            last, self._session.state(own), numbers, numbers_in(alike), others, (), is_crowded, done
        )
        match near:
            case [b"filed", int(number)]:
                self._note(entry.page_id, number)
                self._pages.put(number, entry)
                return looked._replace(is_filed=True)
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

    async def file(self, entry: Entry, order: Order, seen: int | None) -> Answer:
        """Files a page.  The script need not tell of those that are being filed here before it: it is weighed against them now."""
        own = sha1(self._asked(entry)[1][2]).hexdigest()  # of its record
        fresh = {name: one for name, (at, one) in self._filing.items() if not 0 < at <= (seen or 0)}
        met = "".join(order.apart(fresh)) if fresh else ""
        self._filing[own] = 0, entry
        try:
            return await self._file(entry, order, seen, met)
        finally:
            self._filing.pop(own, None)
            if number := self.pending.get(entry.page_id):
                self._filing[own] = number, entry

    async def _file(self, entry: Entry, order: Order, seen: int | None, met: str) -> Answer:
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
                        self.replacing[entry.page_id] = earlier[replaced].page_id
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
                    outdated = [
                        self._session.keys.released,
                        *(place.bucket for place in self._buckets.places(was)),
                    ]
                case _:
                    raise self._session.no_answer()

    def _ask(self, entry: Entry) -> tuple[Sequence[bytes], Sequence[Any]]:
        """Returns the buckets of a page, and what both scripts of a claim are told of it first."""
        places = self._buckets.places(entry)
        keys = b"".join(place.key for place in places)
        buckets = [place.bucket for place in places]
        return buckets, [self.detector.radius, self._session.keys.pages, pack(entry), keys]


def _done(numbers: Sequence[int], marks: bytes) -> dict[int, bool | None]:
    return {number: MARKS[mark] for number, mark in zip(numbers, marks, strict=True)}
