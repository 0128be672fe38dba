"""Crawls to be killed: a site whose truth is known, and `scrapy crawl site` as a process."""

import json
import logging
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.request import fingerprint

from dedup.errors import IndexCorruptError
from tests.support.processes import Scrapy
from tests.support.waiting import LIMIT

#: Contents of the site; content 0 is its front page.
CONTENTS = 12
SESSION = "77c1d05e"
#: What a crawl logs that has nothing left to ask for.
IDLE = "Nothing is left to be asked for"
SHAPES = ("/{}", "/mirror/{}", "/print/{}", f"/{{}}?sid={SESSION}")
T = TypeVar("T")


class Twins:
    """Each content under four URLs; all of its pages link to the same contents, in all their shapes.

    So whichever page of a content is kept, everything behind it can be reached.  With ``fresh_sessions``, the
    session id in the links is another at each request, as is the URL under which that page may be kept.
    """

    def __init__(self, *, fresh_sessions: bool = False) -> None:
        self._fresh = fresh_sessions
        rng = random.Random(5)
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(3000)]
        self._pages: dict[str, str] = {}
        for number in range(CONTENTS):
            near = {2 * number + 1, 2 * number + 2, number * 7 % CONTENTS, CONTENTS - 1 - number}
            links = "".join(
                f'<a href="{shape.format(other)}">{other}</a> '
                for other in sorted(near - {0})
                if other < CONTENTS
                for shape in SHAPES
            )
            text = " ".join(rng.choices(words, k=300))
            for shape in SHAPES:
                note = f"<p>Printed from {shape.format('')}." if "print" in shape else "<p>Read on."
                self._pages[shape.format(number)] = f"<title>{number}</title><p>{text}</p>{note}<p>{links}"
        self._pages["/"] = self._pages["/0"]

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        """Makes the answer to a request."""
        if self._fresh:
            path = re.sub(r"sid=\w+", f"sid={SESSION}", path)
        page = self._pages.get(path)
        if page and self._fresh:
            page = page.replace(SESSION, f"{random.Random(visit).getrandbits(32):08x}")
        return 404 if page is None else 200, "text/html", (page or "").encode()


def content(url: str) -> int:
    """Tells which content a page of `Twins` has."""
    return int(urlsplit(url).path.rpartition("/")[2] or 0)


class Processed:
    """The item pipeline of these crawls: it puts each item on record at once, and logs when nothing is left to be asked for."""

    def __init__(self, crawler: Crawler) -> None:
        crawler.signals.connect(self.spider_idle, signals.spider_idle)
        self._file = os.open(os.environ["PROCESSED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Scrapy calls this."""
        return cls(crawler)

    def spider_idle(self) -> None:
        """Scrapy sends this again and again while anything keeps the crawl open."""
        logging.getLogger(__name__).info(IDLE)

    def process_item(self, item: Any) -> Any:
        """Puts an item on record; Scrapy calls this."""
        os.write(self._file, f"{item.url}\n".encode())
        return item


class Crawl(Scrapy):
    """A running ``scrapy crawl site``; several in one folder share their drop log and what is processed."""

    def __init__(self, url: str, folder: Path, **settings: object) -> None:
        folder.mkdir(exist_ok=True)
        self.log = folder / f"log {len(list(folder.glob('log *')))}"
        self.log.touch()
        values: dict[str, object] = {
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "ITEM_PIPELINES": '{"tests.support.outages.Processed": 1}',
            "DEDUP_LOG": folder / "drops.jsonl",
            "DEDUP_EXPECTED_PAGES": 1000,
            "DEDUP_CHROME": False,  # of a site of few pages, only equal ones would be dropped
            "LOG_FILE": self.log,
        } | settings
        command = ["crawl", "site", "-a", f"start={url}"]
        for name, value in values.items():
            command += ["-s", f"{name}={value}"]
        self._output = folder / "processed" if values.get("DEDUP_ENABLED") == 0 else self.log
        self._before = self._size()
        super().__init__(*command, PROCESSED=str(folder / "processed"))

    def _size(self) -> int:
        return self._output.stat().st_size if self._output.exists() else 0

    @property
    def progress(self) -> int:
        """A number that grows with the pages: bytes of the log or, where the log names no pages, of the items."""
        return self._size() - self._before

    def ended(self) -> int | None:
        """Waits for its end; its exit status, or None if it does not end."""
        return self.wait(LIMIT)

    def kill_at(self, progress: float) -> bool:
        """Kills it (-9) as soon as it has come this far; tells whether it was still running."""
        self.wait(LIMIT, lambda: self.progress >= progress)
        return self.kill()

    def stats(self) -> Counter[str]:
        """Reads the whole numbers among Scrapy's stats from the log."""
        found = re.findall(r"^ ?\{?'([\w/]+)': (\d+)[,}]", self.log.read_text(), re.MULTILINE)
        return Counter({name: int(value) for name, value in found})


def until(kills: int, trial: Callable[[int], T], killed: Callable[[T], bool], workers: int = 2) -> list[T]:
    """Runs trials 0, 1, 2 ... until that many have ended in a kill; returns their outcomes."""
    seeds, outcomes = count(), []
    with ThreadPoolExecutor(workers) as pool:
        while (left := kills - sum(map(killed, outcomes))) > 0:
            outcomes += pool.map(trial, islice(seeds, left))
    return outcomes


def processed(folder: Path) -> set[str]:
    """Reads the URLs of all items of the crawls in a folder."""
    file = folder / "processed"
    return set(file.read_text().split()) if file.exists() else set()


def missing(folder: Path) -> set[int]:
    """Tells the contents of which no item was made."""
    return set(range(CONTENTS)) - set(map(content, processed(folder)))


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Reads the drop log; raises if a line is not a record."""
    file = folder / "drops.jsonl"
    for line in file.read_text("ascii").splitlines() if file.exists() else []:
        yield json.loads(line)


def add_up(crawl: Crawl) -> None:
    """Asserts that every response has been counted once."""
    stats = crawl.stats()
    parts = ("new", "same", "duplicate", "unjudged")
    assert stats["dedup/pages"] == sum(stats[f"dedup/{part}"] for part in parts), stats
    assert stats["downloader/response_count"] == stats["dedup/pages"] + stats["dedup/skipped"], stats


def check(folder: Path, *, job: bool = False) -> set[int]:
    """Reads what all crawls in a folder have left, and returns the contents that none of them processed.

    Asserts that no page was dropped in favour of itself, or of a page that was never processed, and that
    each drop is on record, and that nothing has failed; of a ``job`` that was killed, nothing of ours: Scrapy's queue on disk may.
    """
    done = processed(folder)
    drops: dict[str, set[str]] = {}
    for record in records(folder):
        url, of = record["url"], record["duplicate_of"]
        assert fingerprint(Request(url)) != fingerprint(Request(of)), record
        assert content(url) == content(of), record
        drops.setdefault(url, set()).add(of)
    logs = "".join(log.read_text() for log in sorted(folder.glob("log *")))
    assert logs.count("Dropped near-duplicate") <= sum(1 for _ in records(folder))
    failed = [
        line for line in logs.splitlines() if line.startswith('  File "') and (not job or "/dedup/" in line)
    ]
    assert not failed
    assert IndexCorruptError.reason not in logs
    if not missing(folder):
        lost = {url for url, kept in drops.items() if url not in done and not kept & done}
        assert not lost, f"dropped for pages that were never processed: {lost}"
    return missing(folder)
