"""Archives as a table of fingerprints: each input is read by one task, with the readers of `scrapy dedup`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from dedup.archive.capture import NEVER, fingerprint, payload_digest
from dedup.archive.inputs import open_input
from dedup.batch.pages import Settings
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.page.html import Page
from dedup.settings import Types
from dedup.spark.fingerprints import ARROW, NAMES, PRINT, arrays, printed
from dedup.spark.pages import Options, task_of

__all__ = ["ORDER", "archives", "captures"]

#: The turn of a page: the one that was fetched first, then the least URL, then its place.
ORDER = [
    StructField("fetched", LongType()),
    StructField("url", StringType()),
    StructField("input", LongType()),
    StructField("item", LongType()),
]
#: What an archive knows of a page beside; and once for each input, what else is in it.
BESIDE = [
    StructField("record_id", StringType()),
    StructField("size", LongType()),
    StructField("payload", BinaryType()),
    StructField("facts", StringType()),
]
#: Pages that go to Spark at once.
BATCH = 500


def archives(
    spark: SparkSession, inputs: Sequence[str], *, types: Types = "html", **settings: Unpack[Settings]
) -> DataFrame:
    """The fingerprints of all pages in archives: WARC, JSON Lines, Parquet, folders of HTML, as `scrapy dedup` reads them.

    Inputs are paths that every worker can read, one task each.  What is no page, and what is damaged, is left out.
    A page's id is the number of its input and that of its place there, from 0: "0:17".  The first fetched comes first.
    """
    wanted = task_of(cast(Options, settings))
    found = captures(spark, inputs, types, wanted.detector, wanted.plan.scope)
    return found.where("facts is null").select(NAMES)


def captures(
    spark: SparkSession, inputs: Sequence[str], types: Types, detector: Detector, scope: str
) -> DataFrame:
    """The same with what `BESIDE` has; a row of each input has its facts, and no page."""
    read = partial(_read, paths=inputs, types=types, detector=detector, scope=scope)
    first = [StructField("id", StringType()), StructField("url", StringType())]
    schema = StructType([*first, StructField("order", StructType(ORDER)), *PRINT, *BESIDE])
    return spark.range(0, len(inputs), 1, len(inputs)).mapInArrow(read, schema)


def _read(
    batches: Iterable[pa.RecordBatch], paths: Sequence[str], types: Types, detector: Detector, scope: str
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _read_one(number, paths[number], types, detector, scope)


def _read_one(
    number: int, path: str, types: Types, detector: Detector, scope: str
) -> Iterator[pa.RecordBatch]:
    others: dict[str, int] = {}
    damage: dict[str, int] = {}
    rows: list[tuple[Any, ...]] = []
    items = 0
    for item in open_input(Path(path), types=types):
        page = item.capture
        if page is None:
            table = damage if item.damaged else others
            table[item.why] = table.get(item.why, 0) + 1
        else:
            url = page.url.encode("utf-8", "replace").decode()
            turn = page.fetched, url, number, items
            record = page.record_id.encode("utf-8", "replace").decode()
            known = record, len(page.body), payload_digest(page), None
            rows.append((turn, printed(*fingerprint(page, detector), url, scope), known))
        items += 1
        if len(rows) == BATCH:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)
    facts = json.dumps({"items": items, "others": others, "damage": damage})
    nothing = printed(Page([], 0, "facts"), Fingerprint.unjudged("facts"), "", "all")
    yield _batch([((NEVER, "", number, items), nothing, ("", 0, b"", facts))])


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    turns, prints, known = zip(*rows, strict=True)
    columns = [
        pa.array(column, ARROW[type(field.dataType)])
        for column, field in zip(zip(*turns, strict=True), ORDER, strict=True)
    ]
    order = pa.StructArray.from_arrays(columns, names=[field.name for field in ORDER])
    ids = pa.array([f"{number}:{item}" for _, _, number, item in turns])
    beside = [
        pa.array(column, ARROW[type(field.dataType)])
        for column, field in zip(zip(*known, strict=True), BESIDE, strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [ids, columns[1], order, *arrays(prints), *beside], names=[*NAMES, *(field.name for field in BESIDE)]
    )
