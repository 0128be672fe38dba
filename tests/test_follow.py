"""Links of near-duplicates in real crawls: harvest, parking, samples, and what a spider notices of them."""

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from crawler.spiders.site import SiteSpider
from dedup.scrapy import Parked
from dedup.scrapy.links.parked import parked_urls
from tests.support.crawls import TWINS, Answer, Run, Site, Walker, asking, failing_late, hold, page


@pytest.fixture
def parked(tmp_path: Path) -> Path:
    return tmp_path / "parked.jsonl"


@pytest.fixture
def follow(crawl: Run, parked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Crawls with links of near-duplicates followed by their yield."""
    monkeypatch.chdir(tmp_path)  # what was learnt goes there

    def run(*arguments: Any, **settings: Any) -> Any:
        defaults = {"DEDUP_FOLLOW": "yield", "DEDUP_PARKED": str(parked)}
        return crawl(*arguments, **defaults | settings)

    return run


def mirror(pages: int, *, new: int = 0) -> dict[str, Answer]:
    """A front page, a list of articles, and the same under /copy/ with a few articles more at the end of its list."""
    articles = [f"/article-{number}.html" for number in range(pages)]
    copies = [f"/copy{path}" for path in articles]
    more = [f"/copy/article-{pages + number}.html" for number in range(new)]
    return (
        {"/": page("home", "/list.html", "/copy/list.html")}
        | {"/list.html": page("list", *articles), "/copy/list.html": page("list", *copies, *more)}
        | {path: page(path) for path in articles}
        | {f"/copy{path}": page(path) for path in articles}
        | {path: page(path) for path in more}
    )


@pytest.mark.parametrize("how", ["yield", "all"])
def test_links_of_a_near_duplicate_are_followed_and_its_items_left_out(follow: Run, how: str) -> None:
    done = follow(TWINS, DEDUP_FOLLOW=how)
    assert "/behind-b" in done.requests
    assert [item["path"] for item in done.items] == ["/", "/a", "/behind-a", "/behind-b"]
    assert [record["action"] for record in done.records] == ["drop"]
    assert done.mishaps == []


def test_a_mirror_is_left_and_links_are_logged_before_parking(follow: Run, parked: Path, site: Site) -> None:
    """So whatever kills the crawl then, the link is not lost."""

    class Looks(Walker):
        def failed(self, failure: Any) -> None:
            super().failed(failure)
            if isinstance(failure.value, Parked):
                assert failure.value.url in set(parked_urls(parked))

    hold(site, "/copy/list.html", 112)  # all that it leads to is known then
    done = follow(mirror(110), Looks, CONCURRENT_REQUESTS=2)
    copies = [path for path in done.requests if path.startswith("/copy/article")]
    waiting = done.figures["links/waiting"]
    assert len(copies) < 70
    assert len(list(parked_urls(parked))) == waiting == 110 - len(copies)
    assert sum(isinstance(failure.value, Parked) for failure in done.spider.failures) >= waiting
    assert done.mishaps == []


def test_a_spider_can_opt_out_of_the_harvest(follow: Run) -> None:
    done = follow(TWINS, asking(meta={"dedup_harvest": False}))
    assert "/behind-b" not in done.requests
    assert done.dropped == ["/b"]


def test_the_callback_does_not_run_if_all_links_were_met(follow: Run) -> None:
    pages = {
        "/": page("home", "/a", "/next", "/b"),
        "/a": page("story", "/next"),
        "/b": page("story", "/next", more="changed"),
        "/next": page("next"),
    }
    done = follow(pages)
    assert done.dropped == ["/b"]
    assert "links/harvested" not in done.figures


def test_a_link_that_came_back_stays_in_the_log(follow: Run, parked: Path) -> None:
    """So a crawl that is killed while a callback runs does not lose what that would have found."""
    came_back = []

    class Looks(Walker):
        def parse(self, response: Any) -> Any:
            if parked.exists() and f'"url": "{response.url}"' in parked.read_text():
                assert response.url in set(parked_urls(parked))
                came_back.append(response.url)
            yield from super().parse(response)

    pages = mirror(80)
    for number in range(50, 80):
        pages[f"/copy/article-{number}.html"] = page(f"/article-{number}.html", f"/copy/note-{number}.html")
        pages[f"/copy/note-{number}.html"] = page(f"note {number}")
    done = follow(pages, Looks)
    assert came_back
    assert not set(came_back) & set(parked_urls(parked))
    assert done.mishaps == []


def test_nofollow_weighs_links_likewise(follow: Run) -> None:
    done = follow(TWINS, DEDUP_ACTION="nofollow")
    assert "/behind-b" in done.requests
    assert [item["path"] for item in done.items] == ["/", "/a", "/b", "/behind-a", "/behind-b"]
    assert done.figures["links_not_followed"] == 0


FailsLate = failing_late("/a", "dedup/dropped")


def test_links_are_not_counted_as_saved_when_the_drop_is_undone(follow: Run, site: Site) -> None:
    hold(site, "/b", 2)  # whichever comes first is kept
    done = follow(TWINS, FailsLate, DEDUP_FOLLOW="all", CONCURRENT_REQUESTS=8)
    assert done.figures["fetched_again"] == 1
    assert done.figures["links_not_followed"] == 0


def test_nor_when_they_lead_further_than_those_of_the_kept_page(follow: Run, site: Site) -> None:
    hold(site, "/b", 3)  # the one that is deeper is kept
    pages = {
        "/": page("home", "/x", "/b"),
        "/x": page("x", "/a"),
        "/a": page("story", "/c"),
        "/b": page("story", "/d"),
        "/c": page("c"),
        "/d": page("d"),
    }
    done = follow(pages, DEDUP_FOLLOW="all", DEPTH_LIMIT=3, CONCURRENT_REQUESTS=8)
    assert done.figures["depth/led_on"] == 1
    assert done.figures.get("links_not_followed", 0) == 0


def test_without_the_log_nothing_is_parked(follow: Run) -> None:
    done = follow(mirror(48), DEDUP_PARKED="/dev/full")
    assert len([path for path in done.requests if path.startswith("/copy/article")]) == 48


def test_starts_and_what_has_opted_out_are_never_parked(follow: Run) -> None:
    class Insists(Walker):
        def request(self, path: str, **options: Any) -> Request:
            if path.endswith("7.html"):
                options["meta"] = {"dedup": False}
            if path.endswith("8.html"):
                options["dont_filter"] = True
            return super().request(path, **options)

    done = follow(mirror(48), Insists)
    wanted = {f"/copy/article-{number}.html" for number in range(48) if number % 10 in (7, 8)}
    assert wanted <= set(done.requests)


def test_a_job_and_the_site_spider_go_on_with_parked(
    follow: Run, crawl: Run, parked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Again(SiteSpider):
        def __init__(self, url: str) -> None:
            super().__init__(start=str(parked))

    job = {"JOBDIR": str(tmp_path / "job"), "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"}
    job["DEDUP_PROBE"] = False  # all requests are of pages
    first = follow(mirror(80), **job)
    left = {f"/copy/article-{number}.html" for number in range(80)} - set(first.requests)
    assert len(left) == first.figures["links/waiting"] > 20
    assert set(crawl(mirror(80), Again).requests) == left
    parked.unlink()
    monkeypatch.setattr("dedup.links.policy.LEAST", 0.0)
    then = follow(mirror(80), **job)
    assert sorted(then.requests) == sorted(left)
    assert then.figures["links/waiting"] == 0


def test_a_crawl_spider_follows_its_rules_on_near_duplicates(follow: Run) -> None:
    class Rules(CrawlSpider):
        name = "rules"
        rules = (Rule(LinkExtractor(), callback="note", follow=True, cb_kwargs={"word": "given"}),)

        def __init__(self, url: str) -> None:
            super().__init__()
            self.start_urls = [url + "/"]
            self.url = url

        def note(self, response: Any, word: str) -> Any:
            yield {"path": response.url.removeprefix(self.url), "word": word, "depth": response.meta["depth"]}

    done = follow(TWINS, Rules)
    assert {item["path"]: item["depth"] for item in done.items} == {"/a": 1, "/behind-a": 2, "/behind-b": 2}
    assert {item["word"] for item in done.items} == {"given"}
    assert done.mishaps == []


def test_what_comes_back_has_its_arguments_and_its_depth(follow: Run) -> None:
    class Numbers(Walker):
        def parse(self, response: Any, at: int = 0) -> Any:
            yield {"path": self.path(response), "at": at, "depth": response.meta["depth"]}
            for number, link in enumerate(self.links(response)):
                yield self.request(link, cb_kwargs={"at": number}, priority=number % 3)

    done = follow(mirror(80, new=30), Numbers, DEDUP_IGNORE_CARRIED=("at",))
    assert done.figures["links/came_back"] > 0
    articles = [item for item in done.items if "article" in item["path"]]
    assert all(
        item["depth"] == 2 and item["path"].endswith(f"/article-{item['at']}.html") for item in articles
    )


def test_a_parked_link_that_a_kept_page_has_is_downloaded(follow: Run) -> None:
    pages = mirror(80)
    pages["/"] = page("home", "/list.html", "/copy/list.html", "/late.html")
    pages["/late.html"] = page("late", "/copy/article-75.html", "/copy/article-1.html")
    pages["/copy/list.html"] = page("list", *(f"/copy/article-{number}.html" for number in range(80)))
    done = follow(pages, DEPTH_PRIORITY=0, SCHEDULER_MEMORY_QUEUE="scrapy.squeues.LifoMemoryQueue")
    assert "/copy/article-75.html" in done.requests
