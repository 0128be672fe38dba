"""Finds the format of each input by its first bytes, and not by its name."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

from dedup.contrib.archives.capture import Item, Reader
from dedup.contrib.archives.containers import sources
from dedup.contrib.archives.folder import Folder
from dedup.contrib.archives.lines import Lines
from dedup.contrib.archives.rows import USUAL, FieldNames
from dedup.contrib.archives.streams import MAGIC, first_bytes
from dedup.contrib.archives.warc import Warc, is_warc
from dedup.errors import SettingsError
from dedup.files import make_private
from dedup.printing import inert
from dedup.settings import Types

#: The name of the standard input.
INPUT = "-"
FORMATS = "a WARC file, JSON Lines (either may be compressed by gzip), WACZ, ARC, Parquet, an HTML file or a folder of them"


def open_inputs(
    names: Sequence[str], types: Types, folder: Path, named: FieldNames = USUAL, first: int = 0
) -> list[Reader]:
    """Returns the readers of inputs, whose numbers begin at ``first``.

    The folder has the file to which the standard input was copied, and gets what WACZ and the like are turned into.


    Raises `SettingsError` if an input can't be read.
    """
    found = []
    for number, name in enumerate(names, first):
        path = folder / "stdin" if name == INPUT else Path(name)
        with _told(name):
            files = sources(path, name, folder, number)
        found += [open_input(*each, types, named) for each in files]
    return found


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SettingsError(f"the input {inert(name)} can't be read: {inert(why)}") from None


def open_input(path: Path, name: str = "", types: Types = "html", named: FieldNames = USUAL) -> Reader:
    """Returns the reader of one input.  Messages call it by ``name``.  Raises `SettingsError`."""
    name = name or str(path)
    with _told(name):
        reader = _open(path, name, types, named)
    if reader is None:
        raise SettingsError(f"the input {inert(name)} has an unknown format; allowed: {FORMATS}")
    return reader


def _open(path: Path, name: str, types: Types, named: FieldNames) -> Reader | None:
    if path.is_dir():
        folder = Folder(path, name)
        return folder if folder.size else None
    if not path.is_file():
        raise FileNotFoundError(None, "there is no such file" if not path.exists() else "it is no file")
    with path.open("rb") as file:
        packed = file.read(len(MAGIC)) == MAGIC
        begins = first_bytes(file, 1 << 12)
    if begins.startswith(b"PAR1"):
        from dedup.contrib.archives.parquet import Parquet

        return Parquet(path, name, named)
    if is_warc(begins):
        return Warc(path, name, types)
    first = begins.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first == b"{":
        return Lines(path, name, named)
    if first == b"<" and not packed:
        return Folder(path, name)
    # Its beginning is damaged, perhaps, or there is nothing in it.
    names = (".warc", ".warc.gz", ".wet.gz"), (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
    if name.lower().endswith(names[0]) or path.name.endswith(names[0]):  # what another format was turned into
        return Warc(path, name, types)
    return Lines(path, name, named) if not first or name.lower().endswith(names[1]) else None


def items(reader: Reader) -> Iterator[Item]:
    """Yields the items of a reader.  Raises `SettingsError` if the input can't be read to its end."""
    try:
        yield from reader
    except OSError as error:
        raise SettingsError(
            f"the input {inert(reader.name)} can't be read any further: {error.strerror or error}"
        ) from None


def spool(path: Path) -> None:
    """Copies the standard input to a file, since it is read twice."""
    make_private(path)
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
