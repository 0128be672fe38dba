"""What a crawl says of a real site that changes: releases of a manual, served one after the other at the same addresses.

    python -m benchmarks.changes FOLDER RELEASE RELEASE ... [--main XPATH ...]

Each RELEASE is a folder of .html files below FOLDER.  A page that lists all files is the start.  By the truth of the files, a page
has changed if the words of its main element or links differ, is new or gone if it has a file in one release only, and has moved if a gone
file and a new one have the same words.  Printed are the pages that are told right and wrong, the bytes of the history, and what the
crawls cost with and without it.
"""

import argparse
import asyncio
import os
import tempfile
import threading
import time
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lxml import html
from lxml.etree import ParserError
from scrapy import Spider
from scrapy.utils.test import get_crawler

from benchmarks.main_text import main_text
from dedup.contrib.changes.changes import changes
from dedup.contrib.changes.file import History
from dedup.filter.change import WORDS

Told = set[tuple[str, str]]


class Lister(Spider):
    """Follows the links of the start page, and no others."""

    name = "lister"

    def __init__(self, start: str) -> None:
        super().__init__()
        self.start_urls = [start]

    def parse(self, response: Any) -> Any:
        if response.url == self.start_urls[0]:
            yield from response.follow_all(css="a")


class Handler(BaseHTTPRequestHandler):
    """Answers from a dict of pages."""

    def __init__(self, pages: dict[str, bytes], *arguments: Any) -> None:
        self.pages = pages
        super().__init__(*arguments)

    def do_GET(self) -> None:
        body = self.pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body or b"Not found")

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


def read(folder: Path) -> dict[str, bytes]:
    """The pages of a release, by path, with one that lists them."""
    pages = {
        f"/manual/{file.relative_to(folder).as_posix()}": file.read_bytes()
        for file in sorted(folder.rglob("*.html"))
    }
    pages["/"] = "".join(f"<li><a href='{path}'>{path}</a>" for path in pages).encode()
    return pages


def main_says(data: bytes, where: list[str]) -> tuple[str, ...]:
    """The words of a page's main element, and where its links lead."""
    try:
        root = html.fromstring(data, parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    except ParserError:  # a page of a comment, say
        return ()
    found = next((nodes[0] for path in where if (nodes := root.xpath(path))), root)
    return (*main_text(data, where), "", *found.xpath(".//@href[not(starts-with(., '#'))]"))


def truth(before: dict[str, bytes], after: dict[str, bytes], where: list[str]) -> Told:
    """What a crawl should say."""
    old, new = (
        {path: main_says(data, where) for path, data in pages.items() if path != "/"}
        for pages in (before, after)
    )
    told = {("changed", path) for path in old.keys() & new.keys() if old[path] != new[path]}
    gone = {words: path for path, words in old.items() if path not in new}
    for path in new.keys() - old.keys():
        moved = gone.pop(new[path], None)
        told.add(("moved" if moved else "new", path))
    return told | {("gone", path) for path in gone.values()}


def crawl(url: str, folder: Path, **settings: object) -> float:
    """Crawls; the CPU seconds that it took."""
    own = {
        "ADDONS": {"dedup.scrapy.Addon": 500},
        "DEDUP_INDEX": f"file:{folder}/index.sqlite",
        "DEDUP_LOG": "",
    }
    crawler = get_crawler(Lister, {**own, "LOG_ENABLED": False, **settings})
    started = time.process_time()
    asyncio.run(crawler.crawl_async(url))
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("releases", nargs="+")
    parser.add_argument(
        "--main", nargs="+", default=["//div[@class='documentation-content']", "//main", "//article"]
    )
    arguments = parser.parse_args()
    pages: dict[str, bytes] = {}
    counts, cpu, met = Counter[tuple[str, str]](), Counter[str](), 0
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, pages)) as server,
        tempfile.TemporaryDirectory() as made,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url, before = f"http://127.0.0.1:{server.server_port}", {}
        folders = {name: Path(made, name) for name in ("with", "without")}
        crawl(url + "/", Path(made, "warm"))
        for release in arguments.releases:
            after = read(arguments.folder / release)
            pages.clear()
            pages.update(after)
            folders = dict(reversed(folders.items()))
            for name, folder in folders.items():
                cpu[name] += crawl(url + "/", folder, DEDUP_KEEP_TEXT=name == "with")
            if before:
                met += len(after)
                with History(folders["with"] / "index.sqlite.history") as history:
                    since = history.crawls()[-1].number - 1
                    found = [change for change in changes(history, since) if change.url != url + "/"]
                told = {(change.word, change.url.removeprefix(url)) for change in found}
                right = truth(before, after, arguments.main)
                for word in WORDS:
                    mine, theirs = ({pair for pair in pairs if pair[0] == word} for pairs in (told, right))
                    counts[word, "right"] += len(mine & theirs)
                    counts[word, "wrong"] += len(mine - theirs)
                    counts[word, "missed"] += len(theirs - mine)
                print(release, "wrong:", sorted(told - right)[:5], "missed:", sorted(right - told)[:5])
            before = after
        server.shutdown()
        size = os.path.getsize(folders["with"] / "index.sqlite.history")
    print(f"{'':8} right wrong missed")
    for word in WORDS:
        print(f"{word:8} {counts[word, 'right']:5} {counts[word, 'wrong']:5} {counts[word, 'missed']:6}")
    count = len(before)
    print(
        f"history {size:,} bytes, {size / count:,.0f} for each page of the last release; {met:,} pages met in all"
    )
    print(
        f"CPU seconds: with {cpu['with']:.2f}, without {cpu['without']:.2f}, ratio {cpu['with'] / cpu['without']:.2f}"
    )


if __name__ == "__main__":
    main()
