"""Fingerprints as rows of a table, and the way back."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from dedup.batch.pages import Settings, open
from dedup.fingerprint.fingerprint import Called, Fingerprint, Own
from dedup.index.entry import scope_mask, storable_url
from dedup.page.urls import host
from dedup.spark.pages import Columns, given

__all__ = ["fingerprints", "prints_of", "restored"]

#: What is said of a page, in this order; 64 bits each are a long, whose sign means nothing.
PRINT = [
    StructField("scope", LongType()),  # pages are compared if it is the same
    StructField("host", StringType()),  # whose chrome is learned
    StructField("reason", StringType()),  # why it can't be judged; null if it can
    StructField("simhash", LongType()),
    StructField("sketch", BinaryType()),
    StructField("tokens", IntegerType()),
    StructField("links", IntegerType()),
    StructField("digest", LongType()),
    StructField("view", LongType()),
    StructField("bands", ArrayType(LongType())),
    StructField("heading", LongType()),
    StructField("names", LongType()),
    StructField("place", LongType()),
    StructField("said", LongType()),
    StructField("own", BinaryType()),
]
#: Columns by which a table of fingerprints is known.
NAMES = ["id", "url", "order", *(field.name for field in PRINT)]


def fingerprints(
    pages: DataFrame,
    *,
    html: str | None = None,
    text: str | None = None,
    tokens: str | None = None,
    url: str | None = None,
    encoding: str | None = None,
    id: str | None = None,
    order: str | Sequence[str] = (),
    **settings: Unpack[Settings],
) -> DataFrame:
    """The fingerprints of a table of pages, a row each: what all else here is made from.

    Columns are given by their names: one of ``html`` (strings or binary, of which ``encoding`` is the character set
    if it is known), ``text`` or ``tokens``; the ``url`` of each page; an ``id`` that no two rows share, else the URL
    is that.  Pages are judged in the ``order`` of the columns that it names, then of their URLs, then of their
    ids.  Settings are those of `dedup.open`.

    A page takes 1.5 kB.  Whoever asks more than one thing of a table makes its fingerprints once, has Spark
    keep them (``.cache()``, or Parquet), and gives them in its place, with the same settings.

    Raises TypeError, ValueError and `SettingsError` for what can't be meant, before anything is computed.
    """
    columns = Columns(html, text, tokens, url, encoding, id, order)
    table = given(pages, columns)
    with open(**settings):  # which refuses what is no setting
        pass
    make = partial(_made, kind=columns.kind, settings=settings)
    passed = [table.schema[name] for name in ("id", "url", "order")]
    return table.mapInArrow(make, StructType([*passed, *PRINT]))


def prints_of(pages: DataFrame, columns: Columns, settings: Settings) -> DataFrame:
    """The fingerprints of a table, which may be those already."""
    if isinstance(pages, DataFrame) and pages.columns == NAMES:
        if any(columns):
            raise TypeError("pages are fingerprints already; name no columns")
        with open(**settings):
            return pages
    return fingerprints(pages, **columns._asdict(), **settings)


def _made(batches: Iterable[pa.RecordBatch], kind: str, settings: Settings) -> Iterator[pa.RecordBatch]:
    scope = settings.get("scope", "all")
    with open(**settings) as pages:
        for batch in batches:
            made, scopes, hosts = [], [], []
            for page, url, encoding in zip(*map(batch.column, ("page", "url", "encoding")), strict=True):
                address, content = url.as_py(), page.as_py()
                if content is None:
                    made.append(Fingerprint.unjudged("empty"))
                else:
                    given: dict[str, Any] = {kind: content, "url": address, "encoding": encoding.as_py()}
                    made.append(pages.fingerprint(**given))
                address = storable_url(address)
                scopes.append(_signed(scope_mask(scope, address)))
                hosts.append(host(address))
            rows = [(*each, *_row(page)) for *each, page in zip(scopes, hosts, made, strict=True)]
            arrays = [pa.array([row[at] for row in rows], _arrow(field)) for at, field in enumerate(PRINT)]
            passed = [batch.column(name) for name in NAMES[:3]]
            yield pa.RecordBatch.from_arrays([*passed, *arrays], names=NAMES)


def _arrow(field: StructField) -> pa.DataType:
    kinds = {
        LongType: pa.int64(),
        StringType: pa.string(),
        IntegerType: pa.int32(),
        BinaryType: pa.binary(),
        ArrayType: pa.list_(pa.int64()),
    }
    return kinds[type(field.dataType)]


def _row(page: Fingerprint) -> tuple[Any, ...]:
    """A fingerprint as the columns from ``reason`` on have it."""
    return (
        page.reason,
        None if page.simhash is None else _signed(page.simhash),
        page.sketch,
        page.tokens,
        page.links,
        _signed(page.digest),
        _signed(page.view or page.digest),
        [*map(_signed, page.bands)],
        *map(_signed, (*page.called, page.said)),
        None if page.own is None else _packed(page.own),
    )


def restored(row: Sequence[Any]) -> Fingerprint:
    """The fingerprint of a row: of the columns from ``reason`` on."""
    reason, simhash, sketch, tokens, links, digest, view, bands, heading, names, place, said, own = row
    return Fingerprint(
        None if simhash is None else _unsigned(simhash),
        sketch,
        tokens,
        links,
        reason,
        _unsigned(digest),
        tuple(map(_unsigned, bands)),
        _unsigned(view),
        Called(*map(_unsigned, (heading, names, place))),
        _unsigned(said),
        None if own is None else _unpacked(own),
    )


def _signed(number: int) -> int:
    return number - (number >> 63 << 64)


def _unsigned(number: int) -> int:
    return number & 0xFFFFFFFFFFFFFFFF


def _packed(own: Own) -> bytes:
    masks = (np.packbits(mask).tobytes() for mask in (own.filled, own.main, own.view))
    return b"".join(
        (own.ids.astype("<u2").tobytes(), *masks, own.shingles.to_bytes(4, "little"), bytes([own.has_data]))
    )


def _unpacked(octets: bytes) -> Own:
    slots = (len(octets) - 5) * 8 // 19  # 16 bits of each, and three masks
    ids = np.frombuffer(octets, "<u2", slots).astype(np.uint16)
    bits = np.frombuffer(octets, np.uint8, slots * 3 // 8, 2 * slots)
    filled, main, view = np.unpackbits(bits).view(np.bool_).reshape(3, slots)
    return Own(ids, filled, main, view, int.from_bytes(octets[-5:-1], "little"), bool(octets[-1]))
