"""The spider `site` from the command line, against the demo site, whose truth is known."""

import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from crawler.demo import Site, serve
from crawler.spiders.site import SiteSpider
from dedup.fingerprint.chrome import COPIES, KNOWN
from tests.support import ROOT, slow
from tests.support.logs import read_log
from tests.support.processes import Scrapy
from tests.support.waiting import LIMIT
from tests.support.warm import python

#: Contents that no crawl may keep: robots.txt forbids their only page.
HIDDEN = {"accounts"}


class Recorded(Site):
    """The demo site; knows which paths it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        self.requests.append(path)
        return super().render(path, visit)


class Pages:
    """A site of a few pages of our own."""

    def __init__(self, pages: dict[str, str] | None = None) -> None:
        self.pages = pages or {}
        self.requests: list[str] = []

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        self.requests.append(path)
        return 200 if path in self.pages else 404, "text/html", self.pages.get(path, "").encode()


@dataclass
class Crawl:
    """What came of a crawl."""

    url: str
    status: int
    log: str
    items: list[dict[str, Any]]
    records: list[dict[str, Any]]

    @property
    def kept(self) -> set[str]:
        """The paths of the items."""
        return {self.path(item["url"]) for item in self.items}

    @property
    def dropped(self) -> set[str]:
        """The paths in the drop log."""
        return {self.path(record["url"]) for record in self.records}

    def path(self, url: str) -> str:
        assert url.startswith(self.url)
        return "/" + url.removeprefix(self.url)

    def count(self, name: str) -> int:
        """One of the filter's stats."""
        found = re.search(rf"'dedup/{name}': (\d+)", self.log)
        return int(found[1]) if found else 0


class Process:
    """A running ``scrapy crawl site``."""

    def __init__(self, url: str, folder: Path, *arguments: str, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._url, self._folder = url, folder
        values: dict[str, object] = {
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "DEDUP_INDEX": "memory:",
            "DEDUP_LOG": folder / "duplicates.jsonl",
            "LOG_FILE": folder / "log",
        } | settings
        self._log = Path(str(values["DEDUP_LOG"]))
        command = ["crawl", "site", "-a", f"start={url}", *arguments]
        command += ["-O", str(folder / "pages.jsonl")]
        for name, value in values.items():
            command += ["-s", f"{name}={value}"]
        self._process = Scrapy(*command)

    def done(self) -> Crawl:
        status = self._process.wait(LIMIT)
        assert status is not None, "the crawl takes too long"
        log = (self._folder / "log").read_text()
        return Crawl(self._url, status, log, read_log(self._folder / "pages.jsonl"), read_log(self._log))


def contents(site: Site, paths: Iterable[str]) -> Counter[str]:
    """How often each content is among these pages."""
    return Counter(site.truth[path] for path in paths)


def every_content_once(site: Site) -> Counter[str]:
    return Counter(set(site.truth.values()) - HIDDEN)


def most_copies(crawlers: int) -> int:
    """How many copies crawls may keep, of 52.

    Until eight pages of a host are known to a crawler, only equal pages are dropped: those among the eight may be copies, above
    all of the article that has twenty under session ids, and as many that are under way then.  And the first copies in each two of
    the three folders are kept: those of articles, of the mirror and for print.
    """
    return crawlers * 2 * KNOWN + 3 * COPIES


def assert_every_content_is_kept(site: Site, paths: Iterable[str], crawlers: int = 1) -> None:
    """Every content is kept at least once, and at most some copies more."""
    kept = contents(site, paths)
    more = kept - every_content_once(site)
    assert not every_content_once(site) - kept
    more.pop("calendar", None)  # each sees by itself what changes on its months, and may see it late
    assert more.total() <= most_copies(crawlers)


# --- One crawl after another ------------------------------------------------------------------------


@dataclass
class Run:
    """A crawl of a site that is still being served, so that it can be crawled again."""

    site: Recorded
    settings: dict[str, object]
    done: Crawl


@pytest.fixture(scope="module")
def first_runs(redis_socket: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """A crawl with each kind of index, one page at a time."""
    folder = tmp_path_factory.mktemp("first")
    indexes = {
        "memory": "memory:",
        "file": f"file:{folder / 'index.sqlite'}",
        "redis": f"unix://{redis_socket}",
    }
    with ExitStack() as stack:

        def run(store: str) -> Run:
            site = Recorded()
            url = stack.enter_context(serve(site))
            settings: dict[str, object] = {"DEDUP_INDEX": indexes[store], "DEDUP_NAMESPACE": uuid4().hex}
            return Run(site, settings, Process(url, folder / store, CONCURRENT_REQUESTS=1, **settings).done())

        with ThreadPoolExecutor(2) as pool:
            yield dict(zip(indexes, pool.map(run, indexes), strict=True))


@pytest.fixture
def run(first_runs: dict[str, Run], store: str) -> Run:
    """The crawl with each kind of index in turn."""
    return first_runs[store]


def test_every_content_is_kept_in_as_many_pages_as_the_readme_says(run: Run) -> None:
    assert run.done.status == 0
    said = re.search(r"some copies: (\d+) to (\d+) pages", (ROOT / "README.md").read_text())
    assert said
    assert int(said[1]) <= len(run.done.items) <= int(said[2])
    assert_every_content_is_kept(run.site, run.done.kept)
    assert len(run.done.items) == len(run.done.kept)
    assert "ERROR" not in run.done.log
    assert "Traceback" not in run.done.log


def test_what_only_looks_alike_is_kept_and_no_trap_is_entered(run: Run) -> None:
    alike = {path for path in run.site.pages if path.startswith(("/shop/", "/staff/", "/list?page="))}
    assert len(alike) >= 20
    assert alike - {"/list?page=1"} <= run.done.kept  # which is the same as /list
    assert run.done.count("unjudged/short") >= 5
    # The months of an endless calendar differ in a counter, which has to be seen to be noise, and in their addresses.
    assert 2 <= len({path for path in run.site.requests if path.startswith("/calendar/")}) <= 60
    assert run.site.requests[0] == "/robots.txt"
    assert not any(path.startswith("/private/") for path in run.site.requests)


def test_every_drop_is_on_record_and_was_a_duplicate(run: Run) -> None:
    done, truth = run.done, run.site.truth
    assert len(done.records) == done.count("dropped") == done.count("duplicate") > 0
    for record in done.records:
        kept = done.path(record["duplicate_of"])
        assert kept in done.kept
        assert truth[done.path(record["url"])] == truth[kept]
    assert done.count("pages") == len(done.items) + len(done.records)
    assert len(run.site.requests) == done.count("pages") + done.count("skipped")


def test_an_item_tells_of_its_page(run: Run) -> None:
    for item in run.done.items:
        assert list(item) == ["url", "status", "title", "depth", "fingerprint", "fetched"]
        path = run.done.path(item["url"])
        assert item["status"] == 200
        assert f"<title>{item['title']}</title>" in run.site.render(path, 1)[2].decode()
        assert (item["depth"] == 0) == (path == "/")
        assert re.fullmatch("[0-9a-f]{16}", item["fingerprint"])
        assert datetime.fromisoformat(item["fetched"]).utcoffset() is not None


def test_all_stores_keep_the_same_pages(first_runs: dict[str, Run]) -> None:
    memory, *others = (run.done.kept for run in first_runs.values())
    assert others == [memory] * len(others)


@pytest.mark.parametrize("store", [slow("file"), "redis"], indirect=True)
def test_a_second_run_keeps_every_content_too(run: Run, tmp_path: Path) -> None:
    """Of two copies it may keep the other one: the one that it meets first."""
    second = Process(run.done.url, tmp_path, **run.settings).done()
    assert_every_content_is_kept(run.site, second.kept)
    assert second.count("new") + second.count("same") + second.count("unjudged") == len(second.items)


@pytest.mark.parametrize(("method", "store"), [("minhash", "file"), slow("supershingle", "redis")])
def test_no_method_loses_a_content(method: str, store: str, redis_socket: Path, tmp_path: Path) -> None:
    index = f"file:{tmp_path}/index.sqlite" if store == "file" else f"unix://{redis_socket}"
    settings = {"DEDUP_INDEX": index, "DEDUP_NAMESPACE": uuid4().hex, "DEDUP_METHOD": method}
    site = Site()
    with serve(site) as url:
        done = Process(url, tmp_path, **settings).done()
    kept = contents(site, done.kept)
    assert set(kept) == set(every_content_once(site))
    assert {record["rule"] for record in done.records} <= {"exact", "rare", "probe", "address", method}
    for record in done.records:
        assert site.truth[done.path(record["url"])] == site.truth[done.path(record["duplicate_of"])]
    if method == "minhash":
        assert_every_content_is_kept(site, done.kept)
    assert len(done.records) > 5  # supershingles find few pages below a resemblance of .95


# --- Two crawlers, one index ------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, slow(20)])
def test_two_crawlers_of_one_index_keep_all_contents(redis_socket: Path, tmp_path: Path, rounds: int) -> None:
    start = threading.Barrier(2, timeout=LIMIT)

    class StartsBothAtOnce(Site):
        def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
            if path == "/":
                start.wait()
            return super().render(path, visit)

    for number in range(rounds):
        site, log = StartsBothAtOnce(), tmp_path / f"{number}.jsonl"
        settings = {"DEDUP_INDEX": f"unix://{redis_socket}", "DEDUP_NAMESPACE": uuid4().hex, "DEDUP_LOG": log}
        # Else more copies may be under way than `most_copies` counts.
        settings |= {"CONCURRENT_REQUESTS": KNOWN}
        with serve(site) as url:
            both = [Process(url, tmp_path / f"{number}-{name}", **settings) for name in "ab"]
            a, b = (process.done() for process in both)
        assert_every_content_is_kept(site, a.kept | b.kept, crawlers=2)
        short = a.count("unjudged/short")  # which both meet, and keep
        others = len(a.kept | b.kept) - a.count("new") - b.count("new") - short
        # What was fetched again and kept in the end counts as new twice.
        again = sum(done.count("fetched_again") for done in (a, b))
        doubtful = sum(done.count("unjudged") + done.count("same") - short for done in (a, b))
        assert -again <= others <= doubtful
        assert a.count("dropped") > 0
        assert b.count("dropped") > 0
        undone = [record["undone"] is not None for record in read_log(log)]
        assert undone.count(False) == a.count("dropped") + b.count("dropped")
        assert undone.count(True) <= again
        assert [done.status for done in (a, b)] == [0, 0]
        assert "ERROR" not in a.log + b.log


# --- Where it goes ----------------------------------------------------------------------------------


def test_allow_and_deny_choose_the_links_that_are_followed(tmp_path: Path) -> None:
    site = Recorded()
    with serve(site) as url:
        done = Process(url, tmp_path, "-a", "allow=/(keepers|articles)/", "-a", r"deny=fog|\?sid=").done()
    assert done.status == 0
    assert {path for path in site.requests if not re.search("/(keepers|articles)/", path)} == {
        "/robots.txt",
        "/",
    }
    assert {"/", "/keepers/", "/articles/the-great-lens"} <= set(site.requests)
    assert not any("fog" in path or "sid" in path for path in site.requests)


def test_it_stays_on_the_hosts_of_the_start_and_reads_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("<title>Secret</title>")
    site = Pages()
    with serve(site) as url:
        elsewhere = [url.replace("127.0.0.1", "localhost"), f"file://127.0.0.1{tmp_path}/secret.html"]
        links = "".join(f"<a href='{href}'>x</a>" for href in (*elsewhere, "near"))
        site.pages |= {"/": f"<title>Front</title>{links}", "/near": "<title>Near</title>"}
        done = Process(url, tmp_path).done()
    assert [item["title"] for item in done.items] == ["Front", "Near"]
    assert sorted(site.requests) == ["/", "/near", "/robots.txt"]


def test_a_start_host_beyond_ascii_is_recognised_in_its_own_links() -> None:
    assert SiteSpider(start="http://Bücher.example/").allowed_domains == ["xn--bcher-kva.example"]


# --- python -m crawler ------------------------------------------------------------------------------


def run_module(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [python(), "-m", "crawler", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT, check=False)


#: Between these lines there may be others, such as of drops that were taken back.
SUMMARY = re.compile(
    r"http://127\.0\.0\.1:\d+/: (\d+) pages fetched and judged.*\n"
    r"(?:  .*\n)*?  kept +(\d+): .*\n"
    r"(?:  .*\n)*?  dropped +(\d+) near-duplicates?\n"
    r"(?:  .*\n)*?  drop log +(.*)\n"
    r"(?:  .*\n)*?  items +(.*)\n"
)


def test_the_module_crawls_the_demo_site_and_says_what_came_of_it(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for part in ("crawler", "dedup"):
        shutil.copytree(ROOT / part, copy / part)
    shutil.copy(ROOT / "scrapy.cfg", copy)
    done = run_module(cwd=copy)
    assert done.returncode == 0
    found = SUMMARY.search(done.stdout)
    assert found
    pages, kept, dropped = (int(figure) for figure in found.groups()[:3])
    assert pages == kept + dropped
    urls = [urlsplit(item["url"]) for item in read_log(copy / found[5])]
    assert kept == len(urls)
    assert_every_content_is_kept(Site(), {url._replace(scheme="", netloc="").geturl() for url in urls})
    assert dropped == len(read_log(copy / found[4])) > 0
    assert "Traceback" not in done.stderr


def test_the_module_works_in_any_folder(tmp_path: Path) -> None:
    text = "<p>" + " ".join(f"word{number}" for number in range(200))
    text = "<a href=/copy>copy</a>" + text  # of a host of two pages, only equal ones are dropped
    with serve(Pages({"/": text, "/copy": text})) as url:
        done = run_module(url, cwd=tmp_path)
    assert done.returncode == 0
    found = SUMMARY.search(done.stdout)
    assert found
    assert found.groups()[:3] == ("2", "1", "1")
