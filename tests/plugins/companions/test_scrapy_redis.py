"""scrapy-redis: its spider, scheduler and duplicates filter on a redis-server, which has the index as well."""

from collections.abc import Iterable

import pytest

from dedup.scrapy.parked import parked_urls
from tests.support.crawls import Answer, page
from tests.support.projects import Project
from tests.support.redis import Server

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
def test_the_urls_of_the_queue_are_where_the_crawl_begins(
    project: Project, server: Server, keep_start: bool
) -> None:
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
    """Sixty articles and a mirror of them; of some articles the copy alone links to a note, which is new."""
    articles = [f"/article-{number}.html" for number in range(60)]
    copies = [f"/copy{path}" for path in articles]
    notes = {f"/copy/article-{number}.html": f"/copy/note-{number}.html" for number in with_notes}
    return (
        {"/": page("home", "/list.html", "/copy/list.html")}
        | {"/list.html": page("list", *articles), "/copy/list.html": page("list", *copies)}
        | {path: page(path) for path in articles}
        | {f"/copy{path}": page(path, *filter(None, [notes.get(f"/copy{path}")])) for path in articles}
        | {path: page(path) for path in notes.values()}
    )


def test_parked_links_come_back_through_the_shared_queue(project: Project, server: Server) -> None:
    project.site.pages = mirror(range(20, 60))
    project.write("spiders", SPIDER)
    project.settings |= SHARED_FOR_GOOD | {"REDIS_URL": server.address, "DEDUP_INDEX": server.address}
    server.client.rpush("urls", project.site.url + "/")
    done = project.crawl()
    assert (done.status, done.mishaps) == (0, [])
    assert done.stats["dedup/links/came_back"] > 10
    assert set(project.paths(done)) >= {f"/copy/note-{number}.html" for number in range(20, 60)}
    assert len(set(project.site.requests)) == len(project.site.requests)


def test_what_one_crawl_has_parked_is_got_from_its_log_by_the_next(project: Project, server: Server) -> None:
    """For the shared filter of duplicate requests, those links have been requested; URLs of the queue pass it."""
    project.site.pages = mirror([55])
    project.write("spiders", SPIDER)
    project.settings |= SHARED_FOR_GOOD | {"REDIS_URL": server.address, "DEDUP_INDEX": server.address}
    project.settings["DEDUP_EXPLORE"] = 0.0
    server.client.rpush("urls", project.site.url + "/")
    first = project.crawl()
    parked = set(parked_urls(project.folder / "parked.jsonl"))
    assert len(parked) == first.stats["dedup/links/waiting"] > 30
    assert "/copy/note-55.html" not in project.paths(first)
    server.client.rpush("urls", *parked)
    then = project.crawl()
    assert (then.status, then.mishaps) == (0, [])
    assert "/copy/note-55.html" in project.paths(then)
