"""Mutations are found, negatives are not, by the defaults of the detector.

SHINGLEBACK_PAGES names a folder of real pages (\\*.html), 200 of which are then mutated as well.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import fmean

import pytest

from crawler.demo import Site
from dedup import Detector
from dedup.fingerprint.fingerprint import Comparison
from dedup.fingerprint.shingles import hash_tokens, resemblance, shingle_hashes
from dedup.page.charset import decode
from dedup.page.html import extract, parse
from tests.support.pages.lookalikes import NEGATIVES
from tests.support.pages.mutations import MUTATIONS

URL = "http://example.org/museum/page.html"
DETECTOR = Detector()
SEEDS = 1  #: mutants of each page by each mutation

Page = tuple[str, str]  #: HTML and address


def tokens(html: str, url: str = URL) -> list[str]:
    return extract(parse(html), url).tokens


def changed(before: Sequence[str], after: Sequence[str]) -> float:
    """The share of tokens that were added or removed, whichever is more."""
    old, new = Counter(before), Counter(after)
    return max((old - new).total(), (new - old).total()) / len(before)


def exact(a: Sequence[str], b: Sequence[str]) -> float:
    return resemblance(shingle_hashes(hash_tokens(a), 6), shingle_hashes(hash_tokens(b), 6))


@cache
def pages() -> list[Page]:
    """Pages of 200 to 3,000 tokens: some of the demo site's, and one of each kind of look-alikes' pairs."""
    site = Site()
    paths = ["/articles/the-fog-signal", "/print/oil-and-wick", "/keepers/", "/shop/", "/shop/sea-chart"]
    paths += ["/list?page=2", "/calendar/2026/05", "/mirror/", "/articles/the-storm-of-1884", "/staff/"]
    found = [(site.render(path, 1)[2].decode(), f"http://127.0.0.1{path}") for path in paths]
    for seed in range(8):
        found += [(pair(random.Random(seed))[0], URL) for pair in NEGATIVES.values()]
    return [page for page in found if 200 <= len(tokens(*page)) <= 3000]


Row = tuple[str, float, Comparison]  #: mutation, share of changed tokens, verdict


def measure(pages: Iterable[Page], seeds: int) -> list[Row]:
    rows = []
    for number, (html, url) in enumerate(pages):
        before, fingerprint = tokens(html, url), DETECTOR.fingerprint(html, url)
        for name, mutation in MUTATIONS.items():
            for seed in range(seeds):
                mutant = mutation(html, random.Random(f"{number} {name} {seed}"))
                share = changed(before, tokens(mutant, url))
                rows.append((name, share, DETECTOR.compare(fingerprint, DETECTOR.fingerprint(mutant, url))))
    return rows


@cache
def generated() -> list[Row]:
    return measure(pages(), SEEDS)


def table(rows: Iterable[Row]) -> dict[str, float]:
    """Recall per mutation, and "all"; printed."""
    by_name = defaultdict(list)
    for row in rows:
        by_name[row[0]].append(row)
        by_name["all"].append(row)
    recalls = {}
    print(f"\n{'mutation':20} pairs recall changed  max.  distance max. resemblance min.")
    for name, group in by_name.items():
        recalls[name] = fmean(verdict.duplicate for _, _, verdict in group)
        shares = [share for _, share, _ in group]
        far = [verdict.distance or 0 for _, _, verdict in group]
        alike = [verdict.resemblance or 0.0 for _, _, verdict in group]
        print(
            f"{name:20} {len(group):5} {recalls[name]:6.3f} {fmean(shares):7.4f} {max(shares):.4f} "
            f"{fmean(far):7.2f} {max(far):4} {fmean(alike):9.3f} {min(alike):9.3f}"
        )
    return recalls


def test_pages_are_varied() -> None:
    sizes = sorted(len(tokens(*page)) for page in pages())
    assert len(sizes) >= 40
    assert sizes[0] < 250
    assert sizes[-1] > 2000


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_changes_little_and_repeatably(name: str) -> None:
    for number, (html, url) in enumerate(pages()[::3]):
        mutant = MUTATIONS[name](html, random.Random(number))
        assert mutant == MUTATIONS[name](html, random.Random(number))
        before, after = tokens(html, url), tokens(mutant, url)
        if name != "session_ids":  # these the normalisation removes
            assert before != after
        assert mutant.count("href") >= html.count("href") * 0.9
        assert changed(before, after) <= 0.05


ODD = ["", " ", "<!-- -->", "text", "<title>only", "\x00\ud800<p>x", "<frameset><frame src=a></frameset>"]
ODD += [
    "<p>" * 400,
    "<script>1</script>",
    '<a href="">x</a>',
    '<a href="http://[">x</a>',
    '<?xml encoding="x"?>y',
]


@pytest.mark.parametrize("name", MUTATIONS)
def test_any_page_can_be_mutated(name: str) -> None:
    for html in ODD:
        mutant = MUTATIONS[name](html, random.Random(1))
        assert tokens(mutant) != tokens(html) or mutant != html


@pytest.mark.parametrize("name", MUTATIONS)
def test_share_bounds_the_change(name: str) -> None:
    html, url = max(pages(), key=lambda page: len(page[0]))
    before = tokens(html, url)
    for share in (0.0, 0.01, 0.2):
        mutant = MUTATIONS[name](html, random.Random(5), share=share)
        assert mutant != html
        assert changed(before, tokens(mutant, url)) <= share + 1 / len(before)


#: Not among the mutations of every day, and beyond the detector's reach: see its own test.
BEYOND = "private_ids"


def test_near_duplicates_are_found() -> None:
    rows = generated()
    assert max(share for _, share, _ in rows) <= 0.05
    table(rows)
    recalls = table(row for row in rows if row[0] != BEYOND)
    assert recalls["all"] >= 0.98
    assert min(recalls.values()) >= 0.93


@pytest.mark.xfail(strict=True, reason="one token of scattered change costs six shingles: 2.4 % are too much")
def test_scattered_private_ids_are_found() -> None:
    assert table(row for row in generated() if row[0] == BEYOND)["all"] >= 0.93


@pytest.mark.skipif(
    "SHINGLEBACK_PAGES" not in os.environ, reason="SHINGLEBACK_PAGES names no folder of pages"
)
def test_near_duplicates_of_real_pages_are_found() -> None:
    files = sorted(Path(os.environ["SHINGLEBACK_PAGES"]).rglob("*.html"))
    random.Random(1).shuffle(files)
    real = ((decode(file.read_bytes()), URL) for file in files)
    rows = measure(islice((page for page in real if len(tokens(*page)) >= 200), 200), 1)
    table(rows)
    recalls = table(row for row in rows if row[0] != BEYOND)
    assert max(share for _, share, _ in rows) <= 0.05
    assert recalls["all"] >= 0.98
    assert min(recalls.values()) >= 0.93


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.slow)])
def test_look_alikes_are_told_apart(count: int) -> None:
    judged, false = Counter[str](), Counter[str]()
    alike: dict[str, list[float]] = defaultdict(list)
    names, seed = list(NEGATIVES), 0
    while judged.total() < count:
        name = names[seed % len(names)]
        left, right = NEGATIVES[name](random.Random(f"{name} {seed}"))
        seed += 1
        resembles = exact(tokens(left), tokens(right))
        if resembles >= 0.6:
            continue
        a, b = DETECTOR.fingerprint(left, URL), DETECTOR.fingerprint(right, URL)
        assert a.reason is b.reason is None
        judged[name] += 1
        alike[name].append(resembles)
        false[name] += DETECTOR.compare(a, b).duplicate
    print(f"\n{'negative':20} pairs false resemblance max.  ({seed - count} of .6 or more not counted)")
    for name in names:
        print(f"{name:20} {judged[name]:5} {false[name]:5} {fmean(alike[name]):11.3f} {max(alike[name]):.3f}")
    assert min(judged.values()) > count / 10
    assert false.total() == 0


@pytest.mark.parametrize("name", NEGATIVES)
def test_negatives_are_repeatable_and_different(name: str) -> None:
    pair = NEGATIVES[name]
    assert pair(random.Random(1)) == pair(random.Random(1))
    assert pair(random.Random(1)) != pair(random.Random(2))
    left, right = pair(random.Random(1))
    assert set(tokens(left)) & set(tokens(right))
    assert tokens(left) != tokens(right)


def test_duplicates_of_the_demo_site_are_no_farther_than_mutants() -> None:
    """Mirror, printer version and another visit of an article: as near as what the mutations make of it."""
    site = Site()
    article = tokens(site.render("/articles/the-great-lens", 1)[2].decode())
    for path in ("/mirror/articles/the-great-lens", "/print/the-great-lens", "/articles/the-great-lens"):
        assert changed(article, tokens(site.render(path, 900)[2].decode())) <= 0.05
