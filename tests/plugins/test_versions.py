"""The add-on in a stranger's project, on whichever Scrapy is installed: the oldest that is allowed, and the newest."""

from tests.support.crawls import TWINS, page
from tests.support.projects import Project
from tests.support.redis import Server

KEPT = ["/", "/a", "/behind-a"]


def test_two_crawls(project: Project) -> None:
    project.site.pages = TWINS
    done = project.crawl()
    assert (done.status, done.mishaps) == (0, [])
    assert project.paths(done) == KEPT
    assert done.stats["dedup/dropped"] == 1
    assert "4 pages fetched and judged" in done.output
    again = project.crawl()
    assert (again.stats["dedup/same"], again.mishaps) == (3, [])
    assert [path.name for path in (project.folder / ".scrapy" / "dedup").rglob("*.sqlite")] == [
        "walker.sqlite"
    ]


def test_shard(project: Project, server: Server) -> None:
    project.site.pages = TWINS
    for enabled, paths in ((True, KEPT), (False, ["/", "/a", "/b", "/behind-a", "/behind-b"])):
        done = project.crawl(DEDUP_SHARD="1/1", DEDUP_INDEX=server.address, DEDUP_ENABLED=enabled)
        assert (project.paths(done), done.mishaps) == (paths, [])
        assert done.stats["dedup/shard/taken"] == done.stats["dedup/shard/handed_over"] == 1
        assert not server.client.keys("shingleback:shards:*")


def test_without_filter(project: Project) -> None:
    project.site.pages = TWINS
    assert len(project.crawl(DEDUP_ENABLED=False).items) == 5
    assert len(project.crawl(DEDUP_ACTION="mark").items) == 5


def test_refused_crawl(project: Project) -> None:
    project.site.pages = TWINS
    done = project.crawl(DEDUP_MAX_DISTANCE=12)
    assert (done.status, done.stats["finish_reason"]) == (2, "dedup_settings")
    assert (project.site.requests, done.items) == ([], [])
    assert len(done.mishaps) == 1
    assert "Crawl refused: DEDUP_MAX_DISTANCE is 12; allowed: a whole number from 0 to 7" in done.mishaps[0]
    assert project.crawl(DEDUP_INDEX="redis://127.0.0.1:1/0").status == 3
    assert project.site.requests == []


def test_other_reactor(project: Project) -> None:
    project.site.pages = TWINS
    done = project.crawl(TWISTED_REACTOR="twisted.internet.selectreactor.SelectReactor")
    assert (done.status, project.site.requests) == (2, [])
    assert "AsyncioSelectorReactor" in "".join(done.mishaps)


def test_audit(project: Project) -> None:
    project.site.pages = TWINS
    done = project.crawl(DEDUP_AUDIT=1.0)
    assert (done.stats["dedup/audit/checked"], done.mishaps) == (1, [])
    assert project.paths(done) == KEPT


def test_failed_keeper(project: Project) -> None:
    project.site.pages = {"/": page("home", "/a"), "/a": page("story", "/b"), "/b": page("story", more="b")}
    project.write(
        "spiders",
        """
        import asyncio
        import scrapy

        class Fails(scrapy.Spider):
            name = "fails"

            async def start(self):
                yield scrapy.Request(self.url)

            async def parse(self, response):
                yield {"url": response.url}
                for request in response.follow_all(css="a"):
                    yield request
                if response.url.endswith("/a"):
                    while not self.crawler.stats.get_value("dedup/dropped"):
                        await asyncio.sleep(0.02)
                    raise ValueError("this page breaks the spider")
        """,
    )
    done = project.crawl("fails", CONCURRENT_REQUESTS=4)
    assert "/b" in project.paths(done)
    assert done.stats["dedup/fetched_again"] == 1


def test_commands(project: Project) -> None:
    project.site.pages = TWINS
    assert project.crawl().status == 0
    assert "walker" in project.scrapy("list").output
    fetched = project.scrapy("fetch", "--nolog", f"{project.site.url}/a")
    assert (fetched.status, "word" in fetched.output) == (0, True)
    assert "1 near-duplicate" in project.scrapy("duplicates").output
    assert "pages 3: 3 done" in " ".join(project.scrapy("index", "info").output.split())
    assert project.scrapy("index", "check").status == 0
    assert project.scrapy("compare", f"{project.site.url}/a", f"{project.site.url}/b").status in {0, 2}
