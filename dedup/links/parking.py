"""Links that wait: parked by the groups that they belong to, until those prove worth it or one is taken as a sample."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dedup.links.address import Address, address, digest

__all__ = ["Link", "Lot", "Parking"]

#: Links that wait at most; beyond that, those that have waited longest are in the log only.
MAX_PARKED = 50_000
#: Of each group one link is taken as a sample, then one in this many of its links.
ONE_IN = 20
#: Samples that each host may be asked for beside the share of its new contents.
FREE_SAMPLES = 50


@dataclass(frozen=True, slots=True)
class Link:
    """A link that is about to be downloaded."""

    url: str
    found_on: str = ""  #: the page through which it was found; "": unknown
    on_kept: bool = False  #: whether that page was kept
    origin: Any = field(default=None, compare=False)  #: what the crawl makes a download of


@dataclass(slots=True)
class Lot:
    """The parked links of one group that are alike in what was met of them before."""

    groups: tuple[str, ...]
    tail: int
    host: str
    checked: float  #: the rate at which all of them were looked at
    links: dict[int, Link] = field(default_factory=dict)  #: by the digests of their URLs
    sampled: int = 0  #: how many were taken as samples

    @property
    def parked(self) -> int:
        """How many were parked and have not come back by themselves."""
        return len(self.links) + self.sampled


class Parking:
    """The lots, each in its place: the folder or the two folders at the top of its path."""

    def __init__(self, explore: float, most: int = MAX_PARKED) -> None:
        self._explore = explore
        self._most = most
        self._lots: dict[str, Lot] = {}
        self._places: dict[str, dict[str, None]] = {}
        self._found: dict[str, int] = {}  # by host: new contents
        self._spent: dict[str, int] = {}  # by host: samples
        self._count = 0
        self.left_out = 0  #: links that are in the log only, for want of room

    def __len__(self) -> int:
        return self._count

    def links(self) -> Iterator[Link]:
        """All that wait."""
        for lot in self._lots.values():
            yield from lot.links.values()

    def lot(self, name: str) -> Lot | None:
        """The lot of a name, if links of it have been parked."""
        return self._lots.get(name)

    def add(self, name: str, link: Link, tail: int, rate: float) -> None:
        """Parks a link in the lot of a name; the name says the group and the tail."""
        parts = address(link.url)
        lot = self._lots.get(name)
        if lot is None:
            lot = self._lots[name] = Lot(parts.groups, tail, parts.host, rate)
            self._places.setdefault(_place(parts), {})[name] = None
        before = len(lot.links)
        lot.links[digest(link.url)] = link
        self._count += len(lot.links) - before
        if self._count > self._most:
            self._leave_out()

    def _leave_out(self) -> None:
        """Forgets a link of the largest of the lots that were opened first."""
        first = [lot for _, lot in zip(range(16), self._lots.values(), strict=False) if lot.links]
        lot = max(first or self._lots.values(), key=lambda lot: len(lot.links))
        del lot.links[next(iter(lot.links))]
        self._count -= 1
        self.left_out += 1

    def found(self, host: str) -> int:
        """A page of a host is new; says how many there are."""
        self._found[host] = self._found.get(host, 0) + 1
        return self._found[host]

    def near(self, url: str, most: int | None = None) -> list[Lot]:
        """The lots of a URL's place that hold links; at most so many of them, others the next time."""
        names = self._places.get(_place(address(url)), {})
        lots = []
        for name in list(names)[:most]:
            names[name] = names.pop(name)
            if self._lots[name].links:
                lots.append(self._lots[name])
        return lots

    def all(self) -> list[Lot]:
        """The lots that hold links."""
        return [lot for lot in self._lots.values() if lot.links]

    def take(self, lot: Lot, is_worth: Callable[[Link], bool]) -> list[Link]:
        """Takes those links out of a lot that are worth it."""
        taken = {key: link for key, link in lot.links.items() if is_worth(link)}
        for key in taken:
            del lot.links[key]
        self._count -= len(taken)
        return list(taken.values())

    def sample(self, most: int) -> list[Link]:
        """Takes links that are to be downloaded all the same: of the lots least known first, the largest first.

        In a lot it is the link of the least digest: any one, but the same in every crawl.
        """
        if not self._explore:
            return []
        lots = (lot for lot in self.all() if lot.sampled * ONE_IN < lot.parked and self._may_spend(lot.host))
        taken = []
        for lot in heapq.nsmallest(most, lots, key=lambda lot: (lot.sampled, -len(lot.links))):
            if self._may_spend(lot.host):
                taken.append(lot.links.pop(min(lot.links)))
                lot.sampled += 1
                self._spent[lot.host] = self._spent.get(lot.host, 0) + 1
        self._count -= len(taken)
        return taken

    def _may_spend(self, host: str) -> bool:
        return FREE_SAMPLES + self._explore * self._found.get(host, 0) >= self._spent.get(host, 0) + 1


def _place(parts: Address) -> str:
    return parts.groups[min(len(parts.groups) - 1, 2)]
