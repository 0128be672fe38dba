"""A page of which no item comes shadows no copy of which one would."""

from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import DropItem

from dedup.filter.watch.doubts import MAX_AGAIN
from dedup.index import Verdict
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.crawls import Answer, Run, Site, Walker, page
from tests.support.filters import DETECTOR, filtering, open_index
from tests.support.redis import Server
from tests.support.waiting import until, wait_until

NUMBERS = range(9)


def shop(*versions: str, numbers: range = NUMBERS) -> dict[str, Answer]:
    """A front page that links to several addresses of each page."""
    paths = [f"/{number}{version}" for number in numbers for version in versions]
    return {"/": page("home", *paths)} | {path: page(path.partition("?")[0]) for path in paths}


def contents(done: Any) -> list[str]:
    return sorted(item["path"].partition("?")[0] for item in done.items if item["path"] != "/")


WANTED = sorted(f"/{number}" for number in NUMBERS)


class Lists(Walker):
    """Its front page is a list, and has another callback."""

    def request(self, path: str, **options: Any) -> Any:
        return super().request(path, callback=self.list if path == "/" else self.parse, **options)

    def list(self, response: Any) -> Any:
        yield from map(self.request, self.links(response))


class Silent(Lists):
    """Gives no items of pages with a query, but follows all links."""

    def parse(self, response: Any) -> Any:
        yield from list(super().parse(response))["?" in response.url :]


class Leads(Lists):
    """Gives no items at all."""

    def parse(self, response: Any) -> Any:
        yield from list(super().parse(response))[1:]


class Counts(Walker):
    """Asks for one page after another, whatever becomes of them, and gives no items."""

    starts = ("/?page=0",)

    def parse(self, response: Any) -> Any:
        yield from self.go_on(response.request)

    def go_on(self, request: Any) -> Any:
        number = 1 + int(request.url.rpartition("=")[2])
        if number <= 40:
            yield self.request(f"/?page={number}", errback=self.failed)

    def failed(self, failure: Any) -> Any:
        super().failed(failure)
        yield from self.go_on(failure.request)


class Refuses:
    """A pipeline that wants no items of pages with a query."""

    def process_item(self, item: Any) -> Any:
        if "?" in item["path"]:
            raise DropItem("not wanted")
        return item


@pytest.mark.parametrize(
    ("spider", "pipelines", "at_once", "follow"),
    [
        (Silent, {}, 8, "never"),
        (Lists, {Refuses: 1}, 1, "yield"),
        slow(Silent, {}, 1, "never"),
        slow(Silent, {}, 8, "yield"),
        slow(Lists, {Refuses: 1}, 8, "never"),
    ],
)
def test_no_content_is_lost_to_a_copy_that_gives_none(
    crawl: Run, tmp_path: Path, spider: type[Walker], pipelines: Any, at_once: int, follow: str
) -> None:
    settings = {"DEDUP_INDEX": f"file:{tmp_path}/index", "DEDUP_FOLLOW": follow, "DEDUP_PARKED": ""}
    for _ in range(2):
        done = crawl(
            shop("?print=1", ""), spider, ITEM_PIPELINES=pipelines, CONCURRENT_REQUESTS=at_once, **settings
        )
        assert contents(done) == WANTED
        assert done.mishaps == []


def test_a_spider_that_counts_its_pages_gets_all(crawl: Run) -> None:
    """Some copies of pages without items go to its callback, and others to its errback; it goes on behind both."""
    pages = {f"/?page={number}": page(f"about {number % 4}") for number in range(41)}
    done = crawl(pages, Counts)
    assert {*pages} <= {*done.requests}
    assert done.figures["dropped"] > 10
    assert done.figures["not_followed"] > 1


def test_nor_in_redis(crawl: Run, server: Server) -> None:
    for _ in range(2):
        done = crawl(shop("?print=1", ""), Silent, DEDUP_INDEX=server.address)
        assert contents(done) == WANTED


def test_copies_of_what_gave_an_item_stay_dropped(crawl: Run, site: Site) -> None:
    def on_request(path: str) -> None:
        if "?" in path:  # else it may be answered before the page that gives the item
            wait_until(lambda: site.stats.get("item_scraped_count", 0) >= len(NUMBERS))

    site.on_request = on_request
    pages = shop("")
    pages |= {f"{path}?print=1": answer for path, answer in pages.items() if path != "/"}
    pages["/"] = page("home", *(path for path in pages if path != "/"))
    done = crawl(pages, Silent, CONCURRENT_REQUESTS=8)
    assert contents(done) == WANTED
    assert len(done.dropped) == len(NUMBERS)
    assert "fetched_again" not in done.figures


def test_a_spider_that_only_follows_links_asks_for_nothing_twice(crawl: Run) -> None:
    done = crawl(shop("?print=1", ""), Leads, DEDUP_PROBE=False)
    assert len(done.requests) == len({*done.requests})
    assert done.figures["dropped"] + done.figures["not_followed"] == len(NUMBERS)


def test_a_content_that_gives_nothing_anywhere_is_let_go(crawl: Run) -> None:
    """Else lists of links would be followed for ever, where each link has a new session."""
    endless = [f"?print={number}" for number in range(4 * MAX_AGAIN)]
    pages = shop("", numbers=range(2)) | shop(*endless, numbers=range(2, 3))
    pages["/"] = page("home", *(path for path in pages if path != "/"))
    done = crawl(pages, Silent)
    kept = [path for path, verdict in done.verdicts.items() if verdict == "new" and "?" in path]
    assert contents(done) == ["/0", "/1"]
    assert 1 < len(kept) <= MAX_AGAIN


@driven
async def test_another_crawl_does_not_wait_for_a_barren_page(server: Server, tmp_path: Path) -> None:
    """Its copy is fetched again as soon as the first crawl has nothing else to do."""
    indexes = [open_index(server.address, DETECTOR) for _ in range(2)]
    async with filtering(tmp_path / "1", indexes[0]) as one, filtering(tmp_path / "2", indexes[1]) as other:
        for path in ("a", "b"):
            assert await one.judge(path, kind="parse") == "keep: new"
        one.filter.gave("a", "parse", Verdict("new"))
        for path in ("a", "b"):
            await one.filter.handed_over(path)
        assert await other.judge("c", "b", origin="c") == "drop: /b"
        one.filter.is_busy()
        await until(lambda: other.crawl.again == ["c"])
