"""Links of near-duplicates in real crawls: harvest, parking, samples, and what a spider notices of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from dedup.scrapy import Parked
from dedup.scrapy.parked import parked_urls
from tests.support.crawls import TWINS, Answer, Run, Walker, page


@pytest.fixture
def parked(tmp_path: Path) -> Path:
    return tmp_path / "parked.jsonl"


@pytest.fixture
def follow(crawl: Run, parked: Path, tmp_path: Path) -> Run:
    """Crawls with links of near-duplicates followed by their yield."""

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


def test_by_default_a_near_duplicate_is_not_parsed_and_nothing_is_parked(crawl: Run, parked: Path) -> None:
    done = crawl(TWINS, DEDUP_PARKED=str(parked))
    assert "/behind-b" not in done.requests
    assert not parked.exists()


@pytest.mark.parametrize("how", ["yield", "all"])
def test_links_of_a_near_duplicate_are_followed_and_its_items_left_out(follow: Run, how: str) -> None:
    done = follow(TWINS, DEDUP_FOLLOW=how)
    assert "/behind-b" in done.requests
    assert [item["path"] for item in done.items] == ["/", "/a", "/behind-a", "/behind-b"]
    assert [record["action"] for record in done.records] == ["drop"]
    assert done.mishaps == []


def test_a_mirror_is_left_when_it_brings_nothing(follow: Run, parked: Path) -> None:
    done = follow(mirror(100))
    copies = [path for path in done.requests if path.startswith("/copy/article")]
    assert len(copies) < 25
    assert done.figures["links/waiting"] == 100 - len(copies)
    assert len(list(parked_urls(parked))) == done.figures["links/waiting"]


def test_new_pages_of_a_mirror_are_found(follow: Run) -> None:
    done = follow(mirror(10, new=3))
    assert {"/copy/article-10.html", "/copy/article-12.html"} <= {item["path"] for item in done.items}


def test_a_line_of_the_log_says_why(follow: Run, parked: Path) -> None:
    follow(mirror(60))
    record = next(line for line in map(json.loads, parked.read_text().splitlines()) if "rate" in line)
    assert record["judged"] - record["new"] >= 3
    assert record["rate"] < record["least"] == 0.05
    assert record["group"].partition("/")[2] == "copy/article-#.html"
    assert record["found_on"].endswith("/copy/list.html")


def test_a_spider_can_opt_out_of_the_harvest(follow: Run) -> None:
    class OptsOut(Walker):
        def request(self, path: str, **options: Any) -> Request:
            return super().request(path, **options, meta={"dedup_harvest": False})

    done = follow(TWINS, OptsOut)
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


def test_an_errback_is_told_that_a_link_is_parked(follow: Run) -> None:
    done = follow(mirror(100))
    errors = [failure.value for failure in done.spider.failures]
    assert sum(isinstance(error, Parked) for error in errors) >= 80


def test_without_the_log_nothing_is_parked(follow: Run) -> None:
    done = follow(mirror(60), DEDUP_PARKED="/dev/full")
    assert len([path for path in done.requests if path.startswith("/copy/article")]) == 60


def test_a_wrong_path_of_the_log_refuses_the_crawl(follow: Run, tmp_path: Path) -> None:
    done = follow(TWINS, DEDUP_PARKED=f"{tmp_path}/no%(such)s")
    assert done.requests == []
    assert "DEDUP_PARKED" in done.mishaps[0]


def test_starts_and_what_has_opted_out_are_never_parked(follow: Run) -> None:
    class Insists(Walker):
        def links(self, response: Any) -> list[str]:
            return super().links(response)

        def request(self, path: str, **options: Any) -> Request:
            if path.endswith("7.html"):
                options["meta"] = {"dedup": False}
            if path.endswith("8.html"):
                options["dont_filter"] = True
            return super().request(path, **options)

    done = follow(mirror(60), Insists)
    wanted = {f"/copy/article-{number}.html" for number in range(60) if number % 10 in (7, 8)}
    assert wanted <= set(done.requests)


def test_priorities_follow_the_yield(follow: Run) -> None:
    """The copies are listed first; by their yield, the articles of the other folder come before most of them."""
    pages = mirror(60)
    pages["/"] = page("home", "/list.html", "/copy/list.html", "/fresh/list.html")
    fresh = [f"/fresh/{name}.html" for name in ("anna", "bert", "cora", "dora", "emil")]
    pages |= {"/fresh/list.html": page("fresh", *fresh)} | {path: page(path) for path in fresh}
    done = follow(pages, DEDUP_FOLLOW="all", DEDUP_PRIORITY=True)
    copies = [at for at, path in enumerate(done.requests) if path.startswith("/copy/article")]
    assert len(copies) == 60
    assert all(done.requests.index(path) < copies[40] for path in fresh)
