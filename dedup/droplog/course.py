"""The course of a crawl, read back from the file that is written beside its drop log.

The file is JSON Lines, its name that of the log and ``.crawl``.  Each run adds one line of its thresholds
(``run``, ``time``, ``method``, ``max_distance``, ``min_resemblance``, ``action``) and then lines of its counts
so far (``run``, ``time``, ``pages``, ``duplicates``), ever farther apart.  Other lines are left out.
"""

import json
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["STEPS", "SUFFIX", "Step", "Thresholds", "read_steps", "read_thresholds", "width"]

SUFFIX = ".crawl"
#: A longer line is no line of ours.
MAX_LINE = 4_096  # bytes
#: Of more steps than this a timeline is not made.
STEPS = 60
_WIDTHS = (
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1_800,
    3_600,
    7_200,
    10_800,
    21_600,
    43_200,
    86_400,
)


class Thresholds(NamedTuple):
    """By what pages were taken for near-duplicates."""

    method: str
    max_distance: int
    min_resemblance: float
    action: str


class Step(NamedTuple):
    """Pages that were judged since the step before, of one run."""

    time: float  # seconds since 1970
    pages: int
    duplicates: int


def read_thresholds(paths: Iterable[Path]) -> list[Thresholds]:
    """The different thresholds of all runs, the last used first."""
    found: dict[Thresholds, None] = {}
    for line in _lines(paths):
        if "method" in line:
            try:
                bounds = int(line["max_distance"]), float(line["min_resemblance"])
                used = Thresholds(str(line["method"]), *bounds, str(line["action"]))
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
            if 0 <= used.max_distance <= 64 and 0 <= used.min_resemblance <= 1:
                found.pop(used, None)
                found[used] = None
    return list(found)[::-1]


def read_steps(paths: Iterable[Path]) -> Iterator[Step]:
    """The steps of all runs."""
    before: dict[str, tuple[int, int]] = {}
    for line in _lines(paths):
        try:
            time = datetime.fromisoformat(line["time"]).timestamp()
            run, counts = str(line["run"]), (int(line["pages"]), int(line["duplicates"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        pages, duplicates = (
            max(0, now - then) for now, then in zip(counts, before.get(run, (0, 0)), strict=True)
        )
        before[run] = counts
        yield Step(time, pages, duplicates)


def width(seconds: float) -> float:
    """A round length of steps, of which at most `STEPS` + 1 cover a span of time; all in seconds.

    >>> width(0), width(95), width(3_600), width(10 * 365 * 86_400)
    (0.5, 2, 60, 5270400)
    """
    least = seconds / STEPS
    return next((width for width in _WIDTHS if width >= least), math.ceil(least / 86_400) * 86_400)


def _lines(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        try:
            with path.open("rb") as file:
                while line := file.readline(MAX_LINE):
                    try:
                        found = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(found, dict):
                        yield found
        except OSError:
            continue
