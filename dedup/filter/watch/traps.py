"""Traps: ways without end, such as calendars, folders within folders, and queries that repeat themselves.

A page is barren if, but for its own address and for links that lead on in the same way, it says what another page of that
way has said.  Once so many pages of a way were barren in a row, links to more of them that are found on barren pages are
parked: they are not followed.  A page that says anything new ends the row, and all that other pages link to is followed.

Pages of one pattern that only differ in a few new words are kept, too, however many are fetched.  A site
that makes up new adverts, quotes or prices at each request never ends either, and somebody should be told.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from dedup.filter.noise.error_page import Address
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Outcome
from dedup.index.verdict import Near
from dedup.latest import PAGES, Latest
from dedup.page.html import Page
from dedup.page.ids import is_opaque, strip_session
from dedup.page.patterns import pattern
from dedup.page.urls import digest, host, origin
from dedup.page.words import is_url
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: How many pages of one pattern, or barren ones of a way in a row, look like a trap.
LEAST = 30
#: A page of more tokens takes too long to compare.
MAX_TOKENS = 10_000
_ENCODED = re.compile("%(?:25)+")
_DIVIDERS = re.compile("[/?&;=]+")
_DIGITS = re.compile("[0-9]+")


class Parts(NamedTuple):
    """What a path and its query are made of: each part once, without numbers and ids."""

    names: frozenset[str]
    numbers: int  #: how many parts of the path are numbers, which are told apart by their places


Way = tuple[str, Parts]


class Traps:
    """Counts the pages of one crawl that say nothing new, by the ways on which they were found."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._pages = Latest[str, tuple[int, float]]()  # and their new shingles, by pattern
        self._most = LEAST - 1
        self._rows = Latest[Way, int]()  # barren pages since the last one that was not
        self._spent = Latest[str, set[Parts]]()  # ways of hosts whose rows are long enough
        self._shapes = Latest[int, None](PAGES)  # of headings and lengths
        self._said = Latest[int, None](PAGES)
        self._barren = Latest[int, None](PAGES)  # digests of their addresses
        self._told = Latest[Way, None]()

    def see(self, url: str, outcome: Outcome) -> None:
        """Counts a page that was judged."""
        if outcome.verdict.crowded:
            self.crowd(url)
        if outcome.verdict.near is not None:
            self.add(url, outcome.verdict.near)
        self.meet(url, outcome.page, kept=outcome.record is None)

    def add(self, url: str, near: Near) -> None:
        """Counts a page that was kept although it resembles another."""
        evidence = near.evidence
        count(self._stats, "own_content", None if evidence else "host_unknown")
        if evidence is None:
            return
        name = pattern(url)
        if "*" not in name:
            return
        pages, new = self._pages.get(name, (0, 0.0))
        self._pages[name] = pages, new = pages + 1, new + evidence.new
        if pages > self._most:
            self._most = pages
            told = f"{inert(name)}: {pages:,} pages that differ in about {round(new / pages):,} shingles each"
            self._stats.set_value("dedup/trap", told)

    def crowd(self, url: str) -> None:
        """Counts a page that was kept though not all pages like it were looked at, and warns at the first."""
        if not self._stats.get_value("dedup/crowded"):
            logger.warning(
                "Kept %s without comparing it with all pages like it, which are too many: it may be a "
                "near-duplicate.  They may share one large frame.  If somebody forges them, give the setting "
                "hash_key a secret, and start a new index.  Further such pages are only counted, in dedup/crowded",
                inert(url),
            )
        count(self._stats, "crowded")

    def meet(self, url: str, page: Page | None, *, kept: bool) -> None:
        """Counts a page by its way; None is one that was not read, as its bytes were met before."""
        way = way_of(url)
        if kept and page is not None and not self._is_barren(url, way, page):
            self._rows.pop(way, None)
            self._spent.get(way[0], set()).discard(way[1])
            return
        self._rows[way] = self._rows.get(way, 0) + 1
        if self._is_spent(way):
            spent = self._spent[way[0]] = self._spent.get(way[0]) or set()
            spent.add(way[1])
        if kept:  # else what becomes of its links was chosen
            self._barren[digest(url)] = None

    def parks(self, url: str, found_on: str | None) -> bool:
        """Returns whether a link is not to be followed, since it leads on in a trap; counts it then."""
        if not found_on or digest(found_on) not in self._barren or not self._is_spent(way := way_of(url)):
            return False
        if way not in self._told:
            self._told[way] = None
            told = f"{inert(pattern(url))}: {LEAST} pages in a row have said nothing new"
            self._stats.set_value("dedup/trap", told)
            logger.warning(
                "This looks like a trap without end, %s; links to more of them on such pages are not followed",
                told,
            )
        count(self._stats, "parked")
        return True

    def _is_spent(self, way: Way) -> bool:
        return self._rows.get(way, 0) >= LEAST

    def _is_barren(self, url: str, way: Way, page: Page) -> bool:
        if page.reason or len(page.tokens) > MAX_TOKENS:
            return False
        address = Address(url)
        # Most pages have a heading or a length of their own, and need not be compared as a whole.
        shape = hash((way, len(page.tokens), *address.words_left(page.heading)))
        if shape not in self._shapes:
            self._shapes[shape] = None
            return False
        left = list(self._left(url, way, page.tokens))
        # Its own address may be all that is new, or may be among what the page says.
        said = {hash((way, page.data, page.signs, *form)) for form in (left, address.words_left(left))}
        is_barren = any(each in self._said for each in said)
        for each in said:
            self._said[each] = None
        return is_barren

    def _left(self, url: str, way: Way, tokens: Iterable[str]) -> Iterator[str]:
        """Yields tokens but for links that lead on in the same way, or in one that is spent, or to another view of the page."""
        name, own = way
        path, mark, _ = url.partition("?")
        folder, _, last = path.removeprefix(origin(url)).rpartition("/")
        view = "//" if mark else f"/{last.lower()}?"
        folders, spent = parts_of(folder), self._spent.get(name, ())
        for token in tokens:
            if is_url(token) and not token.startswith("//"):
                link = parts_of(token)
                leads_on = link.names <= own.names and folders.numbers + link.numbers <= own.numbers
                if leads_on or token.startswith(view) or any(_is_of(each, link, folders) for each in spent):
                    continue
            yield token


def _is_of(way: Parts, link: Parts, folders: Parts) -> bool:
    """Returns whether a link is of a way: it lacks the folders that it shares with its page, and nobody knows which of them."""
    numbers = way.numbers - link.numbers
    return link.names <= way.names <= link.names | folders.names and 0 <= numbers <= folders.numbers


def way_of(url: str) -> Way:
    """Returns the host of a URL, and what its path and query are made of, however often encoded.

    >>> way_of("http://a.org/best?amp%253Bp=3&amp%3Bp=1&p=2") == way_of("http://a.org/best?amp%3Bp=2&p=1")
    True
    >>> sorted(way_of("http://a.org/v2/help/v3/help/?sid=9f86d081884c7d65#top")[1].names)
    ['help', 'v0']
    """
    plain = strip_session(url)
    return host(plain), parts_of(plain.removeprefix(origin(plain)))


@lru_cache(maxsize=1 << 14)
def parts_of(address: str) -> Parts:
    """Returns what a path and its query are made of.

    >>> sorted(parts_of("/login?back=%2Flogin%3Fback%3D%252Fnews").names), parts_of("/2026/11/26/").numbers
    (['back', 'login', 'news'], 3)
    """
    path, _, query = (unquote(_ENCODED.sub("%", part)).lower() for part in address.partition("?"))
    folders = [part for part in _DIVIDERS.split(path) if part]
    names = [part for part in folders if not part.isdecimal()] + _DIVIDERS.split(query)
    return Parts(frozenset(filter(None, map(_general, names))), sum(map(str.isdecimal, folders)))


def _general(part: str) -> str:
    return "*" if is_opaque(part) else _DIGITS.sub("0", part)
