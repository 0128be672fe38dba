"""Precision, recall and F1 of the verdict on labelled pairs, by threshold."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from dedup.fingerprint.detector import Detector
from dedup.intervals import wilson
from dedup.lab.labelled import read_page, read_pairs
from dedup.lab.pairs import Pairs, score_pairs
from dedup.scrapy.commands.fetch import fetch_pages
from dedup.scrapy.commands.terminal import each, print_table

#: The least seconds between two requests to a host, and the most seconds of all.
DELAY, SECONDS = 1.0, 900.0


def evaluate_pairs(
    path: Path,
    detector: Detector,
    thresholds: Sequence[tuple[int, float]],
    opts: argparse.Namespace,
    settings: Settings,
) -> dict[str, Any]:
    """Prints the figures for the pairs of a file, and returns them."""
    labelled = read_pairs(path)
    sources = list({page for pair in labelled for page in (pair.a, pair.b)})
    delay = max(DELAY, settings.getfloat("DOWNLOAD_DELAY"))
    fetched = fetch_pages(sources, settings, seconds=SECONDS, delay=delay)
    pages = {
        source: detector.fingerprint(*(fetched.get(source) or read_page(source, opts.root)))
        for source in each(sources, "Fingerprints")
    }
    pairs = score_pairs(detector, [(pages[pair.a], pages[pair.b], pair.near) for pair in labelled])
    unjudged = int((pairs.distance > 64).sum())
    print(
        f"{len(labelled):,} pairs, {int(pairs.near.sum()):,} near-duplicates, {unjudged:,} with a page not judged"
    )
    rows = [_row(pairs, k, resemblance) for k, resemblance in sorted(thresholds)]
    names = ["k", "resemblance", "precision", "95 %", "recall", "95 %", "F1"]
    own = (detector.max_distance, detector.min_resemblance)
    cells = [list(row.values()) for row in rows]
    print_table(names, cells, gap=False, starred=lambda row: tuple(row[:2]) == own)
    return {"pairs": len(labelled), "parameters": detector.parameters, "rows": rows}


def _row(pairs: Pairs, k: int, resemblance: float) -> dict[str, Any]:
    scores = pairs.scores(k, resemblance)
    return {
        "k": k,
        "min_resemblance": resemblance,
        "precision": scores.precision,
        "precision_interval": wilson(scores.found, scores.found + scores.wrong),
        "recall": scores.recall,
        "recall_interval": wilson(scores.found, scores.found + scores.missed),
        "f1": scores.f1,
    }
