"""In which stats a page is counted; a near-duplicate by its record, so that it can be taken back."""

from collections.abc import Iterator

from dedup.droplog.record import Record
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Outcome

#: The stats of what is done with a near-duplicate, and of the links on it.
DONE = {"drop": "dropped", "nofollow": "not_followed", "mark": "marked"}
LINKS = {"drop": "links_not_followed", "nofollow": "links_not_followed", "mark": "links_marked"}


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
