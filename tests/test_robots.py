"""robots.txt is obeyed from the first request to a host on; see the section on that in docs/spiders.md."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from crawler import settings as project
from dedup.scrapy.robots import RobotsTxtMiddleware, replace
from tests.support.crawls import Run, Site, Walker, page
from tests.support.processes import scrapy
from tests.support.projects import documented

ROBOTS = 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private/\n"
FORBIDDEN = [f"/private/{number}" for number in range(7)]
OBEYS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 16,
    "DOWNLOADER_MIDDLEWARES": project.DOWNLOADER_MIDDLEWARES,
}
SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"


@pytest.fixture
def slow(site: Site) -> Site:
    """A site that takes its time for robots.txt, so that other requests have to wait for it."""
    site.on_request = lambda path: time.sleep(0.3 if path == "/robots.txt" else 0)
    return site


class FirstContact(Walker):
    starts = ("/", *FORBIDDEN)


def test_forbidden_pages_are_not_asked_for_at_first_contact(slow: Site, crawl: Run) -> None:
    pages = {path: page(path) for path in FirstContact.starts} | {"/robots.txt": ROBOTS}
    done = crawl(pages, FirstContact, **OBEYS)
    assert done.requests == ["/robots.txt", "/"]
    assert (done.stats["robotstxt/forbidden"], len(done.spider.failures)) == (7, 7)
    assert done.mishaps == []


@pytest.mark.parametrize("status", [404, 500])
def test_a_host_without_robots_txt_allows_everything(slow: Site, crawl: Run, status: int) -> None:
    pages = {path: page(path) for path in FirstContact.starts} | {"/robots.txt": (status, {}, b"nothing")}
    done = crawl(pages, FirstContact, RETRY_ENABLED=False, **OBEYS)
    assert set(FirstContact.starts) < set(done.requests)


def test_what_is_not_to_obey_waits_for_nobody(slow: Site, crawl: Run) -> None:
    class Disobeys(Walker):
        async def start(self) -> AsyncIterator[Request]:
            yield self.request("/")
            for path in FORBIDDEN:
                yield self.request(path, meta={"dont_obey_robotstxt": True})

    pages = {path: page(path) for path in FirstContact.starts} | {"/robots.txt": ROBOTS}
    done = crawl(pages, Disobeys, **OBEYS)
    assert sorted(done.requests) == sorted(["/robots.txt", *FirstContact.starts])


def test_robots_txt_is_for_pages_that_a_command_fetches(slow: Site) -> None:
    slow.pages = {"/robots.txt": ROBOTS, "/kept": page("a")} | {path: page("a") for path in FORBIDDEN}
    done = scrapy("compare", f"{slow.url}/kept", slow.url + FORBIDDEN[0])
    assert (done.returncode, done.stderr.endswith("robots.txt forbids it\n")) == (2, True), done.stderr
    assert slow.requests == ["/robots.txt", "/kept"]


def test_the_documented_line_is_the_one_of_this_project() -> None:
    names: dict[str, Any] = {}
    exec(documented("robots.txt at first contact", "# settings.py"), names)  # noqa: S102
    assert names["DOWNLOADER_MIDDLEWARES"] == project.DOWNLOADER_MIDDLEWARES


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ({}, 100),
        ({SCRAPYS: 50}, 50),
        ({SCRAPYS: None}, None),  # they have none, or another in its place
        ({SCRAPYS: None, "dedup.scrapy.robots.RobotsTxtMiddleware": 100}, None),
    ],
)
def test_another_middleware_of_the_project_is_left(theirs: Any, expected: int | None) -> None:
    settings = Settings({"DOWNLOADER_MIDDLEWARES": theirs})
    replace(settings)
    assert settings.getdict("DOWNLOADER_MIDDLEWARES").get(RobotsTxtMiddleware) == expected
