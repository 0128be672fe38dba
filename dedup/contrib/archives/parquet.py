"""Reads Parquet by pyarrow (the extra ``parquet``): rows with the columns html or text, and perhaps url and fetched."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup.contrib.archives.capture import Item, Reader
from dedup.contrib.archives.rows import USUAL, FieldNames, capture

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch
    from pyarrow.parquet import ParquetFile

#: Rows that are in memory at once, and bytes of them if each has all that is in its column: a dictionary has a long value
#: once for many rows.
ROWS, HELD = 64, 1 << 29


class Row(dict[str, Any]):
    """A row by the names of its columns."""

    cells: "tuple[RecordBatch, int]"  #: where it is, with the types that it has there


class Parquet(Reader):
    """Reads a Parquet file."""

    def __init__(self, path: Path, name: str = "", named: FieldNames = USUAL) -> None:
        """Raises ValueError if it can't be read, or has no pages."""
        super().__init__(path, name)
        self._pages = _open(path)
        self.schema = self._pages.schema_arrow
        names, wanted = self.schema.names, [named.text] if named.text else ["html", "text"]
        if not set(wanted) & set(names):
            raise ValueError(f"it has no column {' or '.join(wanted)}, but {', '.join(names)}")
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ValueError(f"it has more than one column {', '.join(twice)}")
        self._rows: int = self._pages.metadata.num_rows
        self._named = named
        self._read = 0

    def tell(self) -> int:
        """Returns about how many bytes have been read."""
        return self.size * self._read // max(1, self._rows)

    def __iter__(self) -> Iterator[Item]:
        """Yields an item for each row.  If a row group is damaged, its other rows are lost."""
        self._read = 0
        told = False
        for group in range(self._pages.metadata.num_row_groups):
            try:
                for batch in self._pages.iter_batches(self._rows_at_once(group), [group]):
                    columns = list(zip(batch.schema.names, batch.columns, strict=True))
                    for place in range(batch.num_rows):
                        row = Row({name: _value(column, place) for name, column in columns})
                        row.cells = batch, place
                        self._read += 1
                        found = capture(row, f"{self.name}:{self._read}", self._named)
                        yield Item(row, found, "" if found else "no_page")
            except (OSError, ValueError):  # the errors of pyarrow are subclasses
                told = True
                yield Item(None, None, "packed", damaged=True)
        if self._read < self._rows and not told:  # a row group had fewer rows than the file says
            yield Item(None, None, "packed", damaged=True)

    def _rows_at_once(self, group: int) -> int:
        # One that is too large in memory may end the process.
        size: int = self._pages.metadata.row_group(group).total_byte_size
        return max(1, min(ROWS, HELD // max(1, size)))


def _value(column: "Array", place: int) -> Any:
    """Returns a value, or its text if Python has no such value: a time in nanoseconds, or in the year 30,000."""
    try:
        return column[place].as_py()
    except Exception:  # noqa: BLE001 (pyarrow lets any error pass)
        if hasattr(column[place], "as_buffer"):  # a text that is not UTF-8
            return column[place].as_buffer().to_pybytes()
        return column.slice(place, 1).to_string(skip_new_lines=True)[1:-1]


def _open(path: Path) -> "ParquetFile":
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ValueError("Parquet needs pyarrow: pip install 'shingleback[parquet]'") from None
    return ParquetFile(path, page_checksum_verification=True)
