"""The record of a page: its bytes in Redis.  Their places are defined here, and here alone.

=========  ==========================================================  ===========
Bytes      What they are                                               Type
=========  ==========================================================  ===========
0 to 92    the fixed fields: see `FIELDS`                              big-endian
93 ...     the bands, as many as the last of those fields says         8 bytes each
then       the sketch                                                  after its length, 2 bytes
then       the page id, UTF-8; of 40 hex digits 0xFF and 20 bytes      after its length, 4 bytes
the rest   the URL, UTF-8
=========  ==========================================================  ===========

`layout` says the same to the scripts under lua/.
"""

import hashlib
import re
import struct
from collections.abc import Mapping
from itertools import accumulate

from dedup.fingerprint.fingerprint import RARE, Called
from dedup.index.entry import Entry

#: The fields that a record begins with, in their order, and their codes for `struct`.
FIELDS = {
    "simhash": "Q",
    "scope": "Q",
    "digest": "Q",
    "filed": "I",  # seconds since 1970
    "run": "16s",
    "markup": "Q",
    "names": "Q",  # these two: what the page is called
    "place": "Q",
    **{f"rare{number}": "Q" for number in range(RARE)},  # the keys of its rare shingles
    "band_count": "B",
}
#: Bytes of a band, of the length of a sketch, of the length of a page id.
BAND, SKETCH_LENGTH, ID_LENGTH = 8, 2, 4
#: Begins a page id that is packed, as no UTF-8 does: Scrapy's fingerprints take half the room.
PACKED = b"\xff"
_FINGERPRINT = re.compile("[0-9a-f]{40}")

_HEAD = struct.Struct(">" + "".join(FIELDS.values()))
_SIZES = [*map(struct.calcsize, FIELDS.values())]
#: Where each field begins, by its name, counted from 0.
PLACES = {name: end - size for name, size, end in zip(FIELDS, _SIZES, accumulate(_SIZES), strict=True)}


def layout() -> str:
    """Returns the places as Lua: `NAME_AT` and `NAME_END`, the first and last byte, counted from 1 as Lua does.

    >>> print(layout().splitlines()[4])
    local RUN_AT, RUN_END = 29, 44
    """
    lines = [
        f"local {name.upper()}_AT, {name.upper()}_END = {place + 1}, {place + size}"
        for (name, place), size in zip(PLACES.items(), _SIZES, strict=True)
    ]
    lines.append(f"local BANDS_AT, BAND = {_HEAD.size + 1}, {BAND}")
    lines.append(f"local SKETCH_LENGTH, ID_LENGTH = '>I{SKETCH_LENGTH}', '>I{ID_LENGTH}'")
    return "\n".join(lines) + "\n"


def pack(entry: Entry) -> bytes:
    """Returns the record of an entry.

    >>> entry = Entry("id", "http://example.org/", 1, 2, 3, (4, 5), b"sketch", 1_800_000_000, "0f" * 16, 6)
    >>> unpack(pack(entry)) == entry
    True
    """
    page_id = _octets_of(entry.page_id)
    numbers = entry.simhash, entry.scope, entry.digest, entry.filed
    return b"".join(
        (
            _HEAD.pack(
                *numbers, bytes.fromhex(entry.run), entry.markup, *entry.called, *entry.rare, len(entry.bands)
            ),
            b"".join(band.to_bytes(BAND, "big") for band in entry.bands),
            len(entry.sketch).to_bytes(SKETCH_LENGTH, "big") + entry.sketch,
            len(page_id).to_bytes(ID_LENGTH, "big") + page_id,
            entry.url.encode(),
        )
    )


def unpack(record: bytes) -> Entry:
    """Returns the entry of a record.  Raises `struct.error` for one that is cut short."""
    simhash, scope, digest, filed, run, markup, *others, count = _HEAD.unpack_from(record)
    bands = struct.unpack_from(f">{count}Q", record, _HEAD.size)
    at = _HEAD.size + BAND * count
    sketch = _counted(record, at, SKETCH_LENGTH)
    at += SKETCH_LENGTH + len(sketch)
    page_id = _counted(record, at, ID_LENGTH)
    url = record[at + ID_LENGTH + len(page_id) :]
    own = page_id[1:].hex() if page_id[:1] == PACKED else page_id.decode(errors="replace")
    texts, called, rare = (own, url.decode(errors="replace")), Called(*others[:2]), tuple(others[2:])
    return Entry(*texts, simhash, scope, digest, bands, sketch, filed, run.hex(), markup, called, rare)


def whole(record: bytes) -> Entry | None:
    """Returns the entry of a record; None if `pack` makes no such record.

    >>> whole(b"torn") is None
    True
    """
    try:
        entry = unpack(record)
        return entry if pack(entry) == record else None
    except (struct.error, ValueError):
        return None


def _octets_of(page_id: str) -> bytes:
    return PACKED + bytes.fromhex(page_id) if _FINGERPRINT.fullmatch(page_id) else page_id.encode()


def _counted(record: bytes, at: int, width: int) -> bytes:
    """Returns the bytes behind a length, which itself has ``width`` bytes."""
    start = at + width
    return record[start : start + int.from_bytes(record[at:start], "big")]


def header_digest(header: Mapping[str, str]) -> str:
    """Returns what a header's field ``digest`` says of all others."""
    fields = sorted((name, value) for name, value in header.items() if name != "digest")
    return hashlib.blake2b(repr(fields).encode(), digest_size=8).hexdigest()
