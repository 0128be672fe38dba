"""Drop logs, read: all their records, or new ones as they are written.

A log is JSON Lines, plain or gzipped, of any size; memory does not grow with it.  A line that is no record (torn
by a crash, with other fields, of wrong types) is counted and left out.  Nothing that a log holds raises an error.
"""

import gzip
import io
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from glob import escape, glob
from pathlib import Path
from typing import BinaryIO, cast

from dedup.droplog import course, kept
from dedup.droplog.log import fill
from dedup.droplog.record import Record, parse
from dedup.errors import SettingsError
from dedup.texts import texts

#: Finds the logs that there are by now.
Find = Callable[[], Iterable[Path]]

#: A longer line is read as several lines, and none of them is a record.
MAX_LINE = 1 << 20  # bytes
#: The ends of the names of files that lie beside a log.
BESIDE = frozenset({course.SUFFIX, kept.SUFFIX, texts.SUFFIX, f"{texts.SUFFIX}-journal"})


def find_logs(log: str, suffix: str = "") -> list[Path]:
    """Returns the logs that crawls have written to a path, or the files of that ending beside them, sorted by name.

    ``%(name)s`` and ``%(time)s`` in the path stand for any text.  Raises `SettingsError` if it holds another mark.
    """
    pattern = fill(escape(os.path.expanduser(log)), name="*", time="*")
    found = sorted(map(Path, glob(pattern + suffix)))
    return [path for path in found if suffix or path.suffix not in BESIDE]


def find_beside(log: Path, suffix: str) -> Path | None:
    """Returns the file that a crawl has written beside a log, even if the log has been gzipped since; None without one."""
    for name in (log.name, log.name.removesuffix(".gz")):
        if (found := log.with_name(name + suffix)).is_file():
            return found
    return None


class Reader:
    """Reads logs and counts what it finds in them.  Raises `SettingsError` if a file can't be read."""

    def __init__(self) -> None:
        self.records = 0
        self.unreadable = 0  # lines
        self.damaged: list[Path] = []  # gzip files whose end is missing or spoilt

    def read(
        self, paths: Iterable[Path], watch: Callable[[BinaryIO], BinaryIO] = lambda file: file
    ) -> Iterator[Record]:
        """Yields the records of logs, one log after the other.

        ``watch`` may wrap each file, to see how far it has been read.
        """
        for path in paths:
            try:
                with path.open("rb", buffering=0) as raw:
                    for line in _lines(watch(cast(BinaryIO, raw))):
                        if record := self._parse(line):
                            yield record
            except (EOFError, zlib.error, gzip.BadGzipFile):
                self.damaged.append(path)
            except (OSError, ValueError) as error:
                raise _unread(path, error) from None

    def follow(self, find: Find, pause: float = 0.2) -> Iterator[Record]:
        """Returns the records that are written from now on, without end, as ``tail -F`` gives lines.

        ``find`` is asked for the logs every ``pause`` seconds.  A log that appears, is replaced or is cut is read
        from its start.
        """
        return self._follow(find, pause, {path: _Tail(path, os.SEEK_END) for path in find()})

    def _follow(self, find: Find, pause: float, tails: dict[Path, "_Tail"]) -> Iterator[Record]:
        try:
            while True:
                for path in find():
                    if path not in tails:
                        tails[path] = _Tail(path, os.SEEK_SET)
                    for line in tails[path].lines():
                        if record := self._parse(line):
                            yield record
                time.sleep(pause)
        finally:
            for tail in tails.values():
                tail.close()

    def _parse(self, line: bytes) -> Record | None:
        if line.isspace():
            return None
        try:
            record = parse(line)
        except ValueError:
            self.unreadable += 1
            return None
        self.records += 1
        return record


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
        """Closes the file."""
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
        """Yields the lines that have been completed since the last call."""
        yield from self._completed()
        if self._replaced():
            self._open(os.SEEK_SET)
            yield from self._completed()

    def _completed(self) -> Iterator[bytes]:
        if self.file is None:
            return
        self.file.seek(self.at)
        end = os.fstat(self.file.fileno()).st_size  # as it is now: a busy log must not hold up the others
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
            return False  # the new file is not there yet
        return there.st_size < self.at or not os.path.samestat(there, os.fstat(self.file.fileno()))


def _unread(path: Path, error: Exception) -> SettingsError:
    return SettingsError(
        f"{str(path)!r} can't be read as a drop log: {getattr(error, 'strerror', None) or error}"
    )
