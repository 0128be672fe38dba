"""The policy for links on generated sites, judged by the truth: what it downloads, what it loses, that it ends."""

import asyncio
from dataclasses import replace
from functools import cache

import pytest

from dedup.links import Link, Links
from tests.support import slow
from tests.support.scenes import SCENES, Scene, Sessions
from tests.support.simulation import Result, by_truth, simulate

#: Downloads after which a crawl is taken to be endless; it is one of at most 409 contents.
CAP = 2500


def scene(name: str, small: bool = False) -> Scene:
    """A scene; those with session ids, which never have a link twice, can be made smaller."""
    made = SCENES[name]()
    return replace(made, articles=5) if small and isinstance(made, Sessions) else made


def crawl(name: str, small: bool = False, **options: object) -> tuple[Result, set[str]]:
    """What came of a crawl, and the contents that it has found."""
    links = Links() if options.get("follow") == "yield" else None
    found: set[str] = set()
    done = asyncio.run(simulate(scene(name, small), by_truth(found), links, most=CAP, **options))  # type: ignore[arg-type]
    return done, found


@cache
def everything(name: str, small: bool = False) -> frozenset[str]:
    """The contents that a crawl finds which follows all links; of endless sites, the first ones."""
    order = "breadth first" if scene(name).endless else "depth first"
    return frozenset(crawl(name, small, follow="all", order=order)[1])


def lost(name: str, found: set[str], small: bool = False) -> int:
    return len(everything(name, small) - found)


#: With links of near-duplicates followed by their yield: the most downloads, and the most contents that are lost.
YIELD = {
    "mirrors5": (1254, 0), "hidden": (580, 0), "versions": (1130, 13), "session": (1400, 0),
    "sessionpath": (1850, 0), "forum": (1505, 0), "lists": (401, 0), "calendar": (780, 60),
    "soft404x10": (610, 0), "soft404short": (560, 0),
}  # fmt: skip


#: Others have sessions and pages that are missing, too.
SLOW = {"session", "soft404short"}


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in SCENES])
def test_links_are_followed_as_far_as_they_bring_new_content(name: str) -> None:
    result, found = crawl(name, small=True, follow="yield")
    downloads, may_be_lost = YIELD[name]
    assert result.ended
    assert result.downloads <= downloads
    assert lost(name, found, small=True) <= may_be_lost


def test_by_default_what_is_behind_near_duplicates_is_lost() -> None:
    assert [lost(name, crawl(name)[1]) for name in ("hidden", "versions")] == [16, 134]


def test_a_crawl_is_the_same_each_time() -> None:
    once, again = (crawl("hidden", follow="yield")[0] for _ in range(2))
    assert list(once.statuses) == list(again.statuses)
    assert once.parked == again.parked


def test_links_of_kept_pages_are_not_weighed() -> None:
    links = Links()
    for number in range(100):
        link = Link(f"http://a.org/{number}", found_on="http://a.org/")
        links.note(link)
        links.learn(link.url, new=False)
    assert links.doubt(Link("http://a.org/100", found_on="http://a.org/"))
    assert links.doubt(Link("http://a.org/100", found_on="http://a.org/", on_kept=True)) is None
