"""The life of a page in an index.  Rule 1: everything that affects the life of a page is said in this file.

`state_of` says what a page is.  The scripts of Redis, which say the same in lua/known.lua, name the rows of the table that
they carry out; the local stores look up what a claim, a confirmation and a replacement make of a page, and carry out the
other rows as Redis does.  The tests of every store are generated from the rows, and docs/lifecycle.md shows them.

The words:

* A *run* is one index from its opening to its closing: one crawl, or, if a crawl is interrupted and goes on, all
  its parts.  It has *finished* when it was closed so, and is *dead* when it ended in any other way.
* While a run lives it holds a *lease*.  In Redis it renews the lease; if it falls silent, the lease runs out
  after a minute at most, and the run is dead.  All runs on a file are of one process, which holds the lock of the file.
  The index in memory ends with its run.
* A *claim* asks for the verdict on a page, and files the page if it is new.  The claim is *pending*, and
  belongs to its run, until the run *confirms* that the page was processed, items and all, or *releases* the
  page, which it could not process.  A confirmed page is done.  A run that waits in vain to be told which of both
  becomes of another's claim *annuls* it.
* A page casts a *shadow* if near-duplicates of it are duplicates, and not new.
* What a page is, is said as one run sees it, the one that asks.

The law behind the table: a page casts a shadow as long as somebody answers for it, and for what it links to: a run
that lives, or that has finished while the one that asks was there.  Whatever is left of earlier runs may have changed,
moved or vanished since.  So it casts no shadow until the run that asks has met it, and each crawl finds every
content of the site, as if it were the first.
"""

import re
from enum import StrEnum
from typing import NamedTuple, Protocol

__all__ = ["ROWS", "Event", "Leases", "Row", "State", "after", "state_of", "table"]


class State(StrEnum):
    """What a page is in an index."""

    ABSENT = "absent"  #: It is not filed.
    PENDING = "pending"  #: A run that lives has claimed it, and has neither confirmed nor released it.
    DONE = "done"  #: It was confirmed by a run that still lives.
    SAFE = "safe"  #: It is done, and its run has finished since the one that asks began.
    DEAD = "dead"  #: It was pending when its run died.  Only Redis remembers such pages.
    EARLIER = "earlier"  #: It was done by a run that had ended before the one that asks began, or that died.
    RECLAIMED = "reclaimed"  #: It was earlier, and is pending once more: a run has met it again.

    @property
    def is_pending(self) -> bool:
        """Whether a run may yet release it."""
        return self in (State.PENDING, State.RECLAIMED)

    @property
    def is_done(self) -> bool:
        """Whether it was confirmed, and somebody answers for it."""
        return self in (State.DONE, State.SAFE)

    @property
    def casts_shadow(self) -> bool:
        """Whether near-duplicates of it are duplicates."""
        return self.is_pending or self.is_done


class Leases(Protocol):
    """What the run that asks knows of runs."""

    def are_alive(self, run: str) -> bool:
        """Whether a run lives; the one that asks does."""

    def have_finished(self, run: str) -> bool:
        """Whether a run has finished since the one that asks began."""


def state_of(done_by: str | None, claimed_by: str | None, leases: Leases) -> State:
    """What a page is, by the run that has confirmed it last, and the run whose claim of it is not confirmed.

    Either is None if there is none.
    """
    if claimed_by is not None and leases.are_alive(claimed_by):
        return State.RECLAIMED if done_by is not None else State.PENDING
    if done_by is None:
        return State.ABSENT if claimed_by is None else State.DEAD
    if leases.are_alive(done_by):
        return State.DONE
    return State.SAFE if leases.have_finished(done_by) else State.EARLIER


class Event(StrEnum):
    """What can happen to a page.  Only a run that has claimed a page, as it is filed, can confirm or release it."""

    CLAIM = "claim"  #: A run claims the page.
    CHANGE = "change"  #: A run claims the page, whose content is not the one that is filed.
    CONFIRM = "confirm"  #: The run confirms it.
    RELEASE = "release"  #: The run releases it.
    ANNUL = (
        "annul"  #: Another run has waited for long enough to be told what became of the claim, and was not.
    )
    REPLACE = (
        "replace"  #: A run confirms another page, with this one's content, that it met instead of this one.
    )
    ADD = "add"  #: The page is filed without a verdict: it comes from another index.
    FORGET = "forget"  #: The page is taken out.
    FINISH = "finish"  #: The run of the page finishes.
    STOP = "stop"  #: The run of the page is closed before it has finished.
    DIE = "die"  #: The run of the page ends without a word.
    BEGIN = "begin"  #: Another run begins: what the page is to that one.


class Row(NamedTuple):
    """What an event makes of a page.  A page of which no row speaks stays what it is."""

    event: Event
    before: State
    after: State
    sentence: str

    @property
    def name(self) -> str:
        """How scripts and tests call it."""
        return f"{self.event} {self.before}"


# What happens to a page, what the page is before, what it becomes, and what that means.
_TABLE = """
claim    absent     pending    The verdict is "new", and the page is filed, unless it lies in a shadow: then
                               the verdict is "duplicate", and the page stays absent.
claim    pending    pending    The verdict is "same"; the claim now belongs to the run that has made it last.
claim    done       done       The verdict is "same", and nothing changes.
claim    safe       safe       The verdict is "same", and nothing changes.
claim    dead       pending    The verdict is that on an absent page; in a shadow, the page stays dead.
claim    earlier    reclaimed  The verdict is "same", and the page casts a shadow again, unless it lies in
                               one: then the verdict is "duplicate", and the page stays what it is.
claim    reclaimed  reclaimed  The verdict is "same"; the claim now belongs to the run that has made it last.
change   absent     pending    It is a claim like any other.
change   dead       pending    The verdict is that on an absent page; in a shadow, the page stays dead.
change   earlier    pending    The verdict is that on an absent page, and if it is new, it is filed anew, in one
                               step: what it was is forgotten.  In a shadow, the page stays what it is.
confirm  pending    done       The page was processed, items and all.
confirm  reclaimed  done       The page was processed, items and all, and now belongs to the run
                               that lives.
release  pending    absent     It is as if the page had never been claimed.
release  reclaimed  earlier    It is as if the page had not been claimed again.
annul    pending    absent     A copy of the page is to take its place: nobody says what becomes of the claim.
annul    dead       absent     Likewise.
annul    reclaimed  earlier    Likewise.
replace  earlier    absent     Its content is filed under the page where it was met.
add      absent     earlier    The page is filed as it is, as one of an earlier run.
forget   pending    absent     The page is taken out: it counts as new when it is claimed again.
forget   done       absent     The page is taken out: it counts as new when it is claimed again.
forget   safe       absent     The page is taken out: it counts as new when it is claimed again.
forget   dead       absent     The page is taken out: it counts as new when it is claimed again.
forget   earlier    absent     The page is taken out: it counts as new when it is claimed again.
forget   reclaimed  absent     The page is taken out: it counts as new when it is claimed again.
finish   pending    absent     A run that is closed releases what it has not confirmed.
finish   reclaimed  earlier    A run that is closed releases what it has not confirmed.
finish   done       safe       All that the page links to has been seen to.
stop     pending    absent     A run that is closed releases what it has not confirmed.
stop     reclaimed  earlier    A run that is closed releases what it has not confirmed.
stop     done       earlier    What the page links to may not have been fetched.
die      pending    dead       Nobody will confirm or release the claim.  In a file, which holds confirmed
                               pages only, it is gone.
die      reclaimed  earlier    Nobody will confirm or release the claim.
die      done       earlier    What the page links to may not have been fetched.
begin    safe       earlier    The run that begins has not met it: it may be gone, or be another by now.
"""
_ROW = re.compile(r"^(\w+) +(\w+) +(\w+) +(.+(?:\n .+)*)", re.MULTILINE)
#: Every change, and every claim.
ROWS = tuple(
    Row(Event(event), State(before), State(then), re.sub("\n +", " ", sentence))
    for event, before, then, sentence in _ROW.findall(_TABLE)
)
_AFTER = {(row.before, row.event): row.after for row in ROWS}


def after(state: State, event: Event) -> State:
    """What an event makes of a page.

    >>> after(State.EARLIER, Event.CLAIM), after(State.SAFE, Event.DIE)
    (<State.RECLAIMED: 'reclaimed'>, <State.SAFE: 'safe'>)
    """
    return _AFTER.get((state, event), state)


def table() -> str:
    """The rows as Markdown."""
    rows = (f"| {row.event} | {row.before} | {row.after} | {row.sentence} |\n" for row in ROWS)
    return "".join(("| Event | A page that is | becomes | |\n| --- | --- | --- | --- |\n", *rows))
