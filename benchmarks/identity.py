"""Which pages of a site are the same: the truth by identity, for `python -m benchmarks.quality NAME.same.pairs.tsv.gz`.

    python benchmarks/identity.py FOLDER OUT/NAME --main XPATH [--main XPATH ...] [--version REGEX]

The pages are the .html files below FOLDER.  The main text of a page is that of the first XPATH that finds something,
or else of the body; script, style, noscript and template left out.  It shares no code with the package.  The name of a
page is its path without what REGEX finds, by default the first folder below FOLDER.  Written are OUT/NAME.same.docs.txt.gz
(path, name) and OUT/NAME.same.pairs.tsv.gz (a, b, exact resemblance of the 3-word shingles, of at least .6).

    python benchmarks/identity.py DIR/storm_docs truth/storm_docs --version '^releases/[^/]+/' \\
        --main "//div[contains(@class,'documentation-content')]" --main //main
    python benchmarks/identity.py DIR/kafka_38_39 truth/kafka_38_39 --main //main
"""

import argparse
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from lxml import etree, html

INVISIBLE = "self::script or self::style or self::noscript or self::template"
#: Pairs below this resemblance are not written.
LEAST = 0.6


def main_text(data: bytes, where: list[str]) -> list[str]:
    """The words of a page's main text."""
    try:
        root = html.fromstring(data, parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    except (etree.ParserError, etree.XMLSyntaxError):
        return []
    for xpath in [*where, "//body"]:
        if found := root.xpath(xpath):
            texts = found[0].xpath(
                f".//text()[not(ancestor::*[{INVISIBLE}]) and not(parent::*[self::comment()])]"
            )
            return re.findall(r"\w+", " ".join(map(str, texts)).lower())
    return []


def shingles(words: list[str]) -> frozenset[int]:
    """Hashes of all runs of three words; of a shorter text, of the whole."""
    return frozenset(hash(tuple(words[at : at + 3])) for at in range(max(1, len(words) - 2)))


def pairs(pages: list[frozenset[int]]) -> Iterator[tuple[int, int, float]]:
    """All pairs of at least `LEAST`; of equal pages, only the first is compared with the others."""
    equal: dict[frozenset[int], list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        equal[page].append(number)
    having: dict[int, list[int]] = defaultdict(list)
    kinds = list(equal)
    for kind, page in enumerate(kinds):
        common = Counter(other for shingle in page for other in having[shingle])
        for other, both in common.items():
            resemblance = both / (len(page) + len(kinds[other]) - both)
            if resemblance >= LEAST:
                for a in equal[kinds[other]]:
                    yield from ((a, b, resemblance) for b in equal[page])
        for shingle in page:
            having[shingle].append(kind)
        same = equal[page]
        yield from ((a, b, 1.0) for at, a in enumerate(same) for b in same[at + 1 :])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--main", action="append", default=[])
    parser.add_argument("--version", default=r"^[^/]+/")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.rglob("*.html"))
    paths = [file.relative_to(arguments.folder.parent).as_posix() for file in files]
    names = [re.sub(arguments.version, "", path.partition("/")[2], count=1) for path in paths]
    pages = [shingles(main_text(file.read_bytes(), arguments.main)) for file in files]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(f"{arguments.out}.same.docs.txt.gz", "wt") as docs:
        docs.writelines(f"{path}\t{name}\n" for path, name in zip(paths, names, strict=True))
    count = 0
    with gzip.open(f"{arguments.out}.same.pairs.tsv.gz", "wt") as truth:
        truth.write("a\tb\tresemblance\n")
        for a, b, resemblance in pairs(pages):
            truth.write(f"{paths[a]}\t{paths[b]}\t{resemblance:.4f}\n")
            count += 1
    print(f"{len(paths):,} pages, {len(set(names)):,} names, {count:,} pairs")


if __name__ == "__main__":
    main()
