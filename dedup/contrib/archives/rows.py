"""Reads pages from rows, whatever format the rows are stored in."""

import json
from collections.abc import Mapping
from contextlib import suppress
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

    @property
    def fields(self) -> list[str]:
        """Returns the names of all fields that are read, each once."""
        return [*dict.fromkeys((*FIELDS, self.id, *filter(None, [self.key, self.text])))]


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
    own = row.get(named.id)
    name = "" if isinstance(url, str) and url else where if own in (None, "") else str(own)
    return Capture(
        url if isinstance(url, str) else "",
        body,
        kind,
        None,
        moment(fetched),
        name=name,
        key=_key(row.get(named.key)),
    )


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
    with suppress(ValueError, RecursionError):
        if isinstance(item.raw, bytes) and isinstance(found := json.loads(item.raw), dict):
            return found
    return dict(row(item.capture)) if item.capture else None


def shown(value: Any) -> str:
    """Returns a value that JSON has not, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def row(capture: Capture) -> dict[str, str]:
    """Returns the row as which a page of another format is written."""
    body, fetched = decode(capture.body, capture.encoding), written(capture.fetched)
    field = "html" if capture.kind == "html" else "text"
    return {"url": capture.url, **({"fetched": fetched} if fetched else {}), field: body}
