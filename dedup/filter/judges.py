"""The judges of a page, in their order: each may say what becomes of it, and the last that does so has decided.

1. All that decides about a page at hand stands in `JUDGES`, and nothing else changes a verdict.
2. A judge is asked only of the verdicts that it hears: "" is a page of which nothing is said yet.
3. A judge that returns None, or the verdict itself, leaves it as it is.  Its own bears its name, and what it has seen.
4. Between the claim on a page and the record of its drop nothing is awaited but judges that hear "new", and those that claim
   it anew: what becomes of the kept page meanwhile would be missed.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from dedup.droplog.log import DropLog
from dedup.filter.case import Case
from dedup.filter.claims import Claimant
from dedup.filter.noise.probe import Probe
from dedup.filter.recording import make_record, undo
from dedup.filter.soft_404 import RULE as SOFT_404
from dedup.filter.soft_404 import Soft404s
from dedup.filter.stats import Stats, spend
from dedup.filter.visit import Crawl
from dedup.filter.watch.alarm import Alarm
from dedup.filter.watch.audit import Audit
from dedup.filter.watch.barren import Barren
from dedup.filter.watch.canonical import Canonicals
from dedup.filter.watch.doubts import Watch
from dedup.filter.watch.drop import is_certain
from dedup.filter.watch.unreached import Unreached
from dedup.fingerprint.simhash import distance
from dedup.index import Index, Verdict
from dedup.index.entry import scope_mask
from dedup.latest import Latest
from dedup.page.ids import have_one_address
from dedup.printing import inert
from dedup.settings import FilterSettings

logger = logging.getLogger(__name__)


class Bench:
    """What the judges of one crawl know, and those who see to what they have decided."""

    def __init__(
        self, index: Index, log: DropLog, stats: Stats, crawl: Crawl, settings: FilterSettings
    ) -> None:
        self.index = index
        self.log = log
        self.stats = stats
        self.crawl = crawl
        self.watch = Watch(index, stats, crawl, partial(undo, log))
        self.claimant = Claimant(index, settings.on_index_failure, stats, crawl.stop, crawl.is_closing)
        self.barren = Barren(self.claimant, self.watch)
        fetches = settings.probe and crawl.fetches
        self.probe = Probe(index, stats, crawl, self.watch.undo, fetches=fetches)
        self.soft_404s = Soft404s(index, self.probe, stats, crawl, self.watch.undo, fetches=fetches)
        self.alarm = Alarm(settings.max_cluster, stats)
        self.audit = Audit(index, settings.audit, stats, crawl.fetch, self.watch.undo)
        self.canonicals = Canonicals()
        #: By page id: the simhashes of pages that were asked for again by their callbacks, and of kept ones that were met again.
        self.asked_again, self.shown = Latest[str, int | None](), Latest[str, int]()
        #: By digests of contents and their scopes: what their first requests carried.
        self.carried = Latest[int, int]()
        #: What only near-duplicates link to; it is told what the crawl asks for.
        self.unreached = Unreached(stats)

    def differ(self, simhash: int, other: int) -> bool:
        """Returns whether a page shows something else than before, by the simhashes."""
        return distance(simhash, other) > self.index.detector.max_distance

    async def decide(self, case: Case) -> Verdict:
        """Asks the judges in their order, and returns the verdict, with the name of the judge that decided."""
        heard = ""
        for judge in JUDGES:
            found = await judge.decide(self, case) if heard in judge.hears else None
            if found is not None and found is not case.verdict:
                beside = found.of or (found.near.url if found.near else "") or case.verdict.beside
                case.verdict = replace(found, judge=judge.name, beside=found.beside or beside)
                heard = found.status
        return case.verdict


async def _asked_again(bench: Bench, case: Case) -> Verdict | None:
    """keeps a page that still shows what its callback could do nothing with"""
    page_id, simhash = case.visit.page_id, case.fingerprint.simhash
    shown = bench.asked_again.pop(page_id, None)
    if simhash is None or shown is None or bench.differ(simhash, shown):
        return None
    bench.asked_again[page_id] = shown
    return Verdict.unjudged("asked_again")


async def _read(bench: Bench, case: Case) -> Verdict | None:
    """keeps what can't be read as a page: it is short, cut off, no text, or drawn by scripts"""
    made = case.fingerprint
    return Verdict.unjudged(made.reason) if made.reason is not None or made.simhash is None else None


async def _index(bench: Bench, case: Case) -> Verdict:
    """drops a page that is equal to a kept one, or whose own content is that of a kept one; files any other"""
    began = time.perf_counter()
    visit, simhash = case.visit, case.fingerprint.simhash
    verdict = case.claimed = await bench.claimant.claim_case(case)
    if verdict.status == "same" and simhash is not None:
        bench.shown[visit.page_id] = simhash
    elif case.page.markup and verdict.of and have_one_address(visit.url, verdict.of):
        await bench.probe.meet(verdict.of_id, case.page)
    spend(bench.stats, "claim", time.perf_counter() - began)
    if not bench.crawl.is_closing():
        has_waited = await bench.soft_404s.ask(case)
        if has_waited and not verdict.kept:  # meanwhile the kept page may have failed
            verdict = case.claimed = await bench.claimant.claim_case(case)
    return verdict


async def _soft_404(bench: Bench, case: Case) -> Verdict | None:
    """drops a page that says what its host says where nothing is; keeps a page for which only such a page would be kept"""
    return None if bench.crawl.is_closing() else await bench.soft_404s.check(case)


async def _probe(bench: Bench, case: Case) -> Verdict | None:
    """drops a page that differs from a kept one only where both change, or in an address that means the same; else keeps it"""
    if bench.crawl.is_closing():
        return None
    return await bench.probe.check(case.visit, case.page, case.fingerprint, case.verdict)


async def _barren(bench: Bench, case: Case) -> Verdict:
    """keeps a copy of a page of which no item came, though items come of others like it: the copy takes its place"""
    return await bench.barren.give_way(case)


async def _carries(bench: Bench, case: Case) -> Verdict | None:
    """keeps a page that equals a kept one, since its request carried other data of the spider"""
    visit = case.visit
    content = case.fingerprint.digest ^ scope_mask(bench.index.settings.scope, visit.url)
    carried = bench.carried[content] = bench.carried.get(content, visit.carried)
    return replace(case.verdict, reason="carries") if carried != visit.carried else None


async def _outdated(bench: Bench, case: Case) -> Verdict | None:
    """keeps a copy of a page that shows something else by now"""
    filed, shown = case.verdict.of_simhash or 0, bench.shown.get(case.verdict.of_id or "")
    return Verdict.unjudged("outdated") if shown is not None and bench.differ(filed, shown) else None


async def _alarm(bench: Bench, case: Case) -> Verdict | None:
    """keeps a copy of a page of which too many others would be copies: that is a login wall, or the like"""
    visit, verdict = case.visit, case.verdict
    if verdict.rule == SOFT_404 or not bench.alarm.rings(visit.url, verdict.of or "", visit.asked):
        return None
    bench.watch.undo(verdict.of_id or "", "what it duplicates looks like a wall")
    return Verdict.unjudged("alarm")


async def _audit(bench: Bench, case: Case) -> Verdict | None:
    """keeps a near-duplicate by a rule that the audit has found wrong on pages of this kind"""
    is_trusted = bench.audit.trusts(case.visit.url, case.verdict.rule)
    return None if is_trusted else Verdict.unjudged("audit")


async def _uncertain(bench: Bench, case: Case) -> Verdict | None:
    """keeps a copy of a page that may yet fail, if the copy could not be fetched again then"""
    visit, verdict = case.visit, case.verdict
    case.action = bench.barren.action(visit, verdict, case.action)
    may_doubt = bench.crawl.may_fetch_again(visit.origin) and bench.watch.may_doubt(
        visit.page_id, verdict.of_run
    )
    if case.action == "mark" or may_doubt or is_certain(verdict, bench.index):
        return None
    return Verdict.unjudged("uncertain")


async def _log(bench: Bench, case: Case) -> Verdict | None:
    """keeps a near-duplicate whose record can't be written to the drop log"""
    visit, verdict, canonical = case.visit, case.verdict, case.page.canonical
    try:
        agrees = bench.canonicals.agrees(visit.url, canonical, verdict.of or "")
        record = make_record(visit, verdict, case.fingerprint, case.action, canonical, agrees)
        bench.log.write(record)
    except (OSError, ValueError) as error:
        if not bench.stats.get_value("dedup/unjudged/log"):
            logger.error(
                "Kept %s: the drop log can't be written: %s.  Further such pages are only counted, in "
                "dedup/unjudged/log",
                inert(visit.url),
                error,
            )
        return Verdict.unjudged("log")
    case.record = record
    return None


class Judge(NamedTuple):
    """One who may say what becomes of a page."""

    name: str
    decide: Callable[[Bench, Case], Awaitable[Verdict | None]]
    hears: frozenset[str]  #: the verdicts of which it is asked
    leaves: str  #: what is known of its reasons

    @property
    def says(self) -> str:
        """Returns what it does, as the end of a sentence."""
        return self.decide.__doc__ or ""


_FIRST, _NEW, _COPY = frozenset({""}), frozenset({"new"}), frozenset({"duplicate"})
_CLAIMED = frozenset({"new", "same", "duplicate"})

#: In the order in which they are asked.
JUDGES = (
    Judge("asked_again", _asked_again, _FIRST, "the reason"),
    Judge("read", _read, _FIRST, "the reason: short, partial, binary ..."),
    Judge("index", _index, _FIRST, "the kept page, the rule, bits and shingles"),
    Judge("soft_404", _soft_404, _CLAIMED, "the address that leads nowhere, bits and shingles"),
    Judge("probe", _probe, _NEW, "the kept page, and the noise of a drop; of a kept page, what differs"),
    Judge("barren", _barren, _COPY, "the page whose place it takes"),
    Judge("carries", _carries, _NEW, "the reason"),
    Judge("outdated", _outdated, _COPY, "the kept page"),
    Judge("alarm", _alarm, _COPY, "the kept page, and a warning"),
    Judge("audit", _audit, _COPY, "the kept page"),
    Judge("uncertain", _uncertain, _COPY, "the kept page"),
    Judge("log", _log, _COPY, "the record of a near-duplicate; of a page that is kept, an error"),
)
#: By their names.
BY_NAME = {judge.name: judge for judge in JUDGES}
