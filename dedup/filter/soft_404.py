"""Soft 404s: pages that a host shows, with status 200, at addresses that lead nowhere.

Where two pages of a host are like kept ones of other names, or have one heading but for the words of their addresses, the
host is asked, once, for two addresses that can't exist.  A page is a soft 404 if it says what both of them say, but for its
own address and for noise, in which the two differ.  The first of these pages is kept, as any page: it may be the home page,
which the host shows at every other address, too.

A ban, a login, or the shell of an application is shown at such addresses as well, and is no soft 404.  So a kept page
must still show what it showed before; and if most pages of a host are like that, and few others are there, it may be an
application, and they are judged as if nobody had asked.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from msgspec import Struct, field
from xxhash import xxh3_128_hexdigest

from dedup.filter.case import Case
from dedup.filter.noise.error_page import Address, ErrorPage, in_common
from dedup.filter.noise.gaps import SEVERAL
from dedup.filter.noise.kinds import SECTION
from dedup.filter.noise.likeness import still_kept
from dedup.filter.noise.probe import Probe
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl, Visit
from dedup.filter.watch.alarm import name_of
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.simhash import distance
from dedup.index import Index, Verdict
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.urls import host, origin
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: What records have for the rule by which these pages were found.
RULE = "soft_404"
#: A host that has shown more other pages than this is no application.
FEW_OTHERS = 20
#: Letters for the digits of a hash: digits among them would make it an id, which counts for nothing in a link.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


class _Site(Struct):
    """What is known of a host."""

    pages: int = 0  #: that were judged
    like: int = 0  #: those of them that are like what it shows at addresses that lead nowhere
    dropped: int = 0  #: those of these that were dropped
    #: Page ids of the first kept pages that are like no other: one of several is not the page that others are like.
    kept: list[str] = []
    suspects: int = 0  #: those that are like a kept page of another name, until it is asked
    is_asked: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  #: held while it is asked
    due: int = SECTION  #: after so many drops, then twice as many, a kept page of it has to show still what it showed
    shown: ErrorPage | None = None
    #: By what their requests carried: page ids of kept pages that are like that, and digests of what they said.
    first: dict[int, tuple[str, int]] = {}

    def give_up(self) -> None:
        """A page of the host looks like a wall: no page of it is taken for a soft 404 any more."""
        self.is_asked, self.dropped, self.shown = True, 0, None


@dataclass(eq=False)
class Soft404s:
    """Tells soft 404s on the hosts of one crawl."""

    index: Index
    probe: Probe
    stats: Stats
    crawl: Crawl
    #: Has what was dropped for a page fetched again, given its id and the reason.
    undo: Callable[[str, str], None]
    fetches: bool  #: if it never does, none is known

    def __post_init__(self) -> None:
        self._sites = Latest[str, _Site]()
        # Of headings, with their hosts and without the words of addresses: digests of them with these.
        self._headings = Latest[int, int]()

    async def ask(self, case: Case) -> bool:
        """Asks the host of a page what it shows at addresses that lead nowhere, or waits for that answer.  Returns whether it did.

        Meanwhile the kept page that the claim has named may have failed.
        """
        visit, verdict = case.visit, case.claimed
        if not self._may_be_one(visit, verdict):
            return False
        site = self._site(visit.url)
        if site.turn.locked() and _names_another(visit.url, verdict):
            async with site.turn:  # else many of them might look like a wall before the answer is there
                return True
        of = verdict.of_id or (verdict.near.page_id if verdict.near else "")
        control = next((page_id for page_id in site.kept if page_id not in {of, visit.page_id}), None)
        if not site.is_asked:
            site.suspects += _names_another(visit.url, verdict) or self._repeats(visit.url, case.page)
        is_first = not site.is_asked and site.suspects >= SEVERAL  # one may be just a copy
        is_due = site.dropped >= site.due and not site.turn.locked()
        if control is None or not (is_first or is_due) or not self.probe.asking.may_ask(visit.url):
            return False
        site.is_asked = True
        try:
            async with site.turn:
                if is_first:
                    await self._learn(site, control, visit)
                elif await self.probe.again(control, visit) is not None:
                    site.due *= 2
                else:
                    site.give_up()
                    for page_id in {of, *(page_id for page_id, _ in site.first.values())}:
                        self.undo(page_id, "its host shows the same in place of other pages")
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware: nothing here may cost a page)
            logger.debug("No soft 404 is known of %s: %s", inert(host(visit.url)), error)
            count(self.stats, "probe/failed")
            site.give_up()
        return True

    def _may_be_one(self, visit: Visit, verdict: Verdict) -> bool:
        # Where redirects lead is a page that is, and the alarm sees to that.
        return self.fetches and verdict.status != "unjudged" and not visit.asked and bool(host(visit.url))

    def _site(self, url: str) -> _Site:
        name = host(url)
        site = self._sites[name] = self._sites.get(name) or _Site()
        return site

    async def check(self, case: Case) -> Verdict:
        """Returns the verdict on a claimed page: "duplicate" by the rule "soft_404" if it is one, and not the first."""
        visit, verdict = case.visit, case.verdict
        if not self._may_be_one(visit, verdict):
            return verdict
        site = self._site(visit.url)
        site.pages += 1
        found = verdict
        if site.shown is not None:
            try:
                found = await self._judge(site, site.shown, case)
            except Exception as error:  # noqa: BLE001 (as in `ask`)
                logger.debug("It is not known whether %s is a soft 404: %s", inert(visit.url), error)
                count(self.stats, "probe/failed")
        else:
            site.like += _names_another(visit.url, verdict)  # it may be one, as far as anybody knows
        if found.status in {"new", "same"} and found.near is None and len(site.kept) < SEVERAL:
            site.kept.append(visit.page_id)
        return found

    def _repeats(self, url: str, page: Page) -> bool:
        """Returns whether the heading of a page is that of another one of its host, but for the words of their addresses."""
        left = Address(url).without(page.heading)
        if not left:
            return False
        key, whole = hash((host(url), *left)), hash(tuple(page.heading))
        other = self._headings.get(key, whole)
        self._headings[key] = whole
        return other != whole

    async def _learn(self, site: _Site, control: str, visit: Visit) -> None:
        answers = list[tuple[str, Page]]()
        for number in range(2):
            url = self._nowhere(visit.url, number)
            count(self.stats, "probes")
            answer = await self.crawl.ask(url, visit.origin)
            if answer is None or (answer.status, answer.url) != (200, url) or answer.page is None:
                return  # it says that there is nothing, or leads elsewhere, or can't be asked
            if answer.may_be_shell:
                return  # what its scripts would show there is not known
            answers.append((url, answer.page))
        kept = await self.probe.again(control, visit)
        if kept is not None and (shown := in_common(answers, kept)) is not None:
            site.shown = shown
            count(self.stats, "soft_404/hosts")

    def _nowhere(self, url: str, number: int) -> str:
        """Returns an address on the host of a URL that can't exist."""
        name = xxh3_128_hexdigest(f"{self.index.run} {host(url)} {number}".encode()).translate(_LETTERS)
        return f"{origin(url)}/{name}"

    async def _judge(self, site: _Site, shown: ErrorPage, case: Case) -> Verdict:
        visit, verdict, fingerprint = case.visit, case.verdict, case.fingerprint
        if not shown.is_like(visit.url, case.page if case.page.tokens else visit.read()):
            firsts = [page_id for page_id, _ in site.first.values()]
            is_of_one = verdict.status == "duplicate" and verdict.of_id in firsts
            return Verdict("unjudged", reason=RULE) if is_of_one else verdict
        site.like += 1
        found = (
            replace(verdict, of=shown.url, rule=RULE)
            if verdict.status == "duplicate"
            else await self._copy_of(site.first.get(visit.carried), shown, fingerprint)
        )
        if found is None or verdict.status == "same":
            site.first[visit.carried] = visit.page_id, fingerprint.digest
            return verdict
        others = site.pages - site.like
        if others < min(site.like, FEW_OTHERS) or site.dropped >= site.due + SECTION:
            return verdict
        site.dropped += 1
        return found

    async def _copy_of(
        self, first: tuple[str, int] | None, shown: ErrorPage, fingerprint: Fingerprint
    ) -> Verdict | None:
        """Returns the verdict on a page like the first one; None if that one is not filed with its content any more."""
        if first is None:
            return None
        page_id, digest = first
        if (kept := await still_kept(self.index, page_id, digest)) is None:
            return None
        filed, copied = kept
        return replace(
            copied,
            of=shown.url,
            distance=distance(filed.simhash, fingerprint.simhash or 0),
            resemblance=self.index.detector.sketcher.resemblance(filed.sketch, fingerprint.sketch),
            rule=RULE,
        )


def _names_another(url: str, verdict: Verdict) -> bool:
    """Returns whether a verdict names a kept page that is called otherwise, of this host or of one that shows the same."""
    of = verdict.of if verdict.status == "duplicate" else verdict.near and verdict.near.url
    return bool(of) and name_of(of or "") != name_of(url)
