"""Cleaning keeps each content of some archives once.

It has three parts, and each can be repeated without harm.  First every page is read, and its fingerprint is written to a
journal.  Then the filter judges the pages in the journal, beginning with the one that was fetched first.  At last the
inputs are read again, and what is kept is written.  If the process is killed, the same call goes on from the journal.
The output appears under its name only when it is complete.
"""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dedup.contrib.archives import fields
from dedup.contrib.archives.capture import Reader
from dedup.contrib.archives.containers import make_index, make_wacz
from dedup.contrib.archives.exchange import check, file, seed
from dedup.contrib.archives.fields import WORDS
from dedup.contrib.archives.inputs import INPUT, open_inputs, spool
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.judging import RecallingIndex, address, judge_all
from dedup.contrib.archives.parts import judge_apart
from dedup.contrib.archives.reading import ChangedError, read
from dedup.contrib.archives.rows import FieldNames
from dedup.contrib.archives.targets import Targets, check_own
from dedup.contrib.archives.writing import write
from dedup.droplog.log import DropLog
from dedup.errors import DedupError, OutputError, SettingsError
from dedup.files import make_private
from dedup.filter import Counts
from dedup.fingerprint.detector import Detector
from dedup.index import Index, open_index
from dedup.page.preference import is_preference, preference
from dedup.printing import inert
from dedup.settings import FilterSettings, IndexSettings, Types

#: Shows how far a part has come: it gets a name and a total, and yields a function that is called with what is done of
#: the total, and the number of pages that are.
Progress = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]


@contextmanager
def _silent(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, pages: None


def _log(journal: Journal, path: Path) -> None:
    make_private(path)  # it was asked for, even if there is nothing in it
    with closing(DropLog(str(path).replace("%", "%%"))) as log:
        for record in journal.logged():
            log.write(record)


def _skipped_as_counted_by_a_crawl(others: dict[str, tuple[int, str]]) -> dict[str, int]:
    found = {f"dedup/skipped/{why}": count for why, (count, _) in others.items()}
    return found and {"dedup/skipped": sum(found.values()), **found}


@dataclass
class Result:
    """The result of a cleaning."""

    stats: dict[str, Any]  #: as a crawl counts
    #: Items without a page, by the reason: how many, and in which input the first one is.
    others: dict[str, tuple[int, str]]
    damage: dict[str, tuple[int, str]]  #: what is damaged, and was left out, likewise
    #: Records that the format of the output can't hold, by the reason for which they were not judged.
    unwritten: dict[str, int] = field(default_factory=dict)
    known: int = 0  #: pages that were in the other index before
    filed: int = 0  #: pages that it has got


#: Reads and judges the inputs of the readers on other machines.  In the folder, it leaves the journal, and the drop log
#: as the file ``duplicates``, as this machine would have left them.
Engine = Callable[["Cleaning", Journal, Sequence[Reader], Path], None]


@dataclass
class Cleaning:
    """A cleaning that can be run; its fields say what is to be done."""

    inputs: Sequence[str]
    output: str = ""  #: the path of what is kept; "-" is the standard output, "" none
    duplicates: str = ""  #: the path of the drop log; "" is none
    detector: Detector = field(default_factory=Detector)
    plan: IndexSettings = field(default_factory=IndexSettings)
    types: Types = "html"
    filter: FilterSettings = field(default_factory=FilterSettings)  #: see `policy`
    workers: int = 0  #: 0: one for each core
    other: Callable[[], Index] | None = None  #: opens the index of a crawl that is joined
    page_id: Callable[[str], str | None] = str  #: what crawls call the page at a URL; None: nothing
    engine: Engine | None = None  #: reads and judges in the place of this machine
    keep: str = "first"  #: which of those alike is kept: see `Capture.turn`
    id: str = "id"  #: the field that names a row without a URL
    text: str = ""  #: the field that is the page of a row, as text; "": html, or else text
    #: Only what is like a page in there is dropped: an archive; "" is none, and then pages are dropped for each other.
    against: str = ""
    cdxj: str = ""  #: the path of an index of the WARC file that is written; "" is none
    alone: bool = False  #: the same of the other index, in which nothing is filed

    @property
    def policy(self) -> FilterSettings:
        """The filter's settings.  In an archive, pages have no depth, and none can be fetched again."""
        return replace(self.filter, min_depth=0, incremental=False, on_index_failure="stop", audit=0.0)

    @property
    def named(self) -> FieldNames:
        """The fields of rows that are read in addition to the usual ones."""
        key = "" if self.keep in WORDS or is_preference(self.keep) else self.keep
        return FieldNames(self.id, key, self.text)

    @property
    def targets(self) -> Targets:
        """The files that are made."""
        return Targets(self.output, self.duplicates, self.cdxj)

    def run(self, progress: Progress = _silent) -> Result:
        """Runs the cleaning, or what an interrupted run has left of it.  Raises `DedupError`."""
        folder = self.targets.folder
        try:
            if folder is None:
                with tempfile.TemporaryDirectory(prefix="shingleback-") as temporary:
                    return self._run(Path(temporary), progress)
            check_own(folder)
            folder.mkdir(mode=0o700, exist_ok=True)
            with FileLock(folder / "lock", timeout=0):
                result = self._run(folder, progress)
            shutil.rmtree(folder, ignore_errors=True)
            return result
        except Timeout:
            raise SettingsError(f"another run is at work in {folder}; wait for it") from None
        except ChangedError as error:
            anew = f"delete {folder}, and begin anew" if folder else "begin anew"
            raise SettingsError(
                f"the input {inert(error.name)} has changed since it was read; {anew}"
            ) from None
        except BrokenPipeError:  # whoever reads the output has seen enough
            raise
        except OSError as error:
            raise OutputError(
                f"{error.filename or folder} can't be written: {error.strerror or error}"
            ) from None
        except sqlite3.Error as error:
            raise OutputError(f"{folder} can't be written: {error}") from None

    # --- Its parts

    def _run(self, folder: Path, progress: Progress) -> Result:
        journal = Journal(folder / "journal")
        try:
            if not journal.get("written"):
                self.targets.check()
            if is_preference(self.keep):
                preference(self.keep)  # its function is imported now, and not behind a long read
            if INPUT in self.inputs and not journal.get("spooled"):
                spool(folder / "stdin")
                journal.set(spooled=True)
            against = open_inputs([*filter(None, [self.against])], self.types, folder, self.named)
            readers = against + open_inputs(self.inputs, self.types, folder, self.named, 1)
            self._check_same(journal, readers)
            if self.other and journal.get("filed") is None:
                asyncio.run(check(self.other(), is_there=self.alone))
            if self.engine and not journal.get("judged"):
                (folder / "duplicates").unlink(missing_ok=True)
                self.engine(self, journal, readers, folder)
            if not journal.get("read"):
                self._read(journal, readers, len(against), progress)
            fields.check(journal, readers, self.named, self.keep)
            if not journal.get("judged"):
                self._judge(journal, folder, progress)
            if self.output and not journal.get("written"):
                with progress("Writing", sum(reader.size for reader in readers)) as advance:
                    write(journal, readers, len(against), self.output, folder, advance)
                self._finish(folder)
            journal.set(written=True)
            self.targets.publish(folder)
            if self.other and not self.alone and journal.get("filed") is None:
                journal.set(filed=asyncio.run(self._file(folder, self.other())))
            others, damage = (
                {why: (count, first) for why, (count, first) in journal.get(name).items()}
                for name in ("others", "damage")
            )
            facts = (journal.get(name, 0) for name in ("known", "filed"))
            stats = journal.get("stats") | _skipped_as_counted_by_a_crawl(others)
            return Result(stats, others, damage, journal.get("unwritten", {}), *facts)
        except DedupError:
            if journal.get("begun") is None:  # there is nothing to go on from
                shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            journal.close()

    def _check_same(self, journal: Journal, readers: Sequence[Reader]) -> None:
        """Raises `SettingsError` if the journal is that of another cleaning."""
        inputs = [[reader.name, reader.size] for reader in readers]
        settings = {**self.detector.parameters, **vars(self.plan), "types": self.types, **vars(self.policy)}
        settings |= {"output": self.output, "duplicates": self.duplicates, "keep": self.keep, "id": self.id}
        settings |= {"against": self.against, "alone": self.alone, "text": self.text}
        if self.other:
            settings["index"] = self.other().where
        wanted = {"inputs": inputs, "settings": settings}
        begun = journal.get("cleaning", wanted)
        for name, value in wanted.items():
            if begun[name] != value:
                raise SettingsError(
                    f"{self.targets.folder} is what an interrupted run with other {name} has left; repeat that, or delete it"
                )
        if journal.get("begun") is None:
            journal.set(cleaning=wanted, begun=datetime.now(UTC).timestamp())

    def _finish(self, folder: Path) -> None:
        """Makes the index and the WACZ file of the WARC file that was written, as wanted."""
        if self.cdxj:
            make_index(folder / "kept", self.output, folder / "index")
        if self.output.endswith(".wacz"):
            os.replace(folder / "kept", warc := folder / "data.warc.gz")
            make_wacz(warc, folder / "wacz")
            os.replace(folder / "wacz", folder / "kept")

    def _read(self, journal: Journal, readers: Sequence[Reader], others: int, progress: Progress) -> None:
        with progress("Reading", sum(reader.size for reader in readers)) as advance:
            read(journal, readers, self.detector, self.workers, self.keep, others, advance)
        journal.set(read=True)

    def _judge(self, journal: Journal, folder: Path, progress: Progress) -> None:
        (folder / "duplicates").unlink(missing_ok=True)
        with progress("Judging", journal.count()) as told:

            def advance(done: int) -> None:
                told(done, done)

            if self.other or self.against:  # which may be like any page
                stats = Counts()
                journal.begin_verdicts()
                alone = self.alone or bool(self.against)
                index = RecallingIndex(folder, self.detector, self.plan, journal)
                prepare = partial(seed, other=self.other()) if self.other else None
                known = asyncio.run(
                    judge_all(journal, index, stats, self.policy, advance, prepare=prepare, alone=alone)
                )
                journal.end_verdicts(stats=stats, known=known)
            else:
                parts = self.detector, self.plan, self.policy, self.workers
                journal.set(stats=judge_apart(journal, folder, *parts, advance))
        if self.duplicates:
            _log(journal, folder / "duplicates")
        journal.set(judged=True)

    async def _file(self, folder: Path, other: Index) -> int:
        index = open_index(address(folder), self.detector, **vars(self.plan))
        survey = await index.survey()
        if survey is None:
            return 0
        async with survey:
            return await file(survey, other, self.page_id)
