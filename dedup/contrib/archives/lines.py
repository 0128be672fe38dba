"""Reads JSON Lines, plain or gzipped.  Each line is an object with the fields html or text, and perhaps url and fetched."""

import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import DecodeError, Raw, defstruct, field
from msgspec.json import Decoder, decode

from dedup.contrib.archives.capture import MAX_BODY, Item
from dedup.contrib.archives.rows import USUAL, FieldNames, capture
from dedup.contrib.archives.streams import members

#: Bytes of a line: each of a page may take six.
MAX_LINE = 2 * MAX_BODY


class Lines:
    """Reads a file of JSON Lines."""

    def __init__(self, path: Path, name: str = "", named: FieldNames = USUAL) -> None:
        self.path = path
        self.name = name or str(path)
        self.size = os.path.getsize(path)
        self._file: BinaryIO | None = None
        self._named = named
        self._line = 0  # its number, from 1
        # Other fields are passed over, whatever they hold.
        fields = [
            (f"f{n}", Raw, field(default=Raw(b"null"), name=name)) for n, name in enumerate(named.fields)
        ]
        self._decode = Decoder(defstruct("Row", fields)).decode

    def tell(self) -> int:
        """Returns how many bytes have been read."""
        return self._file.tell() if self._file and not self._file.closed else 0

    def __iter__(self) -> Iterator[Item]:
        """Yields an item for each line that is not empty."""
        self._line = 0
        with self.path.open("rb", buffering=1 << 17) as self._file:
            for member in members(self._file, bool, bool):
                while line := member.line(MAX_LINE):
                    self._line += 1
                    if len(line) == MAX_LINE and not line.endswith(b"\n"):
                        while (line := member.line(MAX_LINE)) and not line.endswith(b"\n"):
                            pass
                        yield Item(None, None, "large", damaged=True)
                    elif line.strip():
                        yield self._item(line, torn=member.broken and not line.endswith(b"\n"))
                if member.broken:
                    yield Item(None, None, "packed", damaged=True)

    def _item(self, line: bytes, *, torn: bool) -> Item:
        octets = line.removeprefix(BOM_UTF8)
        try:
            row = self._decode(octets)
            values: Any = {name: _value(getattr(row, f"f{n}")) for n, name in enumerate(self._named.fields)}
        except (
            DecodeError,
            RecursionError,
            UnicodeDecodeError,
        ):  # or ValidationError, which is one of the first
            values = _as_python_has_it(octets)
        if not isinstance(values, dict):
            return Item(line, None, "cut_off" if torn else "no_json", damaged=True)
        found = capture(values, f"{self.name}:{self._line}", self._named)
        return Item(line, found, "" if found else "no_page")


def _as_python_has_it(line: bytes) -> Any:
    """Parses JSON that only Python writes: lone surrogates, NaN, and numbers of any size.  Returns None for anything else."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _value(raw: Raw) -> str | float | int | None:
    """Returns a text or a number; None for any other JSON value."""
    value = bytes(raw)
    if value.startswith(b'"'):
        return decode(value, type=str)
    return decode(value, type=int | float) if value[:1] in b"-0123456789" else None
