"""Traps: pages of one pattern and one heading that only differ in a few new words, however many are fetched.

Their own content does not match, so they are kept.  But a site that makes up new adverts, quotes or prices at each
request never ends, and somebody should be told.

Another endless site answers every address that leads nowhere with a short page, which can't be judged and links one
level deeper.
"""

import logging
from collections.abc import Sequence

from dedup.filter.stats import Stats, count
from dedup.index.verdict import Near
from dedup.page.patterns import pattern
from dedup.page.urls import ORIGIN, digest
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: How many kept pages of one pattern look like a trap, and how many patterns are counted at most.
LEAST, MAX_PATTERNS = 30, 10_000
#: At how many short pages there is a warning.
WARNED = frozenset({30, 120, 1_000, 10_000, 100_000, 1_000_000})
#: How many short pages are remembered, 100 bytes each.
MAX_SHORT = 10_000


class Traps:
    """Counts the pages that were kept only because of their own content, by the pattern of their URLs."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._pages: dict[str, tuple[int, float]] = {}  # and their new shingles, by pattern
        self._most = LEAST - 1
        self._short: dict[int, None] = {}  # digests of their words
        self._folders: dict[str, list[int]] = {}  # short pages below a folder, and how many are like no other

    def add(self, url: str, near: Near) -> None:
        """Counts a page that was kept although it resembles another."""
        evidence = near.evidence
        count(self._stats, "own_content", None if evidence else "host_unknown")
        if evidence is None or evidence.other_name:
            return  # it is called otherwise: it is another page
        name = pattern(url)
        pages, new = self._pages.get(name, (0, 0.0))
        if "*" not in name or not (pages or len(self._pages) < MAX_PATTERNS):
            return
        self._pages[name] = pages, new = pages + 1, new + evidence.new
        if pages > self._most:
            self._most = pages
            told = f"{inert(name)}: {pages:,} pages that differ in about {round(new / pages):,} shingles each"
            self._stats.set_value("dedup/trap", told)

    def crowd(self, url: str) -> None:
        """Counts a page that was kept though not all pages like it were looked at, and warns at the first."""
        if not self._stats.get_value("dedup/crowded"):
            logger.warning(
                "Kept %s without comparing it with all pages like it, which are too many: it may be a "
                "near-duplicate.  They may share one large frame.  If somebody forges them, give the setting "
                "hash_key a secret, and start a new index.  Further such pages are only counted, in dedup/crowded",
                inert(url),
            )
        count(self._stats, "crowded")

    def short(self, url: str, words: Sequence[str]) -> None:
        """Counts a page that is too short to be judged.  Warns of a folder in which most are word for word alike."""
        if (folder := _folder(url)) is None:
            return
        key = digest(" ".join(words))
        new = key not in self._short
        counts = self._folders.get(folder)
        if counts is None:
            if len(self._folders) >= MAX_PATTERNS:
                return
            counts = self._folders[folder] = [0, 0]
        counts[0] += 1
        counts[1] += new
        if new and len(self._short) < MAX_SHORT:
            self._short[key] = None
        pages, others = counts
        if pages in WARNED and others * 10 < pages:
            told = (
                f"{inert(folder)}: {others:,} new of {pages:,}, the others are short and word for word alike"
            )
            self._stats.set_value("dedup/trap", told)
            logger.warning("This looks like a trap without end, %s", told)


def _folder(url: str) -> str | None:
    """Returns the URLs below the first folder of a path; None if it has none.

    >>> _folder("http://a.org/calendar/2026/11/"), _folder("http://a.org/about")
    ('http://a.org/calendar/*', None)
    """
    origin = ORIGIN.match(url)
    end = url.partition("?")[0].find("/", origin.end() + 1) if origin else -1
    return None if end < 0 else url[: end + 1] + "*"
