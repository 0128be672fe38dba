"""The memory of a crawler by the number of kept pages: of the filter alone, with an index in a file.

    python -m benchmarks.memory [--pages 100000] [--words 40]

Pages of six hosts, none like another, are judged and handed over: each has a menu, so many words of its own, a counter of
visitors, and a link.  Told are the bytes that the process has, of which those at 0 are Python and the filter's code.
"""

import argparse
import asyncio
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dedup.droplog.log import DropLog
from dedup.filter import Filter, Visit
from dedup.fingerprint.detector import Detector
from dedup.index import open_index

MENU = "".join(f"<a href=/s/{item}>section {item}</a>" for item in range(5))


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def page(rng: random.Random, words: int) -> tuple[str, str]:
    """A path and a page."""
    text = " ".join(f"{rng.getrandbits(32):x}" for _ in range(words))
    name = "".join(rng.choices("abcdefghijklmnop", k=12))
    counter = f"<p>Visitor {rng.getrandbits(20)}"
    return f"/a/{name}", f"<title>{name}</title><nav>{MENU}</nav><p>{text}{counter}<a href=/b/{name}>on</a>"


async def _sizes(folder: Path, pages: int, words: int, every: int) -> list[int]:
    rng, detector = random.Random(7), Detector()
    index = open_index(f"file:{folder}/index.sqlite", detector)
    filter = Filter(index, DropLog(str(folder / "drops.jsonl")))
    await index.open()
    found = [resident()]
    for number in range(1, pages + 1):
        path, html = page(rng, words)
        url = f"http://host{number % 6}.example{path}"
        outcome = await filter.judge(Visit.of_html(html, url, detector))
        assert outcome.verdict.status == "new"
        await filter.handed_over(url)
        if number % every == 0:
            await asyncio.sleep(1.1)  # what is confirmed is written within a second
            found.append(resident())
    await filter.close()
    return found


def sizes(pages: int, words: int, every: int) -> list[int]:
    """The bytes of the process before the first page, and after each so many."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_sizes(Path(folder), pages, words, every))


def rows(found: list[int], every: int) -> Iterator[str]:
    """A line for each size."""
    for at, size in enumerate(found):
        more = (size - found[at - 1]) / every if at else 0
        yield f"{at * every:>9,} pages {size / 1e6:7.1f} MB {more:+8.0f} bytes a page"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=40)
    options = parser.parse_args()
    every = options.pages // 10
    print(*rows(sizes(options.pages, options.words, every), every), sep="\n")


if __name__ == "__main__":
    main()
