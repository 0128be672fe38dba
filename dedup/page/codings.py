"""Content codings: a body as a server packed it -> its bytes, and whether it came to its end."""

import re
import sys
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dedup.page.limits import MAX_CHARACTERS

#: Bytes that one step may unpack, and packed bytes that become no more.
STEP, READ = 1 << 20, 1 << 10
#: A longer page is not judged anyway, so that its end doesn't matter.
ENOUGH = 4 * MAX_CHARACTERS
#: How a member of gzip begins, and the bytes of its checksum and its length.
GZIP, CHECKSUM = b"\x1f\x8b\x08", 8
#: Bytes that no text has in ASCII or a superset of it, and packed bytes soon have.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")

#: The module for Zstandard, which is in Python since 3.14.
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
#: What a step has unpacked, and whether the stream has ended.
Steps = Iterator[tuple[bytes, bool]]


def unpack(coding: str, body: bytes, limit: int) -> tuple[bytes, bool | None]:
    """Returns a body unpacked, and whether it came to its end within ``limit`` bytes; None if the coding is not known here.

    A body of text is unpacked already, and is returned as it is.  Of gzip and deflate, checksums don't count, nor does what
    is behind the end: browsers look at neither.

    >>> import gzip
    >>> body = gzip.compress(b"a page")
    >>> unpack("gzip", body, 99), unpack("gzip", body[:14], 99), unpack("gzip", b"a page", 99)
    ((b'a page', True), (b'a p', False), (b'a page', True))
    """
    parts, size = list[bytes](), 0
    whole: bool | None = False
    try:
        for part, ended in _FORMATS[coding](body):
            parts.append(part)
            size += len(part)
            if ended or size > limit:
                return b"".join(parts), size <= limit
    except (KeyError, ImportError, TypeError):  # the library is not installed, or an older one
        whole = None
    except Exception:  # noqa: BLE001 (each library has errors of its own)
        whole = False
    return (body, True) if _is_text(body) else (b"".join(parts), whole)


def is_whole(coding: str, body: bytes) -> bool | None:
    """Returns whether a body comes to its end, or is longer than any page that is judged; None if that can't be told.

    >>> import gzip
    >>> body = gzip.compress(b"a page " * 1000)
    >>> is_whole("gzip", body), is_whole("gzip", body[:-9]), is_whole("pack200-gzip", body)
    (True, False, None)
    """
    if coding not in _FORMATS:
        return None
    unpacked, whole = unpack(coding, body, ENOUGH)
    return whole or (None if whole is None else len(unpacked) > ENOUGH)


def _is_text(body: bytes) -> bool:
    return _NO_TEXT.search(body, 0, STEP) is None


def _zlib(body: bytes) -> Steps:
    """Unpacks all members of gzip, or else zlib's format, or else what both wrap."""
    at, ended = 0, False
    while not ended:
        is_gzip = body.startswith(GZIP, at)
        at = _deflated(body, at) if is_gzip else 2 if _is_zlib(body) else 0
        stream: Any = zlib.decompressobj(wbits=-15)
        while at < len(body) and not stream.eof:
            part = stream.decompress(packed := body[at : at + READ])
            at += len(packed) - len(stream.unused_data)
            ended = stream.eof and not (is_gzip and body.startswith(GZIP, at + CHECKSUM))
            yield part, ended
        if not stream.eof:
            return
        at += CHECKSUM


def _deflated(body: bytes, at: int) -> int:
    """Returns where the deflated bytes of a member of gzip begin (RFC 1952, 2.3)."""
    flags, at = body[at + 3], at + 10
    if flags & 4:
        at += 2 + int.from_bytes(body[at : at + 2], "little")
    for flag in (8, 16):  # a name, and a comment
        if flags & flag:
            at = body.index(b"\0", at) + 1
    return at + (flags & 2)


def _is_zlib(body: bytes) -> bool:
    """Returns whether a body begins as RFC 1950, 2.2 says."""
    return len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0


def _brotli(body: bytes) -> Steps:
    library = "brotli" if find_spec("brotli") else "brotlicffi"
    stream: Any = import_module(library).Decompressor()
    yield stream.process(body, output_buffer_limit=STEP), stream.is_finished()
    while not stream.can_accept_more_data():
        yield stream.process(b"", output_buffer_limit=STEP), stream.is_finished()


def _zstd(body: bytes) -> Steps:
    stream: Any = import_module(ZSTD).ZstdDecompressor()
    yield stream.decompress(body, STEP), stream.eof
    while not stream.needs_input:
        yield stream.decompress(b"", STEP), stream.eof


_FORMATS: dict[str, Callable[[bytes], Steps]] = {
    "gzip": _zlib,
    "x-gzip": _zlib,
    "deflate": _zlib,
    "br": _brotli,
    "zstd": _zstd,
}
