"""Crawl after crawl on one index: each finds every content of the site once, whatever has become of it meanwhile."""

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from scrapy.utils.test import get_crawler

from tests.support import slow
from tests.support.crawls import ADDON, TWINS, Answer, Crawl, Run, Site, Walker, failing, losing, page
from tests.support.stores import in_file


@pytest.fixture(params=["file", slow("redis")])
def store(request: pytest.FixtureRequest) -> str:
    """Each kind of index that is there for the next crawl."""
    return str(request.param)


BOTH = pytest.mark.parametrize("store", ["file", "redis"], indirect=True)


class Items:
    """What the crawls of a test have handed over."""

    def __init__(self, crawl: Run, address: str, namespace: str) -> None:
        self._crawl = crawl
        self._where = {"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace}

    def crawl(self, pages: dict[str, Answer], spider: type[Walker] = Walker, **settings: Any) -> list[str]:
        """Crawls once more; the paths of the items."""
        self.last: Crawl = self._crawl(pages, spider, **self._where | settings)
        return sorted(item["path"] for item in self.last.items)


@pytest.fixture
def items(crawl: Run, address: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Items:
    monkeypatch.chdir(tmp_path)  # there is the history of an index in Redis
    return Items(crawl, address, namespace)


@pytest.mark.parametrize("links", [("/a", "/c"), slow(("/c", "/a"))], ids=" then ".join)
def test_a_content_that_has_moved_is_found_where_it_is_now(items: Items, links: tuple[str, ...]) -> None:
    assert items.crawl({"/": page("home", "/a"), "/a": page("X")}) == ["/", "/a"]
    later = {"/": page("home", *links), "/a": page("Y"), "/c": page("X")}
    for _ in range(2):
        assert items.crawl(later) == ["/", "/a", "/c"]


def test_with_another_index_of_the_same_name_all_is_handed_over_again(items: Items) -> None:
    story = {"/": page("home", *(f"/{at}" for at in range(3))), **{f"/{at}": page(at) for at in range(3)}}
    assert items.crawl(story, DEDUP_INCREMENTAL=True) == sorted(story)
    assert items.crawl(story, DEDUP_INCREMENTAL=True) == []
    default = {"DEDUP_INCREMENTAL": True, "DEDUP_INDEX": None}
    assert items.crawl(story, **default) == sorted(story)


def test_a_content_is_kept_where_it_is_left_when_the_page_that_was_kept_is_gone(items: Items) -> None:
    assert items.crawl(TWINS) == ["/", "/a", "/behind-a"]
    assert items.crawl(TWINS) == ["/", "/a", "/behind-a"]
    gone = {path: answer for path, answer in TWINS.items() if path != "/a"}
    assert items.crawl(gone) == ["/", "/b", "/behind-b"]
    assert items.crawl(TWINS) == ["/", "/a", "/behind-a"]


def in_session(number: int, pages: int, extra: int = 0, name: str = "PHPSESSID") -> dict[str, Answer]:
    """A site whose links carry a new session id in each crawl: a chain of pages, and new ones behind the last."""
    query = f"?{name}={number:08x}"
    paths = [f"/{page}{query}" for page in range(pages + extra)]
    return {"/": page("home", paths[0])} | {
        path: page(n, *paths[n + 1 : n + 2]) for n, path in enumerate(paths)
    }


def test_links_with_new_session_ids_hide_nothing(items: Items) -> None:
    assert len(items.crawl(in_session(1, 4))) == 5
    assert len(items.crawl(in_session(2, 4, extra=2))) == 7
    assert items.last.figures["new"] == 6  # and the front page, as it was, is the same
    assert len(items.crawl(in_session(3, 4, extra=2))) == 7
    assert len(items.crawl(in_session(3, 4, extra=2))) == 7
    assert items.last.figures["same"] == 7


@pytest.mark.parametrize("name", [slow("PHPSESSID"), "visit"])
def test_pages_of_earlier_urls_do_not_pile_up(items: Items, store: str, address: str, name: str) -> None:
    for number in range(3):
        items.crawl(in_session(number, 5, name=name))
    if store == "file":
        assert in_file(Path(address.removeprefix("file:"))) == 6
    assert "6 pages known" in "".join(message.getMessage() for message in items.last.messages)


def test_a_renamed_host_hides_nothing(items: Items, site: Site) -> None:
    class Renamed(Walker):
        async def start(self) -> Any:
            self.url = self.url.replace("127.0.0.1", "localhost")
            yield self.request("/")

    assert items.crawl(TWINS) == ["/", "/a", "/behind-a"]
    assert items.crawl(TWINS, Renamed) == ["/", "/a", "/behind-a"]


# --- Incremental crawls ----------------------------------------------------------------------------------


def test_an_incremental_crawl_hands_over_what_is_new_or_has_changed(items: Items) -> None:
    site = {"/": page("home", "/list"), "/list": page("list", "/x", "/y"), "/x": page("x"), "/y": page("y")}
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == ["/", "/list", "/x", "/y"]
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == []
    assert items.last.figures["unchanged"] == items.last.figures["items_left_out"] == 4
    assert len(items.last.requests) == 4 + items.last.requests.count("/robots.txt"), "all links were followed"
    site |= {"/y": page("y", "/z", more="now cheaper"), "/z": page("z")}
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == ["/y", "/z"]
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == []
    assert items.crawl(site) == ["/", "/list", "/x", "/y", "/z"], "a plain crawl hands over everything"


def test_an_incremental_crawl_hands_over_nothing_again_under_new_session_ids(items: Items) -> None:
    for number in range(2):
        fresh = items.crawl(in_session(number, 4), DEDUP_INCREMENTAL=True)
        assert len(fresh) == (0 if number else 5)
    assert [path[:3] for path in items.crawl(in_session(2, 4, extra=2), DEDUP_INCREMENTAL=True)] == [
        "/3?",  # it has a new link
        "/4?",
        "/5?",
    ]


def test_a_page_on_which_an_incremental_crawl_failed_is_handed_over_by_the_next(items: Items) -> None:
    site = {"/": page("home", "/a"), "/a": page("X")}
    assert items.crawl(site, failing("/a"), DEDUP_INCREMENTAL=True) == ["/"]
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == ["/a"]
    site["/a"] = page("Y")
    assert items.crawl(site, failing("/a"), DEDUP_INCREMENTAL=True) == []
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == ["/a"]


class Ends(Walker):
    """Says when its callback has given all that it gives of /a."""

    is_through = False

    def parse(self, response: Any) -> Any:
        yield from super().parse(response)
        self.is_through = self.path(response) == "/a"


@pytest.mark.parametrize(
    "pipeline", [slow(losing("/a")), losing("/a", lambda crawler: crawler.spider.is_through)]
)
def test_an_item_that_a_pipeline_lost_is_handed_over_later(items: Items, pipeline: type) -> None:
    site = {"/": page("home", "/a"), "/a": page("X")}
    assert items.crawl(site, Ends, DEDUP_INCREMENTAL=True, ITEM_PIPELINES={pipeline: 1}) == ["/"]
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == ["/a"]
    assert items.crawl(site, DEDUP_INCREMENTAL=True) == []


# --- One crawl in parts ----------------------------------------------------------------------------------


@BOTH
def test_a_job_that_goes_on_is_one_crawl(items: Items, tmp_path: Path) -> None:
    """What its first part has kept is not handed over again under another URL by its second."""
    site = {"/": page("home", "/a", "/1", "/2", "/b")} | {f"/{n}": page(n) for n in (1, 2)}
    site |= {"/a": page("X"), "/b": page("X", more="again")}
    job = {"JOBDIR": str(tmp_path / "job"), "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"}
    first = items.crawl(site, CLOSESPIDER_ITEMCOUNT=2, **job)
    assert "/a" in first
    assert "/b" not in first
    second = items.crawl(site, **job)
    assert Counter(first + second)["/a"] == 1
    assert "/b" in items.last.dropped
    assert "/b" not in second


#: A crawl that is refused leaves the client of Scrapy's experimental handler open, which only these tests use.
REFUSED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

# --- Two crawls at once ----------------------------------------------------------------------------------


@BOTH
def test_crawls_of_a_process_share_an_index(site: Site, address: str, namespace: str, tmp_path: Path) -> None:
    """Neither is refused, and together they hand over every content: a page is itself for both."""
    site.pages = {"/": page("home", "/a", "/b")} | {"/a": page("X"), "/b": page("Y")}
    settings = {"ADDONS": ADDON, "DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace, "DEDUP_CHROME": False}
    settings["DEDUP_LOG"] = str(tmp_path / "log.jsonl")

    async def both() -> list[Any]:
        crawlers = [get_crawler(Walker, settings) for _ in range(2)]
        await asyncio.gather(*(crawler.crawl_async(url=site.url) for crawler in crawlers))
        return [crawler.spider for crawler in crawlers]

    for _ in range(2):
        assert [set(spider.judgements) for spider in asyncio.run(both())] == [set(site.pages)] * 2


@REFUSED
def test_a_second_process_is_refused_where_the_file_was_chosen(crawl: Run, tmp_path: Path) -> None:
    crawl(TWINS, DEDUP_INDEX=f"file:{tmp_path}/index")
    with FileLock(tmp_path / "index.lock"):
        done = crawl(TWINS, DEDUP_INDEX=f"file:{tmp_path}/index")
    assert done.requests == []
    assert done.stats["finish_reason"] == "dedup_index_in_use"
    assert "(DEDUP_NAMESPACE, DEDUP_INDEX)" in done.mishaps[0]
    gc.collect()


@REFUSED
def test_where_nothing_can_be_written_a_crawl_keeps_every_page(
    crawl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there" / "duplicates.jsonl").mkdir(parents=True)
    (tmp_path / "there" / ".scrapy").touch()
    monkeypatch.chdir(tmp_path / "there")
    ours = {"DEDUP_INDEX": None, "DEDUP_LOG": None}
    done = crawl(TWINS, **ours)
    assert done.verdicts == dict.fromkeys(TWINS, "new") | {"/b": "unjudged: log"}
    said = [m.getMessage() for m in done.messages if m.name.startswith("dedup") and m.levelname == "WARNING"]
    assert [text.split(",")[0].split(" can't")[0] for text in said] == [
        "DEDUP_LOG is 'duplicates.jsonl'",
        "the index file:.scrapy/dedup/scrapybot/walker.sqlite",
    ]
    Path("duplicates.jsonl").rmdir()
    assert crawl(TWINS, **ours).dropped == ["/b"]  # by an index in memory
    for name, value in (("DEDUP_INDEX", "file:.scrapy/chosen.sqlite"), ("DEDUP_LOG", ".scrapy/chosen.jsonl")):
        assert crawl(TWINS, **ours | {name: value}).requests == []


def test_a_second_process_goes_on_in_memory_where_the_file_is_the_default(
    crawl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = crawl(TWINS, DEDUP_INDEX=None)
    with FileLock(".scrapy/dedup/scrapybot/walker.sqlite.lock"):
        done = crawl(TWINS, DEDUP_INDEX=None)
        assert done.verdicts == first.verdicts == {"/": "new", "/a": "new", "/behind-a": "new"}
        ours = [message for message in done.messages if message.name.startswith("dedup")]
        (said,) = [message.getMessage() for message in ours if message.levelname == "WARNING"]
        assert "in use by another crawl" in said
        assert "DEDUP_NAMESPACE" in said
        refused = crawl(TWINS, DEDUP_INDEX=None, DEDUP_INCREMENTAL=True)
        assert refused.stats["finish_reason"] == "dedup_index_in_use"
    gc.collect()
