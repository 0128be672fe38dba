"""Writes rows as tables, CSV or Parquet (by pyarrow, the extra ``parquet``): with all columns that the inputs have."""

import csv
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from dedup.contrib.archives.capture import Item, Reader
from dedup.contrib.archives.inputs import items
from dedup.contrib.archives.outputs import Output
from dedup.contrib.archives.parquet import Parquet, Row
from dedup.contrib.archives.rows import as_row, shown

if TYPE_CHECKING:
    from pyarrow import DataType, Schema, Table

#: Rows, and bytes of them, that Parquet has in one group.
ROWS, HELD = 10_000, 1 << 26
#: Types of values that keep theirs in Parquet, if a column has one only; others are written as text.
TYPES = {bool: "bool", int: "int64", float: "float64", bytes: "binary"}


class CsvOutput(Output):
    """Writes CSV in UTF-8, the names of the columns first."""

    def __init__(self, file: BinaryIO, readers: Sequence[Reader]) -> None:
        self._file = file
        self._names = [*_columns(readers)]
        self._rows = csv.writer(self, lineterminator="\n")
        self._rows.writerow(self._names)

    def write(self, text: str) -> None:
        """Takes a line of the csv module."""
        self._file.write(text.encode("utf-8", "replace"))

    def keep(self, item: Item, position: int) -> bool:
        """Writes a row."""
        if (row := as_row(item)) is None:
            return False
        self._rows.writerow(
            ["" if (value := row.get(name)) is None else _text(value) for name in self._names]
        )
        return True


class ParquetOutput(Output):
    """Writes Parquet: of Parquet alone as it was there, with its types."""

    def __init__(self, file: BinaryIO, readers: Sequence[Reader]) -> None:
        from pyarrow.parquet import ParquetWriter

        self._known = _known_schema(readers)
        self._schema = self._known or _schema(readers)
        self._writer = ParquetWriter(file, self._schema)
        self._rows: list[Table] = []
        self._size = 0

    def keep(self, item: Item, position: int) -> bool:
        """Writes a row."""
        if (row := as_row(item)) is None:
            return False
        table = self._table(row)
        self._rows.append(table)
        self._size += table.nbytes
        if len(self._rows) >= ROWS or self._size >= HELD:
            self._write()
        return True

    def _table(self, row: dict[str, Any]) -> "Table":
        import pyarrow as pa

        if self._known and isinstance(row, Row):
            batch, place = row.cells
            return pa.Table.from_batches([batch.take(pa.array([place]))])
        cells = {field.name: [_fitted(row.get(field.name), field.type)] for field in self._schema}
        return pa.table(cells, schema=self._schema)

    def _write(self) -> None:
        import pyarrow as pa

        rows = pa.concat_tables([self._schema.empty_table(), *self._rows], promote_options="permissive")
        self._writer.write_table(rows.select(self._schema.names).cast(self._schema).unify_dictionaries())
        self._rows, self._size = [], 0

    def close(self) -> None:
        """Writes what is left, and the end of the file."""
        if self._rows:
            self._write()
        self._writer.close()


def _columns(readers: Iterable[Reader]) -> dict[str, set[type]]:
    """Returns the names of all fields of rows, and the types of their values."""
    found: dict[str, set[type]] = {}
    for reader in readers:
        for item in items(reader):
            for name, value in (as_row(item) or {}).items():
                is_long = type(value) is int and not -(1 << 63) <= value < 1 << 63
                found.setdefault(name, set()).add(str if is_long else type(value))
    return found


def _known_schema(readers: Sequence[Reader]) -> "Schema | None":
    """Returns the schema of inputs that are all Parquet; None if others are, or no column can have the types of theirs."""
    import pyarrow as pa

    schemas = [reader.schema for reader in readers if isinstance(reader, Parquet)]
    try:
        return (
            pa.unify_schemas(schemas, promote_options="permissive") if len(schemas) == len(readers) else None
        )
    except pa.ArrowException:
        return None


def _schema(readers: Sequence[Reader]) -> "Schema":
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(_type(kinds))) for name, kinds in _columns(readers).items()])


def _type(kinds: set[type]) -> str:
    kinds = kinds - {type(None)}
    if kinds == {int, float}:
        return "float64"
    return TYPES.get(kinds.pop(), "string") if len(kinds) == 1 else "string"


def _fitted(value: Any, kind: "DataType") -> Any:
    if value is None:
        return None
    return _text(value) if kind == "string" else float(value) if kind == "double" else value


def _text(value: Any) -> str:
    """Returns a value as text: JSON unless it is one."""
    text = shown(value) if isinstance(value, bytes) else value
    if not isinstance(text, str):
        is_json = isinstance(text, bool | int | float | list | dict)
        text = json.dumps(text, ensure_ascii=False, default=shown) if is_json else str(text)
    return text.encode("utf-8", "replace").decode()
