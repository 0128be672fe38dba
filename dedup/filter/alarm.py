"""The alarm: one kept page that absorbs an absurd number of a host's URLs is no page, but a wall.

Login walls, consent pages and error pages with status 200 look alike at every URL.  A content that a host
gives for more than MAX_CLUSTER URLs is not trusted any more: what looks like it is kept.
"""

import logging
from collections import Counter

from scrapy.statscollectors import StatsCollector

from dedup.page.urls import host, strip_session
from dedup.printing import inert

__all__ = ["Alarm"]

logger = logging.getLogger(__name__)


class Alarm:
    """Counts the near-duplicates of each kept page, by host; one counter per kept page and host."""

    def __init__(self, limit: int, stats: StatsCollector) -> None:
        """``limit``: near-duplicates of one page that a host may have; 0 = any number."""
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
            self._stats.inc_value("dedup/alarms")
            logger.warning(
                "Alarm: %s near-duplicates of %s on %s. Is that a login wall or an error page? From now on they "
                "are kept (DEDUP_MAX_CLUSTER; those dropped: scrapy duplicates --of URL)",
                f"{self._limit:,}",
                inert(of),
                inert(where),
            )
        return drops > self._limit
