"""The record of a near-duplicate, as the filter makes it, and in which stats a page is counted.

A near-duplicate is counted by its record, so that it can be taken back.
"""

import json
from collections.abc import Iterator
from contextlib import suppress

from dedup.droplog.log import DropLog
from dedup.droplog.record import Record, make, now
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Outcome, Visit
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict
from dedup.page.urls import strip_user
from dedup.settings import Action

#: The stats of what is done with a near-duplicate, and of the links on it.
DONE = {"drop": "dropped", "nofollow": "not_followed", "mark": "marked"}
LINKS = {"drop": "links_not_followed", "nofollow": "links_not_followed", "mark": "links_marked"}


def make_record(
    visit: Visit,
    verdict: Verdict,
    fingerprint: Fingerprint,
    action: Action,
    canonical: str,
    agrees: bool | None,
) -> Record:
    """Returns what the log says of a page that is a near-duplicate."""
    evidence = verdict.evidence
    own, matching = (round(evidence.own), round(evidence.matching)) if evidence else (None, None)
    return make(
        time=now(),
        url=strip_user(visit.url),
        duplicate_of=verdict.of or "",
        distance=verdict.distance or 0,
        resemblance=round(verdict.resemblance or 0.0, 4),
        own=own,
        matching=matching,
        new=None if own is None or matching is None else max(0, own - matching),
        gone=round(evidence.gone) if evidence else None,
        simhash=fingerprint.hex or "",
        duplicate_of_simhash=f"{verdict.of_simhash or 0:016x}",
        tokens=fingerprint.tokens,
        links=fingerprint.links,
        bytes=visit.size,
        rule=verdict.rule or "",
        noise=verdict.noise,
        judge=verdict.judge,
        action=action,
        referer=strip_user(visit.referer) if visit.referer else None,
        canonical=strip_user(canonical) or None,
        agrees=agrees,
        depth=visit.depth,
        undone=None,
    )


def undo(log: DropLog, line: bytes, why: str) -> None:
    """Says in the log that the drop on a line of it was wrong."""
    with suppress(OSError):  # it was logged that the log can't be written, and Scrapy's log tells it, too
        log.write({**json.loads(line), "time": now(), "undone": why})


def count_page(stats: Stats, outcome: Outcome) -> None:
    """Counts a page, but for what only near-duplicates have."""
    verdict = outcome.verdict
    count(stats, "pages")
    count(stats, "unjudged" if verdict.reason else verdict.status, verdict.reason)
    if outcome.unchanged:
        count(stats, "unchanged")
    if outcome.record is None:
        count(stats, f"judges/{verdict.judge}")


def counts_of(record: Record) -> Iterator[str]:
    """Yields the names of the stats that count this near-duplicate, beside those that count every page."""
    yield DONE[record["action"]]
    yield f"judges/{record.get('judge')}"
    if record["rule"] == "soft_404":
        yield "soft_404"
    if record["canonical"] is not None:
        yield "canonical"
        agrees = record["agrees"]
        yield f"canonical/{'other' if agrees is None else 'agrees' if agrees else 'own'}"
