"""Reads archives into a table of fingerprints.  One task reads each input, by the readers of `scrapy dedup`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from dedup.batch.pages import Settings
from dedup.contrib.archives.capture import NEVER, fingerprint, payload_digest
from dedup.contrib.archives.entries import storable
from dedup.contrib.archives.inputs import open_input
from dedup.contrib.archives.rows import USUAL, FieldNames
from dedup.contrib.spark.fingerprints import NAMES, PRINT, batched, printed
from dedup.contrib.spark.pages import Options, task_of
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.page.html import Page
from dedup.settings import Types

#: The turn of a page, and what decides between those that have one: as `Capture.turn` says.
ORDER = pa.struct(
    [
        ("turn", pa.float64()),
        ("fetched", pa.int64()),
        ("url", pa.string()),
        ("input", pa.int64()),  # the rank of its name
        ("number", pa.int64()),  # as it was given
        ("item", pa.int64()),
    ]
)
#: What an archive knows of a page beside; and once for each input, what else is in it.
BESIDE = [
    pa.field("name", pa.string()),  # of a page without a URL
    pa.field("record_id", pa.string()),
    pa.field("size", pa.int64()),
    pa.field("payload", pa.binary()),
    pa.field("facts", pa.string()),
]
CAPTURE = pa.schema([("id", pa.string()), ("url", pa.string()), ("order", ORDER), *PRINT, *BESIDE])
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
    found = captures(spark, ReadTask(inputs, inputs, types, wanted.detector, wanted.plan.scope))
    return found.where("facts is null").select(NAMES)


class ReadTask(NamedTuple):
    """How archives are to be read."""

    inputs: Sequence[str]  #: paths
    names: Sequence[str]  #: what they are called
    types: Types
    detector: Detector
    scope: str
    keep: str = "first"
    named: FieldNames = USUAL


def captures(spark: SparkSession, asked: ReadTask) -> DataFrame:
    """Returns the same with the columns of `BESIDE`.  One row of each input holds its facts, and no page."""
    count = len(asked.inputs)
    rows = spark.range(0, count, 1, count)
    return rows.mapInArrow(partial(_read, asked=asked), from_arrow_schema(CAPTURE))


def _read(batches: Iterable[pa.RecordBatch], asked: ReadTask) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _read_one(number, asked)


def _read_one(number: int, asked: ReadTask) -> Iterator[pa.RecordBatch]:
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
            order = page.turn(made.tokens, asked.keep, read.canonical), page.fetched, url, rank, number, items
            beside = called, record, len(page.body), payload_digest(page), None
            rows.append(
                (f"{number}:{items}", url or called, order, *printed(read, made, url, asked.scope), *beside)
            )
        items += 1
        if len(rows) == BATCH:
            yield batched(rows, CAPTURE)
            rows = []
    if rows:
        yield batched(rows, CAPTURE)
    facts = json.dumps({"items": items, "others": others, "damage": damage})
    nothing = printed(Page([], 0, "facts"), Fingerprint.unjudged("facts"), "", "all")
    order = 0.0, NEVER, "", rank, number, items
    yield batched([(f"{number}:{items}", "", order, *nothing, "", "", 0, b"", facts)], CAPTURE)
