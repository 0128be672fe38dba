"""What the policies for links cost and lose: on real sites, unpacked into folders, and on the scenes of the tests.

    python benchmarks/links.py [FOLDER[:START,START...] ...] [--no-scenes] [--json OUT] [--quick]
        [--crawl]
    python benchmarks/links.py DATA/storm_docs DATA/kafka_38_39:39/javadoc/index.html,38/javadoc/index.html

A crawl is simulated: one page at a time, judged by a real index in memory.  START are the pages that the front page of a
folder without an index.html links to.  A real site is crawled in three orders: depth first, breadth first and depth first
with the links of each page shuffled.  Fingerprints and links of a folder are computed once and cached in a temporary file.

With --crawl, the folders are served and crawled by `scrapy crawl site`, too: depth first, breadth first, and depth first
with 16 requests at once.

never, all       no link of a near-duplicate is followed; all are
yield            as far as pages like them bring new content
wasted           near-duplicates that were downloaded
lost             contents that the crawl that follows all finds, and this one doesn't: pages that are new if the pages
                 of that crawl are judged after the pages of this one
contents after   the contents found with so many percent of the downloads of "all"
"""

import argparse
import asyncio
import hashlib
import json
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import quote

from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index
from dedup.links import Doubt, Link, Links
from tests.support.scenes import SCENES
from tests.support.simulation import Judge, Order, Page, Result, Status, by_truth, simulate

POLICIES: dict[str, dict[str, Any]] = {
    "all": {"follow": "all"},
    "never": {"follow": "never"},
    "yield": {"follow": "yield"},
}
ORDERS: dict[str, dict[str, Any]] = {
    "depth first": {"order": "depth first"},
    "breadth first, shuffled": {"order": "breadth first", "shuffle": 1},
    "depth first, shuffled": {"order": "depth first", "shuffle": 2},
}
BUDGETS = (25, 50, 75)
#: Downloads after which the crawl of a scene is taken to be endless.
CAP = 4000


# --- A real site, from a folder ----------------------------------------------------------------------


class FolderPage(NamedTuple):
    """What a crawl needs of a file."""

    fingerprint: Fingerprint
    links: list[str]


@dataclass
class Folder:
    """The HTML files of a folder, as a server would answer with them."""

    name: str
    start: str
    pages: dict[str, FolderPage] = field(repr=False)

    def fetch(self, url: str) -> FolderPage | str | None:
        page = self.pages.get(url) or self.pages.get(url.partition("?")[0])
        if page is None and url.endswith("/"):
            page = self.pages.get(url + "index.html")
        if page is None and url + "/index.html" in self.pages:
            return url + "/"
        return page


def read_folder(folder: Path, starts: Sequence[str]) -> Folder:
    """The pages of a folder, from the cache if they are in it."""
    files = sorted(path for path in folder.rglob("*") if re.fullmatch(r"\.html?", path.suffix))
    detector, host = Detector(), f"{folder.name.replace('_', '-')}.test"
    newest = max(file.stat().st_mtime_ns for file in files)
    key = hashlib.md5(repr((str(folder), starts, newest, len(files), detector)).encode()).hexdigest()
    cache = Path(tempfile.gettempdir()) / f"shingleback-links-{key}.pickle"
    if not cache.exists():
        extractor, pages = LinkExtractor(allow_domains=host), dict[str, FolderPage]()

        def read(url: str, body: bytes) -> None:
            response = HtmlResponse(url, body=body)
            links = [link.url.partition("#")[0] for link in extractor.extract_links(response)]
            fingerprint = detector.fingerprint(response.text, url)
            pages[url] = FolderPage(fingerprint, [link for link in dict.fromkeys(links) if link != url])

        for file in files:
            read(f"http://{host}/{quote(file.relative_to(folder).as_posix())}", file.read_bytes())
        if f"http://{host}/index.html" not in pages:
            read(f"http://{host}/", front_page(starts).encode())
        with cache.open("wb") as out:
            pickle.dump({url: tuple(page) for url, page in pages.items()}, out)
    with cache.open("rb") as saved:
        pages = {url: FolderPage(*page) for url, page in pickle.load(saved).items()}
    index = f"http://{host}/index.html"
    return Folder(folder.name, index if index in pages else f"http://{host}/", pages)


def front_page(starts: Sequence[str]) -> str:
    """A page that links to those with which a crawl is to begin."""
    return "<title>Front</title>" + "".join(f'<a href="{quote(start)}">{start}</a> ' for start in starts)


def by_index(index: Index) -> Judge:
    """Judges pages as a crawl does."""
    short: set[int] = set()

    async def judge(url: str, page: Page) -> Status:
        fingerprint: Fingerprint = page.fingerprint  # type: ignore[attr-defined]
        verdict = await index.claim(url, url, fingerprint)
        if verdict.status == "unjudged":
            known = fingerprint.digest in short
            short.add(fingerprint.digest)
            return "repeat" if known and fingerprint.digest else "unjudged"
        await index.confirm(url)
        return "duplicate" if verdict.status == "duplicate" else "new"

    return judge


# --- A crawl, and what came of it --------------------------------------------------------------------


class TimedLinks(Links):
    """Knows how long it took."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.seconds, self.seconds_to_learn = 0, 0.0, 0.0

    def doubt(self, link: Link) -> Doubt | None:
        began = time.process_time()
        found = super().doubt(link)
        self.seconds += time.process_time() - began
        self.asked += 1
        return found

    def note(self, link: Link) -> None:
        began = time.process_time()
        super().note(link)
        self.seconds += time.process_time() - began

    def learn(self, url: str, *, new: bool | None) -> list[Link]:
        began = time.process_time()
        found = super().learn(url, new=new)
        self.seconds_to_learn += time.process_time() - began
        return found


@dataclass
class Row:
    """One crawl."""

    site: str
    order: str
    policy: str
    downloads: int
    wasted: int
    contents: int  #: that the crawl that follows all finds
    lost: int
    after: tuple[int, ...]  #: percent of the contents, by budget
    parked: int
    ended: bool
    us_a_link: float
    us_a_page: float


def row(
    site: str,
    order: str,
    policy: str,
    result: Result,
    everything: Result,
    contents: int,
    lost: int,
    links: Links | None,
) -> Row:
    found = [
        result.curve[min(everything.downloads * budget // 100, result.downloads) - 1] for budget in BUDGETS
    ]
    timed = links if isinstance(links, TimedLinks) else TimedLinks()
    return Row(
        site,
        order,
        policy,
        result.downloads,
        result.wasted,
        contents,
        lost,
        tuple(min(100, round(100 * count / contents)) for count in found),
        result.parked,
        result.ended,
        round(1e6 * timed.seconds / max(timed.asked, 1), 1),
        round(1e6 * timed.seconds_to_learn / result.downloads, 1),
    )


async def crawl_folder(site: Folder, order: str) -> list[Row]:
    """The policies on a real site, in one order."""
    rows, everything = list[Row](), None
    for name, policy in POLICIES.items():
        index = open_index("memory:", Detector())
        links = TimedLinks() if name == "yield" else None
        judge = by_index(index)
        result = await simulate(site, judge, links, **policy, **ORDERS[order])
        everything = everything or result
        missing = [url for url in everything.statuses if url not in result.statuses]
        lost = 0
        for url in missing:
            page = site.fetch(url)
            assert isinstance(page, FolderPage)
            lost += await judge(url, page) == "new"
        await index.close()
        contents = sum(status == "new" for status in everything.statuses.values())
        rows.append(row(site.name, order, name, result, everything, contents, lost, links))
    return rows


async def crawl_scene(name: str) -> list[Row]:
    """The policies on a scene; judged by the truth."""

    def shown(result: Result) -> set[str]:
        pages = (scene.fetch(url) for url in result.kept)
        return {page.content for page in pages if page}

    scene, rows = SCENES[name](), list[Row]()
    order: Order = "breadth first" if scene.endless else "depth first"
    everything = await simulate(SCENES[name](), by_truth(), follow="all", order=order, most=CAP)
    contents = shown(everything)
    for policy, chosen in POLICIES.items():
        links = TimedLinks() if policy == "yield" else None
        result = await simulate(SCENES[name](), by_truth(), links, most=CAP, **chosen)
        rows.append(
            row(
                name,
                "depth first",
                policy,
                result,
                everything,
                len(contents),
                len(contents - shown(result)),
                links,
            )
        )
    return rows


# --- A crawl over HTTP -------------------------------------------------------------------------------

CRAWLS: dict[str, dict[str, str]] = {
    "never": {},
    "yield": {"DEDUP_FOLLOW": "yield"},
}
CRAWL_ORDERS: dict[str, dict[str, str]] = {
    "depth first": {"CONCURRENT_REQUESTS": "1"},
    "breadth first": {
        "CONCURRENT_REQUESTS": "1",
        "DEPTH_PRIORITY": "1",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    },
    "16 at once": {"CONCURRENT_REQUESTS": "16", "CONCURRENT_REQUESTS_PER_DOMAIN": "16"},
}


@contextmanager
def serving(folder: Path, front: bytes) -> Iterator[str]:
    """The URL at which a folder is served, with this front page if it has none."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def list_directory(self, path: Any) -> None:
            if self.path != "/":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(front)))
            self.end_headers()
            self.wfile.write(front)

        def log_message(self, *arguments: object) -> None:
            """Logs nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def crawl_once(url: str, settings: dict[str, str]) -> list[list[str]]:
    """The paths of the pages that a crawl has kept, and dropped, and of the links that it has parked."""
    with tempfile.TemporaryDirectory() as temporary:
        names = ("kept.jsonl", "drops.jsonl", "parked.jsonl")
        kept, drops, parked = (Path(temporary) / name for name in names)
        values = settings | {"DEDUP_INDEX": "memory:", "DEDUP_LOG": str(drops), "DEDUP_PARKED": str(parked)}
        values |= {"LOG_LEVEL": "ERROR", "DOWNLOAD_DELAY": "0", "AUTOTHROTTLE_ENABLED": "False"}
        command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"start={url}", "-O", str(kept)]
        command += [part for name, value in values.items() for part in ("-s", f"{name}={value}")]
        subprocess.run(command, cwd=Path(__file__).parents[1], check=True)
        lines = (file.read_text().splitlines() if file.exists() else [] for file in (kept, drops, parked))
        return [[json.loads(line)["url"].removeprefix(url) for line in each] for each in lines]


def crawl_served(site: Folder, folder: Path, starts: Sequence[str], order: str) -> list[Row]:
    """The policies in real crawls of a served folder."""
    everything = asyncio.run(simulate(site, by_index(open_index("memory:", Detector())), follow="all"))
    contents, rows = sum(status == "new" for status in everything.statuses.values()), list[Row]()
    home = site.start.removesuffix("index.html")
    for policy, chosen in CRAWLS.items():
        with serving(folder, front_page(starts).encode()) as url:
            found = crawl_once(url, chosen | CRAWL_ORDERS[order])
        kept, dropped, parked = ([home + path for path in paths] for paths in found)
        met = {*kept, *dropped}
        lost = asyncio.run(count_lost(site, kept, [each for each in everything.statuses if each not in met]))
        row = Row(
            f"{site.name}, crawled", order, policy, len(kept) + len(dropped), len(dropped), contents, lost,
            (), len({*parked} - met), True, 0.0, 0.0,
        )  # fmt: skip
        rows.append(row)
    return rows


async def count_lost(site: Folder, kept: list[str], others: list[str]) -> int:
    """How many of the other pages are new after those that were kept."""
    judge, lost = by_index(open_index("memory:", Detector())), 0
    for number, url in enumerate([*kept, *others]):
        page = site.fetch(url)
        if isinstance(page, FolderPage):
            lost += await judge(url, page) == "new" and number >= len(kept)
    return lost


# --- Tables ------------------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """The rows of one site and order."""
    first = rows[0]
    lines = [f"{first.site}, {first.order}: {first.contents:,} contents"]
    lines.append(
        f"{'':9} {'downloads':>10} {'wasted':>7} {'lost':>6} {'parked':>7}  {'contents after 25/50/75 %':>26}"
        f" {'us a link':>10} {'us a page':>10}"
    )
    for each in rows:
        after = "/".join(map(str, each.after))
        lines.append(
            f"{each.policy:9} {each.downloads:9,}{' ' if each.ended else '+'} {each.wasted:7,} {each.lost:6,}"
            f" {each.parked:7,}  {after:>26} {each.us_a_link:10.1f} {each.us_a_page:10.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", metavar="FOLDER[:START,...]")
    parser.add_argument("--no-scenes", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only the first order")
    parser.add_argument("--crawl", action="store_true", help="crawl the folders over HTTP, too")
    parser.add_argument("--no-simulation", action="store_true", help="only --crawl")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    every: list[Row] = []

    def tell(rows: list[Row]) -> None:
        print(table(rows), end="\n\n", flush=True)
        every.extend(rows)

    for given in arguments.folders:
        folder, _, starts = given.partition(":")
        site = read_folder(Path(folder).resolve(), starts.split(",") if starts else [])
        for order in list(ORDERS)[: 1 if arguments.quick else None] if not arguments.no_simulation else ():
            tell(asyncio.run(crawl_folder(site, order)))
        for order in CRAWL_ORDERS if arguments.crawl else ():
            tell(crawl_served(site, Path(folder).resolve(), starts.split(","), order))
    for name in () if arguments.no_scenes else SCENES:
        tell(asyncio.run(crawl_scene(name)))
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(each) for each in every], indent=1) + "\n")


if __name__ == "__main__":
    main()
