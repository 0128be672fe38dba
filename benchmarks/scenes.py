"""What the verdict loses of everyday pages, and which true copies it keeps.

    python -m benchmarks.scenes [--kind WORDS] [--unseen] [--folders] [--copies] [--by-resemblance]

Contents: 40 of each kind of `tests.support.pages.everyday`, at /view?id=N in 900 words of unmarked chrome and at
/view/N.html in marked chrome, and in unmarked chrome at addresses of words that the pages don't say, alone or with 40 articles on the same host, in order and shuffled.  A content is lost if
no page of it is kept.  Copies: articles of 60 to 600 words, and other pages of each with a counter, an advert, tracking
links, on a mirror, under a session id, and in the templates of a print and an AMP version.
"""

import argparse
import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from dedup import Detector, Fingerprint, open_index
from tests.support.pages.everyday import KINDS, Content, name, text
from tests.support.pages.unseen import UNSEEN

CONTENTS = 40
HOST = "http://www.example.org"
MIRROR = "http://mirror.example.net"
COPIES = ("counter", "advert", "tracking", "session", "mirror", "print", "amp")
#: Own words of the articles that have copies.
ARTICLES = (60, 100, 150, 250, 400, 600)


class Shown(NamedTuple):
    """A page of a site, and what it shows."""

    url: str
    html: str
    content: str
    kind: str = ""


class Figures(NamedTuple):
    """What became of the pages of a crawl."""

    contents: int
    lost: set[str]  #: contents of which no page was kept
    copies: Counter[str]  #: pages whose content had been kept before, by kind
    dropped: Counter[str]  #: those of them that were dropped


@cache
def chrome(words: int, where: str) -> str:
    items = "".join(f'<li><a href="/menu/{at}">{text(3, (where, at))}</a></li>' for at in range(words // 4))
    return f"<ul>{items}</ul>"


def in_unmarked(content: Content, extra: str = "") -> str:
    """A page in 900 words of menu and footer, which no element marks as such."""
    return (
        f"<html><head><title>{content.title}</title>{content.head}</head><body>"
        f"<div>{chrome(700, 'top')}</div><div><h1>{content.title}</h1>{content.body}</div>"
        f"<div>{extra}{text(200, 'footer')}</div></body></html>"
    )


def in_marked(content: Content, extra: str = "") -> str:
    """The same with its chrome marked."""
    return (
        f"<html><head><title>{content.title}</title>{content.head}</head><body><nav>{chrome(700, 'top')}</nav>"
        f"<main><article><h1>{content.title}</h1>{content.body}</article></main>"
        f"<footer>{extra}{text(200, 'footer')}</footer></body></html>"
    )


TEMPLATES = {"?id=": in_unmarked, ".html": in_marked, "words": in_unmarked}
#: What an address says of its page is in a folder, or in its host, and its last part is the same everywhere.
FOLDERS = {"folders": in_unmarked, "hosts": in_unmarked}


def address(style: str, number: int) -> str:
    if style in FOLDERS:
        said = "-".join(name(number, "address").lower().split())
        return f"{HOST}/{said}/view" if style == "folders" else f"http://{said}.example.org/view"
    if style == "words":
        return f"{HOST}/view/{'-'.join(name(number, 'address').lower().split())}"
    return f"{HOST}/view?id={number}" if style == "?id=" else f"{HOST}/view/{number}.html"


def article(number: int, words: int) -> Content:
    title = text(5, ("title", number)).rstrip(".")
    return Content(title, "".join(f"<p>{text(words // 4, ('article', number, at))}</p>" for at in range(4)))


def scene(kind: str, style: str) -> list[Shown]:
    """The pages of a kind."""
    make, put = (KINDS | UNSEEN)[kind], (TEMPLATES | FOLDERS)[style]
    contents = [make(number, random.Random(f"{kind} {number}")) for number in range(CONTENTS)]
    assert len(set(contents)) == CONTENTS, kind
    return [
        Shown(address(style, 100 + number), put(each), f"{kind} {number}")
        for number, each in enumerate(contents)
    ]


def others(style: str) -> list[Shown]:
    """Articles of the same host."""
    put = (TEMPLATES | FOLDERS)[style]
    return [
        Shown(f"{HOST}/story/{'-'.join(each.title.lower().split())}", put(each), f"article {number}")
        for number in range(CONTENTS)
        for each in [article(number, 150 + 5 * number)]
    ]


def copies(style: str, per_size: int = 8) -> list[Shown]:
    """Articles, and the copies of each."""
    put, rng = TEMPLATES[style], random.Random(5)
    pages = []
    for number in range(per_size * len(ARTICLES)):
        one = article(1000 + number, ARTICLES[number % len(ARTICLES)])
        slug, content = "-".join(one.title.lower().split()), f"copied {number}"
        there = f"{HOST}/view?id={500 + number}" if style == "?id=" else f"{HOST}/story/{slug}"
        mark = "&" if "?" in there else "?"
        counted = f"<p>Visitors: {rng.randrange(10**6)}, online {rng.randrange(900)}, 12:{rng.randrange(60)} o'clock</p>"
        advert = f"<p>{text(25, ('advert', rng.randrange(12)))}</p>"
        tracked = re.sub(r'(?<=href=")(/menu/\d+)', rf"\1?utm_source=a{rng.randrange(10**6)}", put(one))
        variants = {
            "": (there, put(one)),
            "counter": (f"{there}{mark}utm_campaign=c{number}", put(one, counted)),
            "advert": (f"{there}{mark}ref=r{number}x", put(one, advert)),
            "tracking": (f"{there}{mark}utm_medium=m{number}", tracked),
            "session": (f"{there}{mark}sid={rng.randbytes(16).hex()}", put(one, counted)),
            "mirror": (there.replace(HOST, MIRROR), put(one)),
            "print": (f"{HOST}/print/{slug}", in_print(one)),
            "amp": (f"{HOST}/amp/{slug}", in_amp(one)),
        }
        pages += [Shown(url, html, content, kind) for kind, (url, html) in variants.items()]
    return pages


def in_print(content: Content) -> str:
    return (
        f"<html><head><title>{content.title} - print version</title></head><body><p>Printed from our site</p>"
        f"<h1>{content.title}</h1>{content.body}<p>{text(25, 'print')}</p></body></html>"
    )


def in_amp(content: Content) -> str:
    return (
        f"<html><head><title>{content.title}</title></head><body><header>{text(60, 'amp')}</header><main>"
        f"<h1>{content.title}</h1>{content.body}</main><p>{text(40, 'amp foot')}</p></body></html>"
    )


def read(detector: Detector, pages: Iterable[Shown]) -> list[Fingerprint]:
    return [detector.fingerprint(page.html, page.url) for page in pages]


def crawl(
    detector: Detector,
    pages: Sequence[Shown],
    prints: Sequence[Fingerprint],
    order: Iterable[int],
    **options: object,
) -> Figures:
    """Claims pages in an order."""

    async def claims() -> Figures:
        index = open_index("memory:", detector, **options)
        kept, seen, met, dropped = set[str](), set[str](), Counter[str](), Counter[str]()
        for number in order:
            page = pages[number]
            verdict = await index.claim(str(number), page.url, prints[number])
            await index.confirm(str(number))
            seen.add(page.content)
            if page.content in kept:
                met[page.kind] += 1
                dropped[page.kind] += not verdict.kept
            if verdict.kept:
                kept.add(page.content)
        await index.close()
        return Figures(len(seen), seen - kept, met, dropped)

    return asyncio.run(claims())


def orders(count: int) -> Iterator[tuple[str, list[int]]]:
    yield "in order", list(range(count))
    shuffled = list(range(count))
    random.Random(7).shuffle(shuffled)
    yield "shuffled", shuffled


def measure_kinds(
    detector: Detector, kinds: Iterable[str], styles: Iterable[str], **options: object
) -> tuple[int, int]:
    """Prints what is lost of each kind, and gives how many contents, and how many of them are lost."""
    contents = lost = 0
    beside = {style: others(style) for style in styles}
    beside_prints = {style: read(detector, pages) for style, pages in beside.items()}
    for kind in kinds:
        row = []
        for style, articles in beside.items():
            pages = scene(kind, style)
            prints = read(detector, pages)
            for more, more_prints in ((articles, beside_prints[style]), ([], [])):
                for _, order in orders(len(more) + len(pages)):
                    found = crawl(detector, more + pages, more_prints + prints, order, **options)
                    gone = sum(not each.startswith("article") for each in found.lost)
                    contents, lost = contents + CONTENTS, lost + gone
                    assert len(found.lost) == gone, "an article was lost"
                    row.append(gone)
        print(f"{kind:24}", *(f"{gone:3}" for gone in row), flush=True)
    return contents, lost


def measure_copies(detector: Detector, **options: object) -> None:
    for style in TEMPLATES:
        pages = others(style) + copies(style)
        prints = read(detector, pages)
        for order_name, order in orders(len(pages)):
            found = crawl(detector, pages, prints, order, **options)
            shares = (f"{kind} {found.dropped[kind] / max(1, found.copies[kind]):.2f}" for kind in COPIES)
            total = found.dropped.total() / max(1, found.copies.total())
            print(
                f"{style:6} {order_name:9} lost {len(found.lost)} of {found.contents}, dropped {total:.2f}:",
                *shares,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", default="", help="only the kinds with these words in their names")
    parser.add_argument("--unseen", action="store_true", help="the kinds on which nothing was chosen")
    parser.add_argument(
        "--folders", action="store_true", help="addresses that differ in a folder, or the host"
    )
    parser.add_argument("--copies", action="store_true", help="copies alone")
    parser.add_argument("--by-resemblance", action="store_true", help="with DEDUP_CHROME=False")
    arguments = parser.parse_args()
    detector, options = Detector(), {"chrome": False} if arguments.by_resemblance else {}
    if not arguments.copies:
        styles = FOLDERS if arguments.folders else TEMPLATES
        print(f"lost of 40, at {', '.join(styles)}: with others, shuffled; alone, shuffled")
        kinds = [kind for kind in (UNSEEN if arguments.unseen else KINDS) if arguments.kind in kind]
        contents, lost = measure_kinds(detector, kinds, styles, **options)
        print(f"{lost:,} of {contents:,} contents lost: {lost / contents:.2%}")
    if not arguments.kind:
        measure_copies(detector, **options)


if __name__ == "__main__":
    main()
