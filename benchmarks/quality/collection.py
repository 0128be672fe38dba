"""The inline measure of the filter on a collection of pages whose resemblance is known."""

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.measures import Stream, Truth, measure, sketch_error
from benchmarks.quality.replay import Replay
from benchmarks.quality.truth import read_collection, read_html
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.intervals import wilson
from dedup.page.charset import decode
from dedup.scrapy.commands.terminal import each, interval, print_table

#: Pairs on which sketches are compared with exact resemblance.
SKETCH_PAIRS = 20_000


class _Pages(NamedTuple):
    """The pages of a collection in the order of a crawl."""

    urls: list[str]
    fingerprints: list[Fingerprint]
    shingles: list[Hashes]  #: empty if they were not asked for
    truth: Truth  #: by position


def evaluate_collection(
    path: Path,
    replay: Replay,
    thresholds: Sequence[tuple[int, float]],
    opts: argparse.Namespace,
) -> dict[str, Any]:
    """Prints the figures for a collection and what else is asked for, and returns them."""
    detector = replay.detector
    pages = _read_pages(path, detector, opts.root, opts.seed, opts.sketch)
    stream = Stream(pages.fingerprints, detector)
    unjudged = int((~stream.judged).sum())
    print(f"{stream.size:,} pages, order of seed {opts.seed}, {unjudged:,} that can't be judged")
    rows = [_row(stream, pages.truth, k, resemblance) for k, resemblance in each(thresholds, "Thresholds")]
    _print_rows(rows, (detector.max_distance, detector.min_resemblance))
    if opts.sketch:
        _print_sketch_error(pages, detector, opts.seed)
    if opts.through_index:
        rows.append(_print_through_index(pages, stream, replay))
    return {"pages": stream.size, "seed": opts.seed, "parameters": detector.parameters, "rows": rows}


def _read_pages(path: Path, detector: Detector, root: Path, seed: int, with_shingles: bool) -> _Pages:
    """Reads the pages of a collection in the order that a seed gives."""
    collection = read_collection(path)
    order = list(range(len(collection.paths)))
    random.Random(seed).shuffle(order)
    position = {number: at for at, number in enumerate(order)}
    truth = {
        position[number]: {position[other]: alike for other, alike in others.items()}
        for number, others in collection.truth.items()
    }
    pages = _Pages([], [], [], truth)
    for number in each(order, "Fingerprints"):
        name = collection.paths[number]
        html, url = read_html(name, root)
        pages.urls.append(url)
        page = detector.read(decode(html), url)
        pages.fingerprints.append(detector.fingerprint_page(page))
        if with_shingles:
            pages.shingles.append(detector.shingles(page))
    return pages


def _row(stream: Stream, truth: Truth, k: int, resemblance: float) -> dict[str, Any]:
    inline = measure(stream.filter(k, resemblance), truth)
    return {
        "k": k,
        "min_resemblance": resemblance,
        **inline._asdict(),
        "false_rate": inline.false_rate,
        "false_interval": wilson(inline.false, inline.drops),
        "recall": inline.recall,
        "recall_interval": wilson(inline.could - inline.missed, inline.could),
    }


def _print_rows(rows: Sequence[Mapping[str, Any]], own: tuple[int, float]) -> None:
    names = ["k", "resemblance", "drops", "false", "% of drops", "95 %", "grey", "missed", "recall", "95 %"]
    print_table(names, map(_cells, rows), gap=False, starred=lambda row: tuple(row[:2]) == own)


def _cells(row: Mapping[str, Any]) -> list[object]:
    numbers = [row[name] for name in ("k", "min_resemblance", "drops", "false")]
    false = f"{100 * row['false_rate']:.2f}", interval([100 * bound for bound in row["false_interval"]], 2)
    missed = f"{row['missed']} of {row['could']}", f"{row['recall']:.4f}", row["recall_interval"]
    return [*numbers, *false, row["grey"], *missed]


def _print_sketch_error(pages: _Pages, detector: Detector, seed: int) -> None:
    """Prints how far the resemblance that sketches estimate is from the exact one."""
    sketches = [fingerprint.sketch for fingerprint in pages.fingerprints]
    pairs = sorted((a, b) for a, others in pages.truth.items() for b in others if a < b)
    pairs = [(a, b) for a, b in pairs if sketches[a] and sketches[b]]
    some = random.Random(seed).sample(pairs, min(len(pairs), SKETCH_PAIRS))
    found = sketch_error(sketches, pages.shingles, some, detector)
    print(
        f"sketch against exact resemblance on {found.pairs:,} pairs of .5 to 1: mean error {found.error:.4f}, "
        f"bias {found.bias:+.4f}, the same side of {detector.min_resemblance:g} on {100 * found.agreement:.2f} %"
    )


def _print_through_index(pages: _Pages, stream: Stream, replay: Replay) -> dict[str, Any]:
    """Prints what an index does with the pages, and returns the figures.

    Without the rule of own content, an index gives the verdicts of the brute-force search.
    """
    of = np.array(replay(pages.fingerprints, pages.urls, range(stream.size)))
    inline = measure(of, pages.truth)
    detector = replay.detector
    others = int((of != stream.filter(detector.max_distance, detector.min_resemblance)).sum())
    print(
        f"through the index {replay.address}: {inline.drops:,} drops, {inline.false} false "
        f"({100 * inline.false_rate:.2f} %), recall {inline.recall:.4f}: "
        + ("the same verdicts" if others == 0 else f"{others:,} OTHER VERDICTS")
        + (", with the rule of own content" if replay.settings.chrome else "")
    )
    return {
        "index": replay.address,
        **inline._asdict(),
        "false_rate": inline.false_rate,
        "recall": inline.recall,
    }
