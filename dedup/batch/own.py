"""What is said of two pages' own content: what they are called, and what is chrome.

What many pages of a host share is known to the index of a crawl.  Without one, all that is outside marked chrome is
taken for the page's own.
"""

from collections.abc import Iterator
from typing import NamedTuple

from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.evidence import LEAST_MATCHING, LEAST_PROBED, Evidence, Part
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.hosts import Hosts
from dedup.page.html import Page
from dedup.page.urls import host
from dedup.printing import many, printable

#: No more characters of a heading, a name or a place are shown than this.
SHOWN = 80


class Tables(NamedTuple):
    """What an index knows of the hosts of two pages."""

    hosts: Hosts
    where: str  #: the index

    def chrome(self, *urls: str) -> Chrome | None:
        """Returns what is known of the host that decides; None if too little is."""
        tables = (self.hosts.table(host(url)) for url in urls)
        table = max(tables, key=lambda table: table.pages)
        return table if table.is_known else None

    def describe(self, *urls: str) -> str:
        """Returns how much is known: the host with more known pages decides."""
        names = {host(url): None for url in urls}
        pages, name = max((self.hosts.table(name).pages, name) for name in names)
        if not pages:
            where = " and ".join(printable(name) for name in names if name) or "files, which have no host"
            return f"{self.where} knows nothing of {where}"
        return (
            f"{self.where} knows {many(pages, 'kept page')} of {printable(name) or 'the host without a name'}"
        )


def describe(name: str, page: Page) -> Iterator[tuple[str, str]]:
    """Yields the lines on one page: what is marked as chrome, and what it is called."""
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


def evidence(
    detector: Detector, kept: Fingerprint, kept_url: str, page: Fingerprint, url: str, chrome: Chrome
) -> Evidence:
    """Returns what a crawl would make of a page beside a kept one, by what is known of their host."""
    assert kept.own is not None
    sketcher = detector.sketcher
    part = Part(sketcher, page, chrome)
    stored = sketcher.words([Part(sketcher, kept, chrome).sketch])
    return part.evidence(part.weigh(stored)[0], url, kept.called, kept_url)


def describe_own(found: Evidence) -> Iterator[str]:
    """Yields how much of what is own to each page is on the other, in words."""
    for name, other, alone in (("B", "A", found.new), ("A", "B", found.gone)):
        own, matching = many(round(found.matching + alone), "shingle"), round(found.matching)
        yield f"{matching:,} of the {own} that are {name}'s own are on {other}, too"


def objection(found: Evidence, least: float) -> str:
    """Returns why the own content of two pages says that they are different; "" if it doesn't."""
    if found.siblings:
        why = "their addresses name two pages, and such pages are duplicates only if they are equal"
    elif found.matching < LEAST_MATCHING:
        return f"fewer than {LEAST_MATCHING:.0f} of their own shingles match"
    elif found.suffices(least):
        return ""
    else:
        why = f"only {found.share:.0%} of what is own to one of them is on the other"
    return f"{why}; a crawl would look whether what differs is noise" if found.share >= LEAST_PROBED else why
