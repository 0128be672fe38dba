"""The specification of the verdict by own content: what is kept and dropped of generated sites, through an index."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pytest

from dedup import Detector, Fingerprint, open_index
from tests.support import slow
from tests.support.pages.apps import APPS, app, changing
from tests.support.pages.manuals import manual
from tests.support.pages.shops import ShopPage, shops, trap

DETECTOR = Detector()
#: Shops of a short run: little and much chrome, little and much own text.
FEW_SHOPS = (0, 20)


class Claimed(NamedTuple):
    """A page, and whether it was kept."""

    page: ShopPage
    kept: bool


#: An order in which a crawl meets pages.
Order = Callable[[Iterable[int]], list[int]]


def in_order(pages: Iterable[int]) -> list[int]:
    """As the site has them: all products, then the copies."""
    return list(pages)


def shuffled(pages: Iterable[int]) -> list[int]:
    numbers = list(pages)
    random.Random(7).shuffle(numbers)
    return numbers


ORDERS = {"shuffled": shuffled, "in order": in_order}
ANY_ORDER = pytest.mark.parametrize("order", [shuffled, slow(in_order)])


def fingerprints(pages: Sequence[ShopPage]) -> list[Fingerprint]:
    return [DETECTOR.fingerprint(page.html, page.url) for page in pages]


def claim(pages: Sequence[ShopPage], of: Sequence[Fingerprint], order: Order) -> list[Claimed]:
    """What an index keeps, of pages in some order."""

    async def claims() -> list[Claimed]:
        index = open_index("memory:", DETECTOR)
        claimed = []
        for number in order(range(len(pages))):
            verdict = await index.claim(str(number), pages[number].url, of[number])
            await index.confirm(str(number))
            claimed.append(Claimed(pages[number], verdict.status == "new"))
        await index.close()
        return claimed

    return asyncio.run(claims())


class Figures(NamedTuple):
    """What became of the pages of some sites."""

    contents: int
    lost: int  #: contents of which no page was kept
    copies: Counter[int]  #: pages whose content was kept before, by the length of the own text
    dropped: Counter[int]  #: those of them that were dropped

    def recall(self, least: int = 0) -> float:
        """Share of the true copies of pages of some own text that was dropped."""
        copies = sum(count for own, count in self.copies.items() if own >= least)
        return sum(count for own, count in self.dropped.items() if own >= least) / copies


def figures(sites: Iterable[Sequence[Claimed]]) -> Figures:
    """The figures of sites, in the order in which their pages were claimed."""
    contents = lost = 0
    copies, dropped = Counter[int](), Counter[int]()
    for site in sites:
        kept: set[str] = set()
        for page, is_kept in site:
            if page.content in kept:
                copies[page.own] += 1
                dropped[page.own] += not is_kept
            if is_kept:
                kept.add(page.content)
        all_contents = {claimed.page.content for claimed in site}
        contents += len(all_contents)
        lost += len(all_contents - kept)
    return Figures(contents, lost, copies, dropped)


@pytest.fixture(scope="module")
def sites() -> list[tuple[list[ShopPage], list[Fingerprint]]]:
    few = (pages for number in FEW_SHOPS for pages in shops(1, range(number, number + 1)))
    return [(pages, fingerprints(pages)) for pages in few]


@ANY_ORDER
def test_products_in_the_chrome_of_a_shop_are_kept_and_their_copies_dropped(
    sites: list[tuple[list[ShopPage], list[Fingerprint]]], order: Order
) -> None:
    found = figures(claim(*site, order) for site in sites)
    assert found.lost <= 0.015 * found.contents
    assert found.recall() >= 0.6
    assert found.recall(least=100) >= 0.9


@ANY_ORDER
def test_pages_of_a_manual_are_found_in_other_releases(order: Order) -> None:
    """Their menus outweigh their texts, and are others in each release: those of the shortest pages count as their own."""
    pages = manual(random.Random(1))
    found = figures([claim(pages, fingerprints(pages), order)])
    assert found.lost == 0
    assert found.recall() >= 0.5
    assert found.recall(least=24) >= 0.9


@pytest.mark.parametrize(
    ("kind", "chrome", "own"),
    [("counter", 600, 60), slow("counter", 300, 150), ("pool", 300, 150), slow("pool", 600, 60)],
)
def test_the_copies_of_one_page_that_differ_in_noise_are_dropped(kind: str, chrome: int, own: int) -> None:
    """The page itself is met before its copies, which have a parameter more."""
    pages = trap(kind, random.Random(2), chrome=chrome, own=own)
    kept = [page.content for page, is_kept in claim(pages, fingerprints(pages), in_order) if is_kept]
    assert len(set(kept)) == 30
    assert len(kept) <= 30 + 20


@pytest.mark.parametrize("kind", APPS)
def test_pages_whose_content_is_data_in_a_script_are_kept(kind: str) -> None:
    rng = random.Random(4)
    pages = [
        ShopPage(f"http://app.example/{number}", app(kind, number, rng), f"{number}", 20, "")
        for number in range(20)
    ]
    assert all(is_kept for _, is_kept in claim(pages, fingerprints(pages), in_order))


def test_a_page_with_new_tokens_and_times_in_its_data_is_one_page_whatever_its_session() -> None:
    rng = random.Random(4)
    urls = [f"http://app.example/?sid={number:032x}" for number in range(20)]
    pages = [ShopPage(url, changing(rng), "one", 20, "") for url in urls]
    assert sum(is_kept for _, is_kept in claim(pages, fingerprints(pages), in_order)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_products_of_25_shops_are_kept_and_their_copies_dropped(seed: int) -> None:
    """An index alone fetches nothing twice, so nothing that differs is noise for it: each copy that it drops, it is sure of.

    That is so of most copies of long pages on a host whose pages it knows: here the shop's, once all products were met.  How
    many are dropped of short pages, of those on a mirror with few pages, and of the first ones in any order, is printed, and
    nothing is asked of it: probes see to those.
    """
    sites = [(pages, fingerprints(pages)) for pages in shops(seed)]
    claimed = {name: [claim(*site, order) for site in sites] for name, order in ORDERS.items()}
    for name, each in claimed.items():
        found = figures(each)
        print(f"seed {seed}, {name}: lost {found.lost} of {found.contents}, recall {found.recall():.3f}")
        assert found.lost == 0
    at_home = figures([one for one in site if one.page.copy != "mirror"] for site in claimed["in order"])
    print(f"of copies of 300 own words on the shop's own host {at_home.recall(least=300):.3f}")
    assert at_home.recall(least=300) >= 0.9
