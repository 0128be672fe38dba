"""Rows that have pages, whatever they are stored in: which of their fields say what."""

from collections.abc import Mapping
from typing import Any

from dedup.archive.capture import Capture, Kind, moment
from dedup.page.charset import decode

__all__ = ["FIELDS", "capture", "row"]

#: The fields that are read.  A row is a page if it has html or text; html wins.
FIELDS = ("url", "html", "text", "fetched")


def capture(row: Mapping[str, Any]) -> Capture | None:
    """The page in a row; None if there is none.

    >>> capture({"url": "http://example.org/", "text": "a < b", "price": 7})
    Capture(url='http://example.org/', body='a < b', kind='text', ...)
    """
    url, html, text, fetched = map(row.get, FIELDS)
    body = html if html is not None else text
    if not isinstance(body, str | bytes):
        return None
    kind: Kind = "text" if html is None else "html"
    return Capture(url if isinstance(url, str) else "", body, kind, None, moment(fetched))


def row(capture: Capture, fetched: str) -> dict[str, str]:
    """The row that a page of another format is written as."""
    body = decode(capture.body, capture.encoding)
    field = "html" if capture.kind == "html" else "text"
    return {"url": capture.url, **({"fetched": fetched} if fetched else {}), field: body}
