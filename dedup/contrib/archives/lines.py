"""Reads JSON Lines, plain or gzipped.  Each line is an object with the fields html or text, and perhaps url and fetched."""

from collections.abc import Iterator
from pathlib import Path

from dedup.contrib.archives.capture import MAX_BODY, Item, Reader
from dedup.contrib.archives.rows import USUAL, FieldNames, capture, parsed
from dedup.contrib.archives.streams import members

#: Bytes of a line: each of a page may take six.
MAX_LINE = 2 * MAX_BODY


class Lines(Reader):
    """Reads a file of JSON Lines."""

    def __init__(self, path: Path, name: str = "", named: FieldNames = USUAL) -> None:
        super().__init__(path, name)
        self._named = named

    def __iter__(self) -> Iterator[Item]:
        """Yields an item for each line that is not empty."""
        number = 0
        with self.path.open("rb", buffering=1 << 17) as self._file:
            for member in members(self._file, bool, bool):
                while line := member.line(MAX_LINE):
                    number += 1
                    if len(line) == MAX_LINE and not line.endswith(b"\n"):
                        while (line := member.line(MAX_LINE)) and not line.endswith(b"\n"):
                            pass
                        yield Item(None, None, "large", damaged=True)
                    elif line.strip():
                        is_torn = member.broken and not line.endswith(b"\n")
                        yield self._item(line, f"{self.name}:{number}", "cut_off" if is_torn else "no_json")
                if member.broken:
                    yield Item(None, None, "packed", damaged=True)

    def _item(self, line: bytes, where: str, otherwise: str) -> Item:
        row = parsed(line)
        if row is None:
            return Item(line, None, otherwise, damaged=True)
        found = capture(row, where, self._named)
        return Item(line, found, "" if found else "no_page")
