"""What the policies for links cost and lose on real sites, unpacked into folders.

    python benchmarks/links.py FOLDER[:START,START...] ... [--quick] [--figures FILE]
    python benchmarks/links.py DATA/storm_docs DATA/kafka_38_39:39/javadoc/index.html,38/javadoc/index.html

A crawl is simulated: one page at a time, judged by a real index in memory, in three orders: depth first, and breadth and
depth first with the links of each page shuffled.  START are the pages that the front page of a folder without an
index.html links to.  Fingerprints and links of a folder are computed once and cached in a temporary file.

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
import pickle
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from benchmarks import figures
from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index
from dedup.links import Links
from tests.support.simulation import Judge, Page, Status, simulate

POLICIES = ("all", "never", "yield")
ORDERS: dict[str, dict[str, Any]] = {
    "depth first": {"order": "depth first"},
    "breadth first, shuffled": {"order": "breadth first", "shuffle": 1},
    "depth first, shuffled": {"order": "depth first", "shuffle": 2},
}
BUDGETS = (25, 50, 75)


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


async def crawl_folder(site: Folder, order: str) -> dict[str, object]:
    """Prints what the policies do on a site, in one order, and returns it."""
    everything, row = None, dict[str, object]({"site": site.name, "order": order})
    for policy in POLICIES:
        index = open_index("memory:", Detector())
        judge = by_index(index)
        links = Links() if policy == "yield" else None
        result = await simulate(site, judge, links, follow=policy, **ORDERS[order])  # type: ignore[arg-type]
        if everything is None:
            everything, contents = result, result.curve[-1]
            row["contents"] = contents
            print(f"{site.name}, {order}: {contents:,} contents")
            print(
                f"{'':9} {'downloads':>10} {'wasted':>7} {'lost':>6} {'parked':>7}  contents after 25/50/75 %"
            )
        lost = 0
        for url in (url for url in everything.statuses if url not in result.statuses):
            page = site.fetch(url)
            assert isinstance(page, FolderPage)
            lost += await judge(url, page) == "new"
        await index.close()
        ends = (min(everything.downloads * budget // 100, result.downloads) for budget in BUDGETS)
        after = "/".join(str(min(100, round(100 * result.curve[end - 1] / contents))) for end in ends)
        print(
            f"{policy:9} {result.downloads:10,} {result.wasted:7,} {lost:6,} {result.parked:7,}  {after:>25}",
            flush=True,
        )
        row |= {policy: result.downloads, f"{policy} lost": lost}
    print()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER[:START,...]")
    parser.add_argument("--quick", action="store_true", help="only the first order")
    figures.add_option(parser)
    arguments = parser.parse_args()
    rows = list[dict[str, object]]()
    for given in arguments.folders:
        folder, _, starts = given.partition(":")
        site = read_folder(Path(folder).resolve(), starts.split(",") if starts else [])
        orders = list(ORDERS)[: 1 if arguments.quick else None]
        rows += [asyncio.run(crawl_folder(site, order)) for order in orders]
    figures.write(arguments.figures, rows)


if __name__ == "__main__":
    main()
