"""Records of drops, read back from drop logs: all, those that a filter passes, or new ones as they are written.

A log is JSON Lines, plain or gzipped, of any size; memory does not grow with it.  A line that is no record (torn
by a crash, of other fields, of wrong types) is counted and left out: nothing that a log holds raises.
"""

import gzip
import io
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from glob import escape, glob
from pathlib import Path
from typing import Any, BinaryIO, cast

from dedup.errors import SettingsError
from dedup.page.urls import host

__all__ = ["FIELDS", "Filter", "Reader", "Record", "find_logs", "moment"]

Record = dict[str, Any]

#: A longer line is read as several, which are no records.
MAX_LINE = 1 << 20  # bytes
#: What is written beside a log, under its name and these (`dedup.droplog.course`, `dedup.droplog.texts`).
BESIDE = frozenset({".crawl", ".texts", ".texts-journal"})
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _time(value: Any) -> str:
    found = datetime.fromisoformat(value)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat(timespec="milliseconds")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _action(value: Any) -> Any:
    if value not in ("drop", "nofollow", "mark"):
        raise ValueError
    return value


def _number(high: int, *kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) not in kinds or not 0 <= value <= high:
            raise ValueError
        return value

    return check


_count = _number(1 << 32, int)  # no sum of them overflows

#: The fields of a record, and what each is read by.  ``bytes`` may be missing.
FIELDS: dict[str, Callable[[Any], Any]] = {
    "time": _time,
    "url": _text,
    "duplicate_of": _text,
    "distance": _number(64, int),
    "resemblance": _number(1, int, float),
    "simhash": _text,
    "duplicate_of_simhash": _text,
    "tokens": _count,
    "links": _count,
    "bytes": _count,
    "rule": _text,
    "action": _action,
    "referer": lambda value: None if value is None else _text(value),
    "depth": _count,
}


def moment(text: str, now: datetime | None = None) -> str:
    """A time as records have it, from an ISO date (UTC unless it says otherwise) or from how long ago it was.

    Raises `SettingsError`.

    >>> moment("2026-11-21"), moment("2026-11-21T10:00+02:00")
    ('2026-11-21T00:00:00.000+00:00', '2026-11-21T08:00:00.000+00:00')
    >>> moment("3d", now=datetime(2026, 11, 21, tzinfo=UTC))
    '2026-11-18T00:00:00.000+00:00'
    """
    try:
        if ago := re.fullmatch(r"(\d+)([smhdw])", text):
            return _time(str((now or datetime.now(UTC)) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})))
        return _time(text)
    except (ValueError, OverflowError):
        raise SettingsError(
            f"since is {text!r}; allowed: a date such as 2026-11-21 or 2026-11-21T10:00 (UTC), or how long ago, "
            "such as 90s, 10m, 2h, 3d, 1w"
        ) from None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are wanted: those that meet every condition.  Raises `SettingsError`."""

    host: str = ""  # of the dropped page, or what its host is a subdomain of; without a port: any port
    of: str = ""  # URL of the kept page
    min_distance: int = 0
    max_resemblance: float = 1.0
    since: str = ""  # as `moment` gives it

    def __post_init__(self) -> None:
        if not 0 <= self.min_distance <= 64:
            raise SettingsError(f"min_distance is {self.min_distance}; allowed: 0 to 64 bits")
        if not 0 <= self.max_resemblance <= 1:
            raise SettingsError(f"max_resemblance is {self.max_resemblance}; allowed: 0 to 1")

    def passes(self, record: Record) -> bool:
        """Whether a record is wanted."""
        return bool(
            record["distance"] >= self.min_distance
            and record["resemblance"] <= self.max_resemblance
            and record["time"] >= self.since
            and self.of in ("", record["duplicate_of"])
            and (not self.host or self._at(host(record["url"])))
        )

    def _at(self, found: str) -> bool:
        wanted = self.host.lower()
        name = found if ":" in wanted else found.partition(":")[0]
        return name == wanted or name.endswith("." + wanted)


def find_logs(log: str) -> list[Path]:
    """The files that a DEDUP_LOG has led to, by name: with anything for ``%(name)s`` and ``%(time)s``.

    Raises `SettingsError` if other marks are in it.
    """
    try:
        found = sorted(map(Path, glob(escape(log) % {"name": "*", "time": "*"})))
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            f"DEDUP_LOG is {log!r}; allowed: a path, in which %(name)s and %(time)s are filled in"
        ) from None
    return [path for path in found if path.suffix not in BESIDE]


class Reader:
    """Reads logs, and counts what it finds in them.  Raises `SettingsError` if a file can't be read."""

    def __init__(self) -> None:
        self.records = 0
        self.unreadable = 0  # lines
        self.damaged: list[Path] = []  # gzip files of which an end is missing or spoilt

    def read(
        self, paths: Iterable[Path], watch: Callable[[BinaryIO], BinaryIO] = lambda file: file
    ) -> Iterator[Record]:
        """The records of logs, one log after the other; ``watch`` may wrap a file to see how far it is read."""
        for path in paths:
            try:
                with path.open("rb", buffering=0) as raw:
                    for line in _lines(watch(cast(BinaryIO, raw))):
                        yield from self._parse(line)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                self.damaged.append(path)
            except (OSError, ValueError) as error:
                raise _unread(path, error) from None

    def follow(self, find: Callable[[], Iterable[Path]], pause: float = 0.2) -> Iterator[Record]:
        """Records as they are written from now on, without end, like ``tail -F``.

        ``find`` names the logs, every ``pause`` seconds anew; one that appears, is replaced or is cut is read
        from its start.
        """
        return self._follow(find, pause, {path: _Tail(path, os.SEEK_END) for path in find()})

    def _follow(
        self, find: Callable[[], Iterable[Path]], pause: float, tails: "dict[Path, _Tail]"
    ) -> Iterator[Record]:
        try:
            while True:
                for path in find():
                    if path not in tails:
                        tails[path] = _Tail(path, os.SEEK_SET)
                    for line in tails[path].lines():
                        yield from self._parse(line)
                time.sleep(pause)
        finally:
            for tail in tails.values():
                tail.close()

    def _parse(self, line: bytes) -> Iterator[Record]:
        if line.isspace():
            return
        try:
            found = json.loads(line)
            record = {
                name: read(found[name]) for name, read in FIELDS.items() if name in found or name != "bytes"
            }
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            self.unreadable += 1
        else:
            self.records += 1
            yield record


def _lines(raw: BinaryIO) -> Iterator[bytes]:
    with io.BufferedReader(cast(io.RawIOBase, raw), 1 << 16) as file:
        zipped = file.peek(2).startswith(b"\x1f\x8b")
        with gzip.GzipFile(fileobj=file) if zipped else file as lines:
            while line := lines.readline(MAX_LINE):
                yield line


class _Tail:
    """The end of a log that grows."""

    def __init__(self, path: Path, whence: int) -> None:
        self.path = path
        self.file: BinaryIO | None = None
        self._open(whence)

    def close(self) -> None:
        """Lets go of the file."""
        if self.file is not None:
            self.file.close()

    def _open(self, whence: int) -> None:
        self.close()
        try:
            self.file = self.path.open("rb")
            self.at = self.file.seek(0, whence)
        except FileNotFoundError:
            self.file = None
        except (OSError, ValueError) as error:
            raise _unread(self.path, error) from None

    def lines(self) -> Iterator[bytes]:
        """Lines that have been completed since the last call."""
        yield from self._completed()
        if self._replaced():
            self._open(os.SEEK_SET)
            yield from self._completed()

    def _completed(self) -> Iterator[bytes]:
        if self.file is None:
            return
        self.file.seek(self.at)
        end = os.fstat(self.file.fileno()).st_size  # as of now: a busy log doesn't hold up the others
        while self.at < end:
            line = self.file.readline(MAX_LINE)
            if not line.endswith(b"\n") and len(line) < MAX_LINE:
                break
            self.at += len(line)
            yield line

    def _replaced(self) -> bool:
        if self.file is None:
            return True
        try:
            there = self.path.stat()
        except OSError:
            return False  # not yet
        return there.st_size < self.at or not os.path.samestat(there, os.fstat(self.file.fileno()))


def _unread(path: Path, error: Exception) -> SettingsError:
    return SettingsError(
        f"{str(path)!r} can't be read as a drop log: {getattr(error, 'strerror', None) or error}"
    )
