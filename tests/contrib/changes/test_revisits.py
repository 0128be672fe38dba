"""Conditional requests: an incremental crawl asks for a page only if it has changed."""

import json
from collections.abc import Mapping
from email.utils import formatdate
from functools import partial
from itertools import count
from pathlib import Path
from signal import SIGKILL
from threading import Event
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from dedup.scrapy.signals import filter_opened
from tests.support import slow
from tests.support.changing import crawling
from tests.support.crawls import Answer, Crawl, Run, Site, Walker, losing, page
from tests.support.processes import Scrapy
from tests.support.waiting import LIMIT

CRAWLS = 2


class Server(dict[str, Any]):
    """A site whose pages have ETags, or dates, or what else is asked for."""

    def __init__(self, pages: Mapping[str, Answer], *, by: str = "etag", vary: str = "") -> None:
        super().__init__({path: partial(self.answer, path) for path in pages})
        self.pages = dict(pages)
        self.by = by
        self.vary = vary
        self.modified = dict.fromkeys(pages, 1_700_000_000)
        self.sent: list[str] = []  # paths of pages that were sent
        self.spared: list[str] = []
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def etag(self, path: str) -> str:
        return f'"{hash(self.pages[path][2])}"'

    def change(self, path: str, answer: Answer) -> None:
        self.pages[path] = answer
        self.modified[path] += 3600
        self[path] = partial(self.answer, path)

    def is_unmodified(self, path: str, asked: Mapping[str, str]) -> bool:
        if (etags := asked.get("If-None-Match")) is not None:
            return etags.removeprefix("W/") == self.etag(path)
        return asked.get("If-Modified-Since") == formatdate(self.modified[path], usegmt=True)

    def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
        self.asked.append((path, asked))
        status, headers, body = self.pages[path]
        said = {"Vary": self.vary} if self.vary else {}
        if "etag" in self.by:
            said["ETag"] = self.etag(path)
        if "weak" in self.by:
            said["ETag"] = "W/" + self.etag(path)
        if "date" in self.by:
            said |= {"Last-Modified": formatdate(self.modified[path], usegmt=True)}
        if status == 200 and self.is_unmodified(path, asked):
            self.spared.append(path)
            return 304, said, b""
        self.sent.append(path)
        return status, headers | said, body


PAGES = {
    "/": page("home", "/a", "/b"),
    "/a": page("a", "/behind-a"),
    "/b": page("b"),
    "/behind-a": page("behind a"),
}


class Crawls:
    """Incremental crawls of one server, one after the other."""

    def __init__(self, crawl: Run, folder: Path) -> None:
        self._crawl = crawl
        self.index = Path(folder, "index.sqlite")
        self.history = Path(folder, "index.sqlite.history")

    def __call__(self, server: Server, spider: type[Walker] = Walker, **settings: Any) -> Crawl:
        server.sent, server.spared, server.asked = [], [], []
        own = {
            "DEDUP_INDEX": f"file:{self.index}",
            "DEDUP_INCREMENTAL": True,
            "DEDUP_CHROME": True,
            "DEDUP_PROBE": False,
        }
        return self._crawl(server, spider, **own | settings)


def paths(crawl: Crawl) -> set[str]:
    return {item["path"] for item in crawl.items}


@pytest.fixture
def crawls(crawl: Run, tmp_path: Path) -> Crawls:
    return Crawls(crawl, tmp_path)


@pytest.mark.parametrize("by", [slow("etag"), "weak", "date", slow("etag and date")])
def test_what_has_not_changed_is_not_sent_and_its_links_are_followed(crawls: Crawls, by: str) -> None:
    server = Server(PAGES, by=by)
    assert paths(crawls(server)) == {*PAGES}
    second = crawls(server)
    assert (second.items, server.sent, {*server.spared}) == ([], [], {*PAGES})
    assert (second.figures["not_modified"], second.figures["pages"], second.figures["unchanged"]) == (4, 4, 4)
    assert second.figures["not_modified_bytes"] == sum(len(body) for _, _, body in PAGES.values())
    assert second.mishaps == []
    server.change("/behind-a", page("something else"))
    third = crawls(server)
    assert (paths(third), server.sent) == ({"/behind-a"}, ["/behind-a"])
    assert crawls(server).items == []


def test_variants_of_what_was_not_sent_are_known(crawls: Crawls) -> None:
    class Says(Server):
        def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
            status, headers, body = super().answer(path, asked)
            return status, headers | ({"No-Vary-Search": "params"} if status == 200 else {}), body

    links = "/a?ref=1", "/a?ref=2", "/a?ref=3"
    server = Says({"/": page("home", *links)} | {link: page(link) for link in links})
    assert paths(crawls(server)) == {"/", links[0]}
    again = crawls(server)
    assert [path for path, _ in server.asked] == ["/", links[0]]
    assert server.sent == []
    assert again.figures["no_vary_search"] == 2


def test_no_other_request_has_its_headers(crawls: Crawls) -> None:
    """A callback may copy those of its request: one URL's ETag would be asked of another."""

    class Copies(Walker):
        def parse(self, response: Any) -> Any:
            yield self.note(response)
            self.asked = [*getattr(self, "asked", ()), *response.request.headers]
            for link in self.links(response):
                yield self.request(link)

    server = Server(PAGES)
    crawls(server, Copies)
    server.change("/a", page("another", "/behind-a"))
    second = crawls(server, Copies)
    assert b"If-None-Match" not in second.spider.asked
    assert dict(server.asked)["/a"]["If-None-Match"]
    assert paths(second) == {"/a"}


def test_near_duplicates_of_a_page_that_was_not_sent_are_dropped(crawls: Crawls) -> None:
    server = Server({"/": page("home", "/a", "/print"), "/a": page("a"), "/print": page("a")})
    assert paths(crawls(server)) == {"/", "/a"}
    second = crawls(server)
    assert (server.sent, second.dropped, second.items) == (["/print"], ["/print"], [])
    assert second.records[-1]["duplicate_of"].endswith("/a")


def test_a_seed_that_is_a_near_duplicate_by_now_is_sent(crawls: Crawls) -> None:
    """It is never dropped, and its items are on the page; those of the other, an earlier crawl has handed over."""

    class Seeds(Walker):
        starts = "/b?ref=home", "/"

    pages = {"/": page("home", "/a"), "/a": page("a"), "/b": page("c"), "/b?ref=home": page("b", "/a")}
    server = Server(pages)
    crawls(server, Seeds)
    Seeds.starts = "/b", "/b?ref=home", "/"
    server.change("/b", pages["/b?ref=home"])
    second = crawls(server, Seeds)
    assert (paths(second), server.sent) == ({"/b?ref=home"}, ["/b", "/b?ref=home"])
    assert {*server.spared} == {"/", "/a", "/b?ref=home"}
    assert (second.figures["marked"], second.figures["pages"]) == (1, 4)


def test_pages_that_were_not_sent_are_not_equal_by_words(crawls: Crawls) -> None:
    links = [f"/show?id={number}" for number in range(12)]
    records = {link: page("record", more=f"<i class=c{link[9:]}></i>") for link in links}
    server = Server({"/": page("home", *links)} | records)
    crawls(server)
    crawls.index.unlink()
    second = crawls(server)
    assert (server.sent, second.figures["new"], second.records) == ([], 13, [])


def test_a_page_that_was_not_sent_has_its_fingerprint(crawls: Crawls) -> None:
    data = '<nav>Home <a href="/">all</a></nav><h1>C++ and lamps 12</h1><script>var state = {"price": 12}</script>'
    server = Server({"/": page("home", "/lamps-12"), "/lamps-12": page("a", more=data)})

    class Judged(Walker):
        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.opened, filter_opened)
            return spider

        def opened(self, filter: Any) -> None:
            self.outcomes = []
            judge = filter.judge

            async def judged(visit: Any) -> Any:
                self.outcomes.append(await judge(visit))
                return self.outcomes[-1]

            filter.judge = judged

    first, second = (crawls(server, Judged).spider.outcomes for _ in range(CRAWLS))
    assert server.sent == []
    assert [one.page._replace(links=0, canonical="", markup="") for one in first] == [
        each.page._replace(tokens=[*each.page.tokens], links=0, markup="") for each in second
    ]


# --- Who asks for whole pages -----------------------------------------------------------------------


def test_a_page_whose_item_failed_is_sent_again(crawls: Crawls) -> None:
    server = Server(PAGES)
    crawls(server, ITEM_PIPELINES={losing("/a"): 1})
    assert paths(crawls(server)) == {"/a"}
    assert server.sent == ["/a"]


@pytest.mark.parametrize("what", ["callback", "headers", "meta", "cb_kwargs"])
def test_a_page_with_links_that_can_t_be_kept_is_sent(crawls: Crawls, what: str) -> None:
    class Odd(Walker):
        def request(self, path: str, **options: Any) -> Request:
            odd = {
                "callback": lambda response: self.parse(response),
                "headers": {"X-Token": "of this crawl"},
                "meta": {"cookiejar": 1},
                "cb_kwargs": {"lock": object()},
            }
            return super().request(path, **{what: odd[what]}, **options)

        def parse(self, response: Any, lock: object = None) -> Any:
            yield from super().parse(response)

    server = Server(PAGES)
    crawls(server, Odd)
    second = crawls(server, Odd)
    assert {"/", "/a"} <= {*server.sent}
    assert {*server.sent} | {*server.spared} == {*PAGES}
    # Nobody can say whether a lock is the same as the last time, and it may be in the items.
    again = {*PAGES} if what == "cb_kwargs" else set()
    assert ({item["path"] for item in second.items}, second.mishaps) == (again, [])


class Arguments(Walker):
    section = ""

    def __init__(self, section: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.section = section


def test_a_spider_with_other_arguments_may_follow_other_links(crawls: Crawls) -> None:
    server = Server(PAGES)
    crawls(server, Arguments)

    class Arguments2(Arguments):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(section="b", **kwargs)

    Arguments2.__qualname__ = Arguments.__qualname__
    crawls(server, Arguments2)
    assert {*server.sent} == {*PAGES}


def test_a_page_whose_request_carries_something_else_is_sent(crawls: Crawls) -> None:
    class Carries(Walker):
        price = 1

        def parse(self, response: Any, price: int = 0) -> Any:
            yield self.note(response) | {"price": price}
            for link in self.links(response):
                yield self.request(link, cb_kwargs={"price": type(self).price})

    server = Server(PAGES)
    crawls(server, Carries)
    crawls(server, Carries)
    assert server.sent == []
    Carries.price = 2
    server.change("/", page("new home", "/a", "/b"))
    crawls(server, Carries)
    assert {*server.sent} == {*PAGES}


def test_a_page_that_depends_on_a_header_is_sent_if_that_is_another(crawls: Crawls) -> None:
    server = Server(PAGES, by="date", vary="Accept-Language, User-Agent")
    crawls(server)
    crawls(server)
    assert server.sent == []
    crawls(server, USER_AGENT="another")
    assert {*server.sent} == {*PAGES}
    everything = Server(PAGES, vary="*")
    crawls(everything)
    crawls(everything)
    assert {*everything.sent} == {*PAGES}


@pytest.mark.parametrize(
    "settings",
    [
        {"DEDUP_CONDITIONAL": False},
        {"DEDUP_INCREMENTAL": "words"},
        {"DEDUP_INCREMENTAL": False, "DEDUP_KEEP_TEXT": True},
        {"HTTPCACHE_ENABLED": True},
        {"DEDUP_FOLLOW": "yield"},
    ],
)
def test_settings_without_conditions(crawls: Crawls, tmp_path: Path, settings: dict[str, Any]) -> None:
    server = Server(PAGES)
    for _ in range(CRAWLS):
        found = crawls(server, **settings, HTTPCACHE_DIR=str(tmp_path / "cache"))
        assert not any("If-None-Match" in headers for _, headers in server.asked)
        assert "not_modified" not in found.figures


def test_a_request_with_conditions_of_its_own_is_left_alone(crawls: Crawls) -> None:
    class Asks(Walker):
        def request(self, path: str, **options: Any) -> Request:
            own = {"If-None-Match": '"mine"'} if path == "/a" else {}
            return super().request(path, headers=own, **options)

    server = Server(PAGES)
    for _ in range(CRAWLS):
        crawls(server, Asks)
        assert dict(server.asked)["/a"].get_all("If-None-Match") == ['"mine"']  # type: ignore[attr-defined]
        assert "/a" in server.sent


# --- What is lost, refused, or told wrongly --------------------------------------------------------------


@pytest.mark.parametrize("lost", ["index", "history"])
def test_what_was_deleted_does_not_matter(crawls: Crawls, lost: str) -> None:
    server = Server(PAGES)
    crawls(server)
    getattr(crawls, lost).unlink()
    server.change("/a", page("another", "/behind-a"))
    assert "/a" in paths(crawls(server))
    assert {*server.sent} == ({*PAGES} if lost == "history" else {"/a"})


def test_an_etag_of_two_contents_tells_nothing(crawls: Crawls) -> None:
    class Shares(Server):
        def etag(self, path: str) -> str:
            return '"build 7"'

    server = Shares(PAGES)
    crawls(server)
    server.change("/a", page("another", "/behind-a"))
    assert paths(crawls(server)) == {"/a"}
    assert server.spared == []


def test_an_answer_with_another_etag_is_not_believed(crawls: Crawls) -> None:
    class Confused(Server):
        def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
            if "If-None-Match" in asked:
                return 304, {"ETag": '"of another page"'}, b""
            return super().answer(path, asked)

    server = Confused(PAGES)
    crawls(server)
    server.change("/a", page("another", "/behind-a"))
    assert paths(crawls(server)) == {"/a"}


class Refuses:
    """A downloader middleware that takes every status but 200 for a ban."""

    def process_response(self, request: Request, response: Any) -> Any:
        if response.status != 200:
            raise IgnoreRequest
        return response


class RefusesEmpty:
    """A spider middleware that lets no page pass without text."""

    def process_spider_input(self, response: Any) -> None:
        if not response.body:
            raise IgnoreRequest


@pytest.mark.parametrize(
    "settings",
    [{"DOWNLOADER_MIDDLEWARES": {Refuses: 543}}, {"SPIDER_MIDDLEWARES": {RefusesEmpty: 543}}],
)
def test_what_a_middleware_refuses_is_sent_whole(crawls: Crawls, settings: dict[str, Any]) -> None:
    server = Server(PAGES)
    crawls(server, **settings)
    server.change("/behind-a", page("something else"))
    second = crawls(server, **settings)
    assert paths(second) == {"/behind-a"}
    assert {*server.sent} == {*PAGES}


def test_redirects_lead_to_pages_that_have_not_changed(crawls: Crawls) -> None:
    moved = PAGES | {"/": page("home", "/old", "/b"), "/old": (302, {"Location": "/a"}, b"")}
    server = Server(moved)
    crawls(server)
    second = crawls(server)
    assert (second.items, server.sent) == ([], ["/old"])
    assert {*server.spared} == {*PAGES}


STRANGE: tuple[dict[str, str], ...] = (
    {"ETag": '"' + "x" * 5_000 + '"'},
    {"ETag": '"\t"'},
    {"Last-Modified": "yesterday"},
    {"Last-Modified": "Mon, 99 Nov 99999 10:00:00 GMT", "Date": "now"},
    {"ETag": '"1"', "Vary": "," * 2_000 + "x" * 2_000},
)


def test_strange_headers_do_no_harm(crawls: Crawls) -> None:
    links = [f"/{number}" for number in range(len(STRANGE))]
    pages = {"/": page("home", *links)}
    for link, said in zip(links, STRANGE, strict=True):
        status, headers, body = page(link)
        pages[link] = status, headers | said, body
    for wanted in ({*pages}, set()):
        found = crawls(Server(pages, by="none"))
        assert (paths(found), found.mishaps) == (wanted, [])
        assert {*found.requests} == {*pages}


def test_pages_that_were_not_sent_are_met(crawls: Crawls) -> None:
    server = Server(PAGES)
    crawls(server)
    del server["/b"]
    server.change("/", page("new home", "/a"))
    second = crawls(server)
    assert second.figures["changes/gone"] == 1
    assert not {"changes/hidden", "changes/moved"} & second.figures.keys()


def test_what_was_changed_while_a_crawl_was_killed_is_handed_over(site: Site, tmp_path: Path) -> None:
    """Between its answer and its confirmation a page is nobody's."""
    server = Server(
        {"/": page("home", *(f"/{n}" for n in range(12)))} | {f"/{n}": page(n) for n in range(12)}
    )
    site.pages = server
    items = tmp_path / "items.jsonl"
    output, settings = ("-O", f"{items}:jsonl"), {"DEDUP_INCREMENTAL": 1, "DEDUP_PROBE": 0}
    start = crawling(site, tmp_path / "index.sqlite", *output, **settings)
    assert Scrapy(*start).wait(LIMIT) == 0
    for n in range(0, 12, 2):
        server.change(f"/{n}", page(f"new {n}"))
    asked, has_begun = count(), Event()

    def kill(path: str) -> None:
        """The seventh page is not answered before the crawl is dead: on a busy machine, a signal comes late."""
        if next(asked) == 7:
            has_begun.wait(LIMIT)
            assert process.kill()

    site.on_request = kill
    process = Scrapy(*start)
    has_begun.set()
    assert process.wait(LIMIT) == -SIGKILL
    site.on_request = lambda path: None
    assert Scrapy(*start).wait(LIMIT) == 0
    urls = {json.loads(line)["url"].removeprefix(site.url) for line in items.read_text().splitlines()}
    assert {f"/{n}" for n in range(0, 12, 2)} <= urls
    server.sent = []
    assert Scrapy(*start).wait(LIMIT) == 0
    assert server.sent == []
