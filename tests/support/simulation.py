"""A crawl without a network: Scrapy's order, verdicts from a judge, and a policy that says which links are downloaded."""

import heapq
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dedup.links import Link, Links

#: "repeat": it can't be judged, but is word for word what was met before.
Status = Literal["new", "duplicate", "unjudged", "repeat"]
Order = Literal["depth first", "breadth first"]


class Page(Protocol):
    """What a crawl needs of a page."""

    @property
    def links(self) -> Sequence[str]: ...


class Site(Protocol):
    """Where pages come from."""

    @property
    def start(self) -> str: ...

    def fetch(self, url: str) -> "Page | str | None":
        """The page at a URL; another URL if it is redirected there; None if there is none."""


@dataclass
class Result:
    """What came of a crawl."""

    statuses: dict[str, Status] = field(default_factory=dict)  #: of every page, in the order of the downloads
    curve: list[int] = field(default_factory=list)  #: how many pages were new after each download
    ended: bool = True  #: whether nothing was left, but for what is parked
    parked: int = 0

    @property
    def downloads(self) -> int:
        return len(self.curve)

    @property
    def wasted(self) -> int:
        return sum(status == "duplicate" for status in self.statuses.values())


Judge = Callable[[str, Page], Awaitable[Status]]


async def simulate(
    site: Site,
    judge: Judge,
    links: Links | None = None,
    *,
    follow: Literal["never", "yield", "all"] = "never",
    order: Order = "depth first",
    most: int = 10**6,
    shuffle: int | None = None,
) -> Result:
    """Crawls until nothing is left, or to ``most`` downloads.

    ``links`` is what decides with ``follow="yield"``; None: nothing does.
    ``shuffle`` is a seed for the order of each page's
    links; None: that of the page.
    """
    result, rng = Result(), random.Random(shuffle)
    seen = {site.start}
    queue: list[tuple[int, Link]] = []
    pushed = 0

    def push(link: Link) -> None:
        nonlocal pushed
        pushed += 1
        heapq.heappush(queue, (pushed if order == "breadth first" else -pushed, link))

    def may_go(link: Link) -> bool:
        if links is None or not link.found_on:
            return True
        if doubt := links.doubt(link):
            links.park(link)
        return doubt is None

    push(Link(site.start))
    while result.downloads < most:
        if not queue:
            for back in links.idle() if links else []:
                push(back)
            if not queue:
                break
        _, link = heapq.heappop(queue)
        if not may_go(link):
            continue
        if links:
            links.note(link)
        page = site.fetch(link.url)
        if page is None:
            continue
        if isinstance(page, str):
            if page not in seen:
                seen.add(page)
                push(Link(page, link.found_on, link.on_kept))
            continue
        status = await judge(link.url, page)
        result.statuses[link.url] = status
        result.curve.append((result.curve[-1] if result.curve else 0) + (status == "new"))
        if links:
            gain = {"new": True, "duplicate": False, "repeat": False, "unjudged": None}[status]
            for waiting in links.learn(link.url, new=gain):
                push(waiting)
        if status == "duplicate" and follow == "never":
            continue
        on_kept = status in {"new", "unjudged"} or follow == "never"
        found = list(page.links)
        for url in rng.sample(found, len(found)) if shuffle is not None else found:
            if url not in seen:
                seen.add(url)
                push(Link(url, link.url, on_kept))
            elif on_kept and links and url in links.parking:
                links.parking.remove(url)
                push(Link(url, link.url, True))
    else:
        result.ended = not queue
    result.parked = len(links.parking) if links else 0
    return result


def by_truth(found: set[str] | None = None) -> Judge:
    """Judges pages of a scene by the contents that they say they show, and notes these."""
    met = set() if found is None else found

    async def judge(url: str, page: Page) -> Status:
        content, short = page.content, page.short  # type: ignore[attr-defined]
        known = content in met
        met.add(content)
        return ("repeat" if known else "unjudged") if short else "duplicate" if known else "new"

    return judge
