"""Parks links by their folders, until a folder proves to be worth it or a link is taken as a sample."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec import Struct

from dedup.links.rates import folder_of
from dedup.page.urls import digest

#: At most this many links wait.  Beyond that, those that have waited longest are in the log only.
MAX_PARKED = 50_000
#: One link of each folder is taken as a sample, then at first one or two in this many, and fewer of large folders.
ONE_IN = 5
#: Each host may be asked for this many samples, and for one more each time that it has brought so many new contents.
FREE_SAMPLES, FOUND = 50, 10


@dataclass(frozen=True, slots=True)
class Link:
    """A link that is about to be downloaded."""

    url: str
    found_on: str = ""  #: the page through which it was found; "": unknown
    on_kept: bool = False  #: whether that page was kept
    origin: Any = field(default=None, compare=False)  #: what the crawl makes a download of


class Lot(Struct):
    """The parked links of a folder."""

    links: dict[int, Link] = {}  #: by the digests of their URLs
    sampled: int = 0  #: how many were taken as samples

    @property
    def parked(self) -> int:
        """How many were parked and have not come back by themselves."""
        return len(self.links) + self.sampled

    @property
    def asked(self) -> float:
        """How many samples are asked of it: 2 of 5 links, 9 of 100, 22 of 10,000."""
        return 2 * math.log2(1 + self.parked / ONE_IN)


class Parking:
    """The lots, by folder."""

    def __init__(self) -> None:
        self.lots: dict[str, Lot] = {}
        #: New contents and samples, by host.
        self.hosts: dict[str, tuple[int, int]] = {}
        self._where: dict[int, str] = {}  # the lot of each link that waits, by the digest of its URL

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, url: str) -> bool:
        return digest(url) in self._where

    def all_links(self) -> Iterator[Link]:
        """Yields all links that wait, in the order in which they were parked."""
        for key, folder in self._where.items():
            yield self.lots[folder].links[key]

    def add(self, link: Link) -> None:
        """Parks a link."""
        key, folder = digest(link.url), folder_of(link.url)
        self.remove(link.url)
        self.lots.setdefault(folder, Lot()).links[key] = link
        self._where[key] = folder
        if len(self._where) > MAX_PARKED:  # the link that has waited longest is in the log only
            oldest = next(iter(self._where))
            del self.lots[self._where.pop(oldest)].links[oldest]

    def remove(self, url: str) -> None:
        """Removes a link from those that wait, if it is one."""
        key = digest(url)
        if (folder := self._where.pop(key, None)) is not None:
            del self.lots[folder].links[key]

    def take(self, folder: str, most: int) -> list[Link]:
        """Takes links out of a lot, those first that have waited longest."""
        lot = self.lots.get(folder)
        taken = list(islice(lot.links.values(), most)) if lot else []
        for link in taken:
            self.remove(link.url)
        return taken

    def found(self, folder: str) -> None:
        """Counts a new page of a host."""
        found, spent = self._of(folder)
        self.hosts[_host(folder)] = found + 1, spent

    def sample(self, most: int) -> list[Link]:
        """Takes links that are to be downloaded all the same: of the lots least known first, the largest first.

        The link of the least digest in a lot is taken: any would do, but this is the same in every crawl.
        """
        lots = ((folder, lot) for folder, lot in self.lots.items() if lot.links and lot.sampled < lot.asked)
        taken = list[Link]()
        for folder, lot in heapq.nsmallest(
            most,
            (each for each in lots if self._may_spend(each[0])),
            key=lambda each: (each[1].sampled, -len(each[1].links)),
        ):
            if self._may_spend(folder):
                link = lot.links[min(lot.links)]
                self.remove(link.url)
                taken.append(link)
                lot.sampled += 1
                found, spent = self._of(folder)
                self.hosts[_host(folder)] = found, spent + 1
        return taken

    def _of(self, folder: str) -> tuple[int, int]:
        return self.hosts.get(_host(folder), (0, 0))

    def _may_spend(self, folder: str) -> bool:
        found, spent = self._of(folder)
        return spent < FREE_SAMPLES + found // FOUND


def _host(folder: str) -> str:
    return folder.partition("/")[0]
