"""The headers of conditional requests (RFC 9110, section 13).

A server that has sent an ETag or a date with a page may answer "not modified" when it is asked again, and send no page.
"""

import inspect
import re
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

from scrapy import Request, Spider
from scrapy.http import Response

from dedup.contrib.changes.validators import Held
from dedup.scrapy.requests.digests import digest

#: Characters of the longest header that is sent back.
MAX_HEADER = 1_000
#: Headers with which a request asks for less than the page.
_CONDITIONS = frozenset(
    {b"If-Match", b"If-Modified-Since", b"If-None-Match", b"If-Range", b"If-Unmodified-Since", b"Range"}
)
#: What doesn't count in an ETag: that it is weak, and how the page was packed, which servers add.
_NOT_COMPARED = re.compile(r'^W/|(?:--?|;)(?:gzip|br|deflate|zstd)(?="$)')


class Terms(NamedTuple):
    """The validators that a server has sent with a page: with them it can tell later whether the page has changed."""

    etag: str
    modified: str
    vary: str  #: names of headers, divided by commas
    search: str = ""  #: No-Vary-Search, which is not sent again with "not modified"


def said(response: Response) -> Terms | None:
    """Returns what a server has sent by which it can tell whether a page has changed; None if it has sent nothing.

    A date counts only if the page had not changed for a second when it was sent (RFC 9110, section 8.8.2.2): within that
    second it may change again.

    >>> dates = {"Date": "Mon, 02 Nov 2026 10:00:00 GMT", "Last-Modified": "Sun, 01 Nov 2026 10:00:00 GMT"}
    >>> said(Response("http://a.org/", headers={"ETag": '"7"', "Vary": "Cookie, Accept"} | dates))
    Terms(etag='"7"', modified='Sun, 01 Nov 2026 10:00:00 GMT', vary='accept,cookie', search='')
    >>> said(Response("http://a.org/", headers=dates | {"Last-Modified": dates["Date"]}))
    >>> said(Response("http://a.org/", headers={"ETag": '"7"', "Vary": "*"}))
    """
    etag, modified = _only(response, "ETag"), _only(response, "Last-Modified")
    if modified and not _is_older(modified, _only(response, "Date")):
        modified = ""
    names = b",".join(response.headers.getlist("Vary")).decode("latin-1").lower().split(",")
    vary = ",".join(sorted({name.strip() for name in names} - {""}))
    if not (etag or modified) or "*" in vary or len(vary) > MAX_HEADER:
        return None
    search = b",".join(response.headers.getlist("No-Vary-Search")).decode("latin-1")
    return Terms(etag, modified, vary, search if len(search) <= MAX_HEADER else "")


def _only(response: Response, name: str) -> str:
    """Returns a header that can be sent back unchanged; "" if it is missing, or stands there twice."""
    values = response.headers.getlist(name)
    value = values[0].decode("latin-1").strip() if len(values) == 1 else ""
    return value if len(value) <= MAX_HEADER and value.isascii() and value.isprintable() else ""


def _is_older(modified: str, sent: str) -> bool:
    try:
        return (parsedate_to_datetime(sent) - parsedate_to_datetime(modified)).total_seconds() >= 1
    except (ValueError, TypeError, OverflowError):
        return False


def conditions(held: Held) -> dict[str, str]:
    """Returns the headers that ask for a page only if it has changed."""
    named = {"If-None-Match": held.etag, "If-Modified-Since": held.modified}
    return {name: value for name, value in named.items() if value}


def is_conditional(request: Request) -> bool:
    """Returns whether a request asks for less than the page already."""
    return not _CONDITIONS.isdisjoint(request.headers)


def is_of(response: Response, held: Held) -> bool:
    """Returns whether "not modified" is about the page that is held: an ETag in the answer has to be that page's."""
    etag = _only(response, "ETag")
    return not (etag and held.etag) or _NOT_COMPARED.sub("", etag) == _NOT_COMPARED.sub("", held.etag)


def digest_of(request: Request, vary: str, *more: object) -> int | None:
    """Returns a number that requests share if the headers that ``vary`` names, and ``more``, are equal; SQLite can hold it."""
    named = [(name, request.headers.getlist(name)) for name in vary.split(",") if name]
    number = digest((named, more))
    return None if number is None else number - (1 << 63)


def maker_of(spider: Spider) -> int | None:
    """Returns a digest of what decides which links a spider follows from a page: its code and its arguments.

    Arguments of a spider are texts.  Those that begin with "_" come from the service that starts it.
    """
    files = [_file_of(cls) for cls in type(spider).__mro__ if cls not in Spider.__mro__]
    texts = {
        name: value
        for name, value in vars(spider).items()
        if isinstance(value, str) and not name.startswith("_")
    }
    return digest([type(spider).__qualname__, files, texts])


def _file_of(cls: type) -> bytes:
    """Returns what is in the file of a class; b"" if it has none."""
    try:
        return Path(inspect.getfile(cls)).read_bytes()
    except (OSError, TypeError):
        return b""
