"""What the verdict does with a real site, by identity: false drops, copies missed, and versions for print.

    python -m benchmarks.sites FOLDER [--main XPATH ...] [--version REGEX] [--print-versions] [--seeds 42,101] [--figure FILE] [--figures FILE]

The pages are the .html files below FOLDER.  The name of a page is its path without what REGEX finds.  A drop is *false*
if the two pages have other names and the 3-word shingles of their main texts differ, and *far* if these resemble each
other by less than .9.  A page is *missed* if it was kept although a page of its name with a main text of .9 or more had
been kept; a drop of a page of the same name with a main text below .9 is *grey*.  Main texts are found by `benchmarks.main_text`.  With
``--print-versions``, each page comes again at /print/, with nothing but its title and its main text in another template.
``--figure`` draws, of the first order, how much of what is own to pages is on the kept page that is near each.
"""

import argparse
import asyncio
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from lxml import etree, html

from benchmarks import figures
from benchmarks.main_text import main_text, shingles
from dedup import Detector, Fingerprint, open_index
from tests.support.pages.everyday import text


class SitePage(NamedTuple):
    """A page of a site."""

    url: str
    name: str
    main: frozenset[int]
    fingerprint: Fingerprint
    is_print: bool = False


def for_print(data: bytes, where: list[str]) -> str | None:
    """A page in another template: its title, and its main element; None for a page without one."""
    try:
        root = html.fromstring(data, parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    except (etree.ParserError, etree.XMLSyntaxError):
        return None
    found = next((nodes[0] for path in where if (nodes := root.xpath(path))), None)
    if found is None:
        return None
    title = root.findtext(".//title") or ""
    inner = html.tostring(found, encoding="unicode")
    return (
        f"<html><head><title>{title} (printable)</title></head><body><div>{text(40, 'printed from')}</div>"
        f"<div>{inner}</div><div>{text(60, 'end of print')}</div></body></html>"
    )


def read(detector: Detector, folder: Path, arguments: argparse.Namespace) -> list[SitePage]:
    """All pages, in the order of their paths."""
    pages, root = [], "http://site.example/"
    for file in sorted(folder.rglob("*.html")):
        if file.is_symlink():
            continue
        path, data = file.relative_to(folder).as_posix(), file.read_bytes()
        name, main = re.sub(arguments.version, "", path, count=1), shingles(main_text(data, arguments.main))
        pages.append(SitePage(root + path, name, main, detector.fingerprint(data, root + path)))
        if arguments.print_versions and (printed := for_print(data, arguments.main)):
            url = f"{root}print/{path}"
            pages.append(SitePage(url, name, main, detector.fingerprint(printed, url), True))
    return pages


def resemblance(a: SitePage, b: SitePage) -> float:
    both = len(a.main & b.main)
    return both / max(1, len(a.main) + len(b.main) - both)


async def replay(
    detector: Detector,
    pages: list[SitePage],
    order: list[int],
    show: int,
    shares: list[tuple[float, bool]],
    **options: object,
) -> dict[str, object]:
    """What became of the pages in an order."""
    index = open_index("memory:", detector, **options)
    kept, false, far, grey, right, missed, prints = defaultdict(list), [], 0, 0, 0, [], [0, 0]
    by_url = {page.url: page for page in pages}
    for number in order:
        page = pages[number]
        verdict = await index.claim(page.url, page.url, page.fingerprint)
        await index.confirm(page.url)
        told = verdict.evidence or (verdict.near and verdict.near.evidence)
        near = by_url[verdict.of or (verdict.near.url if verdict.near else page.url)]
        if told:
            shares.append((told.share, near.name == page.name and resemblance(page, near) >= 0.9))
        same = [other for other in kept[page.name] if resemblance(page, other) >= 0.9]
        other_kind = [other for other in same if other.is_print != page.is_print]
        if other_kind and len(other_kind) == len(same):
            prints[0] += 1
            prints[1] += not verdict.kept
        if verdict.kept:
            if same and verdict.status == "new":
                missed.append((page, same[0], verdict.near))
            kept[page.name].append(page)
            continue
        of = by_url[verdict.of or ""]
        alike = resemblance(page, of)
        if page.name != of.name and alike < 1:
            false.append((alike, page, of, verdict))
            far += alike < 0.9
        elif same:
            right += 1
        else:
            grey += alike < 0.9
    await index.close()
    for alike, page, of, verdict in sorted(false, key=lambda each: each[0])[:show]:
        print(f"  {alike:.3f} {page.url[20:]} of {of.url[20:]} by {verdict.rule}: {verdict.evidence}")
    for page, other, near in missed[:show]:
        print(f"  missed {page.url[20:]} of {other.url[20:]}, near {near}")
    found = {"pages": len(order), "false": len(false), "far": far, "grey": grey, "missed": len(missed)}
    recall = {"recall": round(right / max(1, right + len(missed)), 3)}
    return {**found, **recall, "print": prints[0], "print recall": round(prints[1] / max(1, prints[0]), 3)}


def draw(file: Path, title: str, shares: list[tuple[float, bool]]) -> None:
    """How many pages there are by how much is on the near one, of pages that are copies of it, and of others."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    kinds = {"the same page by its main text": True, "another page, or another text": False}
    values = [[share for share, is_copy in shares if is_copy == wanted] for wanted in kinds.values()]
    axes.hist(
        values, bins=[0.5 + at / 50 for at in range(26)], label=list(kinds), color=["#1f6fb2", "#d9601a"]
    )
    axes.axvline(0.85, color="black", linewidth=0.8, linestyle="--")
    axes.set(yscale="symlog", xlabel="containment", ylabel="pages", title=title)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--main", action="append", default=[])
    parser.add_argument("--version", default="^$")
    parser.add_argument("--print-versions", action="store_true")
    parser.add_argument("--seeds", default="42")
    parser.add_argument("--most", type=int, default=10**9, help="pages, taken at random")
    parser.add_argument("--figure", type=Path, help="draw it there (needs matplotlib)")
    parser.add_argument("--show", type=int, default=0, help="how many false drops and misses are shown")
    parser.add_argument("--by-resemblance", action="store_true", help="with DEDUP_CHROME=False")
    figures.add_option(parser)
    arguments = parser.parse_args()
    rows = list[dict[str, object]]()
    detector = Detector()
    pages = read(detector, arguments.folder, arguments)
    options = {"chrome": False} if arguments.by_resemblance else {}
    shares: list[tuple[float, bool]] = []
    for seed in arguments.seeds.split(","):
        shares.clear()
        order = list(range(len(pages)))
        if seed != "path":
            random.Random(int(seed)).shuffle(order)
        order = order[: arguments.most]
        found = asyncio.run(replay(detector, pages, order, arguments.show, shares, **options))
        rows.append({"site": arguments.folder.name, "order": seed, **found})
        print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
        if arguments.figure:
            draw(arguments.figure, arguments.folder.name, shares)
            arguments.figure = None
    figures.write(arguments.figures, rows)


if __name__ == "__main__":
    main()
