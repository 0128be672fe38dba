"""Reads WARC files (ISO 28500:2017, WARC 1.1), plain or gzipped.

Other libraries stop at the first damaged record, or read what follows as a part of it.  This reader reports the damage and
finds the next record: by the next member of gzip, or by the next line that begins a record.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dedup.contrib.archives.capture import MAX_BODY, Capture, Item, Reader, is_judged, moment
from dedup.contrib.archives.http import charset_of, kind_of, parse
from dedup.contrib.archives.streams import Member, members
from dedup.settings import Types

#: Bytes of the head of a record, and of one of its lines, at most.
MAX_HEAD, MAX_LINE = 1 << 18, 1 << 16
#: Digits of the length of a record at most: no file is longer.
MAX_DIGITS = 18
_FIRST = re.compile(rb"WARC/\d\.\d+\r?\n")
_ENDS = re.compile(rb"\r?\n\r?\n")


def is_warc(begins: bytes) -> bool:
    """Returns whether these bytes begin a record."""
    return _FIRST.match(begins.lstrip(b"\r\n")) is not None


@dataclass(frozen=True, slots=True)
class Record:
    """A record, byte for byte as it is in its file."""

    head: bytes  #: its lines and the empty line after them
    fields: dict[str, str]  #: by their names in lower case
    block: bytes | None  #: None if it is too long to be read
    #: Where it begins and ends in the file.  None if it shares a member of gzip, or if it is not packed and the rest of
    #: the file is.
    span: tuple[int, int] | None


class Warc(Reader):
    """Reads a WARC file."""

    def __init__(self, path: Path, name: str = "", types: Types = "html") -> None:
        super().__init__(path, name)
        self._types = types

    def __iter__(self) -> Iterator[Item]:
        """Yields its records."""
        with self.path.open("rb", buffering=1 << 17) as self._file:
            for member in members(self._file, is_warc, lambda begins: not is_warc(begins)):
                yield from self._items(member)

    def _items(self, member: Member) -> Iterator[Item]:
        told = False
        while found := _next(member):
            told = found.damaged
            yield found if found.damaged else self._item(found.raw)
        if member.broken and not told:
            yield Item(None, None, "packed", damaged=True)

    def _item(self, record: Record) -> Item:
        """Returns a record as an item: with a capture, if it holds a page."""
        fields = record.fields
        kind = fields["warc-type"]
        if kind not in ("response", "resource", "conversion"):
            return Item(record, None, "kind")
        if record.block is None:
            return Item(record, None, "large")
        if kind == "response":
            response = parse(record.block)
            if response is None:
                return Item(record, None, "not_http")
            if response.status != 200:
                return Item(record, None, "status")
            _, content_type, body, whole, payload, _ = response
        else:
            content_type, body, whole, payload = fields.get("content-type", ""), record.block, True, None
        read = kind_of(content_type, body)
        if not is_judged(read, self._types):
            return Item(record, None, "type")
        url = fields.get("warc-target-uri", "").strip("<>")
        if not url:
            return Item(record, None, "no_url")
        whole = whole and fields.keys().isdisjoint(("warc-truncated", "warc-segment-number"))
        date, name = moment(fields.get("warc-date")), fields.get("warc-record-id", "")
        return Item(record, Capture(url, body, read, charset_of(content_type), date, name, whole, payload))


def _next(member: Member) -> Item | None:
    """Reads the next record, or damage; returns None at the end."""
    line = b"\n"
    while not line.strip():
        if not (line := member.line(MAX_LINE)):
            return None
    start = member.tell() - len(line)
    if not _FIRST.fullmatch(line):
        return _damage(member, "no_record", line)
    head, fields = _head(member, line)
    length = fields.get("content-length", "")
    if "warc-type" not in fields or not (length.isascii() and length.isdigit()):
        return _damage(member, "head", head)
    count = int(length) if len(length) <= MAX_DIGITS else 10**MAX_DIGITS
    mark = None
    if count <= MAX_BODY:  # where its length is wrong, nothing of it is taken
        got, end = min(member.ready(count), count), count
    else:
        mark = member.mark()
        got, end = member.skip(count) if member.may_have(count) else 0, 0
    is_last = member.ready(end + 5) < end + 5
    rest = member.peek(end, 4)
    gap = _ENDS.match(rest)
    if got < count or not (gap or (is_last and not rest.strip(b"\r\n"))):
        if mark is not None:
            member.go_to(mark)
        cut = got < count and member.broken
        return _damage(member, "cut_off" if cut else "length", head)
    block = member.take(count) if mark is None else None
    member.take(gap.end() if gap else len(rest))
    span = None
    if not member.packed:
        span = (start, member.tell()) if not member.start else None
    elif member.is_at_end():
        if member.broken:
            return Item(head + (block or b""), None, "packed", damaged=True)
        span = (member.start, member.end or 0) if not start and member.last == member.start else None
    return Item(Record(head, fields, block, span))


def _head(member: Member, first: bytes) -> tuple[bytes, dict[str, str]]:
    """Reads the head of a record and its fields.  If a field occurs twice, the first one counts."""
    lines, fields, size, last = [first], dict[str, str](), 0, ""
    while (line := member.line(MAX_LINE)).strip() and size < MAX_HEAD:
        lines.append(line)
        size += len(line)
        text = line.decode("utf-8", "replace")
        if text[0] in " \t" and last:  # it goes on with the line before
            fields[last] += " " + text.strip()
            continue
        name, _, value = text.partition(":")
        last = name.strip().lower()
        fields.setdefault(last, value.strip())
    lines.append(line)
    return b"".join(lines), fields


def _damage(member: Member, why: str, begins: bytes) -> Item:
    """Takes the damaged bytes up to the next record of the member.  If there are more than `MAX_BODY`, the rest is passed over."""
    taken, size = [begins], len(begins)
    while (line := member.next_line(MAX_LINE)) and not _FIRST.fullmatch(line):
        member.take(len(line))
        size += len(line)
        if size <= MAX_BODY:
            taken.append(line)
    return Item(b"".join(taken), None, why, damaged=True)
