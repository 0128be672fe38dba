"""What a page is in an index, by what is known of runs.

docs/lifecycle.md has the table of what an event makes of a page.  The stores carry out its rows, and the scripts of Redis name
them; the tests of every store are generated from it.

The words:

* A *run* is one index from its opening to its closing: one crawl, or, if a crawl is interrupted and goes on, all
  its parts.  It has *finished* when it was closed so, and is *dead* when it ended in any other way.
* While a run lives it holds a *lease*.  In Redis it renews the lease; if it falls silent, the lease runs out
  after a minute at most, and the run is dead.  All runs on a file are of one process, which holds the lock of the file.
  The index in memory ends with its run.  What is done outlives a run in Redis whose crawl goes on from there: it belongs
  to the run of the crawl, which lives as long as one of its workers.
* A *claim* asks for the verdict on a page, and files the page if it is new.  The claim is *pending*, and
  belongs to its run, until the run *confirms* that the page was processed, items and all, or *releases* the
  page, which it could not process.  A confirmed page is done.  A run that waits in vain to be told which of both
  becomes of another's claim *annuls* it.
* A page casts a *shadow* if near-duplicates of it are duplicates, and not new.
* What a page is, is said as one run sees it, the one that asks.

The law behind the table: a page casts a shadow as long as somebody answers for it, and for what it links to: a run
that lives, or that has finished while the one that asks was there, or in its crawl: what a worker leaves when it is
stopped, the next one crawls.  Whatever is left of earlier runs may have changed,
moved or vanished since.  So it casts no shadow until the run that asks has met it, and each crawl finds every
content of the site, as if it were the first.
"""

from enum import StrEnum
from typing import Protocol

#: The first digits of a run are those of its crawl, all of whose workers have them.
CRAWL = 16


class State(StrEnum):
    """What a page is in an index."""

    ABSENT = "absent"  #: It is not filed.
    PENDING = "pending"  #: A run that lives has claimed it, and has neither confirmed nor released it.
    DONE = "done"  #: It was confirmed by a run that still lives.
    SAFE = "safe"  #: It is done, and its run has finished since the one that asks began, or is of its crawl and has finished.
    DEAD = "dead"  #: It was pending when its run died.  Only Redis remembers such pages.
    EARLIER = "earlier"  #: It was done by a run that had ended before the one that asks began, or that died.
    RECLAIMED = "reclaimed"  #: It was earlier, and is pending once more: a run has met it again.

    @property
    def is_pending(self) -> bool:
        """True if a run may yet release it."""
        return self in (State.PENDING, State.RECLAIMED)

    @property
    def is_done(self) -> bool:
        """True if it was confirmed, and somebody answers for it."""
        return self in (State.DONE, State.SAFE)

    @property
    def casts_shadow(self) -> bool:
        """True if near-duplicates of it are duplicates."""
        return self.is_pending or self.is_done


class Leases(Protocol):
    """What the run that asks knows of runs."""

    def are_alive(self, run: str) -> bool:
        """Returns whether a run lives, and returns the one that asks does."""

    def have_finished(self, run: str) -> bool:
        """Returns whether a run has finished since the one that asks began; if both are `of_one_crawl`, whether it has at all."""


def of_one_crawl(a: str, b: str) -> bool:
    """Returns whether two runs are of the same crawl: those of two workers, or of one that was stopped and its heir.

    >>> of_one_crawl("9b1deb4d3b7d4bad" + 16 * "1", "9b1deb4d3b7d4bad" + 16 * "2"), of_one_crawl(32 * "1", 32 * "2")
    (True, False)
    """
    return a[:CRAWL] == b[:CRAWL]


def run_of_crawl(run: str) -> str:
    """Returns the run that all of one crawl have in common: it lives as long as one of them, and has what must outlive each.

    >>> run_of_crawl("9b1deb4d3b7d4bad" + 16 * "1")
    '9b1deb4d3b7d4bad0000000000000000'
    """
    return run[:CRAWL].ljust(len(run), "0")


def state_of(done_by: str | None, claimed_by: str | None, leases: Leases) -> State:
    """Returns what a page is, by the run that has confirmed it last, and the run whose claim of it is not confirmed.

    Either is None if there is none.
    """
    if claimed_by is not None and leases.are_alive(claimed_by):
        return State.RECLAIMED if done_by is not None else State.PENDING
    if done_by is None:
        return State.ABSENT if claimed_by is None else State.DEAD
    if leases.are_alive(done_by):
        return State.DONE
    return State.SAFE if leases.have_finished(done_by) else State.EARLIER
