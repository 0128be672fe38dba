"""Parquet, by pyarrow (the extra ``parquet``): rows with the columns html or text, and url and fetched."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup.archive.capture import Item
from dedup.archive.rows import capture

if TYPE_CHECKING:
    from pyarrow import Array
    from pyarrow.parquet import ParquetFile

__all__ = ["Parquet"]

#: Rows that are in memory at once.
ROWS = 64


class Parquet:
    """Reads a Parquet file."""

    def __init__(self, path: Path, name: str = "") -> None:
        """Raises ValueError if it can't be read, or has no pages."""
        self.path = path
        self.name = name or str(path)
        self.size = os.path.getsize(path)
        self._file = _open(path)
        names = self._file.schema_arrow.names
        if not {"html", "text"} & set(names):
            raise ValueError(f"it has no column html or text, but {', '.join(names)}")
        self._rows: int = self._file.metadata.num_rows
        self._read = 0

    def tell(self) -> int:
        """About how many bytes have been read."""
        return self.size * self._read // max(1, self._rows)

    def __iter__(self) -> Iterator[Item]:
        """An item for each row.  Of a row group that is damaged, the rest is lost."""
        self._read = 0
        for group in range(self._file.metadata.num_row_groups):
            try:
                for batch in self._file.iter_batches(ROWS, [group]):
                    for values in zip(*map(_values, batch.columns), strict=True):
                        row = dict(zip(batch.schema.names, values, strict=True))
                        self._read += 1
                        found = capture(row)
                        yield Item(row, found, "" if found else "no_page")
            except (OSError, ValueError):  # of which those of pyarrow are subclasses
                yield Item(None, None, "packed", damaged=True)


def _values(column: "Array") -> list[Any]:
    """The values of a column.  Where Python has none like it, it is text: of times in nanoseconds, or in the year 30,000."""
    try:
        found: list[Any] = column.to_pylist()
    except Exception:  # noqa: BLE001 (pyarrow lets any error pass)
        return [_value(column.slice(place, 1)) for place in range(len(column))]
    return found


def _value(one: "Array") -> Any:
    """The value of a column of one."""
    try:
        return one[0].as_py()
    except Exception:  # noqa: BLE001
        if hasattr(one[0], "as_buffer"):  # a text that is not UTF-8
            return one[0].as_buffer().to_pybytes()
        return one.to_string(skip_new_lines=True)[1:-1]


def _open(path: Path) -> "ParquetFile":
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ValueError("Parquet needs pyarrow: pip install 'shingleback[parquet]'") from None
    return ParquetFile(path)
