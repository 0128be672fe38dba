"""The last part of a cleaning: the inputs are read once more, and what is kept of them is written."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from dedup.archive.capture import Reader
from dedup.archive.inputs import INPUT, items
from dedup.archive.journal import Journal
from dedup.archive.outputs import Output, WarcOutput, output
from dedup.errors import SettingsError
from dedup.files import make_private

__all__ = ["write"]

#: Why a page may be none to be judged.
PAGES = frozenset({"large", "no_url"})


def write(
    journal: Journal, readers: Sequence[Reader], name: str, folder: Path, advance: Callable[[int, int], None]
) -> None:
    """Writes to the file ``kept`` in a folder, or to the output, in the format of a name."""
    now = datetime.fromtimestamp(journal.get("begun"), UTC)
    unwritten = 0
    with _target(name, folder) as file:
        current = readers[0]
        target: Output = output(file, name, lambda: current, now)
        dropped = journal.dropped()
        next_one = next(dropped, None)
        position = before = 0
        for current in readers:
            for item in items(current):
                if next_one is not None and next_one[0] == position:
                    target.drop(item, position, next_one[1])
                    next_one = next(dropped, None)
                elif not item.damaged:
                    unwritten += not target.keep(item, position) and item.why in PAGES
                position += 1
                advance(before + current.tell(), position)
            before += current.size
        if isinstance(target, WarcOutput):
            target.close()
        if position != journal.get("items") or next_one is not None:
            raise SettingsError(
                "an input has changed since it was read; delete what was begun, and begin anew"
            )
    journal.set(unwritten=unwritten)


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
