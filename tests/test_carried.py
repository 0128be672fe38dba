"""Requests that carry data to their callbacks: a page is a near-duplicate only of one whose request carried the same."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Field, Item, Request, Selector, Spider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from dedup import Detector, open_index
from dedup.filter import Counts
from dedup.index import Verdict
from dedup.scrapy.requests.carried import Carried, is_known
from dedup.scrapy.requests.digests import digest
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.crawls import Answer, Run, Site, Walker, html, page, words
from tests.support.fingerprints import fingerprint_of
from tests.support.stores import opened_at

# --- Crawls -----------------------------------------------------------------------------------------

STORES = 12
#: A page for each store, and one page of opening hours under an address for each.
SHOPS: dict[str, Answer] = {
    "/": page("shops", *(f"/store/{n}" for n in range(STORES))),
    **{f"/store/{n}": page(f"store {n}", f"/hours/{n}") for n in range(STORES)},
    **{f"/hours/{n}": html(f"<title>Opening hours</title><p>{words('hours')}") for n in range(STORES)},
}


class Shopper(Walker):
    """Begins an item on a store's page, and ends it on the page of its opening hours."""

    @staticmethod
    def carrying(item: dict[str, str]) -> dict[str, Any]:
        return {"cb_kwargs": {"item": item}}

    def parse(self, response: Any, item: Any = None) -> Iterator[Any]:
        path = self.path(response)
        self.note(response)
        if path.startswith("/hours"):
            yield (item or response.meta.get("item") or {}) | {"hours": "all day"}
            return
        for link in self.links(response):
            carried = self.carrying({"store": path}) if link.startswith("/hours") else {}
            yield self.request(link, **carried)


class ByMeta(Shopper):
    @staticmethod
    def carrying(item: dict[str, str]) -> dict[str, Any]:
        return {"meta": {"item": item, "download_timeout": 20 + len(item["store"])}}


class Alike(Shopper):
    @staticmethod
    def carrying(item: dict[str, str]) -> dict[str, Any]:
        return {"cb_kwargs": {"item": {}}, "meta": {"parents": {item["store"]}}}


@pytest.mark.parametrize("spider", [Shopper, ByMeta])
def test_an_item_that_another_page_completes_is_made_of_each_copy(crawl: Run, spider: type[Spider]) -> None:
    done = crawl(SHOPS, spider)
    assert {item["store"] for item in done.items} == {f"/store/{n}" for n in range(STORES)}
    assert done.figures["carries"] == done.figures["carries/different"] == STORES
    assert done.mishaps == []
    [told] = [line for m in done.messages for line in m.getMessage().split("\n") if "  carried " in line]
    assert told == (
        "  carried   the requests of 12 pages carried data of the spider, 12 different: item (12). Two pages are "
        "compared only if these data are equal: 11 equal a kept page, and were kept for that reason alone. If a key doesn't "
        "matter: DEDUP_IGNORE_CARRIED = ('item',)"
    )
    assert done.figures["unjudged"] == done.figures["unjudged/carries"] == STORES - 1
    assert done.figures["new"] == STORES + 2


def test_copies_whose_requests_carry_equal_data_are_dropped(crawl: Run) -> None:
    done = crawl(SHOPS, Alike, DEDUP_IGNORE_CARRIED=["parents"], DEDUP_MAX_CLUSTER=0)
    assert len(done.items) == 1
    assert done.figures["dropped"] == STORES - 1
    assert "unjudged" not in done.figures
    assert crawl(SHOPS, Alike, DEDUP_MAX_CLUSTER=0).figures["unjudged/carries"] == STORES - 1


class Injects:
    """Adds to requests what no two of them share, as scrapy-poet does, before and after they are sent."""

    def process_request(self, request: Request, spider: object = None) -> None:
        request.meta["sent_by"] = object.__repr__(request)

    def process_response(self, request: Request, response: Any, spider: object = None) -> Any:
        request.cb_kwargs["made"] = object.__repr__(response)
        return response


class Injected(Walker):
    def parse(self, response: Any, made: str, item: str = "") -> Iterator[Any]:
        yield self.note(response)
        for link in self.links(response):
            yield self.request(link, cb_kwargs={"item": link} if "item" in link else {})


@pytest.mark.parametrize("order", [100, slow(575), 700])
def test_what_a_middleware_adds_is_not_carried(crawl: Run, site: Site, tmp_path: Path, order: int) -> None:
    """On redirects and retries, and in a queue on disk, too; what the spider gave is still carried there."""
    pages = {"/": page("home", "/a", "/b", "/moved", "/late", "/item/x", "/item/y")}
    pages |= dict.fromkeys(("/a", "/b", "/c"), page("story")) | {"/moved": (302, {"Location": "/c"}, b"")}
    pages |= dict.fromkeys(("/item/x", "/z"), page("hours")) | {"/item/y": (302, {"Location": "/z"}, b"")}
    pages["/late"] = (503, {}, b"")
    site.on_request = lambda path: site.pages.update(
        {"/late": page("story")} if site.requests.count("/late") > 1 else {}
    )
    options = {"JOBDIR": str(tmp_path / "job"), "DOWNLOADER_MIDDLEWARES": {Injects: order}}
    done = crawl(pages, Injected, DEDUP_PROBE=False, **options)
    paths = [item["path"] for item in done.items]
    assert len(paths) == 4
    assert {"/", "/item/x", "/z"} < {*paths}
    assert site.requests.count("/late") == 2
    assert (done.figures["dropped"], done.mishaps) == (3, [])
    assert done.figures["carries"] == done.figures["carries/different"] == 2


class ByRules(CrawlSpider):
    """Makes an item of what is below /item, and only follows other links."""

    name = "rules"
    rules = (Rule(LinkExtractor(allow=r"/item/\d$"), "note"), Rule(LinkExtractor()))

    def __init__(self, url: str) -> None:
        super().__init__()
        self.start_urls = [url]

    def note(self, response: Any) -> dict[str, str]:
        return {"path": response.url.rpartition("/")[2]}


class TwoKinds(Walker):
    """Makes an item of another kind where a link says so."""

    def parse(self, response: Any) -> Iterator[Any]:
        for link in self.links(response):
            yield self.request(link, callback=self.short if "short" in link else self.long)

    def short(self, response: Any) -> dict[str, str]:
        return {"path": self.path(response)[6:7]}

    def long(self, response: Any) -> dict[str, str]:
        return self.short(response)


class Bound(Walker):
    """Hands data over in a callback that is made for it."""

    def parse(self, response: Any) -> Iterator[Any]:
        for link in self.links(response):
            path = link[6:7]
            made = (
                partial(self.item, path=path) if "short" in link else lambda _, path=path: self.item(_, path)
            )
            yield self.request(link, callback=made)

    def item(self, response: Any, path: str) -> dict[str, str]:
        return {"path": path}


@pytest.mark.parametrize(("spider", "items"), [(ByRules, 9), (TwoKinds, 18), (Bound, 18)])
def test_a_page_of_another_callback_is_no_duplicate(crawl: Run, spider: type[Spider], items: int) -> None:
    paths = [f"/item/{n}" for n in range(9)]
    pages = {"/": page("items", *(f"{path}?short" for path in paths), *paths)}
    for path in paths:
        pages |= {path: page(path), path + "?short": page(path)}
    done = crawl(pages, spider)
    assert sorted(item["path"] for item in done.items) == sorted("012345678" * (items // 9))
    assert done.mishaps == []


# --- Indexes ----------------------------------------------------------------------------------------


@driven
async def test_pages_are_compared_only_where_equal_data_was_handed_over(address: str, namespace: str) -> None:
    async with opened_at(address, namespace=namespace) as index:

        async def claim(name: str, carried: int, simhash: int = 5) -> Verdict:
            return await index.claim(name, f"http://a/{name}", fingerprint_of(simhash), carried)

        assert (await claim("plain", 0)).status == "new"
        assert (await claim("one", 1 << 40)).status == "new"
        assert (await claim("two", 1 << 41)).status == "new"
        assert (await claim("like one", 1 << 40, 4)).of == "http://a/one"
        assert (await claim("like two", 1 << 41)).of == "http://a/two"
        assert (await claim("like plain", 0)).of == "http://a/plain"
        assert (await claim("one", 1 << 41)).status == "same"


@driven
async def test_a_page_of_an_earlier_run_casts_its_shadow_where_it_is_met_with_other_data(
    tmp_path: Path, redis_socket: Path, namespace: str
) -> None:
    for address in (f"file:{tmp_path}/index", f"unix://{redis_socket}"):
        async with opened_at(address, namespace=namespace) as index:
            await index.claim("a", "http://a/", fingerprint_of(5), 1 << 40)
            await index.confirm("a")
        async with opened_at(address, namespace=namespace) as index:
            verdict = await index.claim("a", "http://a/", fingerprint_of(5), 1 << 41)
            assert (verdict.status, verdict.known) == ("new", False)  # its item is another now
            assert (await index.claim("b", "http://b/", fingerprint_of(5), 1 << 41)).of == "http://a/"
            assert (await index.claim("c", "http://c/", fingerprint_of(5), 1 << 40)).status == "new"


@driven
async def test_a_content_that_is_kept_several_times_is_not_the_chrome_of_its_host() -> None:
    """Else what its copies have of it would prove nothing."""
    detector = Detector()
    async with open_index("memory:", detector) as index:
        for n in range(1, 20):
            url = f"http://a.org/{n}"
            page = detector.fingerprint(f"<title>Hours</title><p>{words('hours')}", url)
            assert (await index.claim(str(n), url, page, n)).status == "new"
        assert index.hosts is not None
        assert index.hosts.table("a.org").pages == 1


# --- Numbers ----------------------------------------------------------------------------------------


def number(**options: Any) -> int:
    return Carried(Counts(), ["page"]).number(Request("http://a.org/", **options))


def test_what_says_how_a_page_is_fetched_is_nothing_that_its_request_carries() -> None:
    assert number() == number(meta={"depth": 3, "proxy": "http://b", "playwright": True, "rule": 1}) == 0
    assert number(meta={"page": 7}, cb_kwargs={"page": 8}) == 0
    assert number(meta={"item": 1}) != number(meta={"item": 2})
    assert number(meta={"item": 1}) != number(cb_kwargs={"item": 1})
    assert number(meta={"item": 1, "depth": 2}) == number(meta={"depth": 3, "item": 1})
    assert not is_known(3)


def test_the_callback_and_what_it_holds_are_part_of_what_a_request_carries() -> None:
    one, other = Shopper("http://a.org"), Shopper("http://a.org")
    assert number(callback=one.parse) == number() == 0
    assert number(callback=one.note) == number(callback=other.note) != 0
    assert number(callback=one.note) != number(callback=one.links)
    assert number(callback=partial(one.note, item=1)) == number(callback=partial(other.note, item=1))
    assert number(callback=partial(one.note, item=1)) != number(callback=partial(one.note, item=2))
    made = [lambda response, n=n: one.path(response) * n for n in (1, 1, 2)]
    assert number(callback=made[0]) == number(callback=made[1]) != number(callback=made[2])
    assert number(callback=Hostile()) != number(callback=Hostile())
    assert Carried(Counts(), ["callback"]).number(Request("http://a.org/", one.note)) == 0


def test_rules_that_hand_over_other_data_are_told_apart() -> None:
    def of_rules(*rules: Rule) -> list[int]:
        spider = type("Ruled", (ByRules,), {"rules": rules})("http://a.org")
        return [number(callback=spider._callback, meta={"rule": n}) for n in range(len(rules))]

    assert of_rules(Rule(LinkExtractor())) == [0]
    assert len({*of_rules(Rule(callback="note"), Rule(callback="note", follow=True), Rule())}) == 3
    assert len({*of_rules(*(Rule(callback="note", cb_kwargs={"kind": n}) for n in (1, 1, 2)))}) == 2


def test_what_can_not_be_looked_through_is_equal_to_nothing() -> None:
    response = HtmlResponse("http://a.org/", body=b"<p>A page")
    assert number(meta={"from": response}) != number(meta={"from": response})
    assert number(cb_kwargs={"at": response.css("p")}) != 0


# --- Digests ----------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Price:
    amount: Decimal
    tags: list[str]


class Product(Item):
    name = Field()


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_two_values_have_one_digest_if_they_are_written_alike(one: Any, other: Any) -> None:
    def in_order(value: Any) -> str:
        if isinstance(value, dict):
            return f"{{{sorted((key, in_order(inner)) for key, inner in value.items())}}}"
        if isinstance(value, list | tuple):
            return f"{type(value)}{list(map(in_order, value))}"
        return repr(value)

    assert (digest(one) == digest(other)) == (in_order(one) == in_order(other))


ALIKE = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (Price(Decimal("1.50"), ["new"]), Price(Decimal("1.50"), ["new"])),
    (Product(name="lamp"), Product(name="lamp")),
    (Selector(text="<p>lamp").css("::text").get(), "lamp"),
    (Colour.RED, Colour.RED),
    (Path("/a"), Path("/a")),
    ("\ud800", "\ud800"),
    (Shopper("http://a.org").parse, Shopper("http://b.org").parse),
]
UNLIKE = [
    (1, True),
    (1, 1.0),
    (1, "1"),
    ("a", b"a"),
    ([1], (1,)),
    ([[1], 2], [[1, 2]]),
    (["ab", "c"], ["a", "bc"]),
    ({}, []),
    (Price(Decimal("1.5"), ["new"]), Price(Decimal("1.50"), ["new"])),
    (Product(name="lamp"), {"name": "lamp"}),
    (Colour.RED, Colour.BLUE),
    (date(2026, 1, 1), "2026-01-01"),
    (Shopper("http://a.org").parse, Shopper("http://a.org").failed),
]


def test_equal_values_have_equal_digests_and_others_have_not() -> None:
    assert [pair for pair in ALIKE if digest(pair[0]) is None or digest(pair[0]) != digest(pair[1])] == []
    assert [pair for pair in UNLIKE if digest(pair[0]) is None or digest(pair[0]) == digest(pair[1])] == []


class Hostile:
    def __call__(self, response: Any) -> None:
        """A callback with a state that nobody knows."""

    @property
    def __dataclass_fields__(self) -> Any:
        raise RuntimeError("none of your business")


def opaque() -> Iterator[Any]:
    yield object()
    yield lambda: None
    yield Hostile()
    yield [list(range(1000)) for _ in range(1000)]
    yield "long" * 1_000_000
    yield Selector(text="<p>lamp").css("p")
    cycle: list[Any] = []
    cycle.append(cycle)
    yield cycle
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    yield deep


def test_values_that_are_endless_or_strange_have_no_digest() -> None:
    assert [digest(value) for value in opaque()] == [None] * 8


def test_digests_are_the_same_in_another_process() -> None:
    code = "from dedup.scrapy.requests.digests import digest; print(digest({'a': {'x', 'y', 'z'}, 'b': [1.5, None, 'é']}))"

    env = {"PYTHONHASHSEED": "7"}  # ours is another
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert told.stdout == f"{digest({'a': {'x', 'y', 'z'}, 'b': [1.5, None, 'é']})}\n"
