"""Barren pages: no item came of them, though items come of others of their kind, so they cast no shadow.

A callback may leave out the print version of a page, and a pipeline what has no price: then the copies of such a page are
all that is left of its content.  So its claim stays open, copies that were dropped for it are fetched again, and the next
copy takes its place.  A kind of which no item ever comes only leads to other pages, which it does all the same.

While no item has come of a kind, it may be that all its pages were of the wrong sort.  So some near-duplicates of pages of
which none came go to their callback, without their links.
"""

import asyncio
from collections import Counter
from contextlib import suppress

from dedup.filter.case import Case
from dedup.filter.claims import Claimant
from dedup.filter.visit import Visit
from dedup.filter.watch.doubts import INTERVAL, MAX_AGAIN, Watch
from dedup.index import Verdict
from dedup.index.batching import end
from dedup.latest import Latest
from dedup.settings import Action

#: Why the copies of a barren page are fetched again.
WHY = "no item came of the page that it duplicates"


class Barren:
    """The barren pages of one crawl."""

    def __init__(self, claimant: Claimant, watch: Watch) -> None:
        self._claimant = claimant
        self._watch = watch
        self._kinds = Latest[str, str]()  # of pages that are kept and not yet processed, by page id
        self._giving = set[str]()  # kinds of which an item came
        self._gave = Latest[str, None]()  # page ids of which one came, or of a copy
        self._silent = Latest[str, str]()  # kinds of which none came so far, by the ids of their pages
        self._barren = Latest[str, None]()  # page ids
        self._addresses = Latest[str, int]()  # at how many others no item came of the content of a page
        self._copies = Counter[str]()  # near-duplicates of pages of kinds of which none came
        self._tried = Latest[str, None]()  # page ids of those that are tried
        self._waited = dict[str, asyncio.Event]()  # pages for which one of these waits
        self._letting_go: asyncio.Task[None] | None = None

    def expect(self, page_id: str, kind: str | None) -> None:
        """Notes a page that is kept; None: no item is expected of it."""
        if kind is not None:
            self._kinds[page_id] = kind

    def give(self, page_id: str, kind: str) -> None:
        """Notes that an item came of a page, or of a near-duplicate of it."""
        self._gave[page_id] = None
        self._silent.pop(page_id, None)
        self._barren.pop(page_id, None)
        if kind not in self._giving:
            self._giving.add(kind)
            for silent in [silent for silent, other in self._silent.items() if other == kind]:
                del self._silent[silent]
                self._note(silent)

    def is_barren(self, page_id: str) -> bool:
        """Returns whether a page that was processed casts no shadow."""
        kind = self._kinds.pop(page_id, None)
        if kind is None or page_id in self._gave:
            return False
        if kind not in self._giving:
            self._silent[page_id] = kind
            return False
        return self._note(page_id)

    def _note(self, page_id: str) -> bool:
        # Of a content that has none, lists of a site without end would be followed for ever.
        left = MAX_AGAIN - 1 - self._addresses.get(page_id, 0)
        if left > 0:
            self._barren[page_id] = None
            self._watch.undo(page_id, WHY, left)
        return left > 0

    def leave(self, page_id: str) -> None:
        """A page is processed, or has failed."""
        if page_id in self._waited:
            self._waited.pop(page_id).set()

    def let_go(self) -> None:
        """The crawl has nothing else to do: no other one is to wait for what becomes of these pages."""
        if self._barren and (self._letting_go is None or self._letting_go.done()):
            page_ids = [*self._barren]
            self._barren.clear()
            self._letting_go = asyncio.create_task(self._release(page_ids))

    async def close(self) -> None:
        """Lets go of no more of them: the index will."""
        await end(self._letting_go)

    async def _release(self, page_ids: list[str]) -> None:
        for page_id in page_ids:
            await self._claimant.release(page_id)

    async def give_way(self, case: Case) -> Verdict:
        """Returns the verdict on a page, which takes the place of a barren one if it is a copy of that."""
        visit, verdict = case.visit, case.verdict

        async def judged_anew() -> Verdict:
            return case.claimed if case.claimed.status == "new" else await self._claimant.claim_case(case)

        if self._is_tried(visit, verdict) and self._claimant.is_open(of_id := verdict.of_id or ""):
            with suppress(TimeoutError):  # that page may itself wait for the place of this one
                await asyncio.wait_for(self._waited.setdefault(of_id, asyncio.Event()).wait(), INTERVAL)
            verdict = await judged_anew()
        for _ in range(MAX_AGAIN):  # it may be near to several
            if verdict.status != "duplicate" or (of_id := verdict.of_id or "") not in self._barren:
                break
            await self._claimant.forget(of_id)
            verdict = await judged_anew()
            if verdict.kept:
                self._addresses[visit.page_id] = self._addresses.get(of_id, 0) + 1
        return verdict

    def _is_tried(self, visit: Visit, verdict: Verdict) -> bool:
        if verdict.status != "duplicate" or visit.kind is None or visit.kind in self._giving:
            return False
        self._copies[visit.kind] += 1
        number = self._copies[visit.kind]
        if is_tried := number <= MAX_AGAIN or number & (number - 1) == 0:
            self._tried[visit.page_id] = None
        return is_tried

    def action(self, visit: Visit, verdict: Verdict, action: Action) -> Action:
        """Returns what is done with a near-duplicate: one that is tried goes to its callback."""
        is_tried = visit.page_id in self._tried and verdict.of_id in self._silent
        return "nofollow" if is_tried and action == "drop" else action
