"""The audit: how often a drop is wrong, measured in the crawl itself.

A seeded sample of the drops is checked again: the kept page is fetched once more, and the full sets of
shingles of both pages are compared, where the verdict had only their sketches.  A drop is right when the pages are equal,
or what is own to each of them contains that of the other, by as much as the verdict has asked.  Where a verdict goes by the
whole pages, or by their being equal, and a counter has changed since, it is wrong when their exact resemblance is below
``min_resemblance``, or below one half where ``min_resemblance`` is less than that.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable

from dedup.filter.stats import Stats, count
from dedup.fingerprint.evidence import LEAST_PROBED, Shares
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import resemblance
from dedup.index import Index
from dedup.intervals import wilson
from dedup.page.html import Page
from dedup.page.urls import host
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: Pages that share less than this are not the same, whatever the settings allow.
LEAST = 0.5
#: Rules by which all but noise, and what a page says of its own address, is equal.
EQUAL = ("exact", "soft_404", "probe")
#: What `Page.reason` may be where the page was read: its shingles can be compared.
READ = (None, "empty", "truncated")


class Audit:
    """Checks a share of the drops, and counts those that are wrong."""

    def __init__(
        self, index: Index, share: float, stats: Stats, fetch: Callable[[str], Awaitable[Page | None]]
    ) -> None:
        """``fetch`` fetches a page once more, or returns None; whatever it raises counts as None."""
        self._index = index
        self._detector = index.detector
        self.share = share
        self._stats = stats
        self._fetch = fetch

    def picks(self, url: str) -> bool:
        """Returns whether the drop of a URL is in the sample: the same URLs in every run.

        >>> from dedup import Detector, open_index
        >>> from dedup.filter import Counts
        >>> audit = Audit(open_index("memory:", Detector()), 0.25, Counts(), fetch=None)
        >>> sum(audit.picks(f"http://example.org/{page}") for page in range(1000))
        258
        """
        digest = hashlib.blake2b(url.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self.share * 2**64

    async def check(self, url: str, page: Page, of: str, rule: str | None) -> None:
        """Fetches the kept page again, and compares it with the page that a rule has dropped for it."""
        try:
            kept = await self._fetch(of)
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
            logger.debug("Not audited: %s can't be fetched again: %s", inert(of), error)
            kept = None
        if kept is None or kept.reason not in READ:
            count(self._stats, "audit/failed")
            return
        count(self._stats, "audit/checked")
        if (share := self._wrong(url, page, of, kept, rule)) is not None:
            count(self._stats, "audit/wrong")
            logger.warning(
                "Audit: %s should not have been dropped: it has only %.3f in common with %s",
                inert(url),
                share,
                inert(of),
            )

    def _wrong(self, url: str, page: Page, of: str, kept: Page, rule: str | None) -> float | None:
        """Returns how much two pages share if that is less than a rule asks for."""
        one, other = (self._detector.fingerprint_page(each) for each in (page, kept))
        if one.simhash is not None and one.markup == other.markup:
            return None
        own = self._own(one, url, other, of)
        if own is not None and own.contains(
            LEAST_PROBED if rule == "probe" else self._index.settings.min_containment
        ):
            return None
        if own is not None and rule not in EQUAL:
            return own.share
        whole = resemblance(self._detector.shingles(page), self._detector.shingles(kept))
        return whole if whole < max(self._detector.min_resemblance, LEAST) else None

    def _own(self, page: Fingerprint, url: str, kept: Fingerprint, of: str) -> Shares | None:
        """Returns what is own to two pages; None where that can't be told."""
        hosts = self._index.hosts
        name = hosts.judge(host(url), host(of)) if hosts is not None else None
        if hosts is None or name is None or page.own is None or kept.own is None:
            return None
        return hosts.part(page, name).beside(hosts.part(kept, name))

    def close(self) -> None:
        """Puts the share of wrong drops and its 95 % interval into the stats."""
        checked = self._stats.get_value("dedup/audit/checked", 0)
        wrong = self._stats.get_value("dedup/audit/wrong", 0)
        if checked:
            rates = (wrong / checked, *wilson(wrong, checked))
            for name, rate in zip(("wrong_rate", "wrong_rate_low", "wrong_rate_high"), rates, strict=True):
                self._stats.set_value(f"dedup/audit/{name}", round(rate, 5))
