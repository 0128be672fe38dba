"""The probe: is what differs between a page and the kept page near it noise?  The kept page is fetched twice more.

Most of what is a page's own is on a kept page, and yet something differs, or the site tells the two apart by their
addresses.  That may be a copy with another counter, date or advert, or it may be another entry of a register.  Nothing
in the two pages says which.  So the kept page is asked for twice more: what differs between the two answers is noise
(see `dedup.filter.noise`), and the page is a duplicate only if nothing else differs from the kept one.

If eight pages of a kind were kept and its noise is not known, the page at hand is asked for itself: what it has shown is
known as a whole, and of a kept page only what was its own.

A few pages of a kind are fetched again, and not every page: after that, pages of that kind are compared without what is
noise there, by a digest; and a kept page with copies is asked for itself (see `dedup.filter.own_noise`).  It has to
show what it showed when it was filed: a wall that is served twice is no noise.  It is asked for as it was, with the same
headers, cookies, proxy or browser.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dedup.filter.again import MAX_HOSTS, Again
from dedup.filter.kept import Kept, KeptPages, Texts, are_equal, noisy, text_of
from dedup.filter.kinds import MAX_KINDS, kind_of
from dedup.filter.likeness import Likeness, still_kept
from dedup.filter.manners import Manners
from dedup.filter.noise import Noise
from dedup.filter.own_noise import OwnNoise
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl, Visit
from dedup.fingerprint.evidence import LEAST_PROBED
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.simhash import distance
from dedup.index import Entry, Index, Verdict
from dedup.index.verdict import Near
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.siblings import one_address
from dedup.page.urls import host
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: Kept pages of one kind that make a section.
SECTION = 8
#: Pages of a host that were fetched twice more without any noise, before no others are; noise on one outweighs so many.
QUIET, LOUD = 5, 1_000


class Probe:
    """Tells noise from content on the pages of one crawl."""

    def __init__(
        self,
        index: Index,
        stats: Stats,
        crawl: Crawl,
        undo: Callable[[str, str], None] = lambda of_id, why: None,
        *,
        fetches: bool,
    ) -> None:
        """If it never ``fetches``, no noise is known, and every page is kept.

        ``undo`` is told of a kept page for which pages were dropped, and why these drops are not right.
        """
        self._index = index
        self._likeness = Likeness(index)
        self._stats = stats
        self._crawl = crawl
        self.asking = Again(crawl, stats, fetches=fetches)
        self._undo = undo
        self._fetches = fetches
        self.noise = Noise()
        self._own = OwnNoise()
        self._texts = Texts(self.noise)
        self._kept = KeptPages()
        self._kinds = Latest[str, int](MAX_KINDS)  # how many pages were kept, since one told nothing
        self._manners = Manners(index, crawl)
        self._quiet = Latest[str, int](MAX_HOSTS)  # pages fetched twice more without any noise, by host

    async def check(self, visit: Visit, page: Page, fingerprint: Fingerprint, verdict: Verdict) -> Verdict:
        """The verdict on a page that was claimed as new: "duplicate" if it differs from a kept page in noise alone."""
        found = None
        try:
            found = await self._copied(visit, page, verdict.near, Kept.as_is(visit, fingerprint))
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware: no probe may cost a page)
            logger.debug("Kept %s: the page near it can't be fetched again: %s", inert(visit.url), error)
            count(self._stats, "probe/failed")
        if found is None:
            self.keep(visit, page, fingerprint)
            return verdict
        filed, copied = found
        count(self._stats, "probed")
        evidence = self._likeness.evidence(fingerprint, filed)
        return replace(
            copied,
            distance=distance(filed.simhash, fingerprint.simhash or 0),
            resemblance=evidence.resemblance if evidence else None,
            rule="probe",
            evidence=evidence,
            noise=" ".join(noisy(self.noise, visit.url, self._texts.of(_read(visit, page)))),
        )

    async def _copied(
        self, visit: Visit, page: Page, near: Near | None, here: Kept
    ) -> tuple[Entry, Verdict] | None:
        """Returns the same as `still_kept` of the kept page that differs from the one here in noise alone; None if there is none."""
        of, like = await self._equal_to(visit, page, near, here)
        filed = None if of is None else await self._index.find(of.page_id)
        if of is None or filed is None or not await self._changes_there(visit, page, like, of, filed):
            return None
        return await still_kept(self._index, of.page_id, of.digest)  # meanwhile it may have failed

    async def _equal_to(
        self, visit: Visit, page: Page, near: Near | None, here: Kept
    ) -> tuple[Kept | None, str]:
        """The kept page that differs from the one here in noise alone, if that is known or can be learned.

        And the URL of a page of the kind whose noise is left out of the one here.
        """
        of, like = self._known(visit, page, near)
        if (kept := self._asked_for(visit, of, near, here)) is None:
            return of, like
        async with self.asking.turn(kept.url):
            of, like = self._known(visit, page, near)
            if (kept := self._asked_for(visit, of, near, here)) is None:
                return of, like
            probed = self.noise.probed(kept.url)
            is_equal = kept is here or of is not None
            of = await self._ask(visit, page, kept, near, is_equal=is_equal)
            if kept is here and self.noise.probed(kept.url) == probed:
                self._kinds[kind_of(kept.url)] = 0
            return of, kept.url

    def _asked_for(self, visit: Visit, of: Kept | None, near: Near | None, here: Kept) -> Kept | None:
        """The page that should be fetched again, since its noise is not known, and the page here may be equal to it.

        It is a kept one that is equal as far as noise is known; or one that is near; or, once a kind of page has become a section,
        the one here, and so on while that kind has noise.
        """
        if not self.asking.may_fetch():
            return None
        evidence = near and near.evidence
        kept: Kept | None = None
        if of is not None:
            kept = of if self.noise.may_tell(of.url) else None
        elif near and evidence and not evidence.other_name and evidence.share >= LEAST_PROBED:
            is_changed = self.noise.is_known(near.url) and self.noise.is_met(near.url)
            if self.noise.may_tell(near.url) or (is_changed and near.page_id not in self._kept):
                kept = Kept(near.page_id, near.url, near.simhash, near.digest, visit.carried)
        if of is None and kept is None:
            alike, probed = self._kinds.get(kind_of(visit.url), 0), self.noise.probed(visit.url)
            if alike >= SECTION * (1 + probed) and (self.noise.is_met(visit.url) or not probed):
                kept = here if self.noise.may_tell(visit.url) else None
        return kept if kept and self.asking.may_ask(kept.url) else None

    def may_learn(self, url: str) -> bool:
        """Whether pages like this one are fetched again, since their noise is not known, and their host may have some."""
        is_quiet = self._quiet.get(host(url), 0) >= QUIET
        may_fetch = self.asking.may_fetch(max(1, self._manners.hosts)) and self.asking.may_ask(url)
        return not self.noise.is_known(url) and not is_quiet and may_fetch

    async def learn(self, url: str, origin: Any, is_same: Callable[[Page], bool]) -> None:
        """Fetches a page twice more, if it `may_learn` from that.

        ``origin`` is that of a page of its host, in whose manner it is asked for.  ``is_same`` tells whether an answer shows
        that page.
        """
        try:
            async with self.asking.turn(url):
                manner = self._crawl.manner(origin) if self.may_learn(url) else None
                answers = [] if manner is None else await self.asking.answers(manner, url, origin, is_same, 2)
                if answers and self.noise.learn(url, *map(text_of, answers)):
                    step = -LOUD if self.noise.is_met(url) else 1
                    self._quiet[host(url)] = self._quiet.get(host(url), 0) + step
        except Exception as error:  # noqa: BLE001 (as in `check`)
            logger.debug("No noise is known of %s: %s", inert(url), error)
            count(self._stats, "probe/failed")

    async def again(self, page_id: str, visit: Visit) -> Page | None:
        """A kept page as it is now, asked for beside a visit of its host; None if it shows something else than it did."""
        filed = await self._index.find(page_id)
        if filed is None or (manner := self._manners.of(filed, visit)) is None:
            return None
        answers = await self.asking.answers(
            manner, filed.url, visit.origin, lambda answer: self._likeness.is_as_filed(answer, filed), 1
        )
        return answers[0] if answers else None

    async def _ask(
        self, visit: Visit, page: Page, kept: Kept, near: Near | None, *, is_equal: bool
    ) -> Kept | None:
        """Fetches a kept page twice more, and learns from that; that page if the one here is equal but for noise.

        Where noise is known already, one answer tells what a page is without it that was kept before that.  If the page here
        ``is_equal`` as far as is known, or the same, it tells what the kept one has shown.
        """
        evidence = near.evidence if near and near.page_id == kept.page_id else None
        is_like_kept = evidence is not None and evidence.contains(LEAST_PROBED)
        is_here = kept.page_id == visit.page_id
        filed = await self._index.find(kept.page_id)
        manner = self._crawl.manner(visit.origin) if is_here else filed and self._manners.of(filed, visit)
        if filed is None or filed.digest != kept.digest or manner is None:
            return None
        is_known = self.noise.is_known(kept.url)
        answers = await self.asking.answers(
            manner,
            kept.url,
            visit.origin,
            lambda answer: is_equal or is_like_kept or self._likeness.is_as_filed(answer, filed),
            1 if is_known else 2,
        )
        if not answers:
            return None
        # What a page has of its own may have become chrome, if it has many copies.  Then the one here shows what it showed.
        is_as_filed = all(self._likeness.is_as_filed(answer, filed) for answer in answers)
        if not is_as_filed and not are_equal(self.noise, kept.url, answers, _read(visit, page), visit.url):
            count(self._stats, "probe/failed")
            return None
        if not is_known and not self.noise.learn(kept.url, *map(text_of, answers)):
            return None
        if is_known and self._index.detector.fingerprint_page(answers[0]).digest == filed.digest:
            return None  # it doesn't change, or it seldom does
        told = {self._texts.digests(kept.url, answer, kept.url) for answer in answers}
        if len(told) > 1:
            return None  # more differs than is known to be noise
        if not is_here:  # else it may turn out to be a copy
            self._kept.remember(told.pop(), kept)
        for answer in answers:
            self._own.met(one_address(kept.url), self._texts.shown(kept.url, answer, kept.url))
        return self._kept.find(self._texts.digests(kept.url, _read(visit, page), visit.url), visit)

    async def _changes_there(self, visit: Visit, page: Page, like: str, of: Kept, filed: Entry) -> bool:
        """Whether a page may differ from a kept one as it does: either changes there itself, or enough others do, for once."""
        if filed.digest != of.digest:  # it was claimed anew, with other content
            return False
        shown = self._texts.shown(like, _read(visit, page), visit.url)
        address, kept, kind = one_address(visit.url), one_address(of.url), kind_of(of.url)

        def is_explained() -> bool:
            return self._own.explains(kept, address, shown)

        def is_same(answer: Page) -> bool:
            found = self._kept.find(self._texts.digests(of.url, answer, of.url), visit)
            return found is not None and found.page_id == of.page_id

        self._own.met(address, shown)
        if not is_explained() and self._own.trust(kept, kind):
            return True
        async with self.asking.turn(of.url):
            may_ask = not is_explained() and self.asking.may_fetch() and self.asking.may_ask(of.url)
            manner = self._manners.of(filed, visit) if may_ask else None
            times = 0 if manner is None else self._own.ask(kept, self.noise.basis(of.url))
            # An advert may be the same twice: only what is once more as it was is taken to stay.
            for some in (times, 1) if times else ():
                answers = await self.asking.answers(manner, of.url, visit.origin, is_same, some)
                for answer in answers:
                    self._own.met(kept, self._texts.shown(of.url, answer, of.url))
                if not answers or is_explained():
                    break
            else:
                if times:
                    self._own.count(kept, kind, explains=False)
                    self._undo(
                        of.page_id, "what differs between them does not change on the page that it duplicates"
                    )
        if self._own.explains(kept, kept, shown):
            self._own.count(kept, kind, explains=True)
        return is_explained()

    def _known(self, visit: Visit, page: Page, near: Near | None) -> tuple[Kept | None, str]:
        """The kept page that is known to be equal but for the noise of pages like the one here, or like the one near it."""
        for like in {kind_of(url): url for url in (visit.url, *([near.url] if near else []))}.values():
            if self.noise.is_tried(like):
                of = self._kept.find(self._texts.digests(like, _read(visit, page), visit.url), visit)
                if of is not None:
                    return of, like
        return None, visit.url

    def keep(self, visit: Visit, page: Page, fingerprint: Fingerprint) -> None:
        """A page is kept: once a page of its kind was fetched again, others are compared with it without noise and name."""
        if fingerprint.simhash is None:
            return
        kept = Kept.as_is(visit, fingerprint)
        if self._fetches:
            self._manners.note(visit)
        kind = kind_of(visit.url)
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self.noise.is_tried(visit.url):
            try:
                text, url = _read(visit, page), visit.url
                self._kept.remember(self._texts.digests(url, text, url), kept)
                self._own.met(one_address(url), self._texts.shown(url, text, url))
            except Exception:  # no probe may cost a page
                logger.exception("Kept %s: it can't be compared without its noise", inert(visit.url))


def _read(visit: Visit, page: Page) -> Page:
    """The page with its tokens, which one that was met before, byte for byte, has not."""
    return page if page.tokens else visit.read()
