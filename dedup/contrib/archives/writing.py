"""The last part of a cleaning: reads the inputs again, and writes what is kept of them."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from dedup.contrib.archives.capture import Item, Reader
from dedup.contrib.archives.entries import Original
from dedup.contrib.archives.inputs import INPUT, items
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.outputs import LinesOutput, Output, WarcOutput, revisited
from dedup.contrib.archives.reading import ChangedError, Progress
from dedup.contrib.archives.tables import CsvOutput, ParquetOutput
from dedup.contrib.archives.targets import form
from dedup.files import make_private

#: The reason for which files of a folder are no pages; it is counted when they are read.
TOLD = "name"


def write(
    journal: Journal,
    readers: Sequence[Reader],
    others: int,
    name: str,
    folder: Path,
    advance: Callable[[int, int], None],
) -> None:
    """Writes what is kept of all but the first ``others`` readers to the file ``kept`` in a folder, or to the output, in the format of a name."""
    now = datetime.fromtimestamp(journal.get("begun"), UTC)
    unwritten = Counter[str]()
    (folder / "damaged").unlink(missing_ok=True)
    stamps = list(map(_stamp, readers))
    with _target(name, folder) as file, ExitStack() as opened:
        current = readers[0]
        target = _output(file, name, readers[others:], lambda: current, now)
        opened.callback(target.close)
        known = Progress(journal)
        before = 0
        for number, current in enumerate(readers):
            for item in items(current):
                position = known.position
                verdict = known.verdict(item, current.name)
                if number < others:
                    continue
                if verdict is not None and verdict.kept is not None:
                    target.drop(item, position, verdict.kept)
                elif isinstance(target, WarcOutput) and (of := _stand_in(journal, item)):
                    target.refer(item.raw, of)
                elif item.damaged:
                    if isinstance(item.raw, bytes) and name != INPUT:
                        _set_aside(folder / "damaged", item.raw)
                elif not target.keep(item, position) and item.why != TOLD:
                    unwritten[item.why] += 1
                advance(before + current.tell(), known.position)
            before += current.size
        known.end(current.name)
        for reader, stamp in zip(readers, stamps, strict=True):
            if _stamp(reader) != stamp:  # records are copied from the file itself
                raise ChangedError(reader.name)
    journal.set(unwritten=unwritten)


def _output(
    file: BinaryIO, name: str, readers: Sequence[Reader], reader: Callable[[], Reader], now: datetime
) -> Output:
    """Returns the output in the format of a name; ``reader`` returns the one whose items are being written."""
    packed = name.endswith(".gz")
    match form(name):
        case ".warc" | ".wacz":
            return WarcOutput(file, packed or name.endswith(".wacz"), reader, now)
        case ".parquet":
            return ParquetOutput(file, readers)
        case ".csv":
            return CsvOutput(file, readers)
        case _:
            return LinesOutput(file, packed)


def _stand_in(journal: Journal, item: Item) -> Original | None:
    page = revisited(item)
    return page and journal.stand_in(*page)


def _set_aside(path: Path, octets: bytes) -> None:
    make_private(path)
    with path.open("ab") as file:
        file.write(octets)


def _stamp(reader: Reader) -> tuple[int, ...] | None:
    """Returns what changes whenever a file does; None for a folder, whose files are read only once."""
    if not reader.path.is_file():
        return None
    found = reader.path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _target(name: str, folder: Path) -> Iterator[BinaryIO]:
    if name == INPUT:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    make_private(folder / "kept")
    with (folder / "kept").open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
