"""The audit: how often a drop is wrong, measured in the crawl itself.

A seeded sample of the drops is checked again: the kept page is fetched once more, and the full sets of
shingles of both pages are compared, where the verdict had only their sketches.  A drop is right when the pages are equal,
or what is own to each of them contains that of the other, by as much as the verdict has asked.  Where a verdict goes by the
whole pages, or by their being equal, and a counter has changed since, it is wrong when their exact resemblance is below
``min_resemblance``, or below one half where ``min_resemblance`` is less than that.

A rule that is often wrong on one kind of page is off there from then on: what it has dropped is fetched again.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec import Struct, field

from dedup.filter.noise.kinds import kind_of
from dedup.filter.stats import Stats, count
from dedup.fingerprint.evidence import LEAST_MATCHING, LEAST_PROBED, Evidence
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import resemblance
from dedup.index import Index
from dedup.intervals import wilson
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.urls import host
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: A rule is off on a kind of page if it is wrong more often than this, with confidence, and not only once: a kept page
#: may have changed meanwhile.
MOST_WRONG = 0.1
#: Rules by which all but noise, and what a page says of its own address, is equal.
EQUAL = ("exact", "soft_404", "probe")
#: What `Page.reason` may be where the page was read: its shingles can be compared.
READ = (None, "empty", "truncated")


class _Found(Struct):
    """What is known of a rule on one kind of page."""

    checked: int = 0
    wrong: int = 0
    #: Page ids of kept pages for which others were dropped.
    kept: Latest[str, None] = field(default_factory=Latest)

    is_off: bool = False

    def check(self, *, is_wrong: bool) -> None:
        self.checked += 1
        self.wrong += is_wrong
        self.is_off |= self.wrong > 1 and wilson(self.wrong, self.checked)[0] > MOST_WRONG


@dataclass(eq=False)
class Audit:
    """Checks a share of the drops, and counts those that are wrong."""

    index: Index
    share: float
    stats: Stats
    #: Fetches a page once more; whatever it raises counts as None.
    fetch: Callable[[str], Awaitable[Page | None]]
    #: Is told of a kept page for which pages were dropped, and why these drops are not right.
    undo: Callable[[str, str], None] = lambda of_id, why: None

    def __post_init__(self) -> None:
        self._detector = self.index.detector
        self._found = Latest[tuple[str, str], _Found]()  # by rule and kind

    def trusts(self, url: str, rule: str | None) -> bool:
        """Returns whether a rule may drop a page at this URL."""
        found = self._found.get((rule or "", kind_of(url))) if self.share else None
        return found is None or not found.is_off

    def note(self, url: str, rule: str | None, of_id: str) -> None:
        """Notes what a page was dropped for."""
        if self.share:
            self._of(url, rule).kept[of_id] = None
            self._give_up(url, rule)

    def _of(self, url: str, rule: str | None) -> _Found:
        key = rule or "", kind_of(url)
        found = self._found[key] = self._found.get(key) or _Found()
        return found

    def _give_up(self, url: str, rule: str | None) -> None:
        """Has what a rule has dropped on a kind of page fetched again if the rule is off there."""
        found = self._of(url, rule)
        if not (found.is_off and found.kept):
            return
        told = f"{rule} on pages like {inert(kind_of(url))}"
        logger.warning("Audit: a rule is often wrong, and is off from now on: %s", told)
        if not self.stats.get_value("dedup/audit/off"):
            self.stats.set_value("dedup/audit/off", told)
        for of_id in found.kept:
            self.undo(of_id, f"the audit has found the rule {rule} wrong on pages like it")
        found.kept.clear()

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
            kept = await self.fetch(of)
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
            logger.debug("Not audited: %s can't be fetched again: %s", inert(of), error)
            kept = None
        if kept is None or kept.reason not in READ:
            count(self.stats, "audit/failed")
            return
        count(self.stats, "audit/checked")
        share = self._wrong(url, page, of, kept, rule)
        self._of(url, rule).check(is_wrong=share is not None)
        if share is not None:
            count(self.stats, "audit/wrong")
            logger.warning(
                "Audit: %s should not have been dropped: it has only %.3f in common with %s",
                inert(url),
                share,
                inert(of),
            )
            self._give_up(url, rule)

    def _wrong(self, url: str, page: Page, of: str, kept: Page, rule: str | None) -> float | None:
        """Returns how much two pages share if that is less than a rule asks for."""
        one, other = (self._detector.fingerprint_page(each) for each in (page, kept))
        if one.simhash is not None and one.markup == other.markup:
            return None
        own = self._own(one, url, other, of)
        if own is not None and own.contains(
            LEAST_PROBED if rule == "probe" else self.index.settings.min_containment
        ):
            return None
        if own is not None and rule not in EQUAL:
            return own.share
        whole = resemblance(self._detector.shingles(page), self._detector.shingles(kept))
        # Pages that share less than half are not the same, whatever the settings allow.
        return whole if whole < max(self._detector.min_resemblance, LEAST_PROBED) else None

    def _own(self, page: Fingerprint, url: str, kept: Fingerprint, of: str) -> Evidence | None:
        """Returns what is own to two pages; None where that can't be told, as where many pages have their text by now."""
        hosts = self.index.hosts
        name = hosts.judge(host(url), host(of)) if hosts is not None else None
        if hosts is None or name is None or page.own is None or kept.own is None:
            return None
        shares = hosts.part(page, name).beside(hosts.part(kept, name))
        return shares if shares.matching + max(shares.new, shares.gone) >= LEAST_MATCHING else None

    def close(self) -> None:
        """Puts the share of wrong drops and its 95 % interval into the stats."""
        checked = self.stats.get_value("dedup/audit/checked", 0)
        wrong = self.stats.get_value("dedup/audit/wrong", 0)
        if checked:
            rates = (wrong / checked, *wilson(wrong, checked))
            for name, rate in zip(("wrong_rate", "wrong_rate_low", "wrong_rate_high"), rates, strict=True):
                self.stats.set_value(f"dedup/audit/{name}", round(rate, 5))
