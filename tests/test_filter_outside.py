"""The filter outside Scrapy: the crawler that docs/filter.md shows, on the demo site."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from crawler.demo import Site, serve
from dedup import Detector, open_index
from dedup.filter import Crawl, DropLog, Filter, Visit
from dedup.fingerprint.chrome import COPIES
from tests.support import ROOT
from tests.support.coroutines import driven
from tests.support.filters import text
from tests.support.logs import read_log
from tests.support.waiting import LIMIT

EXAMPLE = re.compile(r"^```python\n(# crawl\.py\n.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    found = EXAMPLE.search((ROOT / "docs" / "filter.md").read_text())
    assert found
    path = tmp_path / "crawl.py"
    path.write_text(found[1])
    return path


@pytest.mark.parametrize("at_once", [1, 8])
def test_the_crawler_of_the_page_gets_all_contents_and_few_copies(example: Path, at_once: int) -> None:
    pytest.importorskip("httpx")
    written = example.read_text()
    assert "range(8)" in written
    example.write_text(written.replace("range(8)", f"range({at_once})"))
    site, log = Site(), example.with_name("drops.jsonl")
    with serve(site) as start:
        done = subprocess.run(
            [sys.executable, example, start, f"file:{example.with_name('kept.sqlite')}", log],
            check=False,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    assert done.returncode == 0, done.stderr
    kept = Counter(site.truth[path_of(url)] for url in done.stdout.split())
    assert kept.keys() == set(site.truth.values())
    months = kept.pop("calendar")  # until what changes on them is seen to be noise
    assert months <= 60
    # Of articles, print and mirror, the first pages in each pair of folders are kept until it is known that they are copies.
    assert sum(kept.values()) - len(kept) <= 3 * COPIES
    drops = read_log(log)
    assert len(drops) > 25
    assert all(
        site.truth[path_of(drop["url"])] == site.truth[path_of(drop["duplicate_of"])] for drop in drops
    )
    dropped = sum(drop["undone"] is None for drop in drops)  # another line tells that a drop was taken back
    assert f"{dropped} near-duplicates were dropped" in done.stderr


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


class Queue(Crawl):
    """A crawl of two contents at two URLs each: those of the second are linked from the last of the first only."""

    def __init__(self) -> None:
        self.queue = [("http://a.org/story", True), ("http://a.org/story-again", True)]
        self.kept: list[str] = []

    def fetch_again(self, origin: str, *, judged: bool = True) -> None:
        self.queue.append((origin, judged))

    async def work(self, filter: Filter) -> None:
        """Does what is to be done, and says of no page that it was handed over."""
        while self.queue:
            url, judged = self.queue.pop(0)
            html = text("fable" if "fable" in url else "story")
            page = Visit.of_html(html, url, filter.index.detector, origin=url)
            if judged and (await filter.judge(page)).action == "drop":
                continue
            self.kept.append(url)
            if url == "http://a.org/story-again":
                self.queue += [("http://a.org/fable", True), ("http://a.org/fable-again", True)]


@driven
async def test_a_crawl_is_finished_when_every_drop_is_certain_also_of_what_was_found_at_the_end() -> None:
    crawl = Queue()
    filter = Filter(open_index("memory:", Detector()), DropLog("/dev/null"), crawl=crawl)
    asked = 0

    async def idle() -> None:
        nonlocal asked
        asked += 1
        await crawl.work(filter)
        if asked in (2, 4):  # it turns out when nothing is left to be done
            await filter.failed(crawl.kept[-1])

    await filter.finish(idle)
    assert crawl.kept == [f"http://a.org/{name}" for name in ("story", "story-again", "fable", "fable-again")]
    assert crawl.queue == []
    assert filter.stats.get_value("dedup/fetched_again") == 2


@driven
async def test_a_page_of_html_is_read_once_for_all_its_copies_of_the_same_bytes() -> None:
    detector = Detector()
    filter = Filter(open_index("memory:", detector), DropLog("/dev/null"))
    html = text("story").encode()
    for name in "abc":
        await filter.judge(Visit.of_html(html, f"http://a.org/{name}", detector, encoding="UTF-8"))
    await filter.judge(Visit.of_html(html, "http://a.org/d", detector))  # its encoding is a guess
    assert filter.stats.get_value("dedup/equal_bodies") == 2
    await filter.close()


def test_only_another_url_than_that_of_the_page_was_asked_for_instead() -> None:
    for asked, told in (("http://a.org/", ""), ("http://a.org/old", "http://a.org/old"), ("", "")):
        assert Visit.of_html("<p>page", "http://a.org/", Detector(), asked=asked).asked == told
