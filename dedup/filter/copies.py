"""What becomes of near-duplicates: their records, their links, and the pages that they copy."""

import asyncio

from dedup.droplog.log import as_line
from dedup.droplog.record import Record
from dedup.filter.case import Case
from dedup.filter.judges import Bench
from dedup.filter.recording import LINKS, counts_of
from dedup.filter.stats import count
from dedup.filter.visit import Outcome, Visit
from dedup.filter.watch.depths import Depths
from dedup.filter.watch.drop import Drop, is_certain
from dedup.filter.watch.pairs import Pairs
from dedup.index import Verdict


class Copies:
    """The near-duplicates of one crawl, whatever is done with them."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._stats = bench.stats
        self.pairs = Pairs(bench.stats)
        self.depths = Depths(bench.stats, bench.crawl.depth_limit)
        self._checks: set[asyncio.Task[None]] = set()

    def note_link(self, found_on: str | None, *, leads_to_page: bool) -> None:
        """Notes where a link on the page at this URL has led."""
        if of_id := self.pairs.follow(found_on, leads_to_page=leads_to_page):
            self._bench.watch.undo(of_id, "most links on the page that it duplicates lead to nothing")

    def leads_on(self, visit: Visit, record: Record, of_id: str) -> bool:
        """Returns whether the links of a near-duplicate are followed all the same."""
        return record["action"] != "mark" and (
            self.pairs.drop(visit.url, record["duplicate_of"], of_id)
            or self.depths.leads_further(visit.depth, of_id)
        )

    def follow_up(self, case: Case, outcome: Outcome, record: Record) -> None:
        """Counts a near-duplicate; if it is dropped, sees to the page that it was dropped for.

        Nothing may be awaited between the claim and this for a duplicate, or what becomes of that page meanwhile is missed.
        """
        bench, visit, verdict, links = self._bench, case.visit, outcome.verdict, outcome.fingerprint.links
        for name in counts_of(record):
            count(self._stats, name)
        if outcome.leads_on:
            count(self._stats, "links/harvested")
        else:
            self._stats.inc_value(f"dedup/{LINKS[record['action']]}", links)
        if outcome.action == "mark":
            return
        if verdict.of_id and visit.origin is not None and bench.crawl.may_fetch_again(visit.origin):
            saved = 0 if outcome.leads_on else links
            drop = Drop(visit.page_id, visit.url, visit.origin, verdict.of_simhash, saved, as_line(record))
            bench.watch.add(verdict.of_id, drop, certain=is_certain(verdict, bench.index))
        bench.audit.note(visit.url, verdict.rule, verdict.of_id or "")
        if outcome.action == "nofollow":
            return
        if not self._is_own(verdict):
            count(self._stats, "dropped/elsewhere")
        if not (outcome.leads_on or (case.body and case.body.are_links_left)):
            bench.unreached.leave(visit.links())
            if case.body is not None:
                case.body.are_links_left = True
        if bench.audit.picks(record["url"]):
            page = outcome.page or visit.read()
            check = bench.audit.check(record["url"], page, record["duplicate_of"], verdict.rule)
            task = asyncio.create_task(check)
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    def _is_own(self, verdict: Verdict) -> bool:
        """Returns whether this crawl has kept the page that a verdict names."""
        bench, of = self._bench, verdict.of_id or ""
        is_open = bench.claimant.is_open(of) or bench.watch.has_processed(of)
        return verdict.of_run == bench.index.run or is_open

    def close(self) -> None:
        """Puts into the stats what was seen of all of them."""
        self._bench.audit.close()
        self.pairs.close()
