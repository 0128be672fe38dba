"""The audit: how often a drop is wrong, measured in the crawl itself.

A seeded sample of the drops is checked again: the kept page is fetched once more, and the full sets of
shingles of both pages are compared, where the verdict had only their sketches.  A drop is wrong when their
exact resemblance is below ``min_resemblance``, or below one half where ``min_resemblance`` is less than that.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable

from dedup.filter.stats import Stats, count
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.shingles import Hashes, resemblance
from dedup.intervals import wilson
from dedup.page.html import Page

__all__ = ["Audit"]

logger = logging.getLogger(__name__)

#: Pages that share less than this are not the same, whatever the settings allow.
LEAST = 0.5
#: What `Page.reason` may be where the page was read: its shingles can be compared.
READ = (None, "empty", "truncated")


class Audit:
    """Checks a share of the drops, and counts those that are wrong."""

    def __init__(
        self, detector: Detector, share: float, stats: Stats, fetch: Callable[[str], Awaitable[Page | None]]
    ) -> None:
        """``fetch`` gives the page at a URL as it is now, or None; whatever it raises counts as None."""
        self._detector = detector
        self.share = share
        self._stats = stats
        self._fetch = fetch

    def picks(self, url: str) -> bool:
        """Whether the drop of a URL is in the sample: the same URLs in every run.

        >>> from dedup import Detector
        >>> from dedup.filter import Counts
        >>> audit = Audit(Detector(), 0.25, Counts(), fetch=None)
        >>> sum(audit.picks(f"http://example.org/{page}") for page in range(1000))
        258
        """
        digest = hashlib.blake2b(url.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self.share * 2**64

    async def check(self, url: str, shingles: Hashes, of: str) -> None:
        """Compares the shingles of a dropped page with those of the kept one as it is now."""
        try:
            kept = await self._fetch(of)
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
            logger.debug("Not audited: %s can't be fetched again: %s", of, error)
            kept = None
        if kept is None or kept.reason not in READ:
            count(self._stats, "audit/failed")
            return
        exact = resemblance(shingles, self._detector.shingles(kept))
        count(self._stats, "audit/checked")
        if exact < max(self._detector.min_resemblance, LEAST):
            count(self._stats, "audit/wrong")
            logger.warning("Audit: the drop of %s was wrong, its resemblance with %s is %.3f", url, of, exact)

    def close(self) -> None:
        """Puts the share of wrong drops and its 95 % interval into the stats."""
        checked = self._stats.get_value("dedup/audit/checked", 0)
        wrong = self._stats.get_value("dedup/audit/wrong", 0)
        if checked:
            rates = (wrong / checked, *wilson(wrong, checked))
            for name, rate in zip(("wrong_rate", "wrong_rate_low", "wrong_rate_high"), rates, strict=True):
                self._stats.set_value(f"dedup/audit/{name}", round(rate, 5))
