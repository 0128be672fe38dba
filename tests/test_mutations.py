"""Mutations are found, negatives are not, by the defaults of the detector."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import fmean

import pytest

from crawler.demo import Site
from dedup import Detector
from dedup.fingerprint.fingerprint import Comparison
from dedup.fingerprint.shingles import hash_tokens, resemblance, shingle_hashes
from dedup.page.html import extract, parse
from tests.support import slow
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
    for seed in range(2):
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


def recalls(rows: Iterable[Row]) -> dict[str, float]:
    """Recall per mutation, and "all"."""
    by_name = defaultdict(list)
    for name, _, verdict in rows:
        by_name[name].append(verdict.duplicate)
        by_name["all"].append(verdict.duplicate)
    return {name: fmean(found) for name, found in by_name.items()}


#: Not among the mutations of every day, and beyond the detector's reach: see its own test.
BEYOND = "private_ids"


def test_near_duplicates_are_found() -> None:
    rows = generated()
    assert max(share for _, share, _ in rows) <= 0.05
    found = recalls(row for row in rows if row[0] != BEYOND)
    assert found["all"] >= 0.98
    assert min(found.values()) >= 0.93


@pytest.mark.xfail(strict=True, reason="one token of scattered change costs six shingles: 2.4 % are too much")
def test_scattered_private_ids_are_found() -> None:
    assert recalls(row for row in generated() if row[0] == BEYOND)["all"] >= 0.93


@pytest.mark.parametrize("count", [100, slow(10_000)])
def test_look_alikes_are_told_apart(count: int) -> None:
    judged, false = Counter[str](), Counter[str]()
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
        false[name] += DETECTOR.compare(a, b).duplicate
    assert min(judged.values()) > count / 10
    assert false.total() == 0


def test_duplicates_of_the_demo_site_are_no_farther_than_mutants() -> None:
    """Mirror, printer version and another visit of an article: as near as what the mutations make of it."""
    site = Site()
    article = tokens(site.render("/articles/the-great-lens", 1)[2].decode())
    for path in ("/mirror/articles/the-great-lens", "/print/the-great-lens", "/articles/the-great-lens"):
        assert changed(article, tokens(site.render(path, 900)[2].decode())) <= 0.05
