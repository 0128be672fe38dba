"""What the filter of a crawl says of the pages of one task."""

import asyncio
import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from dedup.archive.journal import Row
from dedup.archive.judging import Replay, judge
from dedup.droplog.log import DropLog
from dedup.filter import Counts, Filter
from dedup.fingerprint.detector import Detector
from dedup.index import Index, open_index
from dedup.settings import FilterSettings, IndexSettings
from dedup.spark.archives import ORDER
from dedup.spark.fingerprints import ARROW

__all__ = ["SAID", "filtered"]

#: Rows for pages that are in the drop log, with the page for which each was dropped, if it was; and the counts of each task.
SAID = StructType(
    [
        *(StructField(name, StringType()) for name in ("id", "of", "of_url", "line", "counts")),
        StructField("order", StructType(ORDER)),
    ]
)
TURN = pa.struct([(field.name, ARROW[type(field.dataType)]) for field in ORDER])
#: Lines that go to Spark at once.
LINES = 10_000


class _Turns:
    """The pages of a task, in the order of their turns; they wait in a file, should they be judged once more."""

    def __init__(self, batches: Iterable[pa.RecordBatch], file: BinaryIO) -> None:
        self._batches = batches
        self._file = file
        self._at: list[int] = []
        self.ids: list[str] = []
        self.dropped: dict[int, tuple[int, str]] = {}
        self.current: tuple[int, dict[str, Any]] = 0, {}  #: the page that is judged, and its turn

    def in_turn(self) -> Iterator[Row]:
        """The pages."""
        for batch in self._batches:
            for page_id, *page, turn in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                row = Row(len(self.ids), *page)
                self.ids.append(page_id)
                self._at.append(self._file.seek(0, os.SEEK_END))
                self.current = row.position, turn
                pickle.dump((row, turn), self._file)
                yield row

    def page(self, position: int) -> Row:
        """The page at a position."""
        self._file.seek(self._at[position])
        row: Row
        row, turn = pickle.load(self._file)
        self.current = position, turn
        return row

    def drop(self, position: int, of: int, of_url: str) -> None:
        """A page is a near-duplicate of another."""
        self.dropped[position] = of, of_url

    def keep(self, position: int) -> None:
        """A page is none after all."""
        self.dropped.pop(position, None)


class _Log(DropLog):
    """A drop log that knows whose its lines are."""

    def __init__(self, path: str, turns: _Turns) -> None:
        super().__init__(path)
        self._turns = turns
        self.whose: list[tuple[int, dict[str, Any]]] = []

    def write(self, record: Mapping[str, object]) -> None:
        """Adds a line."""
        super().write(record)
        self.whose.append(self._turns.current)


def filtered(
    batches: Iterable[pa.RecordBatch], detector: Detector, plan: IndexSettings, policy: FilterSettings
) -> Iterator[pa.RecordBatch]:
    """What the filter says of pages that come in the order of their turns."""
    stats = Counts()
    with TemporaryDirectory(prefix="shingleback-") as folder, open(f"{folder}/pages", "w+b") as file:
        turns = _Turns(batches, file)
        log = _Log(f"{folder}/log", turns)
        asyncio.run(
            _judge(turns, stats, log, open_index(f"file:{folder}/index", detector, **vars(plan)), policy)
        )
        with open(f"{folder}/log", encoding="ascii") as lines:
            said = zip(log.whose, lines, strict=True)
            while some := list(islice(said, LINES)):
                yield _said([_row(turns, position, line, turn) for (position, turn), line in some])
    yield _said([(None, None, None, None, json.dumps(stats), None)])


async def _judge(turns: _Turns, stats: Counts, log: DropLog, index: Index, policy: FilterSettings) -> None:
    replay = Replay()
    filter = Filter(index, log, stats=stats, crawl=replay, **vars(policy))
    try:
        await index.open()
        await judge(turns, filter, replay, lambda done: None)
    finally:
        await filter.close()


def _row(turns: _Turns, position: int, line: str, turn: dict[str, Any]) -> tuple[Any, ...]:
    of, url = turns.dropped.get(position, (None, None))
    return turns.ids[position], None if of is None else turns.ids[of], url, line, None, turn


def _said(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    *texts, turns = zip(*rows, strict=True)
    columns = [*(pa.array(column, pa.string()) for column in texts), pa.array(turns, TURN)]
    return pa.RecordBatch.from_arrays(columns, names=SAID.names)
