"""What `scrapy compare` says of the pages' own content: what they are called, and what is marked as chrome.

A crawl also asks its index what many pages of the host share.  No table of a host is at hand here, so all that is
outside marked chrome is taken for the page's own.
"""

from collections.abc import Iterator

from dedup.fingerprint.chrome import Chrome, Evidence, match_counts, weigh
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.page.html import Page
from dedup.printing import many, printable

__all__ = ["describe", "evidence", "objection"]

#: How many characters of a heading, a name or a place are shown.
SHOWN = 80


def describe(name: str, page: Page) -> Iterator[tuple[str, str]]:
    """The lines on one page: what is marked as chrome, and what it is called."""
    marked = sum(end - start for start, end in page.chrome)
    yield (
        f"chrome {name}",
        f"{marked:,} of {many(len(page.tokens), 'token')} in menus, headers, footers and the like",
    )
    called = [
        f"heading {' '.join(page.heading)!r}" if page.heading else "no heading",
        f"name {' '.join(page.names)!r}" if page.names else "no name that heading and address share",
        f"place {page.place!r}" if page.place else "no place of its own",
    ]
    yield f"called {name}", ", ".join(printable(text[:SHOWN]) for text in called)


def evidence(detector: Detector, kept: Fingerprint, page: Fingerprint) -> Evidence | None:
    """How a page's own shingles match a kept page, without a table of the host; None if either can't be judged."""
    if page.own is None or kept.simhash is None:
        return None
    sketcher = detector.sketcher
    view = Chrome(sketcher.slots).view(page, sketcher)
    counts = match_counts(sketcher, sketcher.words([kept.sketch]), page, view)
    return weigh(sketcher, page, counts[:, 0].tolist(), kept.called, view)


def objection(found: Evidence, min_own: float) -> str:
    """Why the own content of two pages that resemble each other says that they are different; "" if it doesn't."""
    if found.suffices(min_own):
        return ""
    if found.other_name:
        return "each is called, by heading and address, what the other is not"
    if found.heading is False:
        return "their headings differ, and too little of what is the page's own matches"
    return "too little of what is the page's own matches"
