"""Pairs of hosts: how many pages of one were dropped for pages of another, and whether the other can stand in for it.

A copy is dropped because the kept page leads to all that the copy leads to.  Between two hosts that may be wrong: whoever
shows the front page of another site first, with the same relative links, empties that site if nothing is behind his own.
So where the links of a kept page fail, or most pages of a host fall to one other, the links of the copies are followed.
"""

import logging
from collections import Counter

from dedup.filter.stats import Stats, count
from dedup.latest import REMEMBERED, Latest
from dedup.page.urls import host, strip_user
from dedup.printing import inert, many

logger = logging.getLogger(__name__)

#: The links of a page fail when this many of them have led to nothing, and no more than these to a page.
FAILED = 3
#: A warning is logged when this many pages of a host, and more than half of them, were dropped for one other host.
MANY = 20


class Pairs:
    """Counts the drops between hosts, and what the links of kept pages lead to."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._pages: Counter[str] = Counter()  # judged, by host
        self._drops: Counter[tuple[str, str]] = Counter()  # by the hosts of the copy and of the kept page
        self._told: set[tuple[str, str]] = set()
        # Of a page: how many led to a page, and how many to nothing.
        self._links = Latest[str, list[int]](REMEMBERED)
        self._copied: dict[str, str] = {}  # page ids of kept pages that have copies on other hosts, by URL

    def visit(self, url: str) -> None:
        """Counts a page that is judged."""
        if (name := host(url)) in self._pages or len(self._pages) < REMEMBERED:
            self._pages[name] += 1

    def follow(self, found_on: str | None, *, leads_to_page: bool) -> str | None:
        """Notes where a link led.  If by now most links on its page fail, and that page has copies, returns that page's id."""
        if not found_on:
            return None
        url = _plain(found_on)
        counts = self._links[url] = self._links.get(url) or [0, 0]
        counts[0 if leads_to_page else 1] += 1
        return self._copied.pop(url, None) if self._fails(url) else None

    def _fails(self, url: str) -> bool:
        good, bad = self._links.get(url, (0, 0))
        return bad >= FAILED and bad > good

    def drop(self, url: str, of: str, of_id: str) -> bool:
        """Notes a near-duplicate, and returns whether its links are to be followed all the same."""
        pair = name, other = host(url), host(of)
        if name == other:
            return False
        if pair in self._drops or len(self._drops) < REMEMBERED:
            self._drops[pair] += 1
        count(self._stats, "hosts/dropped")
        if self._fails(of := _plain(of)):
            self._tell(pair, f"most links on {inert(of)} lead to nothing")
            return True
        if len(self._copied) < REMEMBERED:
            self._copied[of] = of_id
        drops = self._drops[pair]
        if drops >= MANY and 2 * drops > self._pages[name]:
            self._tell(pair, f"these are {drops:,} of the {many(self._pages[name], 'page')} of {inert(name)}")
            return True
        return False

    def _tell(self, pair: tuple[str, str], why: str) -> None:
        count(self._stats, "hosts/led_on")
        if pair in self._told:
            return
        self._told.add(pair)
        count(self._stats, "hosts/alarms")
        logger.warning(
            "Pages of %s were dropped for pages of %s, and %s. From now on the links on such pages are followed",
            *map(inert, pair),
            why,
        )

    def close(self) -> None:
        """Puts the pair with most drops into the stats."""
        if self._drops:
            ((name, other), drops) = self._drops.most_common(1)[0]
            told = f"{drops:,} of the {many(self._pages[name], 'page')} of {inert(name)} for pages of {inert(other)}"
            self._stats.set_value("dedup/hosts/worst", told)


def _plain(url: str) -> str:
    return strip_user(url).partition("#")[0]
