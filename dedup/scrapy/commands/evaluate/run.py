"""The work of `scrapy evaluate`: reads the input, and says which thresholds are to be tried on it."""

import argparse
from pathlib import Path

from scrapy.settings import Settings

from dedup.fingerprint.detector import Detector
from dedup.scrapy.commands.evaluate.log import evaluate_log
from dedup.scrapy.commands.evaluate.pairs import evaluate_pairs
from dedup.scrapy.commands.terminal import print_table
from dedup.scrapy.settings import read_settings


def run(path: Path, opts: argparse.Namespace, settings: Settings) -> int:
    """Evaluates an input, and returns the exit status."""
    settings.set("DEDUP_INDEX", "memory:", "cmdline")
    detector = read_settings(settings).detector
    if opts.from_log:
        evaluate_log(path, detector)
    else:
        evaluate_pairs(path, detector, thresholds(detector), opts.root, settings)
    return 0


def thresholds(detector: Detector) -> list[tuple[int, float]]:
    """Returns the pairs of k and resemblance to try.

    For simhash, every k alone and together with the project's resemblance.  The other methods don't use k:
    for them, resemblances are tried, and the chance of a page to be found at each is printed.
    """
    curve = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    chances = list(map(detector.finder.probability, curve))
    if None in chances:
        return [(k, r) for r in sorted({0.0, detector.min_resemblance}) for k in range(1, 11)]
    print(f"{detector.finder}, and the probability that two pages share one or more:")
    print_table(["resemblance", *map(str, curve)], [["", *chances]], gap=False, starred=lambda row: False)
    return [(detector.max_distance, r) for r in sorted({*curve, 0.0, detector.min_resemblance})]
