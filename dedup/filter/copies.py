"""What becomes of near-duplicates: their records, their links, and the pages that they copy."""

import asyncio

from dedup.droplog.log import as_line
from dedup.droplog.record import Record
from dedup.filter.bodies import Content
from dedup.filter.claims import Claimant
from dedup.filter.recording import LINKS, counts_of
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl, Outcome, Visit
from dedup.filter.watch.audit import Audit
from dedup.filter.watch.depths import Depths
from dedup.filter.watch.doubts import Watch
from dedup.filter.watch.drop import Drop, is_certain
from dedup.filter.watch.pairs import Pairs
from dedup.filter.watch.unreached import Unreached
from dedup.index import Index, Verdict
from dedup.settings import FilterSettings


class Copies:
    """The near-duplicates of one crawl, whatever is done with them."""

    def __init__(
        self,
        index: Index,
        stats: Stats,
        settings: FilterSettings,
        crawl: Crawl,
        claimant: Claimant,
        watch: Watch,
        unreached: Unreached,
    ) -> None:
        self._index = index
        self._stats = stats
        self._crawl = crawl
        self._claimant = claimant
        self._watch = watch
        self._unreached = unreached
        self._pairs = Pairs(stats)
        self._depths = Depths(stats, crawl.depth_limit)
        self.audit = Audit(index, settings.audit, stats, crawl.fetch, watch.undo)
        self._checks: set[asyncio.Task[None]] = set()

    def visit(self, url: str) -> None:
        """Counts a page that is judged."""
        self._pairs.visit(url)

    def keep(self, visit: Visit) -> None:
        """Notes a kept page, which may have copies."""
        self._depths.keep(visit.page_id, visit.depth)

    def note_link(self, found_on: str | None, *, leads_to_page: bool) -> None:
        """Notes where a link on the page at this URL has led."""
        if of_id := self._pairs.follow(found_on, leads_to_page=leads_to_page):
            self._watch.undo(of_id, "most links on the page that it duplicates lead to nothing")

    def leads_on(self, visit: Visit, record: Record, of_id: str) -> bool:
        """Returns whether the links of a near-duplicate are followed all the same."""
        return record["action"] != "mark" and (
            self._pairs.drop(visit.url, record["duplicate_of"], of_id)
            or self._depths.leads_further(visit.depth, of_id)
        )

    def follow_up(self, visit: Visit, outcome: Outcome, record: Record, known: Content | None) -> None:
        """Counts a near-duplicate; if it is dropped, sees to the page that it was dropped for.

        Nothing may be awaited between the claim and this for a duplicate, or what becomes of that page meanwhile is missed.
        """
        for name in counts_of(record):
            count(self._stats, name)
        if outcome.leads_on:
            count(self._stats, "links/harvested")
        else:
            self._stats.inc_value(f"dedup/{LINKS[record['action']]}", outcome.fingerprint.links)
        if outcome.action == "mark":
            return
        verdict, of = outcome.verdict, record["duplicate_of"]
        if verdict.of_id and visit.origin is not None and self._crawl.may_fetch_again(visit.origin):
            saved = 0 if outcome.leads_on else outcome.fingerprint.links
            drop = Drop(visit.page_id, visit.url, visit.origin, verdict.of_simhash, saved, as_line(record))
            self._watch.add(verdict.of_id, drop, certain=is_certain(verdict, self._index))
        self.audit.note(visit.url, verdict.rule, verdict.of_id or "")
        if outcome.action == "nofollow":
            return
        if not self._is_own(verdict):
            count(self._stats, "dropped/elsewhere")
        if not (outcome.leads_on or (known and known.are_links_left)):
            self._unreached.leave(visit.links())
            if known is not None:
                known.are_links_left = True
        if self.audit.picks(record["url"]):
            page = outcome.page or visit.read()
            check = asyncio.create_task(self.audit.check(record["url"], page, of, verdict.rule))
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)

    def _is_own(self, verdict: Verdict) -> bool:
        """Returns whether this crawl has kept the page that a verdict names."""
        of = verdict.of_id or ""
        return (
            verdict.of_run == self._index.run or self._claimant.is_open(of) or self._watch.has_processed(of)
        )

    def close(self) -> None:
        """Puts into the stats what was seen of all of them."""
        self.audit.close()
        self._pairs.close()
