"""Turns pages into rows of a table with their fingerprints."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Unpack

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from dedup.contrib.archives.capture import Capture, fingerprint
from dedup.contrib.archives.packing import pack
from dedup.contrib.spark.pages import Columns, Options, selected, task_of
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.entry import scope_mask, storable_url
from dedup.page.html import Page
from dedup.page.urls import host

#: What is made of a page; 64 bits are a long, whose sign means nothing.
PRINT = pa.schema(
    [
        ("scope", pa.int64()),  # pages are compared if it is the same
        ("host", pa.string()),  # whose chrome is learned
        ("reason", pa.string()),  # why it can't be judged; null if it can
        ("simhash", pa.int64()),
        ("sketch", pa.binary()),
        ("tokens", pa.int32()),
        ("links", pa.int32()),
        ("digest", pa.int64()),
        ("markup", pa.int64()),
        ("bands", pa.list_(pa.int64())),
        ("packed", pa.binary()),  # all of it, as `dedup.contrib.archives.packing` has it
    ]
)
#: Columns by which a table of fingerprints is known.
NAMES = ["id", "url", "order", *PRINT.names]


def fingerprints(pages: DataFrame, **given: Unpack[Options]) -> DataFrame:
    """Returns the fingerprints of a table of pages, a row each.  All other functions here begin with them.

    Columns are given by their names: one of ``html`` (strings, or binary with the character set in ``encoding`` if it is
    known), ``text`` or ``tokens``; the ``url`` of each page; and an ``id`` that no two rows share, which is the URL if none
    is given.  Pages are judged in the ``order`` of the columns that it names, then of their URLs, then of their
    ids; or first, with ``keep``, the "longest", that of most words; the "newest", the last by that ``order``; or that
    of the greatest number or the latest time in the column of that name.  So these are kept of pages alike.  Settings
    are those of `dedup.open`.

    A page takes 1.5 kB.  If you call several functions on a table, make its fingerprints once, have Spark keep them
    (``.cache()``, or Parquet), and pass them in place of the table, with the same settings.

    Raises TypeError, ValueError and `SettingsError` for wrong arguments, before anything is computed.
    """
    columns, _, detector, plan = task_of(given)
    table = selected(pages, columns)
    make = partial(_made, kind=columns.kind, detector=detector, scope=plan.scope)
    passed = [table.schema[name] for name in ("id", "url", "order")]
    made = table.mapInArrow(make, StructType([*passed, *from_arrow_schema(PRINT)]))
    if columns.keep == "longest":
        made = made.withColumn("order", sql.struct((-sql.col("tokens")).alias("rank"), "order"))
    return made


def prints_of(pages: DataFrame, given: Options) -> DataFrame:
    """Returns the fingerprints of a table, or the table itself if it holds fingerprints already."""
    if isinstance(pages, DataFrame) and pages.columns == NAMES:
        if task_of(given).columns != Columns():
            raise TypeError("pages are fingerprints already, whose columns have no other names")
        return pages
    return fingerprints(pages, **given)


def _made(
    batches: Iterable[pa.RecordBatch], kind: str, detector: Detector, scope: str
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = []
        for content, url, encoding in zip(*map(batch.column, ("page", "url", "encoding")), strict=True):
            page, made = _read(content.as_py(), kind, url.as_py(), encoding.as_py(), detector)
            rows.append(printed(page, made, url.as_py(), scope))
        passed = [batch.column(name) for name in NAMES[:3]]
        yield pa.RecordBatch.from_arrays([*passed, *batched(rows, PRINT).columns], names=NAMES)


def _read(
    content: Any, kind: str, url: str, encoding: str | None, detector: Detector
) -> tuple[Page, Fingerprint]:
    if content is None:
        return Page([], 0, "empty"), Fingerprint.unjudged("empty")
    if kind == "tokens":
        made = detector.fingerprint_tokens([token or "" for token in content])
        return Page([], made.links, made.reason), replace(made, own=made.own if url else None)
    return fingerprint(Capture(url, content, "html" if kind == "html" else "text", encoding), detector)


def printed(page: Page, made: Fingerprint, url: str, scope: str) -> tuple[Any, ...]:
    """Returns the columns of a page."""
    url = storable_url(url)
    return (
        _signed(scope_mask(scope, url)),
        host(url) if made.own else "",
        made.reason,
        None if made.simhash is None else _signed(made.simhash),
        made.sketch,
        made.tokens,
        made.links,
        _signed(made.digest),
        _signed(made.markup or made.digest),
        [*map(_signed, made.bands)],
        pack(page, made),
    )


def batched(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns rows as Spark takes them from a task."""
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _signed(number: int) -> int:
    return number - (number >> 63 << 64)
