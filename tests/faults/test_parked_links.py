"""kill -9 of a crawl that parks links: all of them are in the log, and two later crawls get what they lead to."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from crawler.demo import serve
from tests.support import slow
from tests.support.crawls import words
from tests.support.outages import Crawl, processed, until
from tests.support.waiting import LIMIT

#: Articles, and the numbers of those that have a note, which is another one in each folder.
ARTICLES, WITH_NOTES = 150, (25, 80, 140)


class Mirror:
    """Articles and a mirror of them, which brings nothing new but a few notes behind near-duplicates."""

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        """Makes the answer to a request."""
        folder, _, name = path.rpartition("/")
        number = int("".join(filter(str.isdecimal, name)) or -1)
        links = []
        if path == "/":
            links = ["/list.html"]
        elif name == "list.html":
            links = [f"{folder}/article-{each}.html" for each in range(ARTICLES)]
        elif "article" in name and number in WITH_NOTES:
            links = [f"{folder}/note-{number}.html"]
        elif number == ARTICLES - 1:  # one folder is known before the other, however fast the answers come
            links = ["/copy/list.html"]
        anchors = " ".join(f'<a href="{link}">more</a>' for link in links)
        return (
            200,
            "text/html",
            f"<title>A page</title><p>{words(path if 'note' in name else name)}</p>{anchors}".encode(),
        )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(Mirror()) as url:
        yield url


def contents(folder: Path) -> set[str]:
    """The contents that the crawls in a folder have made items of."""
    paths = {urlsplit(url).path for url in processed(folder)}
    return {path if "note" in path else path.rpartition("/")[2] for path in paths}


def crawl(start: object, folder: Path, **settings: object) -> Crawl:
    return Crawl(
        str(start),
        folder,
        DEDUP_INDEX=f"file:{folder}/index.sqlite",
        DEDUP_FOLLOW="yield",
        DEPTH_PRIORITY=1,  # and in the order of the links
        SCHEDULER_MEMORY_QUEUE="scrapy.squeues.FifoMemoryQueue",
        SCHEDULER_DISK_QUEUE="scrapy.squeues.PickleFifoDiskQueue",
        CONCURRENT_REQUESTS=2,
        DEDUP_PARKED=folder / "parked.jsonl",
        **settings,
    )


ALL = (
    {"", "list.html"}
    | {f"article-{number}.html" for number in range(ARTICLES)}
    | {f"{folder}/note-{number}.html" for folder in ("", "/copy") for number in WITH_NOTES}
)


class Outcome(NamedTuple):
    """What came of a trial."""

    killed: bool  #: before it had ended
    behind: bool  #: some contents were left to the crawl that began with the log


@pytest.mark.parametrize(("job", "kills"), [(True, 1), slow(False, 40), slow(True, 40)])
def test_what_a_killed_crawl_parked_is_in_the_log(url: str, tmp_path: Path, job: bool, kills: int) -> None:
    """With a JOBDIR, Scrapy itself loses what was in its queue, so the crawl that goes on has another one."""

    def trial(seed: int) -> Outcome:
        rng, folder = random.Random(f"{job} {seed}"), tmp_path / str(seed)
        log = folder / "parked.jsonl"
        jobs = iter([{"JOBDIR": folder / "job"}, {"JOBDIR": folder / "fresh job"}] if job else [{}, {}])
        killed = crawl(url, folder, **next(jobs))
        enough = rng.randrange(22_000)
        killed.wait(LIMIT, lambda: log.exists() and log.stat().st_size > enough)
        was_running = killed.kill()
        assert crawl(url, folder, **next(jobs)).ended() == 0
        behind = ALL - contents(folder)
        assert crawl(log, folder).ended() == 0
        assert contents(folder) == ALL
        assert all(json.loads(line) for line in log.read_text().splitlines())
        return Outcome(was_running, bool(behind))

    outcomes = until(kills, trial, lambda outcome: outcome.killed)
    behind = sum(outcome.behind for outcome in outcomes)
    print(f"\n{len(outcomes)} crawls, {kills} killed; of {behind}, contents were behind the log alone")
