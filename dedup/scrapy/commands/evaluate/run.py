"""The work of `scrapy evaluate`: finds out what the input is, and which thresholds are to be tried on it."""

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector, Features
from dedup.scrapy.commands.evaluate.collection import evaluate_collection
from dedup.scrapy.commands.evaluate.identity import evaluate_identity
from dedup.scrapy.commands.evaluate.log import evaluate_log
from dedup.scrapy.commands.evaluate.pairs import evaluate_pairs
from dedup.scrapy.commands.evaluate.replay import Replay
from dedup.scrapy.commands.terminal import print_table
from dedup.scrapy.settings import read_settings

__all__ = ["run"]


def run(path: Path, opts: argparse.Namespace, settings: Settings) -> int:
    """Evaluates an input, and returns the exit status."""
    settings.set("DEDUP_INDEX", settings.get("DEDUP_INDEX") or "memory:", "cmdline")
    options = read_settings(settings)
    detector = replace(options.detector, features=_features(opts.features))
    replay = Replay(settings["DEDUP_INDEX"], detector, options.index.settings)
    if opts.from_log:
        figures = evaluate_log(path, detector)
    elif path.name.endswith(".same.pairs.tsv.gz"):
        figures = evaluate_identity(path, replay, opts)
    elif path.name.endswith(".pairs.tsv.gz"):
        own = [(detector.max_distance, detector.min_resemblance)]
        thresholds = own if opts.quick else _thresholds(detector)
        figures = evaluate_collection(path, replay, thresholds, opts)
    else:
        figures = evaluate_pairs(path, detector, _thresholds(detector), opts, settings)
    if opts.json:
        try:
            opts.json.write_text(json.dumps(figures, indent=1) + "\n")
        except OSError as error:
            raise SettingsError(
                f"--json is '{opts.json}', which can't be written: {error.strerror}"
            ) from None
        print(f"figures written to {opts.json}")
    return 0


def _thresholds(detector: Detector) -> list[tuple[int, float]]:
    """The pairs of k and resemblance to try.

    For simhash, every k alone and together with the project's resemblance.  The other methods don't use k:
    for them, resemblances are tried, and the chance of a page to be found at each is printed.
    """
    curve = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    chances = list(map(detector.finder.probability, curve))
    if None in chances:
        return [(k, r) for r in sorted({0.0, detector.min_resemblance}) for k in range(1, 11)]
    print(f"{detector.finder}, of which one is shared with a probability of")
    print_table(["resemblance", *map(str, curve)], [["", *chances]], gap=False, starred=lambda row: False)
    return [(detector.max_distance, r) for r in sorted({*curve, 0.0, detector.min_resemblance})]


def _features(text: str) -> Features:
    """The features that ``--features`` asks for."""
    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(Features)}
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in kinds:
            raise SettingsError(f"--features names {name!r}; allowed: {', '.join(kinds)}")
        try:
            values[name] = value.lower() in {"1", "true"} if kinds[name] is bool else kinds[name](value)
        except ValueError:
            raise SettingsError(f"--features {name} is {value!r}; allowed: a whole number") from None
    return Features(**values)
