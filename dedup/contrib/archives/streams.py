"""Reads the bytes of an archive, which may be compressed and damaged.  Only errors of the disk are raised here.

A gzipped file is a sequence of members, often one for each record.  If a member is damaged, the next one is looked for, so
that as little as possible is lost.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

#: How a member of gzip begins.
MAGIC = b"\x1f\x8b\x08"
#: Bytes that are read at once, and that are unpacked at once at most.
READ, UNPACKED = 1 << 15, 1 << 18
#: At most this many bytes of a member, and as many as it had before, are unpacked twice: that bounds what wrong lengths cost.
TWICE = 1 << 30
#: This many packed bytes decide whether a member begins somewhere.
PROBE = 1 << 10
#: This many unpacked bytes decide whether a member goes on with the one before.
FIRST = 64
#: At most this many bytes in damaged members, and as many as stand before them, are looked at again.
AGAIN = 1 << 26


class Mark(NamedTuple):
    """A place in a member to which the reader can return."""

    stream: Any  #: what unpacks, as it was there; None if nothing is packed
    read: int  #: how far the file was read
    buffer: bytes
    taken: int  #: bytes before the buffer


class Member:
    """A run of bytes that can be read on its own: a member of gzip and those that go on with it, or bytes that are not packed."""

    def __init__(
        self,
        file: BinaryIO,
        start: int,
        *,
        packed: bool,
        stop: int | None = None,
        goes_on: Callable[[bytes], bool] | None = None,
    ) -> None:
        file.seek(start)
        self._stop = stop  # where it ends at the latest, if that is known and nothing is packed
        self._goes_on = goes_on  # whether what begins so goes on with the member before
        self.start = start
        self.last = start  #: where the last member of gzip begins that was read
        self.end: int | None = None  #: where it ends in the file, once that is known
        self.broken = False  #: true if its end is missing, or it is damaged
        self.packed = packed
        self._file = file
        self._stream = zlib.decompressobj(wbits=31) if packed else None
        self._parts = self._begin()
        self._buffer = bytearray()  # what comes next
        self._taken = 0  # bytes before that
        self._length: int | None = None  # unpacked bytes, once that is known
        self._twice = 0  # bytes that were passed over, and gone back over

    def _begin(self) -> Iterator[bytes]:
        if self._stream is None:
            return iter(self._plain, b"")
        return self._unpack(self._stream)

    def _plain(self) -> bytes:
        left = UNPACKED if self._stop is None else max(0, self._stop - self._file.tell())
        return self._file.read(min(UNPACKED, left))

    def _unpack(self, stream: Any) -> Iterator[bytes]:
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
            if stream.eof:
                self.end = end = self._file.tell() - len(stream.unused_data)
                if self._goes_on and self._next_goes_on(stream.unused_data[:PROBE]):
                    self._stream = stream = zlib.decompressobj(wbits=31)
                    self.last, self.end = end, None
                    self._file.seek(end)
            if part:
                yield part

    def _next_goes_on(self, packed: bytes) -> bool:
        packed += self._file.read(PROBE - len(packed))
        begins = _unpacked(packed, FIRST) if packed.startswith(MAGIC) else b""
        return bool(begins and self._goes_on and self._goes_on(begins))

    def _more(self) -> bool:
        part = next(self._parts, b"")
        self._buffer += part
        return bool(part)

    def tell(self) -> int:
        """Returns how many unpacked bytes were taken."""
        return self._taken

    def next_line(self, limit: int) -> bytes:
        """Returns the next line with its line end, but at most ``limit`` bytes, without taking it; b"" at the end."""
        seen = 0
        while not (end := self._buffer.find(b"\n", seen, limit) + 1) and len(self._buffer) < limit:
            seen = len(self._buffer)
            if not self._more():
                break
        return bytes(self._buffer[: end or limit])

    def line(self, limit: int) -> bytes:
        """Takes the next line."""
        return self.take(len(self.next_line(limit)))

    def take(self, count: int) -> bytes:
        """Takes the next bytes; at the end there may be fewer."""
        self.ready(count)
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._taken += len(taken)
        return taken

    def ready(self, count: int) -> int:
        """Makes bytes ready to be taken.  Returns how many are: more than ``count``, or fewer at the end."""
        while len(self._buffer) < count and self._more():
            pass
        return len(self._buffer)

    def peek(self, after: int, count: int) -> bytes:
        """Returns bytes that are ready, from ``after`` on, without taking them."""
        return bytes(self._buffer[after : after + count])

    def skip(self, count: int) -> int:
        """Skips the next bytes, and returns how many there were."""
        left = count - len(self._buffer)
        if left > 0 and not self.packed:
            at = self._file.tell()
            end = self._file.seek(0, 2) if self._stop is None else self._stop
            skipped = min(left, end - at)
            self._file.seek(at + skipped)
            self._taken += len(self._buffer) + skipped
            self._buffer.clear()
            return count - left + skipped
        passed = 0
        while passed < count and (part := self.take(min(UNPACKED, count - passed))):
            passed += len(part)
        if passed < count:
            self._length = self.tell()
        return passed

    def may_have(self, count: int) -> bool:
        """Returns whether there may be ``count`` more bytes, and looking for them is still worth its time."""
        if self._length is not None and self.tell() + count > self._length:
            return False
        return not self.packed or self._twice <= TWICE + self.tell()

    def mark(self) -> Mark:
        """Returns the current place."""
        stream = self._stream and self._stream.copy()
        return Mark(stream, self._file.tell(), bytes(self._buffer), self._taken)

    def go_to(self, mark: Mark) -> None:
        """Returns to a place.  A place may be used once."""
        if self._length is None or self.tell() < self._length:  # it is passed over to its end once
            self._twice += self.tell() - mark.taken
        self._file.seek(mark.read)
        self._stream = mark.stream
        self._parts = self._begin()
        self._buffer, self._taken = bytearray(mark.buffer), mark.taken

    def is_at_end(self) -> bool:
        """Returns whether nothing is left.  Only then is it known whether the member was whole."""
        return not self._buffer and not self._more()


def members(
    file: BinaryIO, is_first: Callable[[bytes], bool], goes_on: Callable[[bytes], bool] | None = None
) -> Iterator[Member]:
    """Yields the members of a file.  Each has to be read before the next one is asked for.

    ``is_first`` looks at the first bytes of what is found behind damage, and returns whether that is a member;
    ``goes_on`` at those of a member, and returns whether it goes on with the one before, as where a program packs a file
    in blocks of one size.
    """
    file.seek(0)
    begins = file.read(READ)
    # Another file that is compressed may have lost its first bytes.
    if begins[: len(MAGIC)] != MAGIC and (is_first(begins) or _next(file, 0, is_first) is None):
        yield Member(file, 0, packed=False)
        return
    start: int | None = 0
    again = 0
    while start is not None:
        file.seek(start)
        begins = file.read(len(MAGIC))
        begins += b"" if begins == MAGIC else file.read(READ)
        if not begins.strip(b"\0"):  # padding, or the end
            start = start + len(begins) if begins else None
            continue
        start += len(begins) - len(begins.lstrip(b"\0"))
        packed = begins.lstrip(b"\0").startswith(MAGIC)
        stop = None if packed else _next(file, start, is_first)
        member = Member(file, start, packed=packed, stop=stop, goes_on=goes_on)
        yield member
        while not member.is_at_end():
            member.take(UNPACKED)
        if not packed:
            start = stop
            continue
        if member.end is not None:
            start = member.end
            continue
        start = member.last
        end = max(file.tell(), start + 1)
        again += end - start + READ
        start = _next(file, start + 1 if again <= AGAIN + start else end, is_first)


def first_bytes(file: BinaryIO, count: int) -> bytes:
    """Returns the first unpacked bytes of a file, whatever is empty or damaged before them; at most ``count``."""
    return next(filter(None, (member.take(count) for member in members(file, bool))), b"")


def _next(file: BinaryIO, start: int, is_first: Callable[[bytes], bool]) -> int | None:
    """Returns where the next member begins; None if there is none."""
    file.seek(start)
    window = b""
    while part := file.read(READ):
        window += part
        at = -1
        # What begins near the end of the window is looked at with what comes next.
        end = len(window) - PROBE if len(part) == READ else len(window)
        while 0 <= (at := window.find(MAGIC, at + 1)) < end:
            if is_first(_unpacked(window[at : at + PROBE])):
                return start + at
        start += max(0, end)
        window = window[max(0, end) :]
    return None


def _unpacked(begins: bytes, count: int = PROBE) -> bytes:
    """Unpacks the beginning of a member; returns b"" if these bytes don't begin one."""
    try:
        return zlib.decompressobj(wbits=31).decompress(begins, count)
    except zlib.error:
        return b""
