"""How exactly one of two twins is kept where no two keys can be changed at once.  Rule 1: it is all in this file.

A page has one record, under one key, and all that happens to the page is a change of that record, by
compare-and-set.  Beside it, the page is filed in its buckets, which lead those who have a page like it to the record.

* A claim first files the page as *trying*, then in its buckets, and looks into each bucket after that.  So of two
  that try pages alike at least one sees the other.
* It looks at the records of the pages that it has met.  If a kept page is like it, it is a duplicate, and takes its
  own record back.
* If another is trying a page like it, the lower number goes first: the higher one waits for it, and the lower one
  marks the other's record as *beaten*.
* At last it changes its own record from trying to *kept*.  If that was beaten meanwhile, it tries again, and
  looks again: only a page that is kept makes duplicates, and nobody is dropped for a page that is itself dropped.
* A record of a run that is dead counts for nothing.  One that keeps others waiting for too long is beaten, whatever
  its number is: it will try again if it wakes up.

So two pages alike are never both kept: of both, take the attempts in which they were kept.  The one that was filed
last as trying has looked after that, and has seen the other's attempt: kept, and was a duplicate; or trying, and
has either beaten it or waited until it was over.

The functions here are generators that yield what is to be done with the store, and are sent what came of it.
`dedup.index.redis.cluster.store` does it; tests/test_cluster_protocol.py tries every order in which three
crawlers can do it.
"""

from collections.abc import Callable, Generator, Mapping
from itertools import count
from typing import Any, NamedTuple, TypeVar

from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.cluster.record import Leases, Phase, Record, state_of

T = TypeVar("T")


# --- What is to be done with the store, and what comes of it


class Look(NamedTuple):
    """Read records -> what is there of each page, and the leases of their runs, as of later."""

    pages: tuple[bytes, ...]


class Swap(NamedTuple):
    """Change a record, in one step, if it is as expected -> None if it is changed; else what is there, in a tuple."""

    page: bytes
    expected: Record | None
    new: Record | None


class File(NamedTuple):
    """File a page in each of its buckets, and look there in the same step -> which pages were met."""

    entry: Entry


class Unfile(NamedTuple):
    """Take a page out of the buckets in which only this content of it is -> None."""

    entry: Entry
    other: Entry | None


class Wait(NamedTuple):
    """Wait a little -> whether there is any patience left."""


Do = Look | Swap | File | Unfile | Wait
Seen = tuple[dict[bytes, Record | None], Leases]


class Judgement(NamedTuple):
    """What the pages that were met mean to the one that is claimed."""

    verdict: Any = None  #: of a duplicate; None if no page that casts a shadow is like it
    rivals: tuple[bytes, ...] = ()  #: pages like it that are being tried
    kept: Any = None  #: what else the verdict will say if it is kept


class Outcome(NamedTuple):
    """What has become of a claim."""

    status: str  #: "new", "same" or "duplicate"
    record: Record | None  #: as it is stored, unless it is a duplicate
    judgement: Judgement = Judgement()
    known: bool = False  #: true if an earlier run, which was closed, has filed this very content at this page


Judge = Callable[[Mapping[bytes, Record], Leases], Judgement]


def claim(page: bytes, entry: Entry, number: int, judge: Judge) -> Generator[Do, Any, Outcome]:
    """Claims a page, and keeps it unless it is a duplicate.  ``judge`` gets the records that may be like it."""
    for attempt in count(1):
        seen: Seen = yield Look((page,))
        there, leases = seen[0][page], seen[1]
        match state_of(there, leases):
            case State.DONE | State.SAFE if there and there.settled is there:
                return Outcome("same", None)
            case State.PENDING | State.RECLAIMED if there and there.settled is there:
                if there.entry.content != entry.content:
                    return Outcome("same", None)  # whoever has claimed it says what becomes of it
                # Rows claim pending, claim reclaimed: it now belongs to this run.
                mine = there._replace(entry=there.entry._replace(run=entry.run))
                if mine == there or (yield Swap(page, there, mine)) is None:
                    return Outcome("same", mine, known=_is_known(there.before, leases))
                continue
        if _is_tried_elsewhere(there, entry, leases) and (yield Wait()):
            continue
        before = there and there.settled
        if before and before.phase is Phase.KEPT and before.before:
            before = before.before  # met again by a run that died: row die reclaimed
        own = Record(Phase.TRYING, number, attempt, entry, before)
        if (yield Swap(page, there, own)) is not None:
            continue
        judgement = yield from _settle(page, own, judge)
        if judgement.verdict is not None:
            yield from _withdraw(page, own)
            return Outcome("duplicate", None, judgement)
        kept = _kept(own, leases)
        if (yield Swap(page, own, kept)) is None:
            if before and kept.before is None:
                yield Unfile(before.entry, entry)  # row change earlier: what it was is forgotten
            status = "same" if kept.before else "new"
            return Outcome(status, kept, judgement, _is_known(kept.before, leases))
    raise AssertionError


def _is_tried_elsewhere(there: Record | None, entry: Entry, leases: Leases) -> bool:
    """Returns whether another run is claiming the page at this moment."""
    if there is None or there.settled is there:
        return False
    return there.entry.run != entry.run and leases.are_alive(there.entry.run)


def _kept(own: Record, leases: Leases) -> Record:
    """Returns the record of a page that is now kept.  If an earlier run has filed the same content, that record stays behind it."""
    before = own.before
    if state_of(before, leases) is State.EARLIER and before and before.entry.content == own.entry.content:
        return own._replace(phase=Phase.KEPT, entry=before.entry._replace(run=own.entry.run))
    return own._replace(phase=Phase.KEPT, before=None)


def _is_known(before: Record | None, leases: Leases) -> bool:
    """Returns whether the run that has handed over a page of before was closed."""
    return before is not None and not leases.have_died(before.entry.run)


def _settle(page: bytes, own: Record, judge: Judge) -> Generator[Do, Any, Judgement]:
    """Files a page that is tried, and looks at those it meets until it is a duplicate, or nobody goes before it."""
    met: tuple[bytes, ...] = yield File(own.entry)
    met = tuple(other for other in met if other != page)
    records: dict[bytes, Record | None] = {}
    leases = Leases(own.entry.run, 0)
    if met:
        found, leases = yield Look(met)
        records |= found
    patient = True
    while True:
        there = {other: record for other, record in records.items() if record}
        judgement = judge(there, leases)
        rivals = {rival: there[rival] for rival in judgement.rivals}
        first = tuple(
            rival for rival, record in rivals.items() if (record.number, rival) < (own.number, page)
        )
        if judgement.verdict is not None or not rivals:
            return judgement
        if first and patient:
            patient = yield Wait()
            found, leases = yield Look(tuple(rivals))
            records |= found
            continue
        for rival, record in rivals.items():
            beaten = record._replace(phase=Phase.BEATEN)
            instead = yield Swap(rival, record, beaten)
            records[rival] = beaten if instead is None else instead[0]


def _withdraw(page: bytes, own: Record) -> Generator[Do, Any, None]:
    """Takes back an attempt: the page is again what it was before."""
    yield Unfile(own.entry, own.before and own.before.entry)
    there: Record | None = own
    while there and there.settled is not there and there.is_attempt_of(own):
        instead = yield Swap(page, there, own.before)
        if instead is None:
            return
        (there,) = instead
    if there:  # another run did not wait, and its page may have been taken out of the buckets just now
        yield File(there.entry)


def confirm(page: bytes, kept: Record) -> Generator[Do, Any, tuple[Record | None, bool]]:
    """Makes a kept page done; says as what it is stored, and whether it has to be filed in its buckets once more.

    If nothing is stored, the claim was annulled, or lost with a master, which nobody can tell apart: the page is stored
    once more.  It is not if another claim of the page has come in between.
    """
    done = kept._replace(phase=Phase.DONE, before=None)
    there: Record | None = kept
    while True:
        instead = yield Swap(page, there, done)
        if instead is None:
            return done, there is None or there.settled is None or there.settled.number != kept.number
        there, is_tried = yield from _look_when_tried(page, kept.entry)
        if is_tried and (there is None or there.settled is None):
            return None, False  # somebody is taking the claim back, and has taken too long
        if there is None or (there.entry.run == kept.entry.run and there.settled is not there):
            continue
        if there.settled and there.settled.number != kept.number:
            return None, False
        if there.phase is Phase.DONE:
            return there, False
        if there.phase is Phase.KEPT and there.entry.run != kept.entry.run:
            # Another run has claimed it meanwhile; this one answers for it now.
            entry = there.entry._replace(run=kept.entry.run)
            done = there._replace(phase=Phase.DONE, entry=entry, before=None)


def _look_when_tried(page: bytes, entry: Entry) -> Generator[Do, Any, tuple[Record | None, bool]]:
    """Returns what is there of a page when no other run is trying it; or, and that is said, when there is no patience left."""
    while True:
        seen: Seen = yield Look((page,))
        there, leases = seen[0][page], seen[1]
        if not _is_tried_elsewhere(there, entry, leases):
            return there, False
        if not (yield Wait()):
            return there, True


def add(page: bytes, record: Record) -> Generator[Do, Any, bool]:
    """Files a page as it is, unless it is filed, and returns whether it was not.

    What is there is filed in its buckets once more: whoever has added it may have died before that.
    """
    there: Record | None = None
    while True:
        instead = yield Swap(page, there, record)
        if instead is None:
            yield File(record.entry)
            return True
        (there,) = instead
        if there and there.settled:
            yield File(there.settled.entry)
            return False


def restore(page: bytes, filed: Record) -> Generator[Do, Any, tuple[bool, bool]]:
    """Files a page once more that is kept or done: whether its record had been lost, and whether it is there now."""
    while True:
        records, _ = yield Look((page,))
        there: Record | None = records[page]
        if there:
            if (there.number, there.entry.run) != (filed.number, filed.entry.run):
                return False, False  # it was claimed anew, or by another run
            if there.phase >= filed.phase:
                return False, True
        if (yield Swap(page, there, filed)) is None:
            return True, True


def release(page: bytes, run: str, *, annul: bool = False) -> Generator[Do, Any, bool]:
    """Takes back what a run has claimed, or ``annul``: any run, and not confirmed, and returns whether there was such a claim."""
    while True:
        records, _ = yield Look((page,))
        there = records[page]
        if there is None or there.phase is Phase.DONE:
            return False
        if there.entry.run != run and not (annul and there.phase is Phase.KEPT):
            return False
        entry = there.entry._replace(run=run)
        # So that nobody else claims it now.
        own = there._replace(phase=Phase.TRYING, attempt=there.attempt + 1, entry=entry)
        if (yield Swap(page, there, own)) is None:
            yield from _withdraw(page, own)
            return there.phase is Phase.KEPT


def forget(page: bytes, run: str, wanted: State | None = None) -> Generator[Do, Any, bool]:
    """Takes a page out, or one of a state, and returns whether it was filed."""
    while True:
        records, leases = yield Look((page,))
        there = records[page]
        if there is None or (
            wanted and (there.settled is not there or state_of(there, leases) is not wanted)
        ):
            return False
        entry = there.entry._replace(run=run)
        own = Record(Phase.TRYING, there.number, there.attempt + 1, entry)  # nobody else claims it now
        if (yield Swap(page, there, own)) is None:
            if there.before:
                yield Unfile(there.before.entry, None)
            yield from _withdraw(page, own)
            return there.settled is not None
