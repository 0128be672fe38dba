"""Reads pages from rows, whatever format the rows are stored in."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from dedup.contrib.archives.capture import NEVER, Capture, Item, Kind, moment, written
from dedup.page.charset import decode

#: The fields that are read.  A row is a page if it has html or text; html wins.
FIELDS = ("url", "html", "text", "fetched")


class FieldNames(NamedTuple):
    """The fields that a caller may name."""

    id: str = "id"  #: what a page without a URL is called
    key: str = ""  #: of pages alike, the one of the greatest number, or of the latest time, is kept
    text: str = ""  #: the page, as text; "": html, or else text


USUAL = FieldNames()


def capture(row: Mapping[str, Any], where: str = "", named: FieldNames = USUAL) -> Capture | None:
    """Returns the page in a row; None if there is none.  ``where`` is its name if it has neither a URL nor an id.

    >>> capture({"url": "http://example.org/", "text": "a < b", "price": 7})
    Capture(url='http://example.org/', body='a < b', kind='text', ...)
    >>> capture({"text": "a < b", "id": 17}).name, capture({"text": "a < b"}, "texts.jsonl:1").name
    ('17', 'texts.jsonl:1')
    """
    url, html, _, fetched = map(row.get, FIELDS)
    is_html = html is not None and not named.text
    body = html if is_html else row.get(named.text or "text")
    if not isinstance(body, str | bytes):
        return None
    kind: Kind = "html" if is_html else "text"
    url = url if isinstance(url, str) else ""
    own = row.get(named.id)
    name = "" if url else where if own in (None, "") else str(own)
    return Capture(url, body, kind, fetched=moment(fetched), name=name, key=_key(row.get(named.key)))


def _key(value: object) -> float | None:
    """Returns a number, or a time as a number; None for anything else."""
    try:
        found = float(value) if isinstance(value, int | float) else float(moment(value))
    except OverflowError:
        return None
    return found if isfinite(found) and found < NEVER else None


def as_row(item: Item) -> dict[str, Any] | None:
    """Returns an item of any format as a row, with all fields that it has; None if it can't be one."""
    if isinstance(item.raw, dict):
        return item.raw
    if isinstance(item.raw, bytes):
        return parsed(item.raw)
    if item.capture is None:
        return None
    page, fetched = item.capture, written(item.capture.fetched)
    field = "html" if page.kind == "html" else "text"
    return {
        "url": page.url,
        **({"fetched": fetched} if fetched else {}),
        field: decode(page.body, page.encoding),
    }


def parsed(line: bytes) -> dict[str, Any] | None:
    """Returns the JSON object of a line; None if it holds none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def shown(value: Any) -> str:
    """Returns a value that JSON has not, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
