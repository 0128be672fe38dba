"""Writes what is kept, as JSON Lines or as WARC (`dedup.contrib.archives.tables` has tables).  In WARC, near-duplicates become revisit records."""

import gzip
import json
import zlib
from base64 import b32decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from dedup.contrib.archives.capture import Capture, Item, Reader, moment, written
from dedup.contrib.archives.entries import Original
from dedup.contrib.archives.http import head
from dedup.contrib.archives.rows import as_row, shown
from dedup.contrib.archives.warc import Record, Warc

#: Profiles of revisit records: that of WARC 1.1 for a payload that is equal byte by byte, and our own for near-duplicates.
IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NEAR = "urn:x-shingleback:revisit:near-duplicate"

#: Begins the address of a row without a URL.
ROW = "urn:x-shingleback:row:"
#: Bytes that are copied at once.
COPIED = 1 << 20


class Output:
    """Writes items in their order.  Everything may raise OSError."""

    def keep(self, item: Item, position: int) -> bool:
        """Writes an item that is kept or passed on; returns False if it can't be written."""
        raise NotImplementedError

    def drop(self, item: Item, position: int, kept: Original) -> None:
        """Writes what is left of a near-duplicate, if anything."""

    def close(self) -> None:
        """Writes what has to stand at the end, if anything, but does not close the file."""


def revisited(item: Item) -> tuple[str, int, bytes] | None:
    """Returns the URL, the time and the digest of the page to which a revisit record refers; None for another item."""
    record = item.raw
    if not isinstance(record, Record) or record.fields["warc-type"] != "revisit" or record.block is None:
        return None
    fields = record.fields
    url = fields.get("warc-refers-to-target-uri", "").strip("<>")
    at = moment(fields.get("warc-refers-to-date"))
    digest = fields.get("warc-payload-digest", "").rpartition(":")[2]
    payload = b""
    with suppress(ValueError):
        payload = b32decode(digest) if len(digest) == 32 else bytes.fromhex(digest)
    return url, at, payload


def _refers(kept: Original, *, has_url: bool) -> dict[str, str]:
    """Returns the fields by which a revisit record refers to the page that is kept."""
    return {
        "WARC-Profile": IDENTICAL if kept.is_identical else NEAR,
        "WARC-Refers-To": kept.record_id,
        "WARC-Refers-To-Target-URI": kept.url if has_url else ROW + quote(kept.url),
        "WARC-Refers-To-Date": written(kept.fetched),
    }


class _Members(Output):
    """Writes to a file that may be packed: each item in a member of its own, then."""

    def __init__(self, file: BinaryIO, packed: bool) -> None:
        self._file = file
        self._packed = packed

    def _put(self, octets: bytes) -> None:
        self._file.write(gzip.compress(octets, 6, mtime=0) if self._packed else octets)


class LinesOutput(_Members):
    """Writes lines as they were, and pages of other formats as objects with url, fetched, and html or text."""

    def keep(self, item: Item, position: int) -> bool:
        """Writes a page."""
        if isinstance(item.raw, bytes):
            line = item.raw.removesuffix(b"\n")
        elif (found := as_row(item)) is not None:
            line = json.dumps(found, ensure_ascii=False, default=shown).encode("utf-8", "replace")
        else:
            return False
        self._put(line + b"\n")
        return True


class WarcOutput(_Members):
    """Writes records as they were, and pages of other formats as resource records."""

    def __init__(self, file: BinaryIO, packed: bool, reader: Callable[[], Reader], now: datetime) -> None:
        super().__init__(file, packed)
        self._reader = reader
        self._now = now.replace(microsecond=0).isoformat().replace("+00:00", "Z")
        self._source: tuple[Path, BinaryIO, bool] | None = None

    def keep(self, item: Item, position: int) -> bool:
        """Writes a record."""
        if isinstance(item.raw, Record):
            return self._copy(item.raw)
        if item.capture is None:
            return False
        body = item.capture.body
        charset = "" if isinstance(body, bytes) else ";charset=utf-8"
        kind = "text/html" if item.capture.kind == "html" else "text/plain"
        fields = self._fields("resource", item.capture, position) | {"Content-Type": kind + charset}
        self._write(fields, body if isinstance(body, bytes) else body.encode("utf-8", "replace"))
        return True

    def _copy(self, record: Record) -> bool:
        reader = self._reader()
        if record.span is not None and isinstance(reader, Warc):
            source, packed = self._open(reader.path)
            if packed == self._packed or record.block is None:
                self._copy_span(_parts(source, *record.span), packed)
                return True
        if record.block is None:
            return False
        self._put(record.head + record.block + b"\r\n\r\n")
        return True

    def _open(self, path: Path) -> tuple[BinaryIO, bool]:
        if self._source is None or self._source[0] != path:
            self.close()
            file = path.open("rb")
            self._source = path, file, file.read(2) == b"\x1f\x8b"
        return self._source[1:]

    def _copy_span(self, parts: Iterator[bytes], packed: bool) -> None:
        if packed == self._packed:
            self._file.writelines(parts)
        elif self._packed:
            with gzip.GzipFile("", "wb", 6, self._file, mtime=0) as member:
                member.writelines(parts)
        else:
            stream = zlib.decompressobj(wbits=31)
            for part in parts:
                while part:
                    self._file.write(stream.decompress(part, COPIED))
                    part = stream.unconsumed_tail
            self._file.write(stream.flush())

    def drop(self, item: Item, position: int, kept: Original) -> None:
        """Writes a revisit record, which says where the page is, and has the head of a response."""
        assert item.capture is not None
        has_url = bool(item.capture.url) or "://" in kept.url
        fields = self._fields("revisit", item.capture, position) | _refers(kept, has_url=has_url)
        block = b""
        if isinstance(item.raw, Record):
            digest = item.raw.fields.get("warc-payload-digest", "")
            if kept.is_identical:  # of a near-duplicate, replay would look for a page with this very payload
                fields["WARC-Payload-Digest"] = digest
            if item.raw.fields["warc-type"] == "response" and item.raw.block is not None:
                fields["Content-Type"] = "application/http; msgtype=response"
                block = head(item.raw.block)
        self._write(fields, block)

    def refer(self, revisit: Record, kept: Original) -> None:
        """Writes a revisit record of the input whose page was dropped: it refers to the page that is kept in its place."""
        fields = _refers(kept, has_url=True)
        others = {"warc-type", "content-length", *map(str.lower, fields)}
        if not kept.is_identical:
            others.add("warc-payload-digest")
        said = {name: value for name, value in revisit.fields.items() if name not in others}
        self._write({"WARC-Type": "revisit"} | said | fields, revisit.block or b"")

    def _fields(self, kind: str, page: Capture, position: int) -> dict[str, str]:
        name = uuid5(
            NAMESPACE_URL,
            f"{kind} {position} {page.record_id} {page.url}".encode("ascii", "replace").decode(),
        )
        return {
            "WARC-Type": kind,
            "WARC-Record-ID": f"<urn:uuid:{name}>",
            "WARC-Date": written(page.fetched) or self._now,
            "WARC-Target-URI": page.url or ROW + quote(page.name),
        }

    def _write(self, fields: dict[str, str], block: bytes) -> None:
        lines = [f"{name}: {' '.join(value.split())}" for name, value in fields.items() if value]
        head = "\r\n".join(["WARC/1.1", *lines, f"Content-Length: {len(block)}", "", ""])
        self._put(head.encode("utf-8", "replace") + block + b"\r\n\r\n")

    def close(self) -> None:
        """Lets go of the source."""
        if self._source is not None:
            self._source[1].close()
            self._source = None


def _parts(source: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    source.seek(start)
    while start < end:
        part = source.read(min(COPIED, end - start))
        if not part:
            raise OSError(None, "an input has changed while it was read")
        start += len(part)
        yield part
