"""A cleaning of archives by Spark: `scrapy dedup --engine spark`.

Every page is read and its fingerprint made by the workers, and the filter of a crawl judges the pages that can have a say in
each other's verdicts, part by part (`dedup.batch.parts`).  The filter counts copies, too, so none is left out.
"""

import asyncio
import json
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from dedup.archive.cleaning import Cleaning
from dedup.archive.journal import Journal, Row
from dedup.archive.judging import Replay, judge
from dedup.droplog.log import DropLog
from dedup.errors import DedupError, SettingsError
from dedup.files import make_private
from dedup.filter import Counts, Filter
from dedup.fingerprint.detector import Detector
from dedup.index import Index, open_index
from dedup.spark.archives import ORDER, captures
from dedup.spark.contents import contents, kept_by_spark
from dedup.spark.fingerprints import ARROW
from dedup.spark.verdicts import placed_by

__all__ = ["Spark"]

#: Of a page of which the drop log says something: for which page it is dropped, if it is; and of each task, its counts.
SAID = StructType(
    [
        *(StructField(name, StringType()) for name in ("id", "of", "of_url", "line", "counts")),
        StructField("order", StructType(ORDER)),
    ]
)
TURN = pa.struct([(field.name, ARROW[type(field.dataType)]) for field in ORDER])
#: Rows that go into the journal at once.
ROWS = 10_000


@dataclass(frozen=True)
class Spark:
    """The engine: a `dedup.archive.cleaning.Engine`."""

    master: str  #: as Spark calls it: "local[2]", "spark://HOST:PORT", "yarn"

    def __call__(self, cleaning: Cleaning, journal: Journal, paths: Sequence[str], folder: Path) -> None:
        """Raises `SettingsError` if Spark can't be started so, and `DedupError` if it can't finish."""
        if cleaning.other:
            raise SettingsError("--engine spark joins no other index; leave out --index, or --engine spark")
        with _session(self.master) as spark:
            read = kept_by_spark(_captures(spark, cleaning, [os.path.abspath(path) for path in paths]))
            starts = _note_facts(read, journal, cleaning.inputs)
            pages = read.where("facts is null")
            _note_pages(pages, journal, starts)
            _note_verdicts(pages, journal, starts, cleaning, folder)
            read.unpersist()


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master(master).appName("scrapy dedup")
    settings = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in settings.items():
        builder = builder.config(name, value)
    is_own = SparkSession.getActiveSession() is None
    try:
        spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise SettingsError(f"Spark can't be started at {master!r}, with Java 17: {_reason(error)}") from None
    try:
        yield spark
    except (PySparkException, Py4JError) as error:
        raise DedupError(f"Spark could not finish: {_reason(error)}") from None
    finally:
        if is_own:
            spark.stop()


def _reason(error: Exception) -> str:
    """The line of an error that says why."""
    java = getattr(error, "java_exception", None)
    lines = str(java.getMessage() if java is not None else error).strip().splitlines()
    told = [line for line in lines if line.startswith(("dedup.errors.", "MemoryError", "OSError"))]
    return (told or lines or ["unknown"])[-1 if told else 0]


def _captures(spark: SparkSession, cleaning: Cleaning, paths: Sequence[str]) -> DataFrame:
    return captures(spark, paths, cleaning.types, cleaning.detector, cleaning.plan.get("scope", "all"))


def _note_facts(read: DataFrame, journal: Journal, names: Sequence[str]) -> list[int]:
    """What else is in the inputs; at which position each begins."""
    others: dict[str, tuple[int, str]] = {}
    damage: dict[str, tuple[int, str]] = {}
    items: list[int] = []
    for row in read.where("facts is not null").orderBy("order.input").select("facts").collect():
        facts = json.loads(row["facts"])
        for table, found in ((others, facts["others"]), (damage, facts["damage"])):
            for why, count in found.items():
                before, first = table.get(why, (0, names[len(items)]))
                table[why] = before + count, first
        items.append(facts["items"])
    journal.set(others=others, damage=damage, items=sum(items))
    return [0, *accumulate(items)]


def _position(page_id: str, starts: Sequence[int]) -> int:
    number, _, item = page_id.partition(":")
    return starts[int(number)] + int(item)


def _note_pages(pages: DataFrame, journal: Journal, starts: Sequence[int]) -> None:
    rows: list[tuple[Any, ...]] = []
    wanted = pages.select("id", "order.fetched", "url", "record_id", "size", "payload")
    for row in wanted.toLocalIterator():
        rows.append((_position(row[0], starts), *row[1:5], bytes(row[5]), b""))
        if len(rows) == ROWS:
            journal.add_rows(rows, {})
            rows = []
    journal.add_rows(rows, {"read": True})


def _note_verdicts(
    pages: DataFrame, journal: Journal, starts: Sequence[int], cleaning: Cleaning, folder: Path
) -> None:
    found = contents(pages).withColumn("mixed", sql.col("mixed") | (sql.col("pages") > 1))
    placed = placed_by(pages, found, cleaning.detector, shares_chrome=cleaning.plan.get("chrome", True))
    work = partial(
        _filtered,
        detector=cleaning.detector,
        plan=cleaning.plan,
        options={"action": cleaning.action, "max_cluster": cleaning.max_cluster},
    )
    in_order = placed.where("part is not null").repartition("part").sortWithinPartitions("order")
    judged = in_order.select("id", "url", "size", "packed", "order").mapInArrow(work, SAID)
    stats = Counts()
    for reason, count in pages.where("reason is not null").groupBy("reason").count().collect():
        _add(stats, {"dedup/pages": count, "dedup/unjudged": count, f"dedup/unjudged/{reason}": count})
    if new := placed.where("part is null").count():
        _add(stats, {"dedup/pages": new, "dedup/new": new})
    journal.begin_verdicts()
    make_private(folder / "duplicates")
    with (folder / "duplicates").open("a", encoding="ascii") as log:
        for page_id, of, of_url, line, counts, _ in judged.orderBy("order").toLocalIterator():
            if counts is not None:
                _add(stats, json.loads(counts))
                continue
            if line is not None and cleaning.duplicates:
                log.write(line)
            if of is not None:
                journal.drop(_position(page_id, starts), _position(of, starts), of_url)
        log.flush()
        os.fsync(log.fileno())
    journal.end_verdicts(judged=True, stats=stats, known=0)


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


def _filtered(
    batches: Iterable[pa.RecordBatch], detector: Detector, plan: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """What the filter says of pages that come in the order of their turns."""
    stats = Counts()
    with TemporaryDirectory(prefix="shingleback-") as folder, open(f"{folder}/pages", "w+b") as file:
        turns = _Turns(batches, file)
        log = _Log(f"{folder}/log", turns)
        asyncio.run(_judge(turns, stats, log, open_index(f"file:{folder}/index", detector, **plan), options))
        with open(f"{folder}/log", encoding="ascii") as lines:
            said = zip(log.whose, lines, strict=True)
            while some := list(islice(said, ROWS)):
                yield _said([_row(turns, position, line, turn) for (position, turn), line in some])
    yield _said([(None, None, None, None, json.dumps(stats), None)])


async def _judge(
    turns: _Turns, stats: Counts, log: DropLog, index: Index, options: Mapping[str, Any]
) -> None:
    replay = Replay()
    filter = Filter(index, log, on_index_failure="stop", stats=stats, crawl=replay, **options)
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


def _add(stats: Counts, counts: Mapping[str, Any]) -> None:
    for name, value in counts.items():
        if isinstance(value, int | float):
            stats.inc_value(name, value)  # type: ignore[arg-type] # seconds are floats
        else:
            stats.set_value(name, value)
