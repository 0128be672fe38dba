"""What a crawl that probes loses and drops, where every answer has another advert and another counter.

    python -m benchmarks.probes [--kind WORDS] [--styles STYLE ...] [--copies]

The contents of `benchmarks.scenes`, through the filter, in one shuffled order; adverts are 12 of 25 words, with none to five stars.  Copies: articles of
60 to 600 words at six addresses each; every link of the menu has another campaign in each answer, too.
"""

import argparse
import asyncio
import random
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean
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
        advert = f"<p>{text(25, ('advert', chance.randrange(12)))} {'★' * chance.randrange(6)}</p>"
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
    copies: Counter[str]  #: by kind
    dropped: Counter[str]
    probes: int


class Tracking(Site):
    """Pages whose links have another campaign in each answer, too."""

    def html(self, url: str) -> str:
        number = self._chance.randrange(10**6)
        return re.sub(r'(?<=href=")(/menu/\d+)', rf"\1?utm_source=a{number}", super().html(url))


def copies(style: str) -> list[scenes.Shown]:
    """Articles at six addresses each: of a campaign, a reference, a session, a mirror, and another of the same kind."""
    chance = random.Random(5)
    pages = []
    for number in range(8 * len(scenes.ARTICLES)):
        one = scenes.article(1000 + number, scenes.ARTICLES[number % len(scenes.ARTICLES)])
        slug = "-".join(one.title.lower().split())
        there, other = (
            f"{scenes.HOST}/{where}"
            for where in (
                (f"view?id={500 + number}", f"view?id={5000 + number}")
                if style == "?id="
                else (f"story/{slug}", f"story/other-{slug}")
            )
        )
        mark = "&" if "?" in there else "?"
        addresses = {
            "": there,
            "campaign": f"{there}{mark}utm_campaign=c{number}",
            "reference": f"{there}{mark}ref=r{number}x",
            "session": f"{there}{mark}sid={chance.randbytes(16).hex()}",
            "mirror": there.replace(scenes.HOST, scenes.MIRROR),
            "other": other,
        }
        html = scenes.TEMPLATES[style](one)
        pages += [scenes.Shown(url, html, f"copied {number}", kind) for kind, url in addresses.items()]
    return pages


async def crawl(site: Site) -> Found:
    """Pages are judged in a shuffled order, and those that are fetched again behind them."""
    pages, counts = [*site.order], Counts()
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
    met, gone = (
        Counter(page.kind for page in pages if page.url in urls) for urls in (is_copy, dropped & is_copy)
    )
    return Found(contents, contents - len(kept), met, gone, counts.get("dedup/probes", 0))


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
            shares_of_all = []
            for seed in range(1, 9):
                found = asyncio.run(crawl(Tracking(scenes.others(style) + copies(style), seed)))
                shares = (
                    f"{kind or 'first'} {found.dropped[kind] / met:.2f}" for kind, met in found.copies.items()
                )
                total = found.dropped.total() / found.copies.total()
                shares_of_all.append(total)
                print(
                    f"{style:6} {found.lost} of {found.contents} lost, dropped {total:.2f}, {found.probes} probes:",
                    *shares,
                    flush=True,
                )
            print(f"{style:6} {mean(shares_of_all):.3f} of the copies dropped, in eight orders", flush=True)
        return
    contents = lost = 0
    for style in options.styles:
        for kind in options.kind or sorted(KINDS | UNSEEN):
            for others in (scenes.others(style), []):
                found = asyncio.run(crawl(Site(others + scenes.scene(kind, style), 3)))
                contents, lost = contents + found.contents, lost + found.lost
                if found.lost:
                    print(f"{style} {kind}: {found.lost} lost", flush=True)
        print(f"{style}: {lost} of {contents} lost so far", flush=True)


if __name__ == "__main__":
    main()
