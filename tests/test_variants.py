"""No-Vary-Search: URLs that differ only in what doesn't matter, as the site says, are not downloaded."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from dedup.filter.change import WORDS
from dedup.page.variance import read_variance
from tests.support.crawls import Answer, Run, Walker, failing, losing, page

HEADER = 'key-order, params=("utm_source" "sid")'


def said(header: str, answer: Answer) -> Answer:
    status, headers, body = answer
    return status, headers | {"No-Vary-Search": header}, body


def shop(*links: str, header: str = HEADER) -> dict[str, Answer]:
    """A front page with these links, each of which leads to a page of its own, word for word."""
    return {"/": page("home", *links)} | {link: said(header, page(link)) for link in links}


# --- The header, and what it makes equal -------------------------------------------------------------------


def matter(header: str, query: str) -> Any:
    variance = read_variance(header)
    return None if variance is None else variance.matter(query)


@pytest.mark.parametrize(
    ("header", "one", "other", "equal"),
    [
        ('params=("a")', "a=1&b=2", "b=2&a=3&a", True),
        ('params=("a")', "a=1&b=2", "b=3", False),
        ('params=("a")', "b=1&c=2", "c=2&b=1", False),
        ("key-order", "b=1&c=2", "c=2&b=1", True),
        ("key-order", "b=1&b=2", "b=2&b=1", False),
        ("params", "a=1", "", True),
        ('params, except=("id")', "id=1&a=2", "b=3&id=1", True),
        ('params, except=("id")', "id=1", "id=2", False),
        ('params=("a b")', "a+b=1", "a%20b=2", True),
        ('params=("a%20b")', "a+b=1", "", True),
        ('params=("%C3%A4")', "%C3%A4=1", "", True),
        ('params=("x")', "a=%41", "a=A", True),
        ('params=("x")', "a=%ff", "a=%fe", False),
    ],
)
def test_queries_are_compared_as_the_draft_says(header: str, one: str, other: str, equal: bool) -> None:
    assert (matter(header, one) == matter(header, other)) == equal


@pytest.mark.parametrize(
    "header",
    [
        "", "params=?0", "key-order=?0", 'params="a"', "params=(a)", 'params=("a" 1)', "params=1", "key-order=1",
        'except=("a")', 'params=("a"), except=("b")', "params, except", "params, except=?0", 'params=("a"), new-key',
        'params=("a"', "Params", "params=%", "ä", "(" * 5_000, 'params=("' + "a" * 5_000 + '")',
    ],
)  # fmt: skip
def test_of_any_other_header_nothing_is_believed(header: str) -> None:
    assert read_variance(header) is None


@given(st.text(max_size=60) | st.text('()"=,;?01kparmsextyord-: \\%', max_size=60), st.text(max_size=40))
def test_no_header_and_no_query_raises(header: str, query: str) -> None:
    matter(header, query)


# --- In a crawl ----------------------------------------------------------------------------------------------


def test_variants_of_a_kept_url_are_told_and_not_downloaded(crawl: Run) -> None:
    links = "/a?id=1&utm_source=x", "/a?utm_source=y&id=1", "/a?id=1", "/a?id=2", "/b?id=1"
    done = crawl(shop(*links))
    assert done.requests == ["/", links[0], links[3], links[4]]
    assert done.dropped == [links[1], links[2]]
    assert [(record["url"], record["rule"]) for record in done.records] == [
        (done.spider.url + link, "no_vary_search") for link in links[1:3]
    ]
    assert {record["duplicate_of"] for record in done.records} == {done.spider.url + links[0]}
    assert (done.figures["no_vary_search"], done.figures["pages"], done.figures["new"]) == (2, 4, 4)
    text = "\n".join(message.getMessage() for message in done.messages)
    assert "not asked 2 URLs" in text
    assert "its site says that its URL is another one of the kept page's" in text
    assert done.mishaps == []


def test_a_variant_that_waits_for_its_turn_is_not_downloaded_either(crawl: Run) -> None:
    links = [f"/a?sid={n}" for n in range(6)]
    delays = {"CONCURRENT_REQUESTS": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 0.1}
    done = crawl(shop(*links), **delays)
    assert links[-1] in done.dropped
    assert links[-1] not in done.requests
    assert done.figures["no_vary_search"] == len(done.dropped)
    assert done.mishaps == []


@pytest.mark.parametrize(
    "settings",
    [
        {"DEDUP_NO_VARY_SEARCH": False},
        {"DEDUP_ACTION": "mark"},
        {"DEDUP_ACTION": "nofollow"},
        {"DEPTH_LIMIT": 5},
    ],
)
def test_where_pages_are_wanted_they_are_downloaded(crawl: Run, settings: dict[str, Any]) -> None:
    links = "/a?utm_source=x", "/a"
    assert crawl(shop(*links), DEDUP_PROBE=False, **settings).requests == ["/", *links]


def test_seeds_and_requests_that_insist_are_downloaded(crawl: Run) -> None:
    class Insists(Walker):
        starts = ("/a?sid=1", "/a?sid=2", "/")

        def request(self, path: str, **options: Any) -> Request:
            insists = {"dont_filter": True} if "sid=3" in path else {}
            opts = {"meta": {"dedup": False}} if "sid=4" in path else {}
            return super().request(path, **options, **insists, **opts)

    links = [f"/a?sid={n}" for n in range(1, 6)]
    assert crawl(shop(*links), Insists).requests == [*links[:2], "/", *links[2:4]]


def test_requests_that_carry_other_data_are_for_other_pages(crawl: Run) -> None:
    class Carries(Walker):
        def request(self, path: str, **options: Any) -> Request:
            return super().request(path, cb_kwargs={"price": path[-1]}, **options)

        def parse(self, response: Any, price: str) -> Any:
            yield from super().parse(response)

    links = "/a?sid=1", "/a?sid=2", "/a?sid=01"
    assert crawl(shop(*links), Carries).requests == ["/", *links[:2]]


@pytest.mark.parametrize(
    ("spider", "settings"),
    [(failing("/a?sid=1"), {}), (Walker, {"ITEM_PIPELINES": {losing("/a?sid=1"): 1}})],
)
@pytest.mark.parametrize("at_once", [1, 8])
def test_if_the_kept_page_fails_its_variant_is_fetched(
    crawl: Run, spider: type[Walker], settings: dict[str, Any], at_once: int
) -> None:
    links = "/a?sid=1", "/a?sid=2"
    done = crawl(shop(*links), spider, **settings, CONCURRENT_REQUESTS=at_once)
    assert "/a?sid=2" in done.spider.judgements
    assert {item["path"] for item in done.items} == {"/", "/a?sid=2"}


def test_a_page_that_asks_for_itself_once_more_is_none(crawl: Run) -> None:
    class Banned(Walker):
        def parse(self, response: Any) -> Any:
            if self.path(response) == "/a?sid=1":
                yield self.request("/a?sid=1", dont_filter=True)
            else:
                yield from super().parse(response)

    pages = shop("/a?sid=1", "/a?sid=2")
    done = crawl(pages, Banned, CLOSESPIDER_PAGECOUNT=20)
    assert "/a?sid=2" in {item["path"] for item in done.items}


def test_a_header_counts_for_the_path_of_its_page(crawl: Run) -> None:
    links = "/a?sid=1", "/b?sid=1", "/b?sid=2"
    pages = shop(*links) | {link: page(link) for link in links[1:]}
    assert crawl(pages).requests == ["/", *links]


def test_a_later_crawl_does_not_take_variants_for_gone(crawl: Run, tmp_path: Any) -> None:
    links = "/a?sid=1", "/a?sid=2"
    before = shop(*links) | {link: page("story") for link in links} | {"/a?sid=2": page("another")}
    own = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite", "DEDUP_CHROME": True, "DEDUP_KEEP_TEXT": True}
    crawl(before, **own)
    done = crawl(before | {"/a?sid=1": said(HEADER, page("story"))}, **own)
    assert done.requests == ["/", "/a?sid=1"]
    assert not any(done.figures.get(f"changes/{word}") for word in (*WORDS, "not_seen"))
