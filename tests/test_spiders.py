"""Whatever a spider does, it gets with the filter every content that it got without.

Each test crawls over HTTP on loopback, mostly twice, first with the filter switched off.  The spiders of
docs/spiders.md are among those that crawl here.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from dedup.scrapy import Addon
from dedup.scrapy.middleware import NearDuplicateMiddleware
from tests.support import slow
from tests.support.browser import ARGUMENTS, program
from tests.support.crawls import ADDON, TWINS, Answer, Run, Site, Walker, asking, html, page, words
from tests.support.processes import options
from tests.support.projects import documented as code
from tests.support.redis import Server
from tests.support.waiting import LIMIT
from tests.support.warm import python

Documented = Callable[[str], type[Spider]]


@pytest.fixture
def documented(site: Site, tmp_path: Path) -> Documented:
    """Gives the spider that docs/spiders.md shows under a heading, let loose on the site of the test."""

    def load(heading: str) -> type[Spider]:
        block = code(heading, "import scrapy")
        path = tmp_path / "documented.py"  # Scrapy looks at the source of callbacks
        path.write_text(block.replace("https://example.org", site.url))
        names: dict[str, Any] = {"__name__": "documented"}
        exec(compile(path.read_text(), path, "exec"), names)  # noqa: S102
        [spider] = [each for each in names.values() if isinstance(each, type) and issubclass(each, Spider)]
        return spider

    return load


# --- Bans, captchas and logins: see also test_soft_bans ----------------------------------------------


def test_the_documented_spider_gets_past_a_captcha(crawl: Run, site: Site, documented: Documented) -> None:
    captcha, pages = html(f"<p>Are you a robot? {words('captcha', 60)}</p>"), TWINS | {"/b": page("other")}
    asked: list[str] = []

    def on_request(path: str) -> None:
        site.pages[path] = pages.get(path, captcha) if path in asked else captcha
        asked.append(path)

    site.on_request = on_request
    done = crawl(dict(pages), documented("Bans, captchas and logins"))
    assert {item["url"].removeprefix(site.url) for item in done.items} == {"/", "/a", "/b", "/behind-a"}
    assert done.figures["asked_again"] == 4


def test_a_project_may_give_the_filter_another_place() -> None:
    names: dict[str, Any] = {}
    exec(code("Bans, captchas and logins", "# settings.py"), names)  # noqa: S102
    elsewhere = f"{__name__}.{NearDuplicateMiddleware.__name__}"
    places = [
        ({}, 0),
        (names["DOWNLOADER_MIDDLEWARES"], 545),
        ({NearDuplicateMiddleware: 7}, 7),
        ({elsewhere: 8}, 8),
    ]
    for chosen, order in places:
        settings = Settings({"DOWNLOADER_MIDDLEWARES": chosen})
        Addon().update_settings(settings)
        found = settings.getdict("DOWNLOADER_MIDDLEWARES").items()
        assert [n for each, n in found if load_object(each) is NearDuplicateMiddleware] == [order]


# --- Errbacks ---------------------------------------------------------------------------------------

#: What an errback may send again: a copy of the request, a retry of it, and a request of its own.
SENDS = {
    "copy": lambda failed: failed.request.replace(dont_filter=True),
    "retry": lambda failed: get_retry_request(
        failed.request, spider=failed.request.callback.__self__, reason=failed.value
    ),
    "new": lambda failed: Request(
        failed.request.url, failed.request.callback, errback=failed.request.errback, dont_filter=True
    ),
}


@pytest.mark.parametrize("keep_start", [True, slow(False)])
@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS.keys())
def test_an_errback_can_ask_again(crawl: Run, send: Callable[[Any], Request], keep_start: bool) -> None:
    class Insists(Walker):
        def failed(self, failure: Failure) -> Any:
            super().failed(failure)
            yield send(failure)

    done = crawl(TWINS, Insists, DEDUP_KEEP_START=keep_start, CLOSESPIDER_PAGECOUNT=20)
    assert done.dropped == ["/b"]
    assert done.requests == ["/", "/a", "/b", "/behind-a", "/b", "/behind-b"]
    assert done.verdicts.keys() == {"/", "/a", "/b", "/behind-a", "/behind-b"}
    assert done.figures.get("skipped/sent_again") == 1 or done.figures["marked"] == 1
    assert done.mishaps == []


@pytest.mark.parametrize(
    ("known", "settings", "reason"),
    [
        ((), {}, "too many failures"),
        ((IgnoreRequest,), {}, "finished"),
        ((), {"DEDUP_ACTION": "nofollow"}, "finished"),
    ],
)
def test_an_errback_is_told_of_drops_as_of_all_that_scrapy_refuses(
    crawl: Run, known: tuple[type[Exception], ...], settings: dict[str, str], reason: str
) -> None:
    """One that takes drops for failures gives up, unless it leaves out IgnoreRequest, or nothing is dropped."""

    class GivesUp(Walker):
        failed_pages = 0

        def failed(self, failure: Failure) -> None:
            self.failed_pages += not failure.check(*known)
            if self.failed_pages > 3:
                raise CloseSpider("too many failures")

    copies = [f"/copy/{n}" for n in range(8)]
    pages = {"/": page("home", "/a", *copies), "/a": page("story", "/last"), "/last": page("last")}
    done = crawl(pages | dict.fromkeys(copies, pages["/a"]), GivesUp, DEDUP_MAX_CLUSTER=0, **settings)
    assert done.stats["finish_reason"] == reason
    assert ({"path": "/last"} in done.items) == (reason == "finished")


def test_other_pages_that_have_the_meta_of_a_dropped_one_are_judged(crawl: Run) -> None:
    class CopiesMeta(Walker):
        def failed(self, failure: Failure) -> Any:
            super().failed(failure)
            yield self.request("/c", meta=failure.request.meta)  # type: ignore[attr-defined]

    assert crawl(TWINS | {"/c": page("story", more="c")}, CopiesMeta).dropped == ["/b", "/c"]


def test_the_documented_errback_notes_copies(crawl: Run, site: Site, documented: Documented) -> None:
    done = crawl(TWINS, documented("Errbacks"))
    assert [item for item in done.items if "copy_of" in item] == [
        {"url": site.url + "/b", "copy_of": site.url + "/a"}
    ]
    assert done.requests == ["/", "/a", "/b", "/behind-a"]


# --- Pages in a browser -----------------------------------------------------------------------------


def test_the_documented_browser_closes_pages(site: Site, documented: Documented, tmp_path: Path) -> None:
    """It has two, and more are dropped; the last of its pages can only be rendered if those are closed."""
    copies = {f"/copy?{number}": page("copy") for number in range(3)}
    site.pages = {"/": page("home", *copies, "/last"), **copies, "/last": page("last")}
    documented("Pages in a browser")
    settings = {
        "ADDONS": json.dumps(ADDON),
        "PLAYWRIGHT_LAUNCH_OPTIONS": json.dumps({"executable_path": program(), "args": ARGUMENTS}),
        "PLAYWRIGHT_MAX_PAGES_PER_CONTEXT": 2,
    }
    arguments = ["-m", "scrapy", "runspider", "documented.py", "-O", "items.jsonl"]
    command = [python(), *arguments, *options(settings)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=True)
    urls = [json.loads(line)["url"] for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert len(urls) == 3
    assert site.url + "/last" in urls
    assert "'dedup/dropped': 2" in done.stderr
    assert "'finish_reason': 'finished'" in done.stderr
    assert "Traceback" not in done.stderr


# --- Lists of URLs ----------------------------------------------------------------------------------

LIST = {"/1": page("story"), "/2": page("story", more="2"), "/3": page("another")}


class Fed(Walker):
    """Is given its URLs as scrapy-redis and scrapyrt do: when it is idle, and past its start."""

    async def start(self) -> AsyncIterator[Request]:
        return
        yield

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        queue = list(LIST)

        def feed() -> None:
            if queue:
                crawler.engine.crawl(spider.request(queue.pop(0)))
                raise DontCloseSpider

        crawler.signals.connect(feed, signals.spider_idle, weak=False)
        return spider


class Listed(Walker):
    starts = tuple(LIST)


@pytest.mark.parametrize("spider", [Listed, Fed])
def test_whether_the_urls_of_a_list_are_kept_is_a_setting(crawl: Run, spider: type[Walker]) -> None:
    done = crawl(LIST, spider)
    assert (list(done.verdicts), done.dropped) == (["/1", "/2", "/3"], [])
    assert [record["action"] for record in done.records] == ["mark"]
    assert crawl(LIST, spider, DEDUP_KEEP_START=False).dropped == ["/2"]


def test_what_a_callback_yields_is_no_start(crawl: Run) -> None:
    assert crawl(TWINS, asking(meta={"depth_reset": True})).dropped == ["/b"]
    no_depth = {"scrapy.spidermiddlewares.depth.DepthMiddleware": None}
    assert crawl(TWINS, SPIDER_MIDDLEWARES=no_depth).dropped == ["/b"]


def test_the_documented_list_has_each_content_once(crawl: Run, site: Site, documented: Documented) -> None:
    done = crawl(LIST, documented("Lists of URLs"))
    assert [item["url"].removeprefix(site.url) for item in done.items] == ["/1", "/3"]


# --- Inline requests --------------------------------------------------------------------------------


def test_pages_that_a_callback_fetches_inline_are_not_judged(crawl: Run) -> None:
    class FetchesInline(Walker):
        async def parse(self, response: Any) -> Any:
            for path in ("/a", "/b", "/moved"):
                yield self.note(await self.crawler.engine.download_async(Request(self.url + path)))
            yield self.request("/c", callback=self.note)

    pages = {"/": page("home"), "/moved": (302, {"Location": "/d"}, b"")}
    pages |= {path: page("story", more=path) for path in ("/a", "/b", "/c", "/d")}
    done = crawl(pages, FetchesInline)
    assert done.verdicts == {"/a": None, "/b": None, "/d": None, "/c": "new"}
    assert done.figures == {"pages": 2, "new": 2, "skipped": 3, "skipped/inline": 3}
    assert done.mishaps == []


def test_the_documented_spider_fetches_inline(crawl: Run, site: Site, documented: Documented) -> None:
    pages = {"/": page("home", "/a", "/b")}
    for path in ("/a", "/b"):
        pages |= {path: page(path), path + "/price": html(f"<p>{words('menu')}</p><b>{path}</b>")}
    done = crawl(pages, documented("Inline requests"))
    assert [item["price"] for item in done.items] == ["/a", "/b"]
    assert done.figures["skipped/inline"] == 2


# --- Incremental crawls: see also test_over_time ------------------------------------------------------


def test_the_documented_changes(crawl: Run, site: Site, documented: Documented, tmp_path: Path) -> None:
    spider, index = documented("Incremental crawls"), f"file:{tmp_path / 'index.sqlite'}"

    def fresh(pages: dict[str, Answer]) -> list[str]:
        done = crawl(pages, spider, DEDUP_INDEX=index)
        return [item["url"].removeprefix(site.url) for item in done.items]

    pages = {"/": page("home", "/a"), "/a": page("story", "/b"), "/b": page("another")}
    assert fresh(pages) == ["/", "/a", "/b"]
    assert fresh(pages) == []
    assert fresh(pages | {"/b": page("another", "/c", more="changed"), "/c": page("new")}) == ["/b", "/c"]


# --- Several spiders on one index: see also test_whose_index ------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_spiders_share_an_index(site: Site, server: Server, tmp_path: Path, shared: bool) -> None:
    """Two spiders crawl at the same time, and each finds one of two copies; the second finds its own a little later."""
    site.pages = {"/1": page("one", "/a"), "/2": page("two", "/b")}
    site.pages |= {"/a": page("story"), "/b": page("story", more="b")}
    both, first = Event(), Event()

    def on_request(path: str) -> None:
        if {"/1", "/2"} <= set(site.requests):
            both.set()
        (first if path == "/b" else both).wait(LIMIT)

    site.on_request = on_request
    names: dict[str, Any] = {}
    if shared:
        text = code("Several spiders on one index", "# settings.py")
        exec(text.replace("redis://127.0.0.1:6379/0", server.address), names)  # noqa: S102
    settings = {name: value for name, value in names.items() if name.isupper()}
    settings = {"DEDUP_INDEX": server.address, "ADDONS": ADDON, "DEDUP_CHROME": False} | settings
    settings["DEDUP_LOG"] = str(tmp_path / "log.jsonl")

    class First(Walker):
        starts = ("/1",)

    class Second(Walker):
        name = "second"
        starts = ("/2",)

    async def walk(spider: type[Walker]) -> list[str]:
        crawler = get_crawler(spider, settings)
        await crawler.crawl_async(url=site.url)
        first.set()
        return [*crawler.spider.judgements]

    async def walk_both() -> list[list[str]]:
        return await asyncio.gather(walk(First), walk(Second))

    assert asyncio.run(walk_both()) == [["/1", "/a"], ["/2"] if shared else ["/2", "/b"]]
