"""The filter in real crawls of a tiny site: what is judged, what is dropped, what is kept when in doubt.

Every test crawls over HTTP on loopback and in this process; one page at a time and in the order of the
links, unless it says otherwise.
"""

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from dedup import DedupError, Detector
from dedup.scrapy import NearDuplicate
from dedup.scrapy.crawl.opening import open_filter
from dedup.scrapy.signals import filter_failed
from tests.support import slow
from tests.support.crawls import ADDON, TWINS, Answer, Run, Site, Walker, html, listening, page, words
from tests.support.redis import Server
from tests.support.waiting import LIMIT, until, wait_until
from tests.support.warm import python


def test_a_crawl_may_be_stopped_while_its_filter_opens(crawl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slowly(crawler: Crawler, *options: Any) -> Any:
        closing = asyncio.create_task(crawler.engine.close_spider_async(reason="stopped"))
        await until(lambda: crawler.engine.spider is None)
        await closing
        return await open_filter(crawler, *options)

    monkeypatch.setattr("dedup.scrapy.middleware.open_filter", slowly)
    done = crawl(TWINS)
    assert (done.stats["finish_reason"], done.requests, done.mishaps) == ("stopped", [], [])


# --- What becomes of a near-duplicate ---------------------------------------------------------------


def test_a_near_duplicate_is_dropped_with_its_links(crawl: Run, site: Site, tmp_path: Path) -> None:
    done = crawl(TWINS)
    assert done.requests == ["/", "/a", "/b", "/behind-a"]
    assert done.verdicts == {"/": "new", "/a": "new", "/behind-a": "new"}
    assert done.stats["item_scraped_count"] == 3
    assert done.figures["links_not_followed"] == 1
    assert done.mishaps == []
    assert done.spider.judgements["/a"].fingerprint == Detector().fingerprint(
        TWINS["/a"][2], site.url + "/a", "utf-8"
    )
    log = tmp_path / "duplicates.jsonl"
    assert (
        "Near-duplicate filter: 4 pages fetched and judged\n"
        "  kept      3: 3 new\n"
        "  dropped   1 near-duplicate\n"
        "  saved     1 link on near-duplicates was not followed\n"
        "  missed?   1 URL was found only on dropped pages, and not fetched; DEDUP_AUDIT = 0.1 fetches a tenth of such URLs, to see what they hold\n"
        f"  drop log  {log}\n"
        f"  to see    scrapy duplicates {log} --html report.html"
    ) in [message.getMessage() for message in done.messages]


def test_the_audit_samples_what_was_not_followed(crawl: Run) -> None:
    done = crawl(TWINS, DEDUP_AUDIT=1)
    assert done.requests[-1] == "/behind-b"
    assert done.stats["item_scraped_count"] == 3  # it is handed over to nobody
    figures = {name: value for name, value in done.figures.items() if name.startswith("unreached")}
    assert figures == {
        "unreached": 1,
        "unreached/sampled": 1,
        "unreached/new": 1,
        "unreached/contents": 1,
        "unreached/contents_low": 1,
        "unreached/contents_high": 1,
    }


def test_record_errback_and_signal_tell_all_of_a_drop(crawl: Run, site: Site, tmp_path: Path) -> None:
    told: list[Any] = []
    seen: dict[str, int] = {}

    def look(who: str) -> None:  # the record is in the log before the drop takes effect
        seen[who] = (tmp_path / "duplicates.jsonl").read_text().count("\n")

    def listener(response: Any, request: Request, record: dict[str, Any], spider: Spider) -> None:
        told.append((response.url, request.url, dict(record), spider))
        look("signal")

    class Looks(listening(listener)):  # type: ignore[misc]
        def failed(self, failure: Failure) -> None:
            super().failed(failure)
            look("errback")

    done = crawl(TWINS, Looks)
    [record], [failure] = done.records, done.spider.failures
    assert seen == {"signal": 1, "errback": 1}
    assert told == [(site.url + "/b", site.url + "/b", record, done.spider)]
    assert isinstance(failure.value, NearDuplicate)
    assert isinstance(failure.value, IgnoreRequest)
    assert vars(failure.value).items() <= record.items()
    a, b = (Detector().fingerprint(TWINS[path][2], site.url + path) for path in ("/a", "/b"))
    comparison = Detector().compare(a, b)
    assert datetime.fromisoformat(record.pop("time")).tzinfo is not None
    assert record == {
        "url": site.url + "/b",
        "duplicate_of": site.url + "/a",
        "distance": comparison.distance,
        "resemblance": round(comparison.resemblance or 0, 4),
        "own": None,  # whole pages are compared here
        "matching": None,
        "new": None,
        "gone": None,
        "simhash": b.hex,
        "duplicate_of_simhash": a.hex,
        "tokens": b.tokens,
        "links": 1,
        "bytes": len(TWINS["/b"][2]),
        "rule": "simhash",
        "noise": None,
        "judge": "index",
        "action": "drop",
        "referer": site.url + "/",
        "canonical": None,
        "agrees": None,
        "undone": None,
        "depth": 1,
    }


def test_whatever_a_url_holds_its_record_is_one_line_of_ascii(crawl: Run, tmp_path: Path) -> None:
    nasty = "/b?" + "x" * 5_000 + "\u202e\u2028\x1b[2J\x07&é"
    sent = Request("http://host" + nasty).url.removeprefix("http://host")
    pages = {"/": page("home", "/a", nasty), "/a": page("story"), sent: page("story", more="b")}
    done = crawl(pages, URLLENGTH_LIMIT=10_000)
    assert len(done.dropped) == 1
    [line] = (tmp_path / "duplicates.jsonl").read_bytes().splitlines()
    assert all(32 <= byte < 127 for byte in line)
    assert len(line) < 4096
    [message] = [m.getMessage() for m in done.messages if m.getMessage().startswith("Dropped")]
    assert message.isascii()
    assert message.isprintable()


class LinksOn:
    """A spider middleware of the project: it adds a link to each page."""

    async def process_spider_output(self, response: Any, result: Any, spider: object = None) -> Any:
        async for output in result:
            yield output
        yield Request(f"{response.url}added")


def test_nofollow_keeps_the_items_of_a_near_duplicate_but_not_its_links(crawl: Run) -> None:
    done = crawl(TWINS, DEDUP_ACTION="nofollow")
    assert done.requests == ["/", "/a", "/b", "/behind-a"]
    assert done.verdicts == {"/": "new", "/a": "new", "/b": "duplicate", "/behind-a": "new"}
    assert done.stats["item_scraped_count"] == 4
    assert done.spider.flags["/b"] == ["near-duplicate"]
    assert [record["action"] for record in done.records] == ["nofollow"]
    assert {done.figures[name] for name in ("not_followed", "unreached", "links_not_followed")} == {1}
    assert "dropped" not in done.figures
    assert "/badded" not in crawl(TWINS, DEDUP_ACTION="nofollow", SPIDER_MIDDLEWARES={LinksOn: 543}).requests


def test_mark_changes_nothing_but_flag_log_and_stats(crawl: Run) -> None:
    plain = crawl(TWINS, DEDUP_ENABLED=False)
    marked = crawl(TWINS, DEDUP_ACTION="mark")
    assert marked.requests == plain.requests
    assert marked.stats["item_scraped_count"] == plain.stats["item_scraped_count"] == 5
    assert marked.spider.failures == []
    assert marked.spider.flags == plain.spider.flags | {"/b": ["near-duplicate"]}
    assert [record["action"] for record in marked.records] == ["mark"]
    assert marked.figures == {"pages": 5, "new": 4, "duplicate": 1, "marked": 1, "links_marked": 1}


# --- Figures ----------------------------------------------------------------------------------------


def test_the_stats_add_up(crawl: Run) -> None:
    class FetchesTwice(Walker):
        handle_httpstatus_list = (404,)

        def parse(self, response: Any) -> Any:
            if self.path(response) == "/last":
                yield self.request("/a", dont_filter=True)
            elif self.path(response) not in {"/notes.txt", "/missing"}:
                yield from super().parse(response)

    pages = {
        "/a": page("story"),
        "/b": page("story", more="b"),
        "/c": page("story", "/a", "/more", more="c"),
        "/short": html("<p>Not much to read here"),
        "/empty": html(""),
        "/notes.txt": (200, {"Content-Type": "text/plain"}, words("notes").encode()),
        "/last": page("last"),
    }
    front = page("home", *pages, "/missing")
    done = crawl({"/": front, **pages}, FetchesTwice, ROBOTSTXT_OBEY=True)
    assert done.figures == {
        "pages": 8, "new": 3, "same": 1, "duplicate": 2, "dropped": 2, "links_not_followed": 2,
        "unreached": 1, "equal_bodies": 1, "unjudged": 2, "unjudged/short": 1, "unjudged/empty": 1,
        "skipped": 4, "skipped/status": 1, "skipped/type": 1, "skipped/no_callback": 1,
        "skipped/by_the_filter": 1, "probes": 1,
    }  # fmt: skip
    judged = sum(done.figures[status] for status in ("new", "same", "duplicate", "unjudged"))
    assert judged == done.figures["pages"]
    fetched = done.stats["downloader/response_count"]
    assert fetched == done.figures["pages"] + done.figures["skipped"]


def test_without_near_duplicates_there_is_no_log(crawl: Run, tmp_path: Path) -> None:
    done = crawl({"/": page("home", "/a"), "/a": page("a")})
    assert done.figures["new"] == 2
    assert list(tmp_path.iterdir()) == []


# --- Seeds, and pages that come again ---------------------------------------------------------------


@pytest.mark.parametrize("action", ["drop", "nofollow"])
def test_a_seed_is_never_dropped_and_its_links_are_followed(crawl: Run, action: str) -> None:
    class TwoSeeds(Walker):
        starts = ("/a", "/b")

    done = crawl(TWINS, TwoSeeds, DEDUP_ACTION=action)
    assert done.verdicts == {"/a": "new", "/b": "duplicate", "/behind-a": "new", "/behind-b": "new"}
    assert [record["action"] for record in done.records] == ["mark"]


def test_a_copy_of_meta_makes_no_seed(crawl: Run) -> None:
    class CopiesMeta(Walker):
        def parse(self, response: Any) -> Any:
            yield self.note(response)
            for link in self.links(response):
                yield self.request(link, meta=dict(response.meta))

    assert crawl(TWINS, CopiesMeta).dropped == ["/b"]


@pytest.mark.parametrize("store", ["file", "redis"], indirect=True)
def test_a_second_crawl_finds_every_kept_page_the_same(crawl: Run, address: str, namespace: str) -> None:
    first, second = (crawl(TWINS, DEDUP_INDEX=address, DEDUP_NAMESPACE=namespace) for _ in range(2))
    assert second.verdicts == dict.fromkeys(first.verdicts, "same") == dict.fromkeys(second.verdicts, "same")
    assert second.dropped == first.dropped == ["/b"]
    assert second.figures["same"] == 3
    assert "new" not in second.figures


@pytest.mark.parametrize("job", [True, slow(False)])
@pytest.mark.parametrize("store", ["file", "redis"], indirect=True)
def test_the_next_crawl_goes_on(crawl: Run, address: str, namespace: str, tmp_path: Path, job: bool) -> None:
    """Even if what is left to be crawled is in a JOBDIR.  The page comes under another URL the second time."""
    settings = {"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace}
    if job:
        settings["JOBDIR"] = str(tmp_path / "job")
    first = {"/": page("home", "/a?v=1"), "/a?v=1": page("story", "/behind"), "/behind": page("behind")}
    done = crawl(first, **settings, CLOSESPIDER_ITEMCOUNT=2)
    assert done.stats["finish_reason"] == "closespider_itemcount"
    settings.pop("JOBDIR", None)
    second = {"/": page("home", "/a?v=2"), "/a?v=2": first["/a?v=1"], "/behind": page("behind")}
    assert "/behind" in crawl(second, **settings).requests


def test_pages_from_the_http_cache_are_judged_like_fresh_ones(crawl: Run, tmp_path: Path) -> None:
    settings = {
        "DEDUP_INDEX": f"file:{tmp_path / 'index.sqlite'}",
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
    }
    crawl(TWINS, **settings)
    again = crawl(TWINS, **settings)
    assert again.requests == []
    assert again.verdicts == {"/": "same", "/a": "same", "/behind-a": "same"}
    assert again.dropped == ["/b"]


def test_a_page_reached_by_two_redirects_is_not_its_own_duplicate(crawl: Run) -> None:
    class Insists(Walker):
        def links(self, response: Any) -> list[str]:
            return []

        async def start(self) -> AsyncIterator[Request]:
            for path in ("/old", "/older"):
                yield self.request(path, dont_filter=True, meta={"is_start_request": False})

    moved = (302, {"Location": "/a"}, b"")
    done = crawl({"/old": moved, "/older": moved, "/a": page("story")}, Insists)
    assert done.requests == ["/old", "/a", "/older", "/a"]
    assert (done.figures["new"], done.figures["same"], done.figures["pages"]) == (1, 1, 2)


# --- What is not judged at all ----------------------------------------------------------------------


def test_a_request_opts_out_by_its_meta(crawl: Run) -> None:
    class OptsOut(Walker):
        def request(self, path: str, **options: Any) -> Request:
            return super().request(path, meta={"dedup": path != "/b"}, **options)

    done = crawl(TWINS, OptsOut)
    assert done.verdicts["/b"] is None
    assert "/behind-b" in done.requests
    assert done.figures["skipped/opted_out"] == 1


def test_responses_that_are_no_pages_are_skipped(crawl: Run) -> None:
    class TakesAll(Walker):
        handle_httpstatus_list = (404, 500)

        def parse(self, response: Any) -> Any:
            yield self.note(response)
            if self.path(response) == "/":
                yield from (
                    self.request(path, method="POST" if "form" in path else "GET") for path in answers
                )

    kinds = {"missing": (404, *page("gone")[1:]), "broken": (500, *page("broken")[1:]), "form": page("form")}
    answers = {f"/{kind}{copy}": answer for kind, answer in kinds.items() for copy in "12"}
    done = crawl({"/": page("home"), **answers}, TakesAll, RETRY_ENABLED=False)
    assert done.verdicts == {"/": "new", **dict.fromkeys(answers)}
    skipped = {name: n for name, n in done.figures.items() if name.startswith("skipped")}
    assert skipped == {"skipped": 6, "skipped/status": 4, "skipped/method": 2}


@pytest.mark.parametrize("types", ["html", "text", "all"])
def test_what_is_not_html_is_judged_if_that_is_wanted(crawl: Run, types: str) -> None:
    class TakesAll(Walker):
        def links(self, response: Any) -> list[str]:
            return list(others) if self.path(response) == "/" else []

    def changed(text: str) -> str:
        return text + " changed"

    text, noise = words("a text", 400), random.Random(1).randbytes(5_000)
    kinds: dict[str, tuple[str, list[bytes]]] = {
        "text/plain": ("text", [text.encode(), changed(text).encode(), words("other").encode()]),
        "text/markdown": ("text", [f"# {words(n, 400)} <b>".encode() for n in (1, 1, 2)]),
        "application/json": (
            "text",
            [
                json.dumps({"csrf": visit, "text": words(n, 400)}).encode()
                for visit, n in enumerate((3, 3, 4))
            ],
        ),
        "application/pdf": ("all", [b"%PDF-" + noise, b"%PDF-" + noise, b"%PDF-" + noise[1:]]),
        "application/xml": ("all", [f"<?xml?><a>{words(n)}</a>".encode() for n in (5, 5, 6)]),
    }
    others = {
        f"/{kind.replace('/', '-')}/{copy}": (200, {"Content-Type": kind}, body)
        for kind, (_, bodies) in kinds.items()
        for copy, body in enumerate(bodies)
    }
    done = crawl({"/": page("home"), **others}, TakesAll, DEDUP_TYPES=types, DEDUP_CHROME=False)
    judged = [kind for kind, (wanted, _) in kinds.items() if types == "all" or types == wanted]
    assert done.dropped == [f"/{kind.replace('/', '-')}/1" for kind in judged]
    assert done.figures["new"] == 1 + 2 * len(judged)
    assert done.figures.get("skipped/type", 0) == 3 * (len(kinds) - len(judged))
    assert done.mishaps == []


# --- What can't be judged is kept -------------------------------------------------------------------


def test_pages_that_can_not_be_judged_are_kept(crawl: Run) -> None:
    noise = random.Random(1).randbytes(5_000)
    kinds: dict[str, tuple[str, Answer]] = {
        "nothing": ("empty", html("")),
        "only a shell": (
            "scripted",
            html(f"<title>{words('shell', 60)}</title><div id=root></div><script src=x>"),
        ),
        "an error message": ("short", html("<h1>Sorry</h1><p>Please enable JavaScript to see this page.")),
        "random bytes": ("binary", html(noise)),
        "another charset": ("undecodable", html("б".encode("cp1251") * 500)),
        "half of it": ("partial", html(f"<p>{words('half')}", **{"Content-Length": "9000"})),
        "nested deeply": ("truncated", html("<div>" * 40_000 + words("deep") + "</div>" * 40_000)),
    }
    answers = {
        f"/{kind.replace(' ', '-')}/{copy}": answer for kind, (_, answer) in kinds.items() for copy in "12"
    }
    done = crawl({"/": page("home", *answers), **answers}, DOWNLOAD_FAIL_ON_DATALOSS=False)
    expected = [f"unjudged: {reason}" for reason, _ in kinds.values() for _ in "12"]
    assert done.verdicts == {"/": "new", **dict(zip(answers, expected, strict=True))}
    assert done.spider.failures == []
    assert done.figures["unjudged"] == len(answers)
    assert done.mishaps == []


@pytest.mark.parametrize(
    "label", ["zlib", "idna", *map(slow, ("rot13", "hex", "undefined", "punycode", "unicode_escape"))]
)
def test_a_label_that_is_no_character_set_is_ignored(crawl: Run, label: str) -> None:
    header = {"Content-Type": f"text/html; charset={label}"}
    text = {path: f"<p>{words(path)} \\x41 é" for path in ("/header", "/meta", "/both")}
    declared = f'<meta charset="{label}">'
    pages = {
        "/": page("home", *text),
        "/header": (200, header, text["/header"].encode()),
        "/meta": (200, {"Content-Type": "text/html"}, (declared + text["/meta"]).encode()),
        "/both": (200, header, (declared + text["/both"]).encode()),
    }
    done = crawl(pages)
    assert done.verdicts == dict.fromkeys(pages, "new")
    for path in text:
        assert done.spider.judgements[path].fingerprint == Detector().fingerprint(
            pages[path][2].decode(), done.spider.url + path
        )
    assert done.spider.failures == []
    assert done.mishaps == []


# --- Confirmed when its output is handed over, released when the spider fails -----------------------


def filed(path: Path) -> list[str]:
    """The URLs of the pages that an index file holds, in the order of their confirmation."""
    with closing(sqlite3.connect(path)) as connection:
        return [url for (url,) in connection.execute("SELECT url FROM pages ORDER BY number")]


def test_a_page_is_filed_after_its_output_was_handed_over(crawl: Run, site: Site, tmp_path: Path) -> None:
    """It waits in its callback until a later page is filed."""
    index = tmp_path / "index.sqlite"

    class Waits(Walker):
        async def parse(self, response: Any) -> Any:
            yield self.note(response)
            if self.path(response) == "/":
                yield self.request("/a")
                await until(lambda: f"{site.url}/a" in filed(index))

    crawl({"/": page("home"), "/a": page("story")}, Waits, DEDUP_INDEX=f"file:{index}")
    assert filed(index) == [f"{site.url}/a", f"{site.url}/"]


class FailsLater(Walker):
    """Fails on page /a, after an item."""

    def parse(self, response: Any) -> Any:
        yield {"first": "item"}
        if self.path(response) == "/a":
            raise RuntimeError("a fault of the spider")
        yield from super().parse(response)


class FailsAsynchronously(Walker):
    """Fails on page /a, after an item and some waiting."""

    async def parse(self, response: Any) -> Any:
        yield self.note(response)
        await asyncio.sleep(0)
        if self.path(response) == "/a":
            raise RuntimeError("a fault of the spider")
        for link in self.links(response):
            yield self.request(link)


@pytest.mark.parametrize("spider", [FailsLater, FailsAsynchronously])
def test_a_page_that_failed_shadows_no_other(crawl: Run, site: Site, spider: type[Walker]) -> None:
    def on_request(path: str) -> None:
        if path == "/b":  # a has failed by then
            wait_until(lambda: "spider_exceptions/RuntimeError" in site.stats)

    site.on_request = on_request
    done = crawl(TWINS, spider)
    assert done.verdicts["/b"] == "new"
    assert "/behind-b" in done.requests
    assert done.stats["spider_exceptions/RuntimeError"] == 1
    assert done.dropped == []


# --- Switching it on and off ------------------------------------------------------------------------


def test_one_spider_can_have_it(crawl: Run) -> None:
    class HasItsOwn(Walker):
        custom_settings = {"ADDONS": ADDON, "DEDUP_ACTION": "mark"}  # noqa: RUF012 - that is how Scrapy has it

    done = crawl(TWINS, HasItsOwn, ADDONS={}, DEDUP_ACTION="drop")
    assert done.figures["marked"] == 1
    assert "/behind-b" in done.requests


def test_disabled_it_does_nothing(crawl: Run, tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    done = crawl(TWINS, DEDUP_ENABLED=False, DEDUP_INDEX=f"file:{index}", DEDUP_ACTION="nonsense")
    assert done.verdicts == dict.fromkeys(TWINS)
    assert done.figures == {}
    assert done.mishaps == []
    assert not any("dedup" in message.name for message in done.messages)
    assert list(tmp_path.iterdir()) == []


def test_one_line_installs_it_in_a_foreign_project(crawl: Run, site: Site, tmp_path: Path) -> None:
    def scrapy(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        command = [program, "-m", "scrapy", *arguments]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True, timeout=LIMIT)

    scrapy(python(), "startproject", "foreign", cwd=tmp_path)
    project = tmp_path / "foreign"
    settings = project / "foreign" / "settings.py"
    before = settings.read_text()
    assert "ADDONS = {}" in before
    settings.write_text(before.replace("ADDONS = {}", 'ADDONS = {"dedup.scrapy.Addon": 500}'))
    (project / "foreign" / "spiders" / "tale.py").write_text(
        "import scrapy\n"
        "class Tale(scrapy.Spider):\n"
        "    name = 'tale'\n"
        f"    start_urls = ['{site.url}/']\n"
        "    def parse(self, response):\n"
        "        yield {'url': response.url}\n"
        "        yield from response.follow_all(css='a')\n"
    )
    site.pages = TWINS | {
        "/b": page("story", "/behind-a")
    }  # of a host that is not known, only equal pages are dropped
    tale = ("crawl", "tale", "-O", "items.jsonl", "-s", "DOWNLOAD_DELAY=0")
    done = scrapy(sys.executable, *tale, cwd=project)  # which has imported nothing yet, as a user's
    items = [json.loads(line)["url"] for line in (project / "items.jsonl").read_text().splitlines()]
    [record] = [json.loads(line) for line in (project / "duplicates.jsonl").read_text().splitlines()]
    twins = {f"{site.url}/a", f"{site.url}/b"}
    assert {record["url"], record["duplicate_of"]} == twins
    assert len(items) == 3
    assert record["url"] not in items
    assert len(filed(project / ".scrapy" / "dedup" / "foreign" / "tale.sqlite")) == 3
    assert "4 pages fetched and judged" in done.stderr
    assert "Traceback" not in done.stderr


# --- When the log or the index fails ----------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_without_its_record_nothing_is_dropped(crawl: Run) -> None:
    done = crawl(TWINS, DEDUP_LOG="/dev/full")
    assert done.verdicts == dict.fromkeys(TWINS, "new") | {"/b": "unjudged: log"}
    assert done.figures == {"pages": 5, "new": 4, "unjudged": 1, "unjudged/log": 1}
    assert done.spider.flags["/b"] == []
    [mishap] = done.mishaps
    assert "the drop log can't be written" in mishap
    assert not any(message.exc_info for message in done.messages)


def test_a_torn_last_line_stays_apart(crawl: Run, tmp_path: Path) -> None:
    torn = '{"time": "2026-11-'
    (tmp_path / "duplicates.jsonl").write_text(torn)
    done = crawl(TWINS)
    assert (tmp_path / "duplicates.jsonl").read_text().splitlines()[0] == torn
    assert [record["url"] for record in done.records] == [done.spider.url + "/b"]
    crawl(TWINS)
    assert (tmp_path / "duplicates.jsonl").read_text().count("\n") == 3


#: /3 is a near-duplicate of /1; the index goes away when /2 is asked for.
OUTAGE = {
    "/": page("home", "/1", "/2", "/3"),
    "/1": page("story"),
    "/2": page("another"),
    "/3": page("story", "/behind-3", more="changed"),
    "/behind-3": html("<p>The end"),
}


def at_page_2(action: Callable[[], None]) -> Callable[[str], None]:
    return lambda path: action() if path == "/2" else None


def test_keep_goes_on_without_the_index_and_drops_nothing(crawl: Run, site: Site, server: Server) -> None:
    site.on_request = at_page_2(server.kill)
    done = crawl(OUTAGE, DEDUP_INDEX=f"unix://{server.socket}", DEDUP_ON_INDEX_FAILURE="keep")
    assert done.verdicts == {
        "/": "new",
        "/1": "new",
        "/2": "unjudged: index",
        "/3": "unjudged: index",
        "/behind-3": "unjudged: short",
    }
    assert done.figures == {
        "pages": 5, "new": 2, "unjudged": 3, "unjudged/index": 2, "unjudged/short": 1, "late/never": 2,
    }  # fmt: skip
    assert done.stats["finish_reason"] == "finished"
    assert done.mishaps == []


def test_stop_ends_the_crawl_when_the_index_fails(crawl: Run, site: Site, server: Server) -> None:
    told: list[DedupError] = []
    site.on_request = at_page_2(server.kill)
    settings = {"DEDUP_INDEX": f"unix://{server.socket}", "DEDUP_ON_INDEX_FAILURE": "stop"}
    done = crawl(OUTAGE, listening(lambda error: told.append(error), filter_failed), **settings)
    assert done.requests[:3] == ["/", "/1", "/2"]
    assert "/behind-3" not in done.requests
    assert done.verdicts["/2"] == "unjudged: index"
    assert done.dropped == []
    assert done.stats["finish_reason"] == "dedup_index_unavailable"
    assert [error.exit_status for error in told] == [3]


def test_pause_waits_for_the_index_and_loses_nothing(crawl: Run, site: Site, server: Server) -> None:
    def come_back() -> None:
        wait_until(lambda: site.stats.get("dedup/seconds/paused"))
        server.start()

    def outage() -> None:
        server.kill()
        threading.Thread(target=come_back).start()

    site.on_request = at_page_2(outage)
    done = crawl(OUTAGE, DEDUP_INDEX=f"unix://{server.socket}", DEDUP_ON_INDEX_FAILURE="pause")
    assert done.verdicts == {"/": "new", "/1": "new", "/2": "new"}
    assert done.dropped == ["/3"]
    assert done.figures["pages"] == 4
    assert done.stats["dedup/seconds/paused"] > 0
    assert done.mishaps == []


def test_a_paused_crawl_can_still_be_closed(crawl: Run, site: Site, server: Server) -> None:
    back = threading.Timer(LIMIT, server.start)  # or a crawl that can't be closed would never end

    def outage() -> None:
        server.kill()
        back.start()

    site.on_request = at_page_2(outage)
    settings = {"DEDUP_ON_INDEX_FAILURE": "pause", "CLOSESPIDER_TIMEOUT": 1}
    done = crawl(OUTAGE, DEDUP_INDEX=f"unix://{server.socket}", **settings)
    assert back.is_alive()
    back.cancel()
    assert done.stats["finish_reason"] == "closespider_timeout"
    assert done.dropped == []
