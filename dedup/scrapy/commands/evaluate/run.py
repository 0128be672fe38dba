"""The work of `scrapy evaluate`: precision, recall and F1 of the verdict on labelled pairs, by threshold."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.methods import APART
from dedup.intervals import wilson
from dedup.scrapy.commands.fetch import MAX_PAGE, fetch_pages, read_page
from dedup.scrapy.commands.terminal import each, print_table
from dedup.scrapy.settings import read_settings

#: The least seconds between two requests to a host, and the most seconds of all.
DELAY, SECONDS = 1.0, 900.0
#: What a label may be, in lower case, and whether it says that the pages are near-duplicates.
_LABELS = {
    **dict.fromkeys(("1", "true", "yes", "duplicate", "near-duplicate", "near"), True),
    **dict.fromkeys(("0", "false", "no", "different", "distinct", "not-near"), False),
}


class Pair(NamedTuple):
    """Two pages, each a path, a URL, HTML or text, and whether they are near-duplicates."""

    a: str
    b: str
    near: bool


class Scored(NamedTuple):
    """A labelled pair, reduced to what a rule looks at."""

    distance: int  #: of the keys (0 for a band shared); `APART` where a page can't be judged
    resemblance: float
    near: bool  #: the label


def run(path: Path, settings: Settings) -> int:
    """Prints the figures for the pairs of a file, and returns the exit status."""
    settings.set("DEDUP_INDEX", "memory:", "cmdline")
    detector = read_settings(settings).detector
    tried = thresholds(detector)
    pairs = score_pairs(path, detector, settings)
    near, unjudged = sum(pair.near for pair in pairs), sum(pair.distance == APART for pair in pairs)
    print(f"{len(pairs):,} pairs, {near:,} near-duplicates, {unjudged:,} with a page not judged")
    names = ["k", "resemblance", "precision", "95 %", "recall", "95 %", "F1"]
    own = (detector.max_distance, detector.min_resemblance)
    rows = [figures(pairs, k, resemblance) for k, resemblance in sorted(tried)]
    print_table(names, rows, gap=False, starred=lambda row: row[:2] == own)
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


def score_pairs(path: Path, detector: Detector, settings: Settings) -> list[Scored]:
    """Fingerprints the pairs of a file.  Raises `SettingsError` if a page can't be had."""
    labelled = read_pairs(path)
    sources = list({page for pair in labelled for page in (pair.a, pair.b)})
    delay = max(DELAY, settings.getfloat("DOWNLOAD_DELAY"))
    fetched = fetch_pages(sources, settings, seconds=SECONDS, delay=delay)
    pages = {
        source: detector.fingerprint(*(fetched.get(source) or read_page(source)))
        for source in each(sources, "Fingerprints")
    }
    scored = []
    for pair in labelled:
        a, b = pages[pair.a], pages[pair.b]
        judged = a.reason is None and b.reason is None
        distance = detector.distance(a, b) if judged else APART
        scored.append(Scored(distance, detector.compare(a, b).resemblance or 0.0, pair.near))
    return scored


def figures(pairs: Sequence[Scored], k: int, resemblance: float) -> tuple[object, ...]:
    """Returns a row of the table: the rule, and its precision, recall and F1.

    >>> figures([Scored(0, 1, True), Scored(9, 1, True), Scored(2, 1, False)], 3, 0.5)[2::2]
    (0.5, 0.5, 0.5)
    """
    called = [pair.near for pair in pairs if pair.distance <= k and pair.resemblance >= resemblance]
    found, all_called, all_near = sum(called), len(called), sum(pair.near for pair in pairs)
    precision = found / all_called if all_called else 1.0
    recall = found / all_near if all_near else 1.0
    f1 = 2 * found / (all_called + all_near) if found else 0.0
    return k, resemblance, precision, wilson(found, all_called), recall, wilson(found, all_near), f1


def read_pairs(path: Path) -> list[Pair]:
    """Returns the pairs of a JSON Lines or CSV file with the fields ``a``, ``b`` and ``label``.

    Raises `SettingsError`, which names the first line that can't be read.
    """
    pairs = []
    for number, row in _rows(path):
        label = _LABELS.get(str(row.get("label", "")).strip().lower())
        a, b = row.get("a"), row.get("b")
        if label is None or not isinstance(a, str) or not isinstance(b, str):
            raise SettingsError(
                f"{path}, line {number}: each line needs the fields a, b (a path, URL, HTML or text each) and "
                f"label (1, true, duplicate or 0, false, different), but it has {_shown(row)}"
            )
        pairs.append(Pair(a, b, label))
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                csv.field_size_limit(MAX_PAGE)
                yield from enumerate(csv.DictReader(file), 2)
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = json.loads(line)
                    yield number, row if isinstance(row, dict) else {"it": row}
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise SettingsError(f"{path} can't be read as labelled pairs: {error}") from None


def _shown(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={str(value)[:30]!r}" for name, value in row.items()) or "none"
