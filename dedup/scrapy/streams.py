"""Compressed bodies: whether one comes to its end, or the server left some of it out."""

import sys
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from dedup.page.limits import MAX_CHARACTERS

#: Bytes that one step may unpack.
STEP = 1 << 20
#: A longer page is not judged anyway, so that its end doesn't matter.
ENOUGH = 4 * MAX_CHARACTERS

#: Bytes that a step has unpacked, and whether the stream has ended.
Steps = Iterator[tuple[int, bool]]


def is_whole(encoding: bytes, body: bytes) -> bool | None:
    """Returns whether a body comes to its end, or is longer than any page that is judged; None if that can't be told.

    ``encoding`` is its Content-Encoding in lower case.

    >>> import gzip
    >>> body = gzip.compress(b"a page " * 1000)
    >>> is_whole(b"gzip", body), is_whole(b"gzip", body[:-1]), is_whole(b"pack200-gzip", body)
    (True, False, None)
    """
    if encoding not in _FORMATS:
        return None
    unpacked = 0
    try:
        for size, ended in _FORMATS[encoding](body):
            unpacked += size
            if ended or unpacked > ENOUGH:
                return True
    except (ImportError, TypeError):  # Scrapy does without the library, or with an older one
        return None
    except Exception:  # noqa: BLE001 (each library has errors of its own)
        return unpacked == 0  # at once: it is another format, which Scrapy may know; later: it is damaged
    return False


def _zlib(body: bytes) -> Steps:
    stream = zlib.decompressobj(wbits=47)
    for start in range(0, len(body), 1024):  # which become 1 MB at most
        yield len(stream.decompress(body[start : start + 1024])), stream.eof


def _brotli(body: bytes) -> Steps:
    stream = _library("brotli", "brotlicffi").Decompressor()
    yield len(stream.process(body, output_buffer_limit=STEP)), stream.is_finished()
    while not stream.can_accept_more_data():
        yield len(stream.process(b"", output_buffer_limit=STEP)), stream.is_finished()


def _zstd(body: bytes) -> Steps:
    names = ["compression.zstd"] if sys.version_info >= (3, 14) else ["backports.zstd"]
    stream = _library(*names).ZstdDecompressor()
    yield len(stream.decompress(body, STEP)), stream.eof
    while not stream.needs_input:
        yield len(stream.decompress(b"", STEP)), stream.eof


def _library(*names: str) -> Any:
    """Returns the first of some modules that is installed."""
    *others, last = names
    for name in others:
        try:
            return import_module(name)
        except ImportError:
            continue
    return import_module(last)


_FORMATS: dict[bytes, Callable[[bytes], Steps]] = {
    b"gzip": _zlib,
    b"x-gzip": _zlib,
    b"deflate": _zlib,
    b"br": _brotli,
    b"zstd": _zstd,
}
