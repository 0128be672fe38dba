"""Reads pages and makes their fingerprints, only once for pages of one folder with the same bytes."""

import asyncio
import logging

from dedup.compiled import fast
from dedup.filter.bodies import Bodies
from dedup.filter.case import Case
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Visit
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.page.html import Page
from dedup.printing import inert
from dedup.settings import Action

logger = logging.getLogger(__name__)

#: Bytes of a page that take 10 ms in Python; and those from which on it is read in another thread, so that the event loop is
#: not held up for longer: compiled code takes a quarter of that.
LARGE = 100_000
ASIDE = 4 * LARGE if fast else LARGE


class Reading:
    """Reads the pages of one crawl."""

    def __init__(self, detector: Detector, stats: Stats) -> None:
        self._detector = detector
        self._stats = stats
        self._bodies = Bodies(detector)
        #: Large pages are read one at a time: with each other, too, they would share one interpreter.
        self._aside = asyncio.Lock()

    async def read(self, visit: Visit, action: Action) -> Case:
        """Returns what is read of a page, or is known of its body."""
        try:
            body = visit.body()
            key = body and self._bodies.key(body, visit.url)
            if body and key is not None and (known := self._bodies.find(key, body, visit.url)):
                count(self._stats, "equal_bodies")
                return Case(visit, action, known.page, known.fingerprint, known, is_read=False)
            if visit.size <= ASIDE:
                page, fingerprint = self._fingerprint(visit)
            else:
                async with self._aside:
                    page, fingerprint = await asyncio.to_thread(self._fingerprint, visit)
            known = None if key is None else self._bodies.add(key, visit.url, page, fingerprint)
            return Case(visit, action, page, fingerprint, known)
        except Exception:
            logger.exception("Kept %s: it can't be fingerprinted", inert(visit.url))
            page, fingerprint = Page([], 0, "internal_error"), Fingerprint.unjudged("internal_error")
            return Case(visit, action, page, fingerprint)

    def _fingerprint(self, visit: Visit) -> tuple[Page, Fingerprint]:
        page = visit.read()
        return page, visit.fingerprint or self._detector.fingerprint_page(page)
