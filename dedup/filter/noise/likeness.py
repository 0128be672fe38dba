"""Likeness: whether a page still shows what a kept page showed when it was filed, and whether that page is still kept."""

from dedup.fingerprint.evidence import LEAST_MATCHING, LEAST_PROBED, Evidence
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.simhash import distance
from dedup.index import Entry, Index, Verdict
from dedup.page.html import Page
from dedup.page.urls import host


async def still_kept(index: Index, page_id: str, digest: int) -> tuple[Entry, Verdict] | None:
    """Returns how a kept page is filed, and the verdict on its copies, but for a rule; None if it is not kept with that content any more.

    Whoever drops a page for it may await nothing more.
    """
    filed = await index.find(page_id)
    (state,) = await index.states([page_id])
    if filed is None or filed.digest != digest or not state.casts_shadow:
        return None
    copied = Verdict(
        "duplicate", filed.url, of_simhash=filed.simhash, of_id=page_id, of_run=filed.run, done=state.is_done
    )
    return filed, copied


class Likeness:
    """Compares pages with those of an index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._detector = index.detector

    def is_as_filed(self, page: Page, filed: Entry) -> bool:
        """Returns whether most of what is a page's own is what it was when it was filed: a wall in the same chrome is not."""
        found = self._detector.fingerprint_page(page)
        if found.simhash is None or distance(found.simhash, filed.simhash) > self._detector.max_distance:
            return False
        evidence = self.evidence(found, filed)
        if evidence is None:
            alike = self._detector.sketcher.resemblance(filed.sketch, found.sketch)
            return alike >= self._detector.min_resemblance
        # Nearly all of the page is on others, too.
        is_bare = max(evidence.new, evidence.gone) < LEAST_MATCHING
        return is_bare or evidence.contains(LEAST_PROBED)

    def are_of_one(self, page: Page, other: Page, url: str) -> bool:
        """Returns whether two answers at a URL show one page: enough of what is its own is in both, or it has nothing own."""
        a, b = (self._detector.fingerprint_page(each) for each in (page, other))
        hosts = self._index.hosts
        if hosts is None or a.own is None or b.own is None:
            alike = self._detector.compare(a, b).resemblance
            return alike is not None and alike >= LEAST_PROBED
        own = hosts.part(a, host(url)).beside(hosts.part(b, host(url)))
        return own.matching >= LEAST_MATCHING or max(own.new, own.gone) < LEAST_MATCHING

    def evidence(self, page: Fingerprint, filed: Entry) -> Evidence | None:
        """Returns how much of what is own to a page and to a kept one both have; None where whole pages are compared."""
        hosts = self._index.hosts
        if hosts is None or page.own is None:
            return None
        stored = self._detector.sketcher.words([filed.sketch])
        return Evidence(*hosts.part(page, host(filed.url)).weigh(stored)[0])
