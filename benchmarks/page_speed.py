"""What it costs to make a fingerprint of a page, beside what it costs to parse it.

    python benchmarks/page_speed.py [FOLDER ...] [--pages 200] [--rounds 5]

Reads pages of some sites, unpacked into folders, and those of a generated shop with 150 new URLs a page.  Each round
takes the pages of a site in one shuffled order, and each page once, as a crawl does: it is decoded, parsed as Scrapy
does, and fingerprinted, with memories that are empty when the round begins.  Then the same pages are taken once
more: "warm".  CPU time of the thread, of each step of each page the least of the rounds, since what else the machine
does only adds to it; the ratios are those of sums over all pages.
"""

import argparse
import gc
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time_ns
from typing import TypeVar

from parsel import Selector
from scrapy.http import HtmlResponse

from dedup.filter.noise.lines import lines_of
from dedup.fingerprint.detector import Detector
from dedup.page import limits, urls, words
from tests.support.pages.prose import Prose

_T = TypeVar("_T")
SEED = 7
#: The steps of a page; Scrapy takes the first two anyway, or its spiders do.
SHARED, OWN = ("decode", "parse"), ("read", "fingerprint")
#: The last is that of a page that is compared with its like, line by line.
STEPS = (*SHARED, *OWN, "lines")
Page = tuple[str, bytes]


def shop(count: int) -> Iterator[Page]:
    """Pages of a shop: a menu that all have, and products that no other page links to."""
    rng = random.Random(SEED)
    prose = Prose(rng)
    menu = "".join(f'<li><a href="/c/{n}/">{prose.text(2)}</a></li>' for n in range(80))
    for page in range(count):
        tiles = "".join(
            f'<li class="tile"><article><div class="image"><a href="../p/{rng.choice(prose.words)}-{page}-{n}/index.html">'
            f'<img src="../../media/{page:02x}/{n:02x}/{rng.getrandbits(64):x}.jpg" alt="" class="thumbnail"></a></div>'
            f'<p class="stars"><i class="star"></i><i class="star"></i></p><h3><a href="../p/{page}-{n}/">'
            f"{prose.text(5)} …</a></h3><div class=price><p>£{rng.randint(1, 99)}.99</p><p>In stock</p>"
            "<form><button type=submit>Add to basket</button></form></div></article></li>"
            for n in range(50)
        )
        html = (
            f"<!DOCTYPE html><html><head><title>{prose.text(3)} – Shop</title><link rel=stylesheet href=/s.css>"
            f"<script>var page = {page};</script></head><body><header><nav><ul>{menu}</ul></nav></header><main>"
            f"<h1>{prose.text(3)}</h1><p>{prose.text(120)}</p><ol>{tiles}</ol></main>"
            f"<footer>© {prose.text(20)}</footer></body></html>"
        )
        yield f"http://shop.example.org/list/{page}/index.html", html.encode()


def site(folder: Path, count: int) -> Iterator[Page]:
    """Pages of a folder, in shuffled order."""
    paths = sorted(folder.rglob("*.htm*"))
    random.Random(SEED).shuffle(paths)
    for path in paths[:count]:
        yield f"http://localhost/{path.relative_to(folder)}", path.read_bytes()


def clocked(spent: dict[str, int], step: str, work: Callable[[], _T]) -> _T:
    """What the work gives; its time is added to what the step has spent."""
    started = thread_time_ns()
    result = work()
    spent[step] += thread_time_ns() - started
    return result


def take(pages: list[Page], detector: Detector) -> list[dict[str, int]]:
    """Nanoseconds of each step, for each page."""
    return [take_one(url, body, detector) for url, body in pages]


def take_one(url: str, body: bytes, detector: Detector) -> dict[str, int]:
    spent = dict.fromkeys(STEPS, 0)
    text = clocked(spent, "decode", lambda: HtmlResponse(url, body=body).text)
    if limits.unreadable(text) is not None:
        return spent
    root = clocked(spent, "parse", lambda: Selector(text=text, type="html").root)
    page = clocked(spent, "read", lambda: detector.read(text, url, lambda _: root))
    clocked(spent, "fingerprint", lambda: detector.fingerprint_page(page))
    clocked(spent, "lines", lambda: lines_of(text, url))
    return spent


def forget() -> None:
    """Empties what outlives a detector."""
    urls._resolve.cache_clear()
    words.remembered.clear()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sites = {folder.resolve().name: list(site(folder, arguments.pages)) for folder in arguments.folders}
    sites["shop"] = list(shop(arguments.pages))
    print(f"{'':14}{'':9}{'kB':>5}" + "".join(f"{step:>13}" for step in STEPS) + f"{'filter':>18}")
    for name, pages in sites.items():
        size = sum(len(body) for _, body in pages) / len(pages) / 1000
        rounds: dict[str, list[list[dict[str, int]]]] = {"crawl": [], "warm": []}
        for _ in range(arguments.rounds):
            forget()
            gc.collect()
            detector = Detector()
            rounds["crawl"].append(take(pages, detector))
            detector._recent.clear()
            rounds["warm"].append(take(pages, detector))
        for way, taken in rounds.items():
            spent = {
                step: sum(min(one[step] for one in page) for page in zip(*taken, strict=True))
                for step in STEPS
            }
            each = {step: spent[step] / len(pages) / 1000 for step in spent}
            whole = sum(each[step] for step in OWN)
            cells = "".join(f"{each[step]:7.0f} {each[step] / each['parse']:5.2f}" for step in each)
            print(
                f"{name:14}{way:9}{size:5.0f}{cells}{whole:8.0f} us {whole / each['parse']:5.2f} x",
                flush=True,
            )


if __name__ == "__main__":
    main()
