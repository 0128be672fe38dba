"""The three kinds of evaluation: labelled pairs, collections, logs.  Each prints, and gives its figures."""

import argparse
import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.progress import track

from dedup.droplog.reader import Reader
from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.index import open_index
from dedup.intervals import wilson
from dedup.lab.evaluation import Stream, measure, score_pairs, sketch_error
from dedup.lab.figures import draw_collection, draw_pairs
from dedup.lab.labelled import read_collection, read_page, read_pairs
from dedup.page.html import decode
from dedup.page.read import read
from dedup.scrapy.commands import terminal

__all__ = ["evaluate_collection", "evaluate_log", "evaluate_pairs"]

#: Pairs on which sketches are compared with exact resemblance.
SKETCH_PAIRS = 20_000


def _sweep(detector: Detector) -> list[tuple[int, float]]:
    """The thresholds to try: k, and none or the own resemblance; by resemblance alone where k is of no account."""
    curve = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    chances = list(map(detector.finder.probability, curve))
    if None in chances:
        return [(k, r) for r in sorted({0.0, detector.min_resemblance}) for k in range(1, 11)]
    print(f"{detector.finder}, of which one is shared with a probability of")
    terminal.table(["resemblance", *map(str, curve)], [["", *chances]])
    return [(detector.max_distance, r) for r in sorted({*curve, 0.0, detector.min_resemblance})]


def evaluate_pairs(path: Path, detector: Detector, opts: argparse.Namespace) -> dict[str, Any]:
    """Precision, recall and F1 on labelled pairs."""
    labelled = read_pairs(path)
    pages = {}
    for source in track(
        {page for pair in labelled for page in (pair.a, pair.b)}, "Fingerprints", console=terminal.bar()
    ):
        html, url = read_page(source, opts.root)
        pages[source] = detector.fingerprint(html, url)
    pairs = score_pairs(detector, [(pages[pair.a], pages[pair.b], pair.near) for pair in labelled])
    rows: list[dict[str, Any]] = []
    for k, resemblance in sorted(_sweep(detector)):
        scores = pairs.scores(k, resemblance)
        rows.append(
            {
                "k": k,
                "min_resemblance": resemblance,
                "precision": scores.precision,
                "precision_interval": wilson(scores.found, scores.found + scores.wrong),
                "recall": scores.recall,
                "recall_interval": wilson(scores.found, scores.found + scores.missed),
                "f1": scores.f1,
            }
        )
    unjudged = int((pairs.distance > 64).sum())
    print(
        f"{len(labelled):,} pairs, {int(pairs.near.sum()):,} near-duplicates, {unjudged:,} with a page not judged"
    )
    terminal.table(
        ["k", "resemblance", "precision", "95 %", "recall", "95 %", "F1"],
        [
            [
                row["k"],
                row["min_resemblance"],
                row["precision"],
                terminal.interval(row["precision_interval"]),
                row["recall"],
                terminal.interval(row["recall_interval"]),
                row["f1"],
            ]
            for row in rows
        ],
        mark=lambda row: tuple(row[:2]) == (detector.max_distance, detector.min_resemblance),
    )
    result = {"pairs": len(labelled), "parameters": detector.parameters, "rows": rows}
    if opts.figure:
        draw_pairs(opts.figure, rows, pairs, detector)
        print(f"figure drawn to {opts.figure}")
    return result


def evaluate_collection(
    path: Path, detector: Detector, opts: argparse.Namespace, settings: Any
) -> dict[str, Any]:
    """The inline measure on a collection."""
    collection = read_collection(path)
    order = list(range(len(collection.paths)))
    random.Random(opts.seed).shuffle(order)
    position = {page: at for at, page in enumerate(order)}
    truth = {
        position[page]: {position[other]: alike for other, alike in others.items()}
        for page, others in collection.truth.items()
    }
    fingerprints, shingles = [], []
    for number in track(order, "Fingerprints", console=terminal.bar()):
        name = collection.paths[number]
        if not (opts.root / name).is_file():
            raise SettingsError(
                f"{opts.root / name} is missing; --root is the folder that the paths are below"
            )
        html, url = read_page(name, opts.root)
        page = read(decode(html), url, detector.keep_urls)
        fingerprints.append(detector.fingerprint_page(page))
        if opts.sketch:
            shingles.append(detector.shingles(page))
    stream = Stream(fingerprints, detector)
    print(
        f"{stream.size:,} pages, order of seed {opts.seed}, {int((~stream.judged).sum()):,} that can't be judged"
    )
    own = (detector.max_distance, detector.min_resemblance)
    sweep = [own] if opts.quick else _sweep(detector)
    rows: list[dict[str, Any]] = []
    for k, resemblance in track(sweep, "Thresholds", console=terminal.bar()):
        inline = measure(stream.filter(k, resemblance), truth)
        rows.append(
            {
                "k": k,
                "min_resemblance": resemblance,
                **inline._asdict(),
                "false_rate": inline.false_rate,
                "false_interval": wilson(inline.false, inline.drops),
                "recall": inline.recall,
                "recall_interval": wilson(inline.could - inline.missed, inline.could),
            }
        )
    terminal.table(
        ["k", "resemblance", "drops", "false", "% of drops", "95 %", "grey", "missed", "recall", "95 %"],
        [
            [
                row["k"],
                row["min_resemblance"],
                row["drops"],
                row["false"],
                f"{100 * row['false_rate']:.2f}",
                terminal.interval(tuple(100 * bound for bound in row["false_interval"]), 2),
                row["grey"],
                f"{row['missed']} of {row['could']}",
                f"{row['recall']:.4f}",
                terminal.interval(row["recall_interval"]),
            ]
            for row in rows
        ],
        mark=lambda row: tuple(row[:2]) == own,
    )
    if opts.sketch:
        pairs = sorted((a, b) for a, others in truth.items() for b in others if a < b)
        pairs = [(a, b) for a, b in pairs if fingerprints[a].sketch and fingerprints[b].sketch]
        some = random.Random(opts.seed).sample(pairs, min(len(pairs), SKETCH_PAIRS))
        found = sketch_error([fingerprint.sketch for fingerprint in fingerprints], shingles, some, detector)
        print(
            f"sketch against exact resemblance on {found.pairs:,} pairs of .5 to 1: mean error {found.error:.4f}, "
            f"bias {found.bias:+.4f}, the same side of {detector.min_resemblance:g} on {100 * found.agreement:.2f} %"
        )
    if opts.through_index:
        of = asyncio.run(_through_index(fingerprints, detector, settings))
        alike = (of == stream.filter(detector.max_distance, detector.min_resemblance)).all()
        print(
            f"through the index {settings['DEDUP_INDEX']}: {'the same verdicts' if alike else 'OTHER VERDICTS'}"
        )
    if opts.figure:
        draw_collection(opts.figure, rows, stream, truth, detector, _name(path))
        print(f"figure drawn to {opts.figure}")
    return {"pages": stream.size, "seed": opts.seed, "parameters": detector.parameters, "rows": rows}


def _name(path: Path) -> str:
    """What a collection is called in a figure."""
    return path.name.removesuffix(".pairs.tsv.gz")


async def _through_index(
    fingerprints: list[Fingerprint], detector: Detector, settings: Any
) -> npt.NDArray[np.int64]:
    namespace = f"evaluate-{random.SystemRandom().getrandbits(48):x}"
    index = open_index(settings["DEDUP_INDEX"], detector, namespace=namespace)
    of = []
    for at, fingerprint in enumerate(fingerprints):
        verdict = await index.claim(str(at), str(at), fingerprint)
        of.append(int(verdict.of) if verdict.of is not None else -1)
    await index.close()  # pending claims are released: nothing stays in the index
    return np.array(of)


def evaluate_log(path: Path, detector: Detector) -> dict[str, Any]:
    """What other thresholds would have dropped, by a log of mark mode."""
    reader = Reader()
    found = Counter((record["distance"], record["resemblance"]) for record in reader.read([path]))
    thresholds = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    rows = [
        [k, *(sum(n for (d, r), n in found.items() if d <= k and r >= least) for least in thresholds)]
        for k in range(1, 11)
    ]
    print(
        f"{reader.records:,} near-duplicates in {path}"
        + (f", {reader.unreadable:,} lines unreadable" if reader.unreadable else "")
    )
    print("How many pages would have been dropped, by k (down) and resemblance (across):")
    terminal.table(["k", *map(str, thresholds)], rows, mark=lambda row: row[0] == detector.max_distance)
    print(
        "The log knows only what its crawl found with its own thresholds: to see more, crawl in mark mode with "
        "DEDUP_MAX_DISTANCE=7 and DEDUP_MIN_RESEMBLANCE=0.5."
    )
    return {"log": str(path), "records": reader.records, "thresholds": thresholds, "rows": rows}
