"""scrapy-redis: its spider, scheduler and duplicates filter on a redis-server, which has the index as well."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from dedup.scrapy.links.parked import parked_urls
from tests.support import ROOT
from tests.support.crawls import Answer, page
from tests.support.projects import Project
from tests.support.redis import Server
from tests.support.shards import Files, Hosts, kept, serve
from tests.support.waiting import LIMIT, wait_until

SPIDER = """
    from scrapy_redis.spiders import RedisSpider

    class Walker(RedisSpider):
        name = "walker"
        redis_key = "urls"
        max_idle_time = 1

        def parse(self, response):
            yield {"url": response.url}
            yield from response.follow_all(css="a")
"""
#: Scheduler and filter of duplicate requests are shared.
SHARED = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
}
#: Both in the queue and among the links a page has a copy.
PAGES = {
    "/1": page("list"),
    "/2": page("list", "/a", "/b", more="2"),
    "/a": page("story"),
    "/b": page("story", more="b"),
}


@pytest.mark.parametrize("keep_start", [True, False])
def test_urls_of_the_queue(project: Project, server: Server, keep_start: bool) -> None:
    project.site.pages = PAGES
    project.write("spiders", SPIDER)
    project.settings |= SHARED | {
        "REDIS_URL": server.address,
        "DEDUP_INDEX": server.address,
        "DEDUP_KEEP_START": keep_start,
    }

    def crawl(enabled: bool) -> list[str]:
        server.client.rpush("urls", *(project.site.url + path for path in ("/1", "/2")))
        done = project.crawl(DEDUP_ENABLED=enabled)
        assert (done.status, done.mishaps) == (0, [])
        return project.paths(done)

    assert crawl(enabled=False) == ["/1", "/2", "/a", "/b"]
    assert crawl(enabled=True) == (["/1", "/2", "/a"] if keep_start else ["/1"])


#: What stays in Redis when the crawl has ended is taken up by the next.
SHARED_FOR_GOOD = SHARED | {"SCHEDULER_PERSIST": True, "DEDUP_FOLLOW": "yield", "DEDUP_KEEP_START": False}


def mirror(with_notes: Iterable[int]) -> dict[str, Answer]:
    """Articles and a mirror of them; of some articles the copy alone links to a note, which is new."""
    articles = [f"/article-{number}.html" for number in range(150)]
    copies = [f"/copy{path}" for path in articles]
    notes = {f"/copy/article-{number}.html": f"/notes/{number}.html" for number in with_notes}
    return (
        {"/": page("home", "/list.html", "/copy/list.html")}
        | {"/list.html": page("list", *articles), "/copy/list.html": page("list", *copies)}
        | {path: page(path) for path in articles}
        | {f"/copy{path}": page(path, *filter(None, [notes.get(f"/copy{path}")])) for path in articles}
        | {path: page(path) for path in notes.values()}
    )


def test_parked_links_come_back(project: Project, server: Server) -> None:
    project.site.pages = mirror(
        range(30, 150)
    )  # the copies that are parked: nothing new is known of their folder yet
    project.write("spiders", SPIDER)
    project.settings |= SHARED_FOR_GOOD | {"REDIS_URL": server.address, "DEDUP_INDEX": server.address}
    server.client.rpush("urls", project.site.url + "/")
    done = project.crawl()
    assert (done.status, done.mishaps) == (0, [])
    assert done.stats["dedup/links/came_back"] > 10
    assert set(project.paths(done)) >= {f"/notes/{number}.html" for number in range(30, 150)}
    probes = done.stats.get("dedup/probes", 0)  # of a page that is there already
    assert len(project.site.requests) == len(set(project.site.requests)) + probes


def test_parked_links_of_the_crawl_before(project: Project, server: Server) -> None:
    """For the shared filter of duplicate requests, those links have been requested; URLs of the queue pass it."""
    project.site.pages = mirror([])
    project.write("spiders", SPIDER)
    project.settings |= SHARED_FOR_GOOD | {"REDIS_URL": server.address, "DEDUP_INDEX": server.address}
    server.client.rpush("urls", project.site.url + "/")
    first = project.crawl()
    parked = set(parked_urls(project.folder / "parked.jsonl"))
    assert len(parked) == first.stats["dedup/links/waiting"] > 30
    left = {url.removeprefix(project.site.url) for url in parked}
    assert not left & set(project.site.requests)
    server.client.rpush("urls", *parked)
    then = project.crawl()
    assert (then.status, then.mishaps) == (0, [])
    assert left <= set(project.site.requests)


# --- Workers with one queue: second to a shard of hosts for each (docs/workers.md) -------------------

#: The scheduler with an ordinary spider, and one delay of all workers.
QUEUE = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.PriorityQueue",
    "SCHEDULER_PERSIST": True,
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "DOWNLOADER_MIDDLEWARES": '{"dedup.scrapy.delay.SharedDelayMiddleware": 1000000}',
}


class Worker(Files):
    """A running crawl.  It can't be forked: some packages here have a folder ``tests`` of their own."""

    def __init__(self, site: Hosts, folder: Path, server: Server, **settings: object) -> None:
        shared = {"REDIS_URL": server.address, "DEDUP_INDEX": server.address}
        super().__init__(site, folder, None, **QUEUE | shared | settings)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "scrapy", *self.command], cwd=ROOT
        )

    def ended(self) -> int:
        return self.process.wait(LIMIT)


def test_shared_delay(server: Server, tmp_path: Path) -> None:
    delay = 0.15
    with serve(Hosts(2, contents=40)) as site:
        site.most[0] = 4  # else it might be through before the other begins
        slow = {
            "DOWNLOAD_DELAY": delay,
            "RANDOMIZE_DOWNLOAD_DELAY": False,
            "starts": [site.url(content, copy) for copy in (0, 1) for content in range(40)],
        }
        workers = [Worker(site, tmp_path, server, **slow)]
        wait_until(lambda: len(site.asked) == 4)
        workers.append(Worker(site, tmp_path, server, **slow))
        wait_until(lambda: "Spider opened" in workers[1].log.read_text())
        site.most.clear()
        assert [each.ended() for each in workers] == [0, 0]
    assert kept(tmp_path) == Counter(range(site.contents))
    assert all(each.stats()["downloader/response_count"] > 3 for each in workers)
    for gaps in site.gaps().values():
        assert sum(gaps) > len(gaps) * delay - 0.1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SCHEDULER_PERSIST": False}, "SCHEDULER_PERSIST is False"),
        ({"SCHEDULER_FLUSH_ON_START": True}, "SCHEDULER_FLUSH_ON_START is True"),
        (
            {"SCHEDULER_IDLE_BEFORE_CLOSE": 5, "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue"},
            "SCHEDULER_IDLE_BEFORE_CLOSE is 5",
        ),
    ],
)
def test_harmful_settings(project: Project, server: Server, settings: dict[str, object], said: str) -> None:
    project.site.pages = {"/": page("home")}
    project.settings |= QUEUE | {
        "REDIS_URL": server.address,
        "DEDUP_INDEX": server.address,
        "DOWNLOAD_DELAY": 0.01,
    }
    del project.settings["DOWNLOADER_MIDDLEWARES"]
    assert said not in project.crawl().output
    assert f"WARNING: {said}" in project.crawl(**settings).output
