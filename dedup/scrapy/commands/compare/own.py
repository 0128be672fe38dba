"""What `scrapy compare` says of the pages' own content: what they are called, and what is chrome.

What many pages of a host share is known to the index of a crawl.  Without one, all that is outside marked chrome is
taken for the page's own.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from dedup.fingerprint.chrome import KNOWN, Chrome
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, match_counts, weigh
from dedup.index import Entry, Index
from dedup.index.hosts import Hosts, Weighed
from dedup.page.html import Page
from dedup.page.urls import host
from dedup.printing import many, printable
from dedup.scrapy.commands.index.access import surveyed

__all__ = ["Tables", "ask", "describe", "evidence", "objection"]

#: How many characters of a heading, a name or a place are shown.
SHOWN = 80


class Tables(NamedTuple):
    """What an index knows of the hosts of two pages."""

    hosts: Hosts
    where: str  #: the index

    def weigh(self, kept: Fingerprint, kept_url: str, page: Fingerprint, url: str) -> Weighed:
        """What a crawl would make of a page that resembles a kept one enough."""
        entry = Entry(
            page_id="",
            url=kept_url,
            simhash=kept.simhash or 0,
            scope=0,
            digest=kept.digest,
            bands=kept.bands,
            sketch=kept.sketch,
            filed=0,
            run="",
            view=kept.view,
            called=kept.called,
        )
        return self.hosts.weigh(page, url, {0: entry}, 0, {})[0]

    def describe(self, *urls: str) -> str:
        """How much is known: the host that decides is the one of which more pages are known."""
        names = {host(url): None for url in urls}
        pages, name = max((self.hosts.table(name).pages, name) for name in names)
        if not pages:
            where = " and ".join(printable(name) for name in names if name) or "files, which have no host"
            return f"{self.where} knows nothing of {where}"
        return (
            f"{self.where} knows {many(pages, 'kept page')} of {printable(name) or 'the host without a name'}"
        )


async def ask(index: Index, urls: Collection[str]) -> Tables:
    """Reads what an index knows of the hosts of some pages, and closes it.  Raises `DedupError`s only."""
    names = set(map(host, urls))
    hosts = Hosts(index.detector.sketcher, index.settings)
    async with surveyed(index) as survey:
        async for found in survey.hosts():
            if found.table and found.name in names:
                hosts.merge({found.name: found.table})
    return Tables(hosts, index.where)


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


def objection(weighed: Weighed) -> str:
    """Why the own content of two pages that resemble each other says that they are different; "" if it doesn't."""
    found = weighed.evidence
    if weighed.suffices:
        return ""
    if found is None:
        return f"fewer than {KNOWN} kept pages of the host are known, and until then only equal pages are dropped"
    if found.other_name:
        return "each is called, by heading and address, what the other is not"
    if found.heading is False:
        return "their headings differ, and too little of what is the page's own matches"
    return "too little of what is the page's own matches"
