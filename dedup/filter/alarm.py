"""The alarm: a kept page that absorbs an absurd number of a host's URLs is not a page but a wall.

Login walls, consent pages and error pages with status 200 look alike at every URL.  A content that a host
gives for more than ``max_cluster`` URLs is not trusted any more: pages that look like it are kept.
"""

import logging
from collections import Counter

from dedup.filter.stats import Stats, count
from dedup.page.urls import host, strip_session
from dedup.printing import inert

__all__ = ["Alarm"]

logger = logging.getLogger(__name__)


class Alarm:
    """Counts the near-duplicates of each kept page by host.  It holds one number per kept page and host."""

    def __init__(self, limit: int, stats: Stats) -> None:
        """``limit``: how many near-duplicates of one page a host may have; 0 allows any number."""
        self._limit = limit
        self._stats = stats
        self._drops: Counter[tuple[str, str]] = Counter()

    def rings(self, url: str, of: str) -> bool:
        """Whether a near-duplicate is one too many.  Copies that differ by their session ids are not counted."""
        if not self._limit or strip_session(url) == strip_session(of):
            return False
        where = host(url)
        self._drops[of, where] += 1
        drops = self._drops[of, where]
        if drops == self._limit + 1:
            count(self._stats, "alarms")
            logger.warning(
                "Alarm: %s near-duplicates of %s on %s. Is that a login wall or an error page? From now on they "
                "are kept (max_cluster); those that were dropped before are in the drop log",
                f"{self._limit:,}",
                inert(of),
                inert(where),
            )
        return drops > self._limit
