"""Containers of WARC: WACZ, WARC compressed by Zstandard, and ARC.

Each is turned into WARC once, in the folder of a cleaning, and read from there.  What is kept may be written as WACZ, by
the library of those who maintain that format (the extra ``archives``).
"""

import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, uuid5

from dedup.contrib.archives.http import HTML
from dedup.contrib.archives.streams import Member, first_bytes, members
from dedup.errors import SettingsError
from dedup.files import make_private
from dedup.page import codings

#: Where a file is, and what it is called.
Source = tuple[Path, str]

#: How Zstandard begins, and a frame that holds the dictionary of all that follow
#: (https://iipc.github.io/warc-specifications/specifications/warc-zstd/).
ZSTD, DICTIONARY = b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18"
#: Bytes that are read at once, and of the first line of a record of ARC at most.
READ, MAX_LINE = 1 << 20, 1 << 16
#: Bytes of WACZ that are read at once, and are lost at the end of a file whose checksum is wrong.
ZIPPED = 1 << 12
#: Files of WACZ that hold records, and WACZ in WACZ.
_ARCHIVE = re.compile(r"^archive/.*\.w?arc\b|\.wacz$", re.IGNORECASE)
#: The first line of a record of ARC.
_ARC = re.compile(rb"[a-z][a-z0-9+.-]*:.* \d{8,17} \S.* \d+\r?\n", re.IGNORECASE)
#: This is written behind what could be read of a damaged file, so that the reader finds the damage.
DAMAGE = b"\r\nwhat follows is damaged\r\n"


def sources(path: Path, name: str, folder: Path, number: int | str) -> list[Source]:
    """Returns the files that an input is read from: itself, or what it was turned into.  Raises OSError and ValueError."""
    if not path.is_file():
        return [(path, name)]
    with path.open("rb") as file:
        begins = file.read(4)
        first = first_bytes(file, 11)
    if begins == b"PK\x03\x04":
        return list(_of_wacz(path, name, folder, number))
    if begins in (ZSTD, DICTIONARY):
        return [(_turned(path, folder / f"input{number}.warc", _from_zstd), name)]
    if first == b"filedesc://":
        return [(_turned(path, folder / f"input{number}.warc", _from_arc), name)]
    return [(path, name)]


def _of_wacz(path: Path, name: str, folder: Path, number: int | str) -> Iterator[Source]:
    with zipfile.ZipFile(path) as packed:
        found = list(filter(_ARCHIVE.search, packed.namelist()))
        if not found:
            raise ValueError("it has no WARC file in its folder archive/, as WACZ has")
        for at, each in enumerate(found):
            with packed.open(each) as source:
                target = _turned(source, folder / f"packed{number}-{at}", _from_zip)
            yield from sources(target, f"{name}/{each}", folder, f"{number}-{at}")


def _turned(source: Any, target: Path, turn: Callable[[Any, BinaryIO], None]) -> Path:
    """Returns the file at a path, which is made unless it is there."""
    if not target.exists():
        part = target.with_suffix(".new")
        make_private(part)
        with part.open("wb") as file:
            turn(source, file)
        os.replace(part, target)
    return target


def _from_zip(source: Any, target: BinaryIO) -> None:
    try:
        while part := source.read(ZIPPED):
            target.write(part)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        target.write(DAMAGE)


def _from_zstd(path: Path, target: BinaryIO) -> None:
    try:
        zstd: Any = import_module(codings.ZSTD)
    except ImportError:
        raise _missing("WARC compressed by Zstandard") from None
    with path.open("rb") as file:
        known = None
        if file.read(4) == DICTIONARY:
            words = file.read(struct.unpack("<I", file.read(4))[0])
            known = zstd.ZstdDict(zstd.decompress(words) if words.startswith(ZSTD) else words)
        else:
            file.seek(0)
        frame, packed = None, file.read(READ)
        try:
            while packed:
                frame = frame or zstd.ZstdDecompressor(zstd_dict=known)
                target.write(frame.decompress(packed))
                packed = (frame.unused_data if frame.eof else b"") or file.read(READ)
                frame = None if frame.eof else frame
        except zstd.ZstdError:
            pass
        if frame is not None:
            target.write(DAMAGE)


def _from_arc(path: Path, target: BinaryIO) -> None:
    """Turns each record of ARC (version 1 or 2) into one of WARC.  Other bytes are copied, and the reader finds the damage."""
    after = 4  # fields after the URL
    with path.open("rb") as file:
        for member in members(file, lambda begins: begins.startswith((b"filedesc:", b"http"))):
            while line := member.line(MAX_LINE):
                if not line.strip():
                    continue
                url, *fields = line.decode("utf-8", "replace").strip().rsplit(" ", after)
                if (
                    len(fields) < after
                    or not fields[-1].isdecimal()
                    or not _is_whole(member, int(fields[-1]))
                ):
                    target.write(line)
                    while (line := member.next_line(MAX_LINE)) and not _ARC.fullmatch(line):
                        target.write(member.take(len(line)))
                    continue
                if url.startswith("filedesc:"):
                    after = 9 if member.take(int(fields[-1])).startswith(b"2") else 4
                    continue
                date, left = fields[1].ljust(14, "0"), int(fields[-1])
                at = f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:14]}Z"
                is_http = url.startswith(("http:", "https:"))
                head = {
                    "WARC-Type": "response" if is_http else "resource",
                    "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, f'{path.name} {target.tell()}')}>",
                    "WARC-Date": at,
                    "WARC-Target-URI": url,
                    "Content-Type": "application/http; msgtype=response" if is_http else fields[2],
                    "Content-Length": fields[-1],
                }
                target.write(
                    b"WARC/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in head.items()).encode() + b"\r\n"
                )
                while left and (part := member.take(min(READ, left))):
                    target.write(part)
                    left -= len(part)
                target.write(b"\r\n\r\n")


def _is_whole(member: Member, length: int) -> bool:
    """Returns whether a record of ARC with this length ends where another begins, or the member does."""
    mark = member.mark()
    found = member.may_have(length) and member.skip(length) == length
    rest = member.take(MAX_LINE)
    member.go_to(mark)
    return found and (rest[:1] in b"\r\n" or _ARC.match(rest) is not None)


def check_made(*names: str) -> None:
    """Raises `SettingsError` if one of these can't be made here: WACZ and Parquet by their names, or else an index."""
    for name in filter(None, names):
        if name.endswith(".parquet"):
            if find_spec("pyarrow") is None:
                raise SettingsError("Parquet needs pyarrow: pip install 'shingleback[parquet]'")
        elif find_spec("wacz") is None:  # which brings cdxj_indexer
            raise SettingsError(str(_missing("WACZ" if name.endswith(".wacz") else "an index in CDXJ")))


def make_wacz(warc: Path, target: Path) -> None:
    """Makes WACZ of a WARC file: with a list of its pages, and with an index of all its records."""
    from wacz.main import main

    listed, pages = target.with_suffix(".cdxj"), target.with_suffix(".jsonl")
    make_index(warc, warc.name, listed)
    with listed.open() as lines, pages.open("w") as file:
        print(json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "Pages"}), file=file)
        for line in lines:
            _, at, fields = line.split(" ", 2)
            found = json.loads(fields)
            if found.get("mime") in HTML:
                when = datetime.strptime(at, "%Y%m%d%H%M%S")
                print(json.dumps({"url": found["url"], "ts": f"{when.isoformat()}Z"}), file=file)
    with redirect_stdout(io.StringIO()):
        main(["create", "-o", str(target), "--pages", str(pages), "--copy-pages", str(warc)])


def make_index(warc: Path, name: str, target: Path) -> None:
    """Makes the index of a WARC file, which has a name there: CDXJ, as replay wants it."""
    from cdxj_indexer.main import CDXJIndexer

    CDXJIndexer(str(target), [str(warc)], sort=True, filename=os.path.basename(name)).process_all()


def _missing(what: str) -> ValueError:
    return ValueError(f"{what} needs more: pip install 'shingleback[archives]'")
