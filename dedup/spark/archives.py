"""Reads archives into a table of fingerprints.  One task reads each input, by the readers of `scrapy dedup`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, DoubleType, LongType, StringType, StructField, StructType

from dedup.archive.capture import NEVER, fingerprint, payload_digest
from dedup.archive.entries import storable
from dedup.archive.inputs import open_input
from dedup.archive.rows import USUAL, Named
from dedup.batch.pages import Settings
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.page.html import Page
from dedup.settings import Types
from dedup.spark.fingerprints import ARROW, NAMES, PRINT, arrays, printed
from dedup.spark.pages import Options, task_of

#: The turn of a page, and what decides between those that have one: as `Capture.turn` says.
ORDER = [
    StructField("turn", DoubleType()),
    StructField("fetched", LongType()),
    StructField("url", StringType()),
    StructField("input", LongType()),  # the rank of its name
    StructField("number", LongType()),  # as it was given
    StructField("item", LongType()),
]
#: What an archive knows of a page beside; and once for each input, what else is in it.
BESIDE = [
    StructField("name", StringType()),  # of a page without a URL
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
    """Returns the fingerprints of all pages in archives: WARC, JSON Lines, Parquet, and folders of HTML.

    Inputs are paths that every worker can read; one task reads each of them.  Other records and damage are left out.  The id
    of a page has the number of its input and its place there, from 0: "0:17".  The page that was fetched first comes first.
    """
    wanted = task_of(cast(Options, settings))
    found = captures(spark, Asked(inputs, inputs, types, wanted.detector, wanted.plan.scope))
    return found.where("facts is null").select(NAMES)


class Asked(NamedTuple):
    """How archives are to be read."""

    inputs: Sequence[str]  #: paths
    names: Sequence[str]  #: what they are called
    types: Types
    detector: Detector
    scope: str
    keep: str = "first"
    named: Named = USUAL


def captures(spark: SparkSession, asked: Asked) -> DataFrame:
    """Returns the same with the columns of `BESIDE`.  One row of each input holds its facts, and no page."""
    first = [StructField("id", StringType()), StructField("url", StringType())]
    schema = StructType([*first, StructField("order", StructType(ORDER)), *PRINT, *BESIDE])
    count = len(asked.inputs)
    return spark.range(0, count, 1, count).mapInArrow(partial(_read, asked=asked), schema)


def _read(batches: Iterable[pa.RecordBatch], asked: Asked) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _read_one(number, asked)


def _read_one(number: int, asked: Asked) -> Iterator[pa.RecordBatch]:
    detector, name = asked.detector, asked.names[number]
    rank = sorted({*asked.names}).index(name)
    others: dict[str, int] = {}
    damage: dict[str, int] = {}
    rows: list[tuple[Any, ...]] = []
    items = 0
    for item in open_input(Path(asked.inputs[number]), name, asked.types, asked.named):
        page = item.capture
        if page is None:
            table = damage if item.damaged else others
            table[item.why] = table.get(item.why, 0) + 1
        else:
            url, called, record = map(storable, (page.url, page.name, page.record_id))
            read, made = fingerprint(page, detector)
            turn = page.turn(made.tokens, asked.keep, read.canonical), page.fetched, url, rank, number, items
            known = called, record, len(page.body), payload_digest(page), None
            rows.append((turn, printed(read, made, url, asked.scope), known))
        items += 1
        if len(rows) == BATCH:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)
    facts = json.dumps({"items": items, "others": others, "damage": damage})
    nothing = printed(Page([], 0, "facts"), Fingerprint.unjudged("facts"), "", "all")
    yield _batch([((0.0, NEVER, "", rank, number, items), nothing, ("", "", 0, b"", facts))])


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    turns, prints, known = zip(*rows, strict=True)
    columns = [
        pa.array(column, ARROW[type(field.dataType)])
        for column, field in zip(zip(*turns, strict=True), ORDER, strict=True)
    ]
    order = pa.StructArray.from_arrays(columns, names=[field.name for field in ORDER])
    ids = pa.array([f"{number}:{item}" for *_, number, item in turns])
    urls = pa.array([turn[2] or called for turn, (called, *_) in zip(turns, known, strict=True)])
    beside = [
        pa.array(column, ARROW[type(field.dataType)])
        for column, field in zip(zip(*known, strict=True), BESIDE, strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [ids, urls, order, *arrays(prints), *beside], names=[*NAMES, *(field.name for field in BESIDE)]
    )
