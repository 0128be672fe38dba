"""Precision, recall and F1 of the verdict on labelled pairs, by threshold."""

from collections.abc import Sequence
from pathlib import Path

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
    root: Path,
    settings: Settings,
) -> None:
    """Prints the figures for the pairs of a file; the paths in it begin at ``root``."""
    labelled = read_pairs(path)
    sources = list({page for pair in labelled for page in (pair.a, pair.b)})
    delay = max(DELAY, settings.getfloat("DOWNLOAD_DELAY"))
    fetched = fetch_pages(sources, settings, seconds=SECONDS, delay=delay)
    pages = {
        source: detector.fingerprint(*(fetched.get(source) or read_page(source, root)))
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
    print_table(names, rows, gap=False, starred=lambda row: row[:2] == own)


def _row(pairs: Pairs, k: int, resemblance: float) -> tuple[object, ...]:
    scores = pairs.scores(k, resemblance)
    precision = scores.precision, wilson(scores.found, scores.found + scores.wrong)
    recall = scores.recall, wilson(scores.found, scores.found + scores.missed)
    return k, resemblance, *precision, *recall, scores.f1
