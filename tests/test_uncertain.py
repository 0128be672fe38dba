"""No doubt ends in a loss: what was dropped for a page that no callback got is fetched again, and no crawl waits long.

See test_doubts for the rules, without a crawl.
"""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import CloseSpider, IgnoreRequest
from twisted.python.failure import Failure

from dedup import open_index
from dedup.filter.watch import doubts
from dedup.scrapy.compat import close
from dedup.scrapy.crawl.slot import is_closing
from tests.support import slow
from tests.support.crawls import Run, Site, Walker, asking, failing_late, hold, losing, page
from tests.support.filters import DETECTOR
from tests.support.waiting import until, wait_until

#: Near-duplicates, fetched in this order, since the requests of all links are sent at once.
PAGES = {"/": page("home", "/a", "/b"), "/a": page("story"), "/b": page("story")}
FIRST_IN_FIRST_OUT = {"SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"}


class Refuses:
    """A middleware that wants no /a, on its way to the filter's next neighbour or to the spider."""

    def process_response(self, request: Any, response: Any) -> Any:
        self.process_spider_input(response)
        return response

    def process_spider_input(self, response: Any) -> None:
        if response.url.endswith("/a"):
            raise IgnoreRequest("it is not wanted")


Silent = asking(errback=None)


class Stops(Walker):
    """Stops at the first page that is dropped."""

    def failed(self, failure: Failure) -> None:
        super().failed(failure)
        raise CloseSpider("dropped")


#: A pipeline that loses the item of /a, once another page was dropped for that page.
Loses = losing("/a", lambda crawler: crawler.stats.get_value("dedup/dropped"))


def test_what_was_dropped_for_a_page_whose_item_fails_later_is_fetched_again(crawl: Run, site: Site) -> None:
    hold(site, "/b", 2)  # whichever comes first is kept
    done = crawl(PAGES, CONCURRENT_REQUESTS=8, ITEM_PIPELINES={Loses: 1})
    assert [item["path"] for item in done.items] == ["/", "/b"]
    assert done.figures["fetched_again"] == done.figures["dropped"] == 1
    told = [(record["action"], record["undone"]) for record in done.records]
    assert told == [("drop", None), ("drop", "the page that it duplicates failed")]


class AsksTwice(Walker):
    """Asks for /a twice, and for a copy of what it shows at first."""

    def links(self, response: Any) -> list[str]:
        return ["/a", "/a", "/b"] if response.url == self.url + "/" else []

    def request(self, path: str, **options: Any) -> Any:
        return super().request(path, dont_filter=True, **options)


@pytest.mark.parametrize("is_copy_last", [True, False])
def test_contents_of_one_page_id_stand_for_no_others(crawl: Run, site: Site, is_copy_last: bool) -> None:
    """That the second is handed over would say nothing of the first, so nothing stays dropped for that."""
    visits = count()

    def on_request(path: str) -> None:
        if path == "/a" and next(visits):
            wait_until(lambda: site.stats.get("dedup/pages", 0) >= (2 if is_copy_last else 3))
            site.pages = {**PAGES, "/a": page("other", more="changed")}
        elif path == "/b":
            wait_until(lambda: site.stats.get("dedup/pages", 0) >= (3 if is_copy_last else 2))

    site.on_request = on_request
    done = crawl(PAGES, AsksTwice, CONCURRENT_REQUESTS=8)
    assert sorted(item["path"] for item in done.items) == ["/", "/a", "/a", "/b"]
    assert done.figures.get("fetched_again", 0) == (0 if is_copy_last else 1)


FailsLate = failing_late("/a", "dedup/not_followed")


def test_links_not_followed_for_a_page_that_fails_later_are_after_all(crawl: Run, site: Site) -> None:
    hold(site, "/b", 2)
    pages = {
        "/": page("home", "/a", "/b"),
        **dict.fromkeys(("/a", "/b"), page("story", "/c")),
        "/c": page("c"),
    }
    done = crawl(pages, FailsLate, CONCURRENT_REQUESTS=8, DEDUP_ACTION="nofollow")
    assert "/c" in {item["path"] for item in done.items}
    assert done.figures["fetched_again"] == done.figures["not_followed"] == 1


@pytest.mark.parametrize(
    ("place", "spider", "at_once"),
    [
        ("DOWNLOADER_MIDDLEWARES", Silent, 8),
        ("SPIDER_MIDDLEWARES", Walker, 8),
        slow("SPIDER_MIDDLEWARES", Silent, 1),
        slow("DOWNLOADER_MIDDLEWARES", Walker, 1),
        slow("SPIDER_MIDDLEWARES", Silent, 8),
    ],
)
def test_a_page_that_a_middleware_refuses_shadows_no_other(
    crawl: Run, place: str, spider: type[Walker], at_once: int
) -> None:
    done = crawl(PAGES, spider, CONCURRENT_REQUESTS=at_once, **{place: {Refuses: -5}})
    assert done.verdicts == {"/": "new", "/b": "new"}
    assert "dedup/uncertain" not in done.stats


def test_a_page_whose_callback_stops_the_job_shadows_no_other(crawl: Run, tmp_path: Path) -> None:
    class StopsAtA(Walker):
        def parse(self, response: Any) -> Any:
            if response.url.endswith("/a"):
                raise CloseSpider("it is enough")
            yield from super().parse(response)

    job = FIRST_IN_FIRST_OUT | {"JOBDIR": str(tmp_path / "job"), "DEDUP_INDEX": f"file:{tmp_path / 'index'}"}
    stopped = crawl(PAGES, StopsAtA, **job).verdicts
    assert "/a" not in stopped
    assert stopped | crawl(PAGES, Walker, **job).verdicts == {"/": "new", "/b": "new"}


REFUSED = {
    "a typo": {"DEDUP_MIN_OWN": 7},
    "another threshold": {"DEDUP_MIN_RESEMBLANCE": 0.9},
    "an index out of reach": {"DEDUP_INDEX": "redis://127.0.0.1:1/0", "DEDUP_ON_INDEX_FAILURE": "stop"},
    "a shard without Redis": {"DEDUP_SHARD": "1/2"},
}


class StopsAtA(Walker):
    """Is stopped while it is at /a, whose links it leaves to the job."""

    async def parse(self, response: Any) -> Any:
        yield self.note(response)
        if response.url.endswith("/a"):
            self.closing = asyncio.create_task(close(self.crawler, "it is enough"))
            await until(lambda: is_closing(self.crawler))
        for link in self.links(response):
            yield self.request(link)


@pytest.mark.parametrize("why", ["a typo", *map(slow, [*REFUSED][1:])])
def test_a_job_goes_on_as_the_same_run_after_a_refused_start(crawl: Run, tmp_path: Path, why: str) -> None:
    job = {"JOBDIR": str(tmp_path / "job"), "DEDUP_INDEX": f"file:{tmp_path / 'index'}"}
    pages = {"/": page("home", "/a"), "/a": page("story", "/b"), "/b": page("story", "/a")}
    assert crawl(pages, StopsAtA, **job).verdicts == {"/": "new", "/a": "new"}
    refused = crawl(pages, **job | REFUSED[why])
    assert refused.requests == []
    assert refused.stats["finish_reason"] != "finished"
    again = crawl(pages, **job)
    assert (again.verdicts, again.dropped) == ({}, ["/b"])


def claim_elsewhere(address: str, namespace: str) -> None:
    """Another crawler claims the story; it is killed, but its lease lasts for a minute."""

    async def work() -> None:
        index = open_index(address, DETECTOR, namespace=namespace, chrome=False)
        url = "http://example.org/original"
        html = PAGES["/a"][2].decode()
        assert (await index.claim("original", url, DETECTOR.fingerprint(html, url))).status == "new"
        await index._session.stop()  # type: ignore[attr-defined]
        await index._server.close()  # type: ignore[attr-defined]

    asyncio.run(work())


@pytest.mark.parametrize("store", ["redis"])
def test_what_another_crawler_has_claimed_and_never_processes_is_fetched_after_all(
    crawl: Run, address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "PATIENCE", 0.0)
    claim_elsewhere(address, namespace)
    done = crawl(PAGES, DEDUP_INDEX=address, DEDUP_NAMESPACE=namespace)
    kept = ({"/a", "/b"} & done.verdicts.keys()).pop()
    assert done.verdicts == {"/": "new", kept: "new"}
    assert sorted(done.dropped) == sorted(["/a", "/b", "/b" if kept == "/a" else "/a"])
    assert done.figures["uncertain"] == done.figures["fetched_again"] == 2


@pytest.mark.parametrize("store", ["redis"])
def test_a_job_that_is_stopped_in_doubt_goes_on_with_what_was_dropped_and_judges_it(
    crawl: Run, address: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_elsewhere(address, namespace)
    job = FIRST_IN_FIRST_OUT | {"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace}
    job["JOBDIR"] = str(tmp_path / "job")
    stopped = crawl(PAGES, Stops, **job)
    assert stopped.dropped
    assert stopped.mishaps == []
    monkeypatch.setattr(doubts, "PATIENCE", 0.0)
    again = crawl(PAGES, Walker, **job)
    (kept,) = {"/a", "/b"} & again.verdicts.keys()
    assert again.verdicts[kept] == "new"
    assert {*stopped.dropped} <= again.verdicts.keys() | {*again.dropped}


def test_the_summary_says_which_drops_rest_on_pages_of_other_crawls(
    crawl: Run, tmp_path: Path, redis_socket: Path, namespace: str
) -> None:
    """Beside the links that were saved, and not only in the stats."""
    address = f"unix://{redis_socket}"

    async def work() -> list[str]:
        index = open_index(address, DETECTOR, namespace=namespace, chrome=False, lease=1.0)
        async with index:
            await index.claim("elsewhere", "http://a.org/", DETECTOR.fingerprint(PAGES["/a"][2]))
            await index.confirm("elsewhere")
            done = await asyncio.to_thread(
                crawl, PAGES, DEDUP_INDEX=address, DEDUP_NAMESPACE=namespace, DEDUP_LEASE=1
            )
        assert done.figures["dropped/elsewhere"] == done.figures["dropped"] == 2
        return [line for m in done.messages for line in m.getMessage().split("\n")]

    said = asyncio.run(work())
    assert "  doubtful  2 of these were dropped for pages that another crawl has handed over" in said
