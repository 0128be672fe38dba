"""How a page is claimed where pages have numbers: look, weigh, file.  Whatever the store, it is said here.

* The store **looks** which pages are near or equal.  It does so in its own way, without a lock.
  If there are none, it may file the page at once.
* They are **weighed**, nearest first, by a rule that knows no store (see `dedup.index.weighing`).
* The store **files** the page, in one step and without knowing the rule: if pages like it were filed since the look,
  it gives their numbers back, but for those that it is told would not stand in the order; else the first page of the
  order that casts a shadow is duplicated; else the page is filed.

Contents under a number never change, and no number is given out twice: so only states can change between the steps, and
those are asked in the last one.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts
from dedup.index.lifecycle import State
from dedup.index.verdict import Verdict
from dedup.index.weighing import Order, Weighing

#: Candidates that are weighed at once, at least: numpy takes as long for one.  Each batch has twice as many as the last.
BATCH = 64
#: How often a claim looks at pages that were filed meanwhile; then it is kept among them, as crowded.
ROUNDS = 8


class Candidates(NamedTuple):
    """What a store has found, by numbers.  If one of the very same content casts a shadow, nothing else has to be found."""

    seen: int  #: up to which number it has looked
    own: State = State.ABSENT  #: what the page id itself is
    equal: Sequence[int] = ()  #: pages of the same digest
    alike: Sequence[int] = ()  #: pages with the same markup
    rare: Sequence[Sequence[int]] = ()  #: pages that share a rare shingle, by shingle
    near: Iterable[Sequence[int]] = ()  #: pages at the same distance each, the nearest first
    is_crowded: bool = False  #: true if there are more
    done: Mapping[int, bool | None] = {}  #: whether some of them are done; None: it casts no shadow
    is_filed: bool = False  #: true if the page was filed at once, since nothing is like it


class Answer(NamedTuple):
    """What came of filing a page."""

    word: str  #: "same", "duplicate", "new", "later" (see `later`), or "undecided": more has to be weighed
    of: int | None = None  #: the page that it duplicates
    done: bool = False  #: true if that one is done
    known: bool = False  #: true if an earlier run, which was closed, has handed over this content
    replaced: int | None = None  #: the page of an earlier run whose place it takes
    near: int | None = None  #: the first of the nearest that casts a shadow
    later: Sequence[int] = ()  #: pages like it that were filed since the look
    seen: int = 0  #: up to which number these reach


class Store(Protocol):
    """What a claim needs of a store."""

    detector: Detector

    @property
    def hosts(self) -> Hosts | None:
        """What is learned of hosts."""

    async def look(self, entry: Entry) -> Candidates:
        """Returns what is like a page.  A store may file the page in the same step if nothing is; it changes nothing else."""

    async def read(self, numbers: Collection[int]) -> dict[int, Entry]:
        """Returns the pages with these numbers, in their order, without those that were taken out."""

    async def sketches(self, numbers: Sequence[int]) -> tuple[list[int], Hashes]:
        """Returns those numbers that were not taken out, and their sketches: uint64, shape (n, w)."""

    async def file(self, entry: Entry, order: Order, seen: int | None) -> Answer:
        """Files a page, unless it is filed already or lies in a shadow: atomic.

        ``seen`` is up to which number the order is complete; None if it is to be filed whatever was filed since.
        """


async def claim(store: Store, entry: Entry, page: Fingerprint) -> Verdict:
    """Judges a page and files it if it is new."""
    looked = await store.look(entry)
    if looked.is_filed:
        return Verdict("new", crowded=looked.is_crowded)
    weighing = Weighing(store.detector, store.hosts, entry, page)
    if equal := dict.fromkeys((*looked.alike, *looked.equal)):
        weighing.see_equal(await store.read(equal))
        if verdict := _seen_at_once(weighing, weighing.order(), looked):
            return verdict
    rarest: list[Sequence[int]] = sorted(filter(None, looked.rare), key=len)
    shared = dict(Counter(chain.from_iterable(rarest)).most_common() if rarest else ())
    others = ([number for number in group if number not in shared] for group in looked.near)
    batches, seen, rounds = _batches(chain(([*shared],), others)), looked.seen, 0
    if looked.own.casts_shadow:  # then that may be all there is to say
        order = weighing.order(is_all=False)
    else:
        order = await _weigh_on(store, weighing, batches)
    if verdict := _seen_at_once(weighing, order, looked):
        return verdict
    while True:
        answer = await store.file(entry, order, seen if rounds < ROUNDS else None)
        is_crowded = looked.is_crowded or weighing.is_crowded or rounds == ROUNDS
        match answer.word:
            case "same":
                return Verdict("same", known=answer.known, crowded=is_crowded and order.is_all)
            case "duplicate":
                assert answer.of is not None
                return weighing.duplicate(answer.of, done=answer.done)
            case "new":
                refiled = looked.own is not State.ABSENT
                near = weighing.near(answer.near)
                return Verdict("new", near=near, known=answer.known, refiled=refiled, crowded=is_crowded)
            case "later":
                seen, rounds = answer.seen, rounds + 1
                weighing.see_all(await _brought(store, weighing, answer.later))
                order = weighing.order(is_all=order.is_all)
            case _:
                order = await _weigh_on(store, weighing, batches)


def _seen_at_once(weighing: Weighing, order: Order, looked: Candidates) -> Verdict | None:
    """Returns the verdict if the look alone has shown that the page is a duplicate: then nothing has to be filed."""
    if looked.own is not State.ABSENT:
        return None
    for number in chain(order.equal, order.like):
        if number not in looked.done:
            return None
        if (done := looked.done[number]) is not None:
            return weighing.duplicate(number, done=done)
    return None


async def _weigh_on(store: Store, weighing: Weighing, batches: Iterator[Sequence[int]]) -> Order:
    """Returns the order after the next batch that may decide, or at last the whole order."""
    for batch in batches:
        if await _weigh(store, weighing, batch):
            return weighing.order(is_all=False)
        if len(batch) >= BATCH:
            await asyncio.sleep(0)  # others have their turn
    return weighing.order()


async def _weigh(store: Store, weighing: Weighing, batch: Collection[int]) -> bool:
    """Weighs candidates, by number, and returns whether one of them makes the page a duplicate."""
    found, left = list[int](), [*batch]
    weighing.met += len(left)
    while left and weighing.room:  # some may have been taken out
        some, left = left[: weighing.room], left[weighing.room :]
        found += weighing.see_near(*await store.sketches(some))
    return bool(found) and weighing.weigh(await _brought(store, weighing, found))


async def _brought(store: Store, weighing: Weighing, numbers: Collection[int]) -> dict[int, Entry]:
    """Returns some pages, when what is known of their hosts is at hand."""
    others = await store.read(numbers)
    if weighing.hosts is not None and others:
        await weighing.hosts.bring(chain((weighing.entry.url,), (other.url for other in others.values())))
    return others


def settle(order: Order, state: Callable[[int], State], is_known: Callable[[int], bool]) -> Answer:
    """Returns what becomes of a page, by the states of those that were weighed; lua/file.lua does the same in Redis.

    ``is_known`` tells whether the run that has handed over a page was closed.
    """
    first: int | None = None
    known = False
    for page in chain(order.equal, order.like):
        of = state(page)
        if of.casts_shadow:
            return Answer("duplicate", page, of.is_done)
        if of is State.EARLIER:
            first = page if first is None else first
            known = known or (page in order.equal and is_known(page))
    if not order.is_all:
        return Answer("undecided")
    near = next((page for page in order.nearest if state(page).casts_shadow), None)
    return Answer("new", known=known, replaced=first, near=near)


def _batches(groups: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """Candidates that are weighed at once: whole groups."""
    batch: list[int] = []
    least = BATCH
    for numbers in groups:
        batch += numbers
        if len(batch) >= least:
            yield batch
            batch, least = [], 2 * least
    if batch:
        yield batch
