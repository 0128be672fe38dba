"""scrapyrt: each call is a crawl of its own, in the process of the server."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import requests

from tests.support.crawls import page
from tests.support.projects import Project, documented
from tests.support.servers import answering, free_port
from tests.support.waiting import LIMIT

PAGES = {
    "/1": page("list", "/a"),
    "/2": page("list", "/b", more="2"),
    "/a": page("story"),
    "/b": page("story", more="b"),
}


def calls(project: Project, **settings: Any) -> Iterator[list[list[str]]]:
    """The paths of the items that two calls give: at once, and then one after the other."""
    project.site.pages = PAGES
    project.configure(**settings)
    both = Event()

    def on_request(path: str) -> None:
        if {"/1", "/2"} <= set(project.site.requests):
            both.set()
        if path in ("/1", "/2"):
            both.wait(LIMIT)

    project.site.on_request = on_request
    port = free_port()

    def call(path: str) -> list[str]:
        query = {"spider_name": "walker", "url": project.site.url + path, "crawl_args": '{"url": "unused"}'}
        answer = requests.get(f"{api}/crawl.json", query, timeout=LIMIT).json()
        assert (answer["status"], answer.get("errors")) == ("ok", None), answer
        return [item["url"].removeprefix(project.site.url) for item in answer["items"]]

    with (
        answering(port, project.folder, "scrapyrt.cmdline", "-i", "127.0.0.1", "-p", str(port)) as api,
        ThreadPoolExecutor() as pool,
    ):
        yield [*pool.map(call, ("/1", "/2"))]
        yield [*map(call, ("/1", "/2"))]


WHOLE = [["/1", "/a"], ["/2", "/b"]]


def test_calls_at_once(project: Project) -> None:
    assert [*calls(project, DEDUP_ENABLED=False)] == [WHOLE, WHOLE]
    together, later = calls(project)
    assert together in ([["/1", "/a"], ["/2"]], [["/1"], ["/2", "/b"]])
    assert later == WHOLE


def test_documented_setting(project: Project) -> None:
    project.obey(documented("scrapyd and scrapyrt", "# settings.py, for scrapyrt"))
    assert [*calls(project)] == [WHOLE, WHOLE]
