"""What a crawl that probes loses and drops, where every answer has another advert and another counter.

    python -m benchmarks.probes [--kind WORDS] [--styles STYLE ...] [--copies]

The contents and the copies of `benchmarks.scenes`, through the filter, in one shuffled order; adverts are 12 of 25 words.
"""

import argparse
import asyncio
import random
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import scenes
from dedup import Detector, open_index
from dedup.droplog.log import DropLog
from dedup.filter import Counts, Crawl, Filter, Visit
from dedup.page.html import Page
from dedup.page.read import read
from tests.support.pages.everyday import KINDS, text
from tests.support.pages.unseen import UNSEEN


class Site(Crawl):
    """Pages whose answers never are the same twice."""

    fetches = True

    def __init__(self, pages: Sequence[scenes.Shown], seed: int) -> None:
        self._pages = {page.url: page.html for page in pages}
        self._chance = random.Random(seed)
        self.order = random.Random(seed).sample(pages, len(pages))
        self._by_url = {page.url: page for page in pages}

    def fetch_again(self, origin: str, *, judged: bool = True) -> None:
        self.order.append(self._by_url[origin])

    def html(self, url: str) -> str:
        html, chance = self._pages[url], self._chance
        advert = f"<p>{text(25, ('advert', chance.randrange(12)))}</p>"
        counter = f"<p>Visitors: {chance.randrange(10**6)}, online {chance.randrange(900)}"
        foot = text(200, "footer")
        end = foot if foot in html else "</body>"
        return html.replace(end, f"{advert}{counter}, 12:{chance.randrange(60)} o'clock</p>{end}")

    async def fetch(self, url: str) -> Page | None:
        return read(self.html(url), url)


class Found(NamedTuple):
    """What became of the pages."""

    contents: int
    lost: int
    copies: int
    dropped: int
    probes: int


async def crawl(pages: Sequence[scenes.Shown], seed: int) -> Found:
    """Pages are judged in a shuffled order, and those that are fetched again behind them."""
    site, counts = Site(pages, seed), Counts()
    kept, is_copy, dropped = set[str](), set[str](), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        log = DropLog(str(Path(folder) / "log"))
        filter = Filter(open_index("memory:", Detector()), log, stats=counts, crawl=site)
        for page in site.order:
            url = page.url
            outcome = await filter.judge(Visit(url, url, partial(read, site.html(url), url), origin=url))
            is_kept = outcome.action == "keep"
            if page.content in kept:
                is_copy.add(url)
            (dropped.discard if is_kept else dropped.add)(url)
            if is_kept:
                kept.add(page.content)
                await filter.handed_over(url)
        await filter.close()
    contents = len({page.content for page in pages})
    return Found(
        contents, contents - len(kept), len(is_copy), len(dropped & is_copy), counts.get("dedup/probes", 0)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", action="append", choices=sorted(KINDS | UNSEEN))
    parser.add_argument("--styles", nargs="+", default=["?id=", ".html", "words", "folders"])
    parser.add_argument("--copies", action="store_true", help="the copies of articles instead of contents")
    options = parser.parse_args()
    if options.copies:
        for style in scenes.TEMPLATES:
            for seed in (1, 2):
                print(
                    style, asyncio.run(crawl(scenes.others(style) + scenes.copies(style), seed)), flush=True
                )
        return
    contents = lost = 0
    for style in options.styles:
        for kind in options.kind or sorted(KINDS | UNSEEN):
            for others in (scenes.others(style), []):
                found = asyncio.run(crawl(others + scenes.scene(kind, style), 3))
                contents, lost = contents + found.contents, lost + found.lost
                if found.lost:
                    print(f"{style} {kind}: {found.lost} lost", flush=True)
        print(f"{style}: {lost} of {contents} lost so far", flush=True)


if __name__ == "__main__":
    main()
