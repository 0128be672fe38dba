"""Traps: pages of one pattern and one heading that only differ in a few new words, however many are fetched.

Their own content does not match, so they are kept.  But a site that makes up new adverts, quotes or prices at each
request never ends, and somebody should be told.
"""

from dedup.droplog.drops import pattern
from dedup.filter.stats import Stats, count
from dedup.index.verdict import Near
from dedup.printing import inert

__all__ = ["LEAST", "Traps"]

#: How many kept pages of one pattern look like a trap, and how many patterns are counted at most.
LEAST, MAX_PATTERNS = 30, 10_000


class Traps:
    """Counts the pages that were kept only because of their own content, by the pattern of their URLs."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._pages: dict[str, tuple[int, float]] = {}  # and their new shingles, by pattern
        self._most = LEAST - 1

    def add(self, url: str, near: Near) -> None:
        """Counts a page that was kept although it resembles another."""
        evidence = near.evidence
        count(self._stats, "own_content", None if evidence else "host_unknown")
        if evidence is None or evidence.heading is False or evidence.other_name:
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
