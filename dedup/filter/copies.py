"""What becomes of near-duplicates: their records, their links, and the pages that they copy."""

import asyncio
import logging
from dataclasses import replace

from dedup.droplog.log import DropLog, as_line
from dedup.droplog.record import Record
from dedup.filter.alarm import Alarm
from dedup.filter.audit import Audit
from dedup.filter.bodies import Content
from dedup.filter.canonical import Canonicals
from dedup.filter.claims import Claimant
from dedup.filter.counting import LINKS, counts_of
from dedup.filter.depths import Depths
from dedup.filter.doubts import Watch
from dedup.filter.drop import Drop
from dedup.filter.pairs import Pairs
from dedup.filter.recording import make_record
from dedup.filter.soft_404 import RULE as SOFT_404
from dedup.filter.stats import Stats, count
from dedup.filter.unreached import Unreached
from dedup.filter.visit import Crawl, Outcome, Visit
from dedup.index import Index, Verdict
from dedup.printing import inert
from dedup.settings import Action, FilterSettings

logger = logging.getLogger(__name__)


class Copies:
    """The near-duplicates of one crawl, whatever is done with them."""

    def __init__(
        self,
        index: Index,
        log: DropLog,
        stats: Stats,
        settings: FilterSettings,
        crawl: Crawl,
        claimant: Claimant,
        watch: Watch,
        unreached: Unreached,
    ) -> None:
        self._index = index
        self._log = log
        self._stats = stats
        self._crawl = crawl
        self._claimant = claimant
        self._watch = watch
        self._unreached = unreached
        self._alarm = Alarm(settings.max_cluster, stats)
        self._pairs = Pairs(stats)
        self._depths = Depths(stats, crawl.depth_limit)
        self._canonicals = Canonicals()
        self.audit = Audit(index, settings.audit, stats, crawl.fetch)
        self._checks: set[asyncio.Task[None]] = set()

    def visit(self, url: str) -> None:
        """Counts a page that is judged."""
        self._pairs.visit(url)

    def keep(self, visit: Visit, canonical: str) -> None:
        """Notes a kept page, which may have copies."""
        self._depths.keep(visit.page_id, visit.depth)
        self._canonicals.keep(visit.url, canonical)

    def note_link(self, found_on: str | None, *, leads_to_page: bool) -> None:
        """Notes where a link on the page at this URL has led."""
        if of_id := self._pairs.follow(found_on, leads_to_page=leads_to_page):
            self._watch.undo(of_id, "most links on the page that it duplicates lead to nothing")

    def record(self, visit: Visit, found: Outcome, canonical: str, action: Action) -> Outcome:
        """Returns what becomes of a near-duplicate.  It is kept unless its record has been written to the log.

        ``action`` is what is done with it if it is dropped.
        """
        verdict = found.verdict
        of = verdict.of_id or "", verdict.of_simhash or 0
        if self._watch.is_outdated(*of, self._index.detector.max_distance):
            return replace(found, verdict=Verdict("unjudged", reason="outdated"))
        if verdict.rule != SOFT_404 and self._alarm.rings(visit.url, verdict.of or "", visit.asked):
            self._watch.undo(verdict.of_id or "", "what it duplicates looks like a wall")
            return replace(found, verdict=Verdict("unjudged", reason="alarm"))
        may_doubt = self._crawl.may_fetch_again(visit.origin) and self._watch.may_doubt(
            visit.page_id, verdict.of_run
        )
        may_drop = may_doubt or self._is_certain(verdict)
        if action != "mark" and not may_drop:
            return replace(found, verdict=Verdict("unjudged", reason="uncertain"))
        try:
            agrees = self._canonicals.agrees(visit.url, canonical, verdict.of or "")
            record = make_record(visit, found, action, canonical, agrees)
            self._log.write(record)
        except (OSError, ValueError) as error:
            if not self._stats.get_value("dedup/unjudged/log"):
                logger.error(
                    "Kept %s: the drop log can't be written: %s.  Further such pages are only counted, in "
                    "dedup/unjudged/log",
                    inert(visit.url),
                    error,
                )
            return replace(found, verdict=Verdict("unjudged", reason="log"))
        leads_on = action != "mark" and (
            self._pairs.drop(visit.url, record["duplicate_of"], of[0])
            or self._depths.leads_further(visit.depth, of[0])
        )
        return replace(found, action=action, record=record, leads_on=leads_on)

    def _is_certain(self, verdict: Verdict) -> bool:
        """Returns whether a kept page is done, and can't be lost."""
        return verdict.done and (not self._index.is_shared or self._index.is_own(verdict.of_run))

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
            self._watch.add(verdict.of_id, drop, certain=self._is_certain(verdict))
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
