"""Parks links by their groups, until a group proves to be worth it or a link is taken as a sample."""

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec import Struct

from dedup.links.address import Address, address
from dedup.page.urls import digest

#: At most this many links wait.  Beyond that, those that have waited longest are in the log only.
MAX_PARKED = 50_000
#: One link of each lot is taken as a sample, then at first one or two in this many, and fewer of large lots.
ONE_IN = 20
#: For each sample that is new, this many more are taken from its lot: new content is seldom alone.
MORE = 3
#: Each host may be asked for this many samples beside the share of its new contents.
FREE_SAMPLES = 50


@dataclass(frozen=True, slots=True)
class Link:
    """A link that is about to be downloaded."""

    url: str
    found_on: str = ""  #: the page through which it was found; "": unknown
    on_kept: bool = False  #: whether that page was kept
    origin: Any = field(default=None, compare=False)  #: what the crawl makes a download of


class Lot(Struct):
    """The parked links of one group, or of one parameter."""

    names: tuple[str, ...]  #: of the rates that it has in common
    host: str
    checked: float  #: the rate at which all of them were looked at
    links: dict[int, Link] = {}  #: by the digests of their URLs
    sampled: int = 0  #: how many were taken as samples
    found: int = 0  #: how many of the samples were new

    @property
    def parked(self) -> int:
        """How many were parked and have not come back by themselves."""
        return len(self.links) + self.sampled

    @property
    def asked(self) -> float:
        """How many samples are asked of it: 1 of 5 links, 5 of 100, 18 of 10,000; a few more for each that was new."""
        return 2 * math.log2(1 + self.parked / ONE_IN) + MORE * self.found


class Parking:
    """The lots, each in its place: the folder or the two folders at the top of its path."""

    def __init__(self, explore: float) -> None:
        self._explore = explore
        self._lots: dict[str, Lot] = {}
        self._places: dict[str, dict[str, None]] = {}
        self._where: dict[int, str] = {}  # the lot of each link that waits, by the digest of its URL
        self._found: dict[str, int] = {}  # by host: new contents
        self._spent: dict[str, int] = {}  # by host: samples

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, url: str) -> bool:
        return digest(url) in self._where

    def all_links(self) -> Iterator[tuple[str, Lot, Link]]:
        """Yields all links that wait, in the order in which they were parked, each with its lot and the lot's name."""
        for key, name in self._where.items():
            lot = self._lots[name]
            yield name, lot, lot.links[key]

    def hosts(self) -> dict[str, tuple[int, int]]:
        """Returns, for each host, how many contents were new and how many samples were taken."""
        return {host: (found, self._spent.get(host, 0)) for host, found in self._found.items()}

    def put(self, hosts: dict[str, tuple[int, int]]) -> None:
        """Takes what an earlier part of the crawl has counted."""
        for host, (found, spent) in hosts.items():
            self._found[host], self._spent[host] = found, spent

    def lot(self, name: str) -> Lot | None:
        """Returns the lot of this name; None if no link of it has been parked."""
        return self._lots.get(name)

    def add(self, name: str, link: Link, rates: tuple[str, ...], rate: float, *, on_host: bool) -> None:
        """Parks a link in the lot of this name.  All links in the lot share these ``rates``.

        ``on_host``: the lot is that of a whole host, and not of one place there."""
        parts = address(link.url)
        lot = self._lots.get(name)
        if lot is None:
            lot = self._lots[name] = Lot(rates, parts.host, rate)
            self._places.setdefault(parts.host if on_host else _place(parts), {})[name] = None
        key = digest(link.url)
        self.remove(link.url)
        lot.links[key] = link
        self._where[key] = name
        if len(self._where) > MAX_PARKED:  # the link that has waited longest is in the log only
            oldest = next(iter(self._where))
            del self._lots[self._where.pop(oldest)].links[oldest]

    def remove(self, url: str) -> None:
        """Removes a link from those that wait, if it is one."""
        key = digest(url)
        if (name := self._where.pop(key, None)) is not None:
            del self._lots[name].links[key]

    def found(self, host: str) -> int:
        """Counts a new page of a host; returns how many it has."""
        self._found[host] = self._found.get(host, 0) + 1
        return self._found[host]

    def near(self, url: str, most: int) -> list[Lot]:
        """Gives lots of a URL's place that hold links, and of its host's parameters: at most ``most``, and others the next time."""
        parts = address(url)
        lots = []
        for place in {_place(parts), parts.host}:
            names = self._places.get(place, {})
            for name in list(islice(names, most)):
                names[name] = names.pop(name)
                if self._lots[name].links:
                    lots.append(self._lots[name])
        return lots

    def all(self) -> list[Lot]:
        """Returns the lots that hold links."""
        return [lot for lot in self._lots.values() if lot.links]

    def take(self, lot: Lot, is_worth: Callable[[Link], bool], most: int | None = None) -> list[Link]:
        """Takes the links out of a lot that are worth a download.  Looks at ``most`` of them, at others the next time."""
        taken = {}
        for key, link in list(islice(lot.links.items(), most)):
            del lot.links[key]
            if is_worth(link):
                taken[key] = link
                del self._where[key]
            else:
                lot.links[key] = link
        return list(taken.values())

    def sample(self, most: int) -> list[tuple[Link, Lot]]:
        """Takes links that are to be downloaded all the same: of the lots least known first, the largest first.

        The link of the least digest in a lot is taken: any would do, but this is the same in every crawl.
        """
        if not self._explore:
            return []
        lots = (lot for lot in self.all() if lot.sampled < lot.asked and self._may_spend(lot.host))
        taken = []
        for lot in heapq.nsmallest(
            most, lots, key=lambda lot: (lot.sampled - MORE * lot.found, -len(lot.links))
        ):
            if self._may_spend(lot.host):
                key = min(lot.links)
                del self._where[key]
                taken.append((lot.links.pop(key), lot))
                lot.sampled += 1
                self._spent[lot.host] = self._spent.get(lot.host, 0) + 1
        return taken

    def _may_spend(self, host: str) -> bool:
        return FREE_SAMPLES + self._explore * self._found.get(host, 0) >= self._spent.get(host, 0) + 1


def _place(parts: Address) -> str:
    return parts.groups[min(len(parts.groups) - 1, 2)]
