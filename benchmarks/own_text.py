"""`dedup.own_text` beside extractors of main texts, on sites of many pages: F1 of the words.

    pip install trafilatura readability-lxml
    python -m benchmarks.own_text [FOLDER --main XPATH --main XPATH] [--most 150] [--figures FILE]

Without a FOLDER, the sites are generated: a shop, a manual and a forum of 150 pages each, whose menu is marked (`<nav>`) and whose
footer and sidebar, one for each of five sections, are not.  Each comes twice: with its content in a `<div id=content>`, by which
extractors may know it, and in a plain `<div>`.  With a FOLDER, the site is the .html files below it.  The truth of a page is the
words of the first XPATH that finds something; pages on which none does are left out.

The pages of a site are filed in an index in a random order.  When it knows 1, 8, 64 and all of them, the own texts of the last
`--most` of that order are read, and the F1 of their words is averaged; the extractors read the same pages.
"""

import argparse
import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lxml import etree, html

from benchmarks import figures
from benchmarks.main_text import main_text
from dedup import Detector, open_index, own_text
from tests.support.pages.prose import Prose

#: The texts are read when the index knows so many pages.
KNOWN = (1, 8, 64)
PAGES = 150


def shop(number: int, prose: Prose) -> str:
    """A product: what it is called, a text, and a table of values."""
    rows = "".join(f"<tr><th>{label}<td>{prose.rng.randrange(999)}" for label in ("Price", "Weight", "Stock"))
    return f"<h1>Lamp {number}</h1><p>{prose.text(60)}</p><table>{rows}</table>"


def manual(number: int, prose: Prose) -> str:
    """A chapter: paragraphs below headings, and code."""
    parts = (f"<h2>{prose.text(3)}</h2><p>{prose.text(70)}</p><pre>{prose.text(12)}</pre>" for _ in range(4))
    return f"<h1>Chapter {number}</h1>{''.join(parts)}"


def forum(number: int, prose: Prose) -> str:
    """A thread: six posts, each with its author and date."""
    posts = (
        f"<div><b>{prose.text(1)}</b> <i>{day} May 2026</i><p>{prose.text(40)}</p></div>"
        for day in range(1, 7)
    )
    return f"<h1>Thread {number}</h1>{''.join(posts)}"


def generated(content: Callable[[int, Prose], str], around: str) -> dict[str, bytes]:
    """A site of pages with such contents, each in the chrome of its section."""
    prose = Prose(random.Random(7))
    menu, foot, sides = prose.links(30, 3), prose.text(60), [prose.links(25, 4) for _ in range(5)]
    page = (
        "<!DOCTYPE html><title>A site</title><nav><ul>{}</ul></nav><div><ul>{}</ul></div>"
        "<{}>{}</div><div><p>{}</p></div>"
    )
    return {
        f"http://generated.example/{number}": page.format(
            menu, sides[number % 5], around, content(number, prose), foot
        ).encode()
        for number in range(PAGES)
    }


def truth(page: bytes, where: list[str]) -> list[str]:
    """The words of a page's main element; none if it has none."""
    try:
        root = html.fromstring(page, parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    except etree.ParserError:  # it is empty
        return []
    return main_text(page, where) if any(root.xpath(path) for path in where) else []


def words(text: str | None) -> list[str]:
    """As `benchmarks.main_text` has them."""
    return re.findall(r"\w+", (text or "").lower())


def f1(found: list[str], truth: list[str]) -> float:
    """The harmonic mean of precision and recall of the words, each as often as it stands.

    >>> round(f1(["a", "b", "c"], ["a", "b", "b"]), 3)
    0.667
    """
    both = (Counter(found) & Counter(truth)).total()
    return 2 * both / (len(found) + len(truth))


def by_trafilatura(page: bytes) -> list[str]:
    import trafilatura

    return words(trafilatura.extract(page))


def by_readability(page: bytes) -> list[str]:
    from readability import Document  # type: ignore[import-untyped]

    return main_text(Document(page.decode("utf-8", "replace")).summary().encode(), [])


async def measure(pages: dict[str, bytes], main: list[str], most: int) -> dict[str, float]:
    """The mean F1 of the words of the pages of a site, by what has read them."""
    truths = {url: told for url, page in pages.items() if (told := truth(page, main))}
    order = sorted(truths)
    random.Random(42).shuffle(order)
    read = order[-most:]

    def mean(texts: Iterator[list[str]]) -> float:
        return sum(f1(text, truths[url]) for url, text in zip(read, texts, strict=True)) / len(read)

    found = {f"({len(read)} of {len(order)} pages are read)": 1.0}
    async with open_index("memory:", Detector()) as index:
        for known, url in enumerate(order, 1):
            await index.claim(url, url, index.detector.fingerprint(pages[url], url))
            await index.confirm(url)
            if known in KNOWN or known == len(order):
                name = f"own text, {known} pages known"
                found[name] = mean(words(own_text(pages[each], each, index)) for each in read)
    found["trafilatura"] = mean(by_trafilatura(pages[url]) for url in read)
    found["readability"] = mean(by_readability(pages[url]) for url in read)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--main", action="append", default=[], metavar="XPATH")
    parser.add_argument("--most", type=int, default=150)
    figures.add_option(parser)
    arguments = parser.parse_args()
    if arguments.folder:
        files = (file for file in sorted(arguments.folder.rglob("*.html")) if not file.is_symlink())
        paths = {file.relative_to(arguments.folder).as_posix(): file.read_bytes() for file in files}
        sites = {arguments.folder.name: {f"http://site.example/{path}": page for path, page in paths.items()}}
    else:
        sites = {
            f"{content.__name__}, {around}": generated(content, around)
            for content in (shop, manual, forum)
            for around in ("div id=content", "div")
        }
    rows = list[dict[str, object]]()
    for name, pages in sites.items():
        found = asyncio.run(measure(pages, arguments.main or ["//h1/.."], arguments.most))
        for what, mean in found.items():
            print(f"{name:24} {what:36} {mean:.3f}", flush=True)
        known = " / ".join(
            f"{mean:.3f}".lstrip("0") for what, mean in found.items() if what.startswith("own text")
        )
        others = {what: round(found[what], 3) for what in ("trafilatura", "readability")}
        rows.append({"site": name, "pages": len(pages), "own text": known, **others})
    figures.write(arguments.figures, rows)


if __name__ == "__main__":
    main()
