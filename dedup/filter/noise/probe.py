"""The probe: a page is dropped for a kept one only if all that differs stands where both were seen to change, or others of
their kind were.

A page that may be a copy is compared with the kept page line by line.  What differs is content unless it is noise, and
nothing in two pages says which.  So one of them is fetched once more, and what differs between its answers is noise of that
page; where several pages have shown it, of its kind (`dedup.filter.noise.gaps`).

Something that is the pages' own has to be left without noise: two walls are no copies of each other.  Whatever is met again
anyway, as a copy under another session, teaches without a request.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dedup.filter.noise.again import Again
from dedup.filter.noise.comparison import Comparison, is_near
from dedup.filter.noise.kept import KeptPages, Shown
from dedup.filter.noise.kinds import ENOUGH
from dedup.filter.noise.known import Known
from dedup.filter.noise.left import digest_of, least_of
from dedup.filter.noise.likeness import Likeness, still_kept
from dedup.filter.noise.manners import Manners
from dedup.filter.noise.reasons import FAILED, GONE, UNASKED, UNKNOWN
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl, Visit
from dedup.fingerprint.evidence import LEAST_PROBED
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.simhash import distance
from dedup.index import Entry, Index, Verdict
from dedup.index.entry import scope_mask, storable_url
from dedup.index.verdict import Near
from dedup.page.html import Page
from dedup.page.ids import have_one_address
from dedup.page.siblings import one_address
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: How the kept page that another one copies is filed, the verdict on its copies, what it has shown, and the rule.
_Copied = tuple[Entry, Verdict, Shown, str]


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
        """If it never ``fetches``, no noise is known.

        ``undo`` is told of a kept page for which pages were dropped, and why these drops are not right.
        """
        self._index = index
        self._remembers = fetches and index.persistent
        self._likeness = Likeness(index)
        self._stats = stats
        self._crawl = crawl
        self.asking = Again(crawl, stats, fetches=fetches)
        self._manners = Manners(index, crawl)
        self._kept = KeptPages()
        self._known = Known(index, self._kept, self._likeness)
        self._comparison = Comparison(self._kept, self._known, undo)
        self.heard = self._known.heard

    async def check(self, visit: Visit, page: Page, fingerprint: Fingerprint, verdict: Verdict) -> Verdict:
        """Returns the verdict on a page that was claimed as new: "duplicate" if it differs from a kept page in noise alone.

        If it is like a kept page and is kept, that says why.
        """
        await self._meet_host(visit.url)
        page = _read(visit, page)
        here = Shown.at_hand(visit, page, fingerprint)
        found: _Copied | Verdict = verdict
        try:
            if here.markup:
                found = await self._copied(visit, fingerprint, here, verdict)
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware: no probe may cost a page)
            logger.debug("Kept %s: the page near it can't be fetched again: %s", inert(visit.url), error)
            count(self._stats, "probe/failed")
            found = replace(verdict, why=FAILED)
        if isinstance(found, Verdict):
            if found.why in UNKNOWN:
                count(self._stats, "probe/unknown")
            self._keep(visit, here)
            return found
        filed, copied, of, rule = found
        self._known.addresses.note(of.url, here.url, is_equal=True)
        if have_one_address(of.url, here.url):
            await self.meet(of.page_id, page)
        copied = replace(copied, distance=distance(filed.simhash, fingerprint.simhash or 0))
        if self._kept.read(of) == here.read():
            return replace(copied, rule="exact", resemblance=1.0)
        evidence = self._likeness.evidence(fingerprint, filed)
        alike = evidence.resemblance if evidence else None
        copied = replace(copied, rule=rule, resemblance=alike, evidence=evidence)
        if rule != "probe":
            return copied
        count(self._stats, "probed")
        return replace(copied, noise=self._comparison.noise(here, of))

    async def _copied(
        self, visit: Visit, fingerprint: Fingerprint, here: Shown, verdict: Verdict
    ) -> "_Copied | Verdict":
        """Returns how the kept page that this one copies is filed; or the verdict, if there is none."""
        scope = scope_mask(self._index.settings.scope, storable_url(visit.url)) ^ visit.carried
        candidates = await self._candidates(here, verdict.near)
        others = [kept for kept in self._kept.like(here, more=True) if kept not in candidates]
        for candidate in [*candidates, *others]:
            filed = await self._index.find(candidate.page_id)
            is_other = candidate.page_id != here.page_id
            if not is_other or filed is None or filed.digest != candidate.digest or filed.scope != scope:
                continue
            evidence = self._likeness.evidence(fingerprint, filed)
            near = candidate in candidates and is_near(here, candidate, evidence)
            kept, why = await self._content(visit, here, candidate, near=near)
            rule = "address" if why else "probe"
            if not why or await self._mean_one(visit, here, kept):
                # Meanwhile it may have failed.
                found = await still_kept(self._index, kept.page_id, kept.digest)
                return (*found, kept, rule) if found else replace(verdict, why=GONE, beside=kept.url)
            is_unknown = why in UNKNOWN and (near or bool(kept.markup))
            if is_unknown or (near and verdict.why not in UNKNOWN):
                verdict = replace(verdict, why=why, beside=kept.url)
        await self._learn_of_section(visit, here)
        return verdict

    async def _candidates(self, here: Shown, near: Near | None) -> list[Shown]:
        """Returns kept pages that may differ from this one in noise alone."""
        found = dict[str, Shown]()
        for kind in self._known.of_both(here.url, here.url):
            if not kind.gaps:
                continue
            await self._known.look_anew(kind)
            for lines in filter(None, (here.read(), here.read_nameless())):
                page_id = kind.by.get(digest_of(least_of(lines, kind.gaps)))
                if page_id is not None and (kept := self._kept.get(page_id)) is not None:
                    found[page_id] = kept
        found |= {kept.page_id: kept for kept in self._kept.like(here)}
        if near and (near.digest == here.digest or (near.evidence and near.evidence.share >= LEAST_PROBED)):
            kept = self._kept.get(near.page_id)
            found[near.page_id] = kept or Shown(
                near.page_id, near.url, near.url, near.simhash, near.digest, here.carried
            )
        return [*found.values()]

    async def _mean_one(self, visit: Visit, here: Shown, kept: Shown) -> bool:
        """Returns whether the addresses of two pages mean one, as was seen on others, and the kept one has this one's unique content."""
        kind, its_kind = self._known.kind(here.url), self._known.kind(kept.url)
        url = self._kept.address_like(kept, here.url)
        if its_kind is kind or not kept.markup or not url or (kept.asked and here.asked):
            return False  # pages that were both asked themselves have told what stays
        its, own = [await self._known.unique(page) for page in (kept, here)]
        may_be_noise = own.words and not (own.is_on(its) or own.is_of_one_template(its))
        if may_be_noise and not kind.asked and self._may_ask(here):
            await self._ask(visit, here, here)  # what tells them apart may be noise of its kind
            its, own = [await self._known.unique(page) for page in (kept, here)]
        if own.is_of_one_template(its):
            return False
        addresses, is_on = self._known.addresses, own.is_on(its)
        if is_on and not addresses.may_mean_one(url, here.url):
            for page_id in [*min(kind.recent, its_kind.recent, key=len)][:ENOUGH]:
                await self._learn_of_address(page_id)
        is_known = addresses.may_mean_one(url, here.url)  # before this page is one of those that show it
        is_equal = is_on or its.is_on(own)
        if is_equal or (kind.is_known and its_kind.is_known and its.words):
            addresses.note(url, here.url, is_equal=is_equal)
        return is_on and is_known and own.values <= its.values

    async def _learn_of_address(self, page_id: str) -> None:
        """Notes that kept pages mean one, which could not be told as long as nothing was known of others of their template."""
        if (page := self._kept.get(page_id)) is None or not page.markup:
            return
        for other in self._kept.like(page):
            url = self._kept.address_like(other, page.url)
            if url and other.markup and self._known.kind(other.url) is not self._known.kind(page.url):
                its, own = [await self._known.unique(each) for each in (other, page)]
                if not own.is_of_one_template(its) and (own.is_on(its) or its.is_on(own)):
                    self._known.addresses.note(url, page.url, is_equal=True)

    async def _content(self, visit: Visit, here: Shown, kept: Shown, *, near: bool) -> tuple[Shown, str]:
        """Returns a kept page as it is known by then, and why what differs is no noise, once that can be told; "" if it is."""
        while True:
            kept = self._kept.get(kept.page_id) or kept
            step = self._comparison.step(here, kept, near=near)
            if not isinstance(step, Shown):
                return kept, step
            is_owed = self._known.kind(here.url).is_owed
            if not self.asking.may_ask(step.url, is_owed=is_owed):
                return kept, UNASKED
            async with self.asking.turn(step.url):
                now = self._comparison.step(here, self._kept.get(kept.page_id) or kept, near=near)
                if now is not step or not self.asking.may_ask(step.url, is_owed=is_owed):
                    continue  # others have learned it meanwhile, or have waited in vain
                if not await self._ask(visit, step, kept):
                    return kept, FAILED

    async def _ask(self, visit: Visit, page: Shown, kept: Shown) -> bool:
        """Fetches a page once more, and learns of its gaps; false if it can't be, or shows something else.

        What a page at hand shows is told of the kept one, of whose content it is.
        """
        page.asked += 1
        self._known.kind(page.url).requests += 1
        filed = await self._index.find(kept.page_id)
        is_kept = page is kept and page.page_id != visit.page_id
        manner = (filed and self._manners.of(filed, visit)) if is_kept else self._crawl.manner(visit.origin)
        if manner is None:
            return False
        answer = await self.asking.answer(manner, page.url, visit.origin)
        if answer is None:
            return False
        if not page.markup:
            if filed is None or not self._likeness.is_as_filed(answer, filed):
                count(self._stats, "probe/failed")
                return False
            page.markup = answer.markup
            page.asked -= 1  # it is the first of its answers
            self._kept.add(page)
            return bool(page.markup)
        if not await self._known.learn(page, kept.address, answer):
            count(self._stats, "probe/failed")
            page.is_gone = True
            return False
        page.last, page.seen, page.last_lines = answer.markup, time.monotonic(), ()
        if self._kept.get(page.page_id) is page:
            self._kept.add(page)  # its answers take more room
        return True

    async def _learn_of_section(self, visit: Visit, here: Shown) -> None:
        """Fetches a page at hand once more if it is one of many, and nothing was dropped by the gaps of its kind."""
        if self._may_teach(here):
            async with self.asking.turn(here.url):
                if self._may_teach(here):  # others may have taught the same meanwhile
                    await self._ask(visit, here, here)

    def _may_teach(self, here: Shown) -> bool:
        kind = self._known.kind(here.url)
        is_owed = kind.is_owed and (not kind.asked or (bool(kind.gaps) and bool(here.read_nameless())))
        return is_owed and self._known.may_learn(here.url) and self._may_ask(here)

    def _may_ask(self, page: Shown) -> bool:
        is_owed = self._known.kind(page.url).is_owed
        return self._comparison.may_ask(page) and self.asking.may_ask(page.url, is_owed=is_owed)

    async def keep(self, visit: Visit, page: Page, fingerprint: Fingerprint) -> None:
        """Notes a page that is kept, or one that is met again."""
        if fingerprint.simhash is not None:
            await self._meet_host(visit.url)
            read = _read(visit, page)
            await self.meet(visit.page_id, read)
            self._keep(visit, Shown.at_hand(visit, read, fingerprint))

    async def _meet_host(self, url: str) -> None:
        if self._remembers:
            await self._known.recall(url)

    async def close(self) -> None:
        """Notes beside the index what was learned, for the next crawl."""
        if self._remembers:
            await self._known.remember()

    def name(self, page_id: str | None, url: str) -> None:
        """Notes where a copy of a kept page is: what is like that address may be like this page."""
        if page_id:
            self._kept.name(page_id, url)

    def _keep(self, visit: Visit, here: Shown) -> None:
        if not here.markup:
            return
        self._manners.note(visit)
        self._known.count(here.url)
        for kind in self._known.of_both(here.url, here.url):
            kind.recent[here.page_id] = None
            if kind.asked and kind.version == kind.gaps.version:
                self._known.note(kind, here)
        self._kept.add(here)

    async def meet(self, page_id: str | None, page: Page) -> None:
        """Learns, without a request, what changes on a kept page that is met again, as under another session."""
        known = self._kept.get(page_id or "")
        if known is None or known.markup in {"", page.markup} or not page.markup:
            return
        await self._known.learn(known, known.address, page, is_met=True)

    def may_learn(self, url: str) -> bool:
        """Returns whether pages like this one are fetched again, since their noise is not known."""
        return self._known.may_learn(url) and self.asking.may_ask(url)

    async def learn(self, url: str, origin: Any, is_same: Callable[[Page], bool]) -> None:
        """Fetches a page twice more, if it `may_learn` from that.

        ``origin`` is that of a page of its host, in whose manner it is asked for.  ``is_same`` tells whether an answer shows
        that page.
        """
        try:
            async with self.asking.turn(url):
                manner = self._crawl.manner(origin) if self.may_learn(url) else None
                if manner is None:
                    return
                answers = list[Page]()
                for _ in range(2):
                    answer = await self.asking.answer(manner, url, origin)
                    if answer is None or not is_same(answer):
                        return
                    answers.append(answer)
                first, second = answers
                page = Shown(url, url, one_address(url), 0, 0, 0, first.markup)
                await self._known.learn(page, page.address, second)
        except Exception as error:  # noqa: BLE001 (as in `check`)
            logger.debug("No noise is known of %s: %s", inert(url), error)
            count(self._stats, "probe/failed")

    async def again(self, page_id: str, visit: Visit) -> Page | None:
        """Returns a kept page as it is now, asked for beside a visit of its host; None if it shows something else than it did."""
        filed = await self._index.find(page_id)
        if filed is None or (manner := self._manners.of(filed, visit)) is None:
            return None
        answer = await self.asking.answer(manner, filed.url, visit.origin)
        return answer if answer and self._likeness.is_as_filed(answer, filed) else None


def _read(visit: Visit, page: Page) -> Page:
    """The page with its markup, which one that was met before, byte for byte, has not."""
    return page if page.markup or page.reason else visit.read()
