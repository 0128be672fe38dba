"""Cleaning: the pages of archives, of which each content is kept once.

It has three parts, each of which can be done again without any harm: every page is read, and its fingerprint goes into
a journal; the filter judges the pages in the journal, the one that was fetched first before the others; and the
inputs are read once more, while what is kept is written.  Whatever kills it, the same call goes on from the journal.
What it writes appears under its name only when it is complete.
"""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from dedup.archive.capture import Capture, Reader
from dedup.archive.inputs import INPUT, open_inputs, spool
from dedup.archive.journal import Journal
from dedup.archive.judging import Replay, judge
from dedup.archive.outputs import Output, WarcOutput, output
from dedup.archive.workers import cores, fingerprints
from dedup.droplog.log import DropLog
from dedup.errors import OutputError, SettingsError
from dedup.files import make_private
from dedup.filter import Counts, Filter
from dedup.fingerprint.detector import Detector
from dedup.index import open_index
from dedup.printing import inert
from dedup.settings import Action, Types

__all__ = ["Cleaning", "Progress", "Result"]

#: Shows how far a part has come: it gets a name and a total, and yields what is to be told how much is done, and of
#: how many pages.
Progress = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]

#: Pages, and bytes of them, that go to a process at once.
BATCH, BATCH_BYTES = 32, 1 << 20
#: Inputs of fewer bytes are read by this process alone.
SMALL = 4_000_000


@contextmanager
def _silent(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, pages: None


@dataclass
class Result:
    """What came of a cleaning."""

    stats: dict[str, Any]  #: as a crawl counts
    #: Items without a page, by the reason: how many, and in which input the first one is.
    others: dict[str, tuple[int, str]]
    damage: dict[str, tuple[int, str]]  #: what is damaged, and was left out, likewise
    unwritten: int = 0  #: items that the format of the output can't hold


@dataclass
class Cleaning:
    """What is to be done."""

    inputs: Sequence[str]
    output: str = ""  #: the path of what is kept; "-" is the standard output, "" none
    duplicates: str = ""  #: the path of the drop log; "" is none
    detector: Detector = field(default_factory=Detector)
    plan: dict[str, Any] = field(default_factory=dict)  #: options of the index
    types: Types = "html"
    action: Action = "drop"
    max_cluster: int = 5
    workers: int = 0  #: 0: one for each core

    @property
    def folder(self) -> Path | None:
        """Where its journal is kept; None if it can't go on later, as it writes no file."""
        named = self.output if self.output != INPUT else ""
        return Path(f"{named or self.duplicates}.part") if named or self.duplicates else None

    def run(self, progress: Progress = _silent) -> Result:
        """Does it, or what is left of it.  Raises `DedupError`."""
        folder = self.folder
        try:
            if folder is None:
                with tempfile.TemporaryDirectory(prefix="shingleback-") as temporary:
                    return self._run(Path(temporary), progress)
            if not (folder / "journal").exists():
                self._check_new()
            folder.mkdir(mode=0o700, exist_ok=True)
            with FileLock(folder / "lock", timeout=0):
                result = self._run(folder, progress)
            shutil.rmtree(folder, ignore_errors=True)
            return result
        except Timeout:
            raise SettingsError(f"another run is at work in {folder}; wait for it") from None
        except OSError as error:
            raise OutputError(
                f"{error.filename or folder} can't be written: {error.strerror or error}"
            ) from None
        except sqlite3.Error as error:
            raise OutputError(f"{folder} can't be written: {error}") from None

    def _check_new(self) -> None:
        for option, name in (("-o", self.output), ("--duplicates", self.duplicates)):
            if name not in ("", INPUT) and os.path.lexists(name):
                raise SettingsError(f"{option} is '{inert(name)}', which exists; nothing is overwritten")

    # --- Its parts

    def _run(self, folder: Path, progress: Progress) -> Result:
        journal = Journal(folder / "journal")
        try:
            stdin = folder / "stdin"
            if INPUT in self.inputs and not journal.get("spooled"):
                spool(stdin)
                journal.set(spooled=True)
            readers = open_inputs(self.inputs, self.types, stdin)
            self._check_same(journal, readers)
            if not journal.get("read"):
                self._read(journal, readers, progress)
            if not journal.get("judged"):
                self._judge(journal, folder, progress)
            if self.output and not journal.get("written"):
                self._write(journal, readers, folder, progress)
            journal.set(written=True)
            for part, name in (("kept", self.output), ("duplicates", self.duplicates)):
                if name not in ("", INPUT) and (folder / part).exists():
                    os.replace(folder / part, name)
            return Result(
                journal.get("stats"),
                journal.get("others"),
                journal.get("damage"),
                journal.get("unwritten", 0),
            )
        finally:
            journal.close()

    def _check_same(self, journal: Journal, readers: Sequence[Reader]) -> None:
        """Raises `SettingsError` if the journal is that of another cleaning."""
        inputs = [[reader.name, reader.size] for reader in readers]
        settings = {**self.detector.parameters, **self.plan, "types": self.types, "action": self.action}
        settings |= {"max_cluster": self.max_cluster, "output": self.output, "duplicates": self.duplicates}
        wanted = {"inputs": inputs, "settings": settings}
        begun = journal.get("cleaning", wanted)
        for name, value in wanted.items():
            if begun[name] != value:
                raise SettingsError(
                    f"{self.folder} is what an interrupted run with other {name} has left; repeat that, or delete it"
                )
        if journal.get("begun") is None:
            journal.set(cleaning=wanted, begun=datetime.now(UTC).timestamp())

    def _read(self, journal: Journal, readers: Sequence[Reader], progress: Progress) -> None:
        total = sum(reader.size for reader in readers)
        workers = 1 if total < SMALL else self.workers or cores()
        with progress("Reading", total) as advance:
            pages = journal.count()
            for mark, made in fingerprints(_batches(journal, readers), self.detector, workers):
                rows = [(place, page, one) for (place, page), one in zip(mark.pages, made, strict=True)]
                journal.add(rows, mark.facts)
                pages += len(rows)
                advance(mark.done, pages)
        journal.set(read=True)

    def _judge(self, journal: Journal, folder: Path, progress: Progress) -> None:
        for old in folder.glob("index.sqlite*"):
            old.unlink()
        (folder / "duplicates").unlink(missing_ok=True)
        stats = Counts()
        journal.begin_verdicts()
        with progress("Judging", journal.count()) as advance:
            asyncio.run(self._judge_all(journal, folder, stats, lambda done: advance(done, done)))
        journal.end_verdicts(judged=True, stats=stats)

    async def _judge_all(
        self, journal: Journal, folder: Path, stats: Counts, advance: Callable[[int], None]
    ) -> None:
        index = open_index(
            f"file:{str(folder).replace('~', './~', 1)}/index.sqlite", self.detector, **self.plan
        )
        log = DropLog(str(folder / "duplicates").replace("%", "%%") if self.duplicates else "")
        replay = Replay()
        filter = Filter(
            index,
            log,
            action=self.action,
            on_index_failure="stop",
            max_cluster=self.max_cluster,
            stats=stats,
            crawl=replay,
        )
        try:
            await index.open()
            await judge(journal, filter, replay, advance)
        finally:
            await filter.close()

    def _write(self, journal: Journal, readers: Sequence[Reader], folder: Path, progress: Progress) -> None:
        now = datetime.fromtimestamp(journal.get("begun"), UTC)
        unwritten = 0
        with (
            progress("Writing", sum(reader.size for reader in readers)) as advance,
            _target(self.output, folder) as file,
        ):
            current = readers[0]
            target: Output = output(file, self.output, lambda: current, now)
            dropped = journal.dropped()
            next_one = next(dropped, None)
            position = before = 0
            for current in readers:
                for item in current:
                    if next_one is not None and next_one[0] == position:
                        target.drop(item, position, next_one[1])
                        next_one = next(dropped, None)
                    elif not item.damaged:
                        unwritten += not target.keep(item, position)
                    position += 1
                    advance(before + current.tell(), position)
                before += current.size
            if isinstance(target, WarcOutput):
                target.close()
        journal.set(unwritten=unwritten)


@contextmanager
def _target(name: str, folder: Path) -> Iterator[BinaryIO]:
    if name == INPUT:
        import sys

        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    make_private(folder / "kept")
    with (folder / "kept").open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@dataclass(slots=True)
class _Mark:
    """Where a batch ends."""

    pages: list[tuple[int, Capture]]  #: with their positions
    facts: dict[str, Any]  #: what the journal says when it is done
    done: int  #: bytes


def _batches(journal: Journal, readers: Sequence[Reader]) -> Iterator[tuple[_Mark, list[Capture]]]:
    """What is left of the inputs, from where the journal ends."""
    start: int = journal.get("items", 0)
    others: dict[str, tuple[int, str]] = journal.get("others", {})
    damage: dict[str, tuple[int, str]] = journal.get("damage", {})
    pages: list[tuple[int, Capture]] = []
    position = before = size = 0

    def batch(done: int) -> tuple[_Mark, list[Capture]]:
        facts = {"items": position, "others": dict(others), "damage": dict(damage)}
        return _Mark(pages, facts, done), [page for _, page in pages]

    for reader in readers:
        for item in reader:
            position += 1
            if position <= start:
                continue
            if item.capture is not None:
                pages.append((position - 1, item.capture))
                size += len(item.capture.body)
            else:
                table = damage if item.damaged else others
                count, first = table.get(item.why, (0, reader.name))
                table[item.why] = count + 1, first
            if len(pages) >= BATCH or size >= BATCH_BYTES:
                yield batch(before + reader.tell())
                pages, size = [], 0
        before += reader.size
    yield batch(before)
