"""Reads pages from rows, whatever format the rows are stored in."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from dedup.archive.capture import NEVER, Capture, Kind, moment, written
from dedup.page.charset import decode

#: The fields that are read.  A row is a page if it has html or text; html wins.
FIELDS = ("url", "html", "text", "fetched")


class FieldNames(NamedTuple):
    """The fields that a caller may name."""

    id: str = "id"  #: what a page without a URL is called
    key: str = ""  #: of pages alike, the one of the greatest number, or of the latest time, is kept

    @property
    def fields(self) -> list[str]:
        """Returns the names of all fields that are read, each once."""
        return [*dict.fromkeys((*FIELDS, self.id, *filter(None, [self.key])))]


USUAL = FieldNames()


def capture(row: Mapping[str, Any], where: str = "", named: FieldNames = USUAL) -> Capture | None:
    """Returns the page in a row; None if there is none.  ``where`` is its name if it has neither a URL nor an id.

    >>> capture({"url": "http://example.org/", "text": "a < b", "price": 7})
    Capture(url='http://example.org/', body='a < b', kind='text', ...)
    >>> capture({"text": "a < b", "id": 17}).name, capture({"text": "a < b"}, "texts.jsonl:1").name
    ('17', 'texts.jsonl:1')
    """
    url, html, text, fetched = map(row.get, FIELDS)
    body = html if html is not None else text
    if not isinstance(body, str | bytes):
        return None
    kind: Kind = "text" if html is None else "html"
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


def row(capture: Capture) -> dict[str, str]:
    """Returns the row as which a page of another format is written."""
    body, fetched = decode(capture.body, capture.encoding), written(capture.fetched)
    field = "html" if capture.kind == "html" else "text"
    return {"url": capture.url, **({"fetched": fetched} if fetched else {}), field: body}
