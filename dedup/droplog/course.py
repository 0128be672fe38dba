"""The course of a crawl, in a file beside its drop log: written by `Course`, read by `read_steps`.

The file is JSON Lines, and its name is that of the log and ``.crawl``.  Each run adds one line of its thresholds
(``run``, ``time``, ``method``, ``max_distance``, ``min_resemblance``, ``action``, ``min_containment``), then lines of its counts
so far (``run``, ``time``, ``pages``, ``duplicates``), ever farther apart, and at the end one line about the URLs that only
near-duplicates link to (``run``, ``time``, ``urls``, ``sampled``, ``new``, ``low``, ``high``).  Readers skip other lines.
"""

import logging
import math
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, json, structs

from dedup.droplog.record import now, read_lines
from dedup.files import make_private

logger = logging.getLogger(__name__)

SUFFIX = ".crawl"
#: Seconds between two lines are at least this many, and at least this share of the crawl's age.  A day leads to
#: 1,500 lines of 150 bytes, a year to 2,700.
PAUSE, SHARE = 0.25, 1 / 200
#: A longer line was not written by `Course`.
MAX_LINE = 4_096  # bytes
#: A timeline has no more steps than this.
STEPS = 60
#: Round lengths of a step in seconds: parts of a minute, minutes, hours, a day.
_WIDTHS = (
    *(0.5, 1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3_600 * hours for hours in (1, 2, 3, 6, 12, 24)),
)

_Count = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0, le=1)]


class Thresholds(Struct, frozen=True):
    """The settings by which pages were taken for near-duplicates, and what was done with them."""

    method: str
    max_distance: Annotated[int, Meta(ge=0, le=64)]
    min_resemblance: _Share
    action: str
    min_containment: _Share | None = None  #: None: whole pages were compared


class _Counts(Struct):
    """What one run had judged by then."""

    run: str
    time: datetime
    pages: int
    duplicates: int


class Step(NamedTuple):
    """The pages that one run has judged since the step before."""

    time: float  # seconds since 1970
    pages: int
    duplicates: int


class Loss(Struct):
    """The URLs that one run has met on near-duplicates only, and never asked for."""

    urls: _Count
    sampled: _Count = 0  #: how many of them were fetched at the end
    new: _Count = 0  #: contents among the sampled ones
    low: _Count = 0  #: contents behind all of them: at least
    high: _Count = 0  #: at most, with 97.5 % confidence


class Course:
    """Writes the course of one crawl that has found near-duplicates: without any, there is no log and no file beside it.

    If that fails, a warning says so, and nothing more is written.
    """

    def __init__(self, path: Path, thresholds: Thresholds) -> None:
        """Begins with a line of the crawl's thresholds."""
        self._path = path
        self._run = uuid.uuid4().hex[:12]
        self._has_log = self._failed = False
        self._lines: list[str] = []  # that are not yet written
        self._add(structs.asdict(thresholds))

    def add(self, pages: int, duplicates: int) -> None:
        """Adds a line of the counts so far."""
        self._has_log |= duplicates > 0
        self._add({"pages": pages, "duplicates": duplicates})

    def end(self, missed: Loss) -> None:
        """Adds a line of what was not reached."""
        self._add(structs.asdict(missed))

    def _add(self, values: dict[str, object]) -> None:
        if self._failed:
            return
        self._lines.append(json.encode({"run": self._run, "time": now()} | values).decode() + "\n")
        if not self._has_log:
            return
        try:
            make_private(self._path)
            with self._path.open("a") as file:
                file.writelines(self._lines)
            self._lines.clear()
        except OSError as error:
            logger.warning("The course of the crawl can't be written: %s", error)
            self._failed = True


def pause(age: float) -> float:
    """Returns the seconds to the next line, given the age of the crawl in seconds.

    >>> pause(0), pause(3_600)
    (0.25, 18.0)
    """
    return max(PAUSE, SHARE * age)


def read_thresholds(paths: Iterable[Path]) -> list[Thresholds]:
    """Returns the different thresholds of all runs, the last used first."""
    return list(dict.fromkeys([*read_lines(paths, Thresholds, MAX_LINE)][::-1]))


def read_steps(paths: Iterable[Path]) -> Iterator[Step]:
    """Yields the steps of all runs."""
    before: dict[str, tuple[int, int]] = {}
    for line in read_lines(paths, _Counts, MAX_LINE):
        pages, duplicates = before.get(line.run, (0, 0))
        since = max(0, line.pages - pages), max(0, line.duplicates - duplicates)
        yield Step(line.time.timestamp(), *since)
        before[line.run] = line.pages, line.duplicates


def read_missed(paths: Iterable[Path]) -> Loss | None:
    """Returns what the run that ended last has not reached; None if no run tells."""
    told = [*read_lines(paths, Loss, MAX_LINE)]
    return told[-1] if told else None


def width(seconds: float) -> float:
    """Returns a round length of steps in seconds, so that at most `STEPS` + 1 of them cover a span of time.

    >>> width(0), width(95), width(3_600), width(10 * 365 * 86_400)
    (0.5, 2, 60, 5270400)
    """
    least = seconds / STEPS
    return next((width for width in _WIDTHS if width >= least), math.ceil(least / 86_400) * 86_400)
