"""Reads HTTP responses as archives store them: byte by byte as the server sent them."""

import re
from typing import NamedTuple

from dedup.contrib.archives.capture import MAX_BODY, Kind
from dedup.page.codings import unpack

#: Media types of pages, and of text without markup; the crawl has the same (`dedup.scrapy.requests.visits`).
HTML = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
TEXTS = frozenset({"text/plain", "text/markdown", "text/x-markdown"})

#: The end of a head.
_GAP = re.compile(rb"\r?\n\r?\n")


class Response(NamedTuple):
    """A response, unpacked."""

    status: int
    type: str  #: its Content-Type
    body: bytes
    whole: bool  #: true if the body came to its end
    payload: bytes | None  #: the body as it was sent, if it was packed
    #: By their names in lower case; if a name stands more than once, with commas between.
    fields: dict[bytes, bytes]


def parse(message: bytes) -> Response | None:
    """Returns the response in a message; None if there is none.

    >>> parse(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\n\\r\\n<p>Hello")
    Response(status=200, type='text/html', body=b'<p>Hello', whole=True, payload=None, fields={...})
    """
    start = head(message)
    first, *lines = start.rstrip().split(b"\n")
    version, _, rest = first.partition(b" ")
    if not version.startswith(b"HTTP/") or not rest[:3].isdigit():
        return None
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        fields[name] = fields[name] + b", " + value if name in fields else value
    sent = body = message[len(start) :]
    codings = _listed(fields, b"content-encoding") + _listed(fields, b"transfer-encoding")
    length, whole = fields.get(b"content-length", b""), True
    if length.isdigit() and "chunked" not in codings:
        whole = len(body) >= int(length[:20])  # it is longer where an archive has unpacked it
    for coding in reversed(codings):
        packed = body
        body, ended = _unchunk(body) if coding == "chunked" else unpack(coding, body, MAX_BODY)
        # A body that is not packed so is taken unchanged: its stated length is that of what was once sent.
        whole = bool(ended) and (body is packed or whole)
    kind = fields.get(b"content-type", b"").partition(b",")[0].decode("latin-1")
    return Response(int(rest[:3]), kind, body, whole, None if body is sent else sent, fields)


def head(message: bytes) -> bytes:
    """Returns the head of a message, with the empty line at its end.

    >>> head(b"HTTP/1.1 200 OK\\r\\n\\r\\n<p>Hello")
    b'HTTP/1.1 200 OK\\r\\n\\r\\n'
    """
    gap = _GAP.search(message)
    return message[: gap.end()] if gap else message


def _listed(fields: dict[bytes, bytes], name: bytes) -> list[str]:
    """Returns the codings that a field names, in the order in which they were applied."""
    named = fields.get(name, b"").decode("latin-1").lower().split(",")
    return [coding for each in named if (coding := each.strip()) not in ("", "identity")]


def _unchunk(body: bytes) -> tuple[bytes, bool]:
    """Joins a body in chunks, and says whether the last chunk is there.  A body without chunks is returned unchanged.

    >>> _unchunk(b"5\\r\\nHello\\r\\n0\\r\\n\\r\\n"), _unchunk(b"5\\r\\nHel"), _unchunk(b"<p>Hello")
    ((b'Hello', True), (b'Hel', False), (b'<p>Hello', True))
    >>> _unchunk(b"5\\r\\nHello\\r\\n-1\\r\\n"), _unchunk(b"-1\\n is a number")
    ((b'Hello', False), (b'-1\\n is a number', True))
    """
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\n", at, at + 100)
        try:
            size = int(body[at:end].partition(b";")[0].strip() if end >= 0 else b"", 16)
            if size < 0:
                raise ValueError
        except ValueError:
            # Some archives unpack the body and leave the header.
            return (b"".join(parts), False) if parts else (body, True)
        if size == 0:
            return b"".join(parts), True
        parts.append(body[end + 1 : end + 1 + size])
        at = end + 1 + size
        if at > len(body):
            return b"".join(parts), False
        at = body.find(b"\n", at, at + 4) + 1 or at


def kind_of(content_type: str, body: bytes) -> Kind:
    """Returns how a body of this media type is read."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in HTML:
        return "html"
    if kind == "application/json" or kind.endswith("+json"):
        return "json"
    if kind in TEXTS:
        return "text"
    start = body[:1024].lstrip().lower()
    return (
        "html"
        if not kind and start.startswith((b"<!doctype html", b"<html", b"<head", b"<title"))
        else "body"
    )


def charset_of(content_type: str) -> str | None:
    """Returns the character set that a media type names.

    >>> charset_of('text/html; charset="cp1252"'), charset_of("text/html")
    ('cp1252', None)
    """
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None
