"""scrapy-redis: its spider, scheduler and duplicates filter on a redis-server, which has the index as well."""

import pytest

from tests.support.crawls import page
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
    project.settings |= {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
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
