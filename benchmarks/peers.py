"""Ours beside its peers as inline filters, on the same pages in the same order, in one run.

    pip install simhash gaoya datasketch trafilatura lxml_html_clean
    python benchmarks/peers.py NAME.pairs.tsv.gz --root FOLDER [--figures FILE] [NAME2.pairs.tsv.gz ...]

Each peer sees the visible words of a page, as our own normalisation finds them, and drops a page that its rule
calls similar to a kept one: once with its default threshold, once with the one, of those tried, of the best F1
on this very set (ours keeps its defaults).  Precision = drops that are right (a page kept before resembles it,
exact resemblance of 3-word shingles >= .7); recall = pages that an earlier kept page resembles (>= .9) and that
were dropped.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from benchmarks import figures
from benchmarks.quality.measures import Inline, Stream, measure
from benchmarks.quality.truth import read_collection
from dedup import Detector
from dedup.page.charset import decode
from dedup.page.read import read
from dedup.page.words import is_url

SEED = 42
#: A rule is a list with the verdict on each page: the position of the kept page, or -1.
Rule = Callable[[list[str], float], np.ndarray]


def by_distance(simhashes: list[int], k: int) -> np.ndarray:
    """Drops a page within k bits of a kept one."""
    of, kept, filed = [], np.empty(len(simhashes), np.uint64), []
    for page, simhash in enumerate(simhashes):
        near = np.flatnonzero(np.bitwise_count(kept[: len(filed)] ^ np.uint64(simhash)) <= k)
        of.append(filed[near[0]] if len(near) else -1)
        if not len(near):
            kept[len(filed)] = simhash
            filed.append(page)
    return np.array(of)


class Fingerprints:
    """A peer that makes a 64-bit simhash; fingerprints are made once for all thresholds."""

    def __init__(self, make: Callable[[str], int]) -> None:
        self.make = make
        self.made: dict[int, list[int]] = {}

    def __call__(self, texts: list[str], threshold: float) -> np.ndarray:
        if id(texts) not in self.made:
            self.made = {id(texts): [self.make(text) for text in texts]}
        return by_distance(self.made[id(texts)], int(threshold))


def pypi_simhash() -> Rule:
    import simhash

    class Fixed(simhash.Simhash):
        @staticmethod
        def _bitarray_from_bytes(b: bytes) -> np.ndarray:
            # Its uint8 raises on numpy 2 when it is multiplied by a weight over 255.
            return np.unpackbits(np.frombuffer(b, dtype=">B")).astype(np.int64)

    return Fingerprints(lambda text: Fixed(text).value)


def trafilatura_simhash() -> Rule:
    from trafilatura.deduplication import Simhash

    return Fingerprints(lambda text: Simhash(text).hash)


def text_dedup() -> Rule:
    """The rule of text-dedup's SimHash: 3-word shingles, unweighted sums of xxh3 bits."""

    def make(text: str) -> int:
        words = text.split()
        grams = [" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))]
        hashes = np.array([xxhash.xxh3_64_intdigest(gram.encode()) for gram in grams], ">u8")
        bits = np.unpackbits(hashes.view(np.uint8).reshape(len(hashes), 8), axis=1)
        return int.from_bytes(np.packbits(2 * bits.sum(0, dtype=int) >= len(hashes)).tobytes(), "big")

    return Fingerprints(make)


def gaoya(texts: list[str], threshold: float) -> np.ndarray:
    from gaoya.simhash import SimHashStringIndex

    k = int(threshold)
    index = SimHashStringIndex(num_blocks=max(6, k + 2), hamming_distance=k, ngram_range=(1, 1))
    of = []
    for page, text in enumerate(texts):
        near = index.query(text)
        of.append(min(near) if near else -1)
        if not near:
            index.insert_document(page, text)
    return np.array(of)


def datasketch_lsh(texts: list[str], threshold: float) -> np.ndarray:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=128)
    of = []
    for page, text in enumerate(texts):
        words = text.split()
        grams = {" ".join(words[at : at + 3]).encode() for at in range(max(1, len(words) - 2))}
        minhash = MinHash(num_perm=128)
        minhash.update_batch(grams)
        near = index.query(minhash)
        of.append(min(near) if near else -1)
        if not near:
            index.insert(page, minhash)
    return np.array(of)


#: Name, rule, its default threshold (text-dedup's and trafilatura's: what they call near), those tried.
PEERS: list[tuple[str, Callable[[], Rule], float, list[float]]] = [
    ("simhash 2.1 (PyPI), k", pypi_simhash, 2, [*range(11)]),
    ("gaoya SimHash, k", lambda: gaoya, 5, [*range(1, 11)]),
    (
        "datasketch MinHashLSH, threshold",
        lambda: datasketch_lsh,
        0.9,
        [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95],
    ),
    ("trafilatura Simhash, k", trafilatura_simhash, 3, [*range(11)]),
    ("text-dedup's SimHash rule, k", text_dedup, 3, [*range(11)]),
]


def f1(found: Inline) -> float:
    precision, recall = 1 - found.false_rate, found.recall
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def tell(name: str, site: str, found: Inline, seconds: float) -> dict[str, object]:
    """Prints what a rule has found, and returns it."""
    row = {
        "rule": name,
        "site": site,
        "drops": found.drops,
        "precision": 1 - found.false_rate,
        "recall": found.recall,
    }
    print(
        f"{name:46} {found.drops:6,} {row['precision']:10.4f} {row['recall']:8.4f} {f1(found):8.4f} {seconds:7.1f}",
        flush=True,
    )
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def rows(pairs: Path, root: Path) -> Iterator[dict[str, object]]:
    """What ours finds, and each peer at its best."""
    collection = read_collection(pairs)
    order = list(range(len(collection.paths)))
    random.Random(SEED).shuffle(order)
    at = {page: position for position, page in enumerate(order)}
    truth: dict[int, dict[int, float]] = {
        at[page]: {at[other]: alike for other, alike in others.items()}
        for page, others in collection.truth.items()
    }
    names = [collection.paths[page] for page in order]
    pages = [read(decode((root / name).read_bytes()), f"http://localhost/{name}") for name in names]
    texts = [" ".join(token for token in page.tokens if not is_url(token)) for page in pages]
    site = pairs.name.partition(".")[0]
    print(f"{site}: {len(pages):,} pages, order of seed {SEED}")
    print(f"{'rule':46} {'drops':>6} {'precision':>10} {'recall':>8} {'F1':>8} {'s':>7}")
    detector = Detector()
    started = time.perf_counter()
    stream = Stream([detector.fingerprint_page(page) for page in pages], detector)
    of = stream.filter(detector.max_distance, detector.min_resemblance)
    ours = f"Shingleback, k = {detector.max_distance}, resemblance >= {detector.min_resemblance}"
    yield tell(ours, site, measure(of, truth), time.perf_counter() - started)
    for name, make, default, thresholds in PEERS:
        rule: Any = make()
        results = []
        for threshold in [default, *(threshold for threshold in thresholds if threshold != default)]:
            started = time.perf_counter()
            found = measure(rule(texts, threshold), truth)
            results.append((threshold, found, time.perf_counter() - started))
        row = tell(f"{name} = {default:g} (default)", site, *results[0][1:])
        best = max(results, key=lambda result: f1(result[1]))
        if best is not results[0]:
            row = tell(f"{name} = {best[0]:g}", site, *best[1:])
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--root", type=Path, required=True)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found = [row for pairs in arguments.pairs for row in rows(pairs, arguments.root)]
    figures.write(arguments.figures, found)


if __name__ == "__main__":
    main()
