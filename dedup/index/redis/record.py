"""Entries as records of bytes: what Redis holds of a page (described in lua/claim.lua)."""

import hashlib
import struct
from collections.abc import Mapping

from dedup.index.contract import Entry

__all__ = ["header_digest", "pack", "unpack", "whole"]

#: Simhash, scope, digest, filed, run, number of bands.
_HEAD = struct.Struct(">QQQI16sB")


def pack(entry: Entry) -> bytes:
    """The record of an entry, as described in claim.lua.

    >>> entry = Entry("id", "http://example.org/", 1, 2, 3, (4, 5), b"sketch", 1_800_000_000, "0f" * 16)
    >>> unpack(pack(entry)) == entry
    True
    """
    page_id = entry.page_id.encode("utf-8", "surrogatepass")
    numbers = entry.simhash, entry.scope, entry.digest, entry.filed
    return b"".join(
        (
            _HEAD.pack(*numbers, bytes.fromhex(entry.run), len(entry.bands)),
            b"".join(band.to_bytes(8, "big") for band in entry.bands),
            len(entry.sketch).to_bytes(2, "big") + entry.sketch,
            len(page_id).to_bytes(4, "big") + page_id,
            entry.url.encode("utf-8", "replace"),
        )
    )


def unpack(record: bytes) -> Entry:
    """The entry of a record."""
    simhash, scope, digest, filed, run, count = _HEAD.unpack_from(record)
    bands = struct.unpack_from(f">{count}Q", record, _HEAD.size)
    at = _HEAD.size + 8 * count
    sketch = _counted(record, at, 2)
    at += 2 + len(sketch)
    page_id = _counted(record, at, 4)
    url = record[at + 4 + len(page_id) :].decode(errors="replace")
    return Entry(_text(page_id), url, simhash, scope, digest, bands, sketch, filed, run.hex())


def whole(record: bytes) -> Entry | None:
    """The entry of a record; None if that is not what `pack` makes of any.

    >>> whole(b"torn") is None
    True
    """
    try:
        entry = unpack(record)
        return entry if pack(entry) == record else None
    except (struct.error, ValueError):
        return None


def _text(page_id: bytes) -> str:
    try:
        return page_id.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return page_id.decode(errors="replace")


def _counted(record: bytes, at: int, width: int) -> bytes:
    """The bytes that a length of so many bytes announces."""
    start = at + width
    return record[start : start + int.from_bytes(record[at:start], "big")]


def header_digest(header: Mapping[str, str]) -> str:
    """What a header's field ``digest`` says of all others."""
    fields = sorted((name, value) for name, value in header.items() if name != "digest")
    return hashlib.blake2b(repr(fields).encode(), digest_size=8).hexdigest()
