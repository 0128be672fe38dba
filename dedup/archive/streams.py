"""The bytes of an archive, which may be compressed and damaged: nothing here raises but what the disk raises.

A file that is compressed by gzip is a row of members, often one for each record.  After a damaged one the next is
looked for, so that the damage costs no more than it has to.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

__all__ = ["MAGIC", "Member", "members"]

#: How a member of gzip begins.
MAGIC = b"\x1f\x8b\x08"
#: Bytes that are read at once, and that are unpacked at once at most.
READ, UNPACKED = 1 << 15, 1 << 18


class Member:
    """A run of bytes that can be read on its own: a member of gzip, or a file that is not compressed."""

    def __init__(self, file: BinaryIO, start: int, *, packed: bool) -> None:
        file.seek(start)
        self.start = start
        self.end: int | None = None  #: where it ends in the file, once that is known
        self.broken = False  #: whether its end is missing, or it is damaged
        self.packed = packed
        self._file = file
        self._parts = self._unpack() if packed else iter(lambda: file.read(UNPACKED), b"")
        self._buffer = b""
        self._at = 0
        self._gone = 0  # bytes before the buffer

    def _unpack(self) -> Iterator[bytes]:
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            packed = stream.unconsumed_tail or self._file.read(READ)
            try:
                part = stream.decompress(packed, UNPACKED)
            except zlib.error:
                self.broken = True
                return
            if not part and not packed:
                self.broken = True
                return
            if part:
                yield part
        self.end = self._file.tell() - len(stream.unused_data)

    def _more(self) -> bool:
        part = next(self._parts, b"")
        if self._at:
            self._gone += self._at
            self._buffer, self._at = self._buffer[self._at :], 0
        self._buffer += part
        return bool(part)

    def tell(self) -> int:
        """How many unpacked bytes of it were taken."""
        return self._gone + self._at

    def line(self, limit: int) -> bytes:
        """The next line with its end, or the first bytes of it; b"" at the end."""
        looked = self._at
        while True:
            end = self._buffer.find(b"\n", looked)
            if end >= 0 or len(self._buffer) - self._at >= limit:
                return self.take(min(limit, end + 1 - self._at if end >= 0 else limit))
            looked = len(self._buffer) - self._at
            if not self._more():
                return self.take(limit)

    def take(self, count: int) -> bytes:
        """The next bytes, fewer at the end."""
        have = len(self._buffer) - self._at
        if have < count:
            parts = [self._buffer[self._at :]]
            self._gone += self._at
            self._buffer, self._at = b"", 0
            while have < count and (part := next(self._parts, b"")):
                parts.append(part)
                have += len(part)
            self._buffer = b"".join(parts)
        taken = self._buffer[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def skip(self, count: int) -> int:
        """Passes over the next bytes without keeping them; how many there were."""
        left = count - (len(self._buffer) - self._at)
        if left > 0 and not self.packed:
            at = self._file.tell()
            end = self._file.seek(0, 2)
            self._file.seek(min(at + left, end))
            self._gone += len(self._buffer) + min(left, end - at)
            self._buffer, self._at = b"", 0
            return count - max(0, at + left - end)
        passed = 0
        while passed < count and (part := self.take(min(UNPACKED, count - passed))):
            passed += len(part)
        return passed

    def back(self, taken: bytes) -> None:
        """Gives back what was taken last."""
        self._buffer = taken + self._buffer[self._at :]
        self._gone -= len(taken) - self._at
        self._at = 0

    def is_at_end(self) -> bool:
        """Whether nothing is left; then it is known whether it was whole."""
        return self._at >= len(self._buffer) and not self._more()


def members(file: BinaryIO, is_first: Callable[[bytes], bool]) -> Iterator[Member]:
    """The members of a file; each is read before the next one is asked for.

    ``is_first`` tells by its first bytes whether a member that is found after damage is one.
    """
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        yield Member(file, 0, packed=False)
        return
    start: int | None = 0
    while start is not None:
        file.seek(start)
        begins = file.read(len(MAGIC))
        if not begins.strip(b"\0"):  # padding, or the end
            start = _next(file, start, is_first) if begins else None
            continue
        member = Member(file, start, packed=True)
        yield member
        while not member.is_at_end():
            member.take(UNPACKED)
        start = member.end if member.end is not None else _next(file, start + 1, is_first)


def _next(file: BinaryIO, start: int, is_first: Callable[[bytes], bool]) -> int | None:
    """Where the next member begins; None if there is none."""
    file.seek(start)
    window = b""
    while part := file.read(UNPACKED):
        window += part
        at = -1
        while (at := window.find(MAGIC, at + 1)) >= 0:
            resume = file.tell()
            file.seek(start + at)
            if is_first(Member(file, start + at, packed=True).take(READ)):
                return start + at
            file.seek(resume)
        start += len(window) - len(MAGIC) + 1
        window = window[-len(MAGIC) + 1 :]
    return None
