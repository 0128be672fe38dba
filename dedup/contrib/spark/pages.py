"""Reads which columns of a table are what.  Mistakes are found before Spark does anything."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, cast, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BinaryType, DataType, NumericType, StringType

from dedup.batch.pages import Settings, open
from dedup.batch.turns import Keep
from dedup.fingerprint.detector import Detector
from dedup.settings import IndexSettings

#: The types that a column may have, and the same in words.
TYPES: dict[str, tuple[tuple[DataType, ...], str]] = {
    "html": ((StringType(), BinaryType()), "strings or binary"),
    "text": ((StringType(),), "strings"),
    "tokens": ((ArrayType(StringType()),), "arrays of strings"),
    "url": ((StringType(),), "strings"),
    "encoding": ((StringType(),), "strings"),
}


class Options(Settings, total=False):
    """The arguments of all functions on tables: the names of columns, and the settings of `dedup.open`."""

    html: str
    text: str
    tokens: str
    url: str
    encoding: str
    id: str
    order: str | Sequence[str]
    keep: str


class Columns(NamedTuple):
    """The names of the columns.  One of ``html``, ``text`` and ``tokens`` is given, and an ``id`` or a ``url``."""

    html: str | None = None
    text: str | None = None
    tokens: str | None = None
    url: str | None = None
    encoding: str | None = None
    id: str | None = None
    order: str | Sequence[str] = ()
    keep: str | None = "first"

    @property
    def kind(self) -> str:
        """How the pages are given: "html", "text" or "tokens"."""
        return next(kind for kind in ("html", "text", "tokens") if getattr(self, kind) is not None)

    @property
    def id_column(self) -> Column:
        """The column that tells a row from all others: its id, or its URL."""
        return sql.col(_quoted(self.id or self.url or "id")).cast("string")


class Task(NamedTuple):
    """The arguments of a caller, checked."""

    columns: Columns
    settings: Settings
    detector: Detector
    plan: IndexSettings


def task_of(given: Options) -> Task:
    """Checks arguments.  Raises `SettingsError`, or TypeError for a setting that does not exist."""
    columns = {name: value for name, value in given.items() if name in Columns._fields}
    settings: Any = {name: value for name, value in given.items() if name not in columns}
    with open(**settings) as pages:
        return Task(Columns(**cast(Any, columns)), settings, pages.detector, pages.settings)


def selected(pages: DataFrame, columns: Columns) -> DataFrame:
    """Returns the columns that are needed: ``id``, ``url``, ``encoding``, ``order``, and ``page``, the page itself.

    Raises TypeError or ValueError, with a message of one line.
    """
    if not isinstance(pages, DataFrame):
        raise TypeError(f"pages is a {type(pages).__name__}; allowed: a DataFrame of PySpark")
    kinds = [kind for kind in ("html", "text", "tokens") if getattr(columns, kind) is not None]
    if len(kinds) != 1:
        raise TypeError(f"of html, text and tokens, {len(kinds) or 'none'} are given; give one")
    if columns.id is None and columns.url is None:
        raise TypeError("neither id nor url is given; give a column that tells each row from all others")
    order = [columns.order] if isinstance(columns.order, str) else list(columns.order)
    if columns.keep == "newest" and not order:
        raise TypeError("keep is 'newest', but it is not said when the pages were fetched; give order, too")
    is_column = columns.keep is not None and columns.keep not in get_args(Keep)
    last = order if columns.keep == "newest" else [str(columns.keep)] if is_column else []
    columns = columns._replace(keep=columns.keep if is_column else None)
    for name, column in (*columns._asdict().items(), *(("order", each) for each in order)):
        if column is not None and (name != "order" or isinstance(column, str)):
            _check(pages, name, column)
    empty = sql.lit(None).cast("string")
    url = sql.coalesce(sql.col(_quoted(columns.url)), sql.lit("")) if columns.url else sql.lit("")
    return pages.select(
        columns.id_column.alias("id"),
        url.alias("url"),
        (sql.col(_quoted(columns.encoding)) if columns.encoding else empty).alias("encoding"),
        sql.struct(
            *(_descending(pages, name).alias(f"rank{at}") for at, name in enumerate(last)),
            *(sql.col(_quoted(name)).alias(f"by{at}") for at, name in enumerate(order)),
            url.alias("url"),
            columns.id_column.alias("id"),
        ).alias("order"),
        sql.col(_quoted(getattr(columns, columns.kind))).alias("page"),
    )


def _check(pages: DataFrame, name: str, column: object) -> None:
    if not isinstance(column, str):
        raise TypeError(f"{name} is {column!r}; allowed: the name of a column")
    if column not in pages.columns:
        near = get_close_matches(column, pages.columns, 1)
        there = f"is {near[0]} meant?" if near else f"there are {', '.join(pages.columns)}"
        raise ValueError(f"{name} names the column {column!r}, which the table has not; {there}")
    types, allowed = TYPES.get(name, ((), ""))
    found = pages.schema[column].dataType
    if types and type(found) not in map(type, types):
        raise TypeError(f"{name} names the column {column!r} of {found.simpleString()}; allowed: {allowed}")


def _descending(pages: DataFrame, name: str) -> Column:
    """Returns a column that sorts the greatest number or the latest time first, and nulls last."""
    column = sql.col(_quoted(name))
    if not isinstance(pages.schema[name].dataType, NumericType):
        column = column.cast("timestamp")
    return sql.coalesce(-column.cast("double"), sql.lit(float("inf")))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
