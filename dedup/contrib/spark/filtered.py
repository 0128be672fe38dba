"""Has the filter of a crawl judge the pages of one task."""

import asyncio
import json
import os
import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pyarrow as pa

from dedup.contrib.archives.entries import Row
from dedup.contrib.archives.judging import judge_all
from dedup.contrib.spark.archives import ORDER
from dedup.contrib.spark.fingerprints import batched
from dedup.droplog.log import as_line
from dedup.droplog.record import Record
from dedup.filter import Counts
from dedup.fingerprint.detector import Detector
from dedup.index import open_index
from dedup.settings import FilterSettings, IndexSettings

#: Rows for pages that are in the drop log, with the page for which each was dropped, if it was; and the counts of each task.
SAID = pa.schema(
    [*((name, pa.string()) for name in ("id", "of", "of_url", "line", "counts")), ("order", ORDER)]
)
#: Lines that go to Spark at once.
LINES = 10_000


class _Turns:
    """The pages of a task in the order in which they are judged.  They stay in a file, in case they have to be judged again."""

    def __init__(self, batches: Iterable[pa.RecordBatch], file: BinaryIO) -> None:
        self._batches = batches
        self._file = file
        self._at: list[int] = []
        self.ids: list[str] = []
        self.dropped: dict[int, tuple[int, str]] = {}
        self._logged: dict[int, int] = {}  # by position, where its record and its turn are in the file

    def in_turn(self) -> Iterator[Row]:
        """Yields the pages."""
        for batch in self._batches:
            for page_id, *page, turn in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                row = Row(len(self.ids), *page)
                self.ids.append(page_id)
                self._at.append(self._file.seek(0, os.SEEK_END))
                pickle.dump((row, turn), self._file)
                yield row

    def page(self, position: int) -> Row:
        """Returns the page at a position."""
        row: Row = self._load(self._at[position])[0]
        return row

    def drop(self, position: int, of: int, of_url: str) -> None:
        """Notes that a page is a near-duplicate of another."""
        self.dropped[position] = of, of_url

    def log(self, position: int, record: Record) -> None:
        """Notes the record of a page for the drop log."""
        self._logged.pop(position, None)
        self._logged[position] = self._file.seek(0, os.SEEK_END)
        pickle.dump(record, self._file)

    def keep(self, position: int) -> Record:
        """Takes back that a page is a near-duplicate, and returns its record."""
        self.dropped.pop(position, None)
        found: Record = self._load(self._logged.pop(position))
        return found

    def logged(self) -> Iterator[tuple[int, dict[str, Any], Record]]:
        """Yields the records of the drop log, each with the position and the turn of its page."""
        for position, at in self._logged.items():
            yield position, self._load(self._at[position])[1], self._load(at)

    def _load(self, at: int) -> Any:
        self._file.seek(at)
        return pickle.load(self._file)


def filtered(
    batches: Iterable[pa.RecordBatch], detector: Detector, plan: IndexSettings, policy: FilterSettings
) -> Iterator[pa.RecordBatch]:
    """Yields what the filter says of pages that come in the order in which they are judged."""
    stats = Counts()
    with TemporaryDirectory(prefix="shingleback-") as folder, open(f"{folder}/pages", "w+b") as file:
        turns = _Turns(batches, file)
        index = open_index(f"file:{folder}/index", detector, **vars(plan))
        asyncio.run(judge_all(turns, index, stats, policy))
        rows = (_row(turns, *logged) for logged in turns.logged())
        while some := list(islice(rows, LINES)):
            yield batched(some, SAID)
    yield batched([(None, None, None, None, json.dumps(stats), None)], SAID)


def _row(turns: _Turns, position: int, turn: dict[str, Any], record: Record) -> tuple[Any, ...]:
    line = as_line(record).decode()
    of, url = turns.dropped.get(position, (None, None))
    return turns.ids[position], None if of is None else turns.ids[of], url, line, None, turn
