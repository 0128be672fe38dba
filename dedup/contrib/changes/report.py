"""Changes -> one HTML file: what is new, changed, moved, hidden and gone, with the words that differ."""

from collections.abc import Sequence
from datetime import UTC, datetime

from dedup.contrib.changes.file import Crawl
from dedup.filter.change import Change
from dedup.report.file import assembled

#: The most changes of a word that are listed.
MAX_CHANGES = 5_000


def changes_report(
    found: Sequence[Change], missed: Sequence[str], crawls: Sequence[Crawl], since: int
) -> str:
    """Returns the text of the HTML file, in ASCII."""
    times = {crawl.number: _time(crawl) for crawl in crawls}
    lists: dict[str, list[object]] = {}
    counts: dict[str, int] = {}
    for change in found:
        counts[change.word] = counts.get(change.word, 0) + 1
        if counts[change.word] <= MAX_CHANGES:
            row = change.url, change.other, change.is_redirected, change.edits, times.get(change.crawl, "")
            lists.setdefault(change.word, []).append(row)
    counts["not seen"] = len(missed)
    lists["not seen"] = [(url, "", False, (), "") for url in missed[:MAX_CHANGES]]
    data = {
        "latest": times[crawls[-1].number],
        "since": times.get(since, ""),
        "first": len(crawls) == 1,
        "whole": bool(crawls[-1].is_whole),
        "counts": counts,
        "lists": lists,
    }
    return assembled(
        "changes.html", ["report.css", "changes.css"], ["changes.js"], data, package="dedup.contrib.changes"
    )


def _time(crawl: Crawl) -> str:
    return datetime.fromtimestamp(crawl.began, UTC).isoformat(timespec="seconds")
