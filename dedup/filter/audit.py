"""The audit: how often a drop is wrong, measured in the crawl itself.

A seeded sample of the drops is checked again: the kept page is fetched once more, and the full sets of
shingles of both pages are compared, where the verdict had only their sketches.  A drop is wrong when their
exact resemblance is below MIN_RESEMBLANCE, or below one half where that is less.
"""

import hashlib
import logging

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.shingles import Hashes, resemblance
from dedup.intervals import wilson
from dedup.page.limits import unreadable
from dedup.page.read import read

__all__ = ["Audit"]

logger = logging.getLogger(__name__)

#: Whatever the settings allow, pages that share less than this are not the same.
LEAST = 0.5


class Audit:
    """Checks a share of the drops, and counts."""

    def __init__(self, crawler: Crawler, detector: Detector, share: float) -> None:
        self._crawler = crawler
        self._detector = detector
        self._share = share

    def picks(self, url: str) -> bool:
        """Whether the drop of a URL is in the sample: the same URLs in every run.

        >>> from dedup.filter.audit import Audit
        >>> audit = Audit(None, None, share=0.25)
        >>> sum(audit.picks(f"http://example.org/{page}") for page in range(1000))
        258
        """
        digest = hashlib.blake2b(url.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self._share * 2**64

    def shingles(self, response: HtmlResponse) -> Hashes:
        """All shingles of a page."""
        keep_urls = self._detector.keep_urls
        page = read(response.text, response.url, keep_urls, lambda _: response.selector.root)
        return self._detector.shingles(page)

    async def check(self, url: str, shingles: Hashes, of: str) -> None:
        """Compares a dropped page with the kept one as it is now."""
        request = Request(of, meta={"dedup": False}, dont_filter=True)
        stats = self._crawler.stats
        try:
            kept = await self._crawler.engine.download_async(request)
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
            logger.debug("Not audited: %s can't be fetched again: %s", of, error)
            kept = None
        if not isinstance(kept, HtmlResponse) or kept.status != 200 or unreadable(kept.text):
            stats.inc_value("dedup/audit/failed")
            return
        exact = resemblance(shingles, self.shingles(kept))
        stats.inc_value("dedup/audit/checked")
        if exact < max(self._detector.min_resemblance, LEAST):
            stats.inc_value("dedup/audit/wrong")
            logger.warning("Audit: the drop of %s was wrong, its resemblance with %s is %.3f", url, of, exact)

    def close(self) -> None:
        """Puts the share of wrong drops and its 95 % interval into the stats."""
        stats = self._crawler.stats
        checked, wrong = stats.get_value("dedup/audit/checked", 0), stats.get_value("dedup/audit/wrong", 0)
        if checked:
            low, high = wilson(wrong, checked)
            for name, value in (
                ("wrong_rate", wrong / checked),
                ("wrong_rate_low", low),
                ("wrong_rate_high", high),
            ):
                stats.set_value(f"dedup/audit/{name}", round(value, 5))
