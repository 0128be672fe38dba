"""A capture is a page as an archive holds it.  Readers yield items: captures, other records, and damage."""

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from msgspec.structs import replace

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.page.charset import decode
from dedup.page.html import Page
from dedup.page.preference import is_preference, preference
from dedup.page.read import read_body
from dedup.settings import Types

Kind = Literal["html", "text", "json", "body"]

#: Bytes of a page that are read at most; a longer one is passed on unread.
MAX_BODY = 16 << 20
#: The time of a page whose time is not known: after all others.
NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Capture:
    """A page as it was fetched once."""

    url: str  #: "" if it is not known
    body: bytes | str
    kind: Kind = "html"  #: how it is read
    encoding: str | None = None  #: its character set, if it is known
    fetched: int = NEVER  #: microseconds since 1970
    record_id: str = ""  #: what its archive calls it
    whole: bool = True  #: true if nothing of it is missing
    payload: bytes | None = None  #: its bytes as they were sent, where the body was unpacked
    name: str = ""  #: of a page without a URL: what it is called
    key: float | None = None  #: of those alike, the one of the greatest is kept, if that is asked for

    def turn(self, tokens: int, keep: str, canonical: str = "") -> float:
        """Returns the first sort key of the order in which pages are judged.

        Pages with the same key are judged by time, then by URL, then by input and place.

        ``keep`` is "first", "newest", a preference (`dedup.page.preference`), or the name of a field whose values are
        the keys.  ``canonical`` is the URL that the page says it should be known by.  Raises what a preference does.

        >>> page = Capture("http://example.org/", "", fetched=60_000_000)
        >>> page.turn(120, "first"), page.turn(120, "newest"), page.turn(120, "longest"), page.turn(120, "score")
        (0.0, -60000000.0, -120.0, inf)
        """
        if keep == "first":
            return 0.0
        if is_preference(keep):
            return -float(preference(keep)(self.url, canonical, tokens))
        known = (None if self.fetched == NEVER else float(self.fetched)) if keep == "newest" else self.key
        return math.inf if known is None else -known


class Item(NamedTuple):
    """What a reader yields: a capture, another record, which is copied to the output, or damage, which is not."""

    raw: Any  #: what is written where it is passed on, as its format has it
    capture: Capture | None = None
    why: str = ""  #: why there is no capture
    damaged: bool = False


class Reader(ABC):
    """Reads one input.  It may be read again, and then yields the same items in the same order."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self.name = name or str(path)  #: as messages call it
        self.size = os.path.getsize(path)  #: bytes
        self._file: BinaryIO | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """Yields the items of the input.  Damage is an item, too, and reading goes on behind it.  Raises OSError."""

    def tell(self) -> int:
        """Returns how many bytes of the input have been read."""
        return self._file.tell() if self._file and not self._file.closed else 0


def is_judged(kind: Kind, types: Types) -> bool:
    """Returns whether pages of this kind are judged: archives also hold images, scripts and the like."""
    return types == "all" or kind == "html" or (types == "text" and kind != "body")


def moment(value: object) -> int:
    """Reads the time at which a page was fetched, and returns it in microseconds since 1970.

    The value may be a time in ISO 8601 (UTC unless it says otherwise), a datetime, or a number of seconds.  Returns
    `NEVER` for anything else.

    >>> moment("1970-01-01T00:01:00Z"), moment(60), moment("yesterday") == NEVER
    (60000000, 60000000, True)
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            value = aware.timestamp()
        found = round(float(value) * 1e6) if isinstance(value, int | float) else NEVER
    except (ValueError, OverflowError):
        return NEVER
    return found if -NEVER < found < NEVER else NEVER


def written(fetched: int) -> str:
    """Returns the time in ISO 8601, to the second; "" if it is not known, or if no date can have that year.

    >>> written(60_000_000), written(NEVER)
    ('1970-01-01T00:01:00Z', '')
    """
    try:
        found = "" if fetched == NEVER else datetime.fromtimestamp(fetched // 1_000_000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
    return found.replace("+00:00", "Z")


def fingerprint(capture: Capture, detector: Detector) -> tuple[Page, Fingerprint]:
    """Returns the page and the fingerprint that a crawl would have made of it."""
    page = _read(capture, detector)
    found = detector.fingerprint_page(page)
    return page, found if capture.url else replace(found, own=None)  # of no host, so nothing is its host's


def payload_digest(capture: Capture) -> bytes:
    """Returns the SHA-1 of the bytes of a page: most WARC files state the same digest."""
    sent = capture.body if capture.payload is None else capture.payload
    return hashlib.sha1(
        sent if isinstance(sent, bytes) else sent.encode("utf-8", "replace"), usedforsecurity=False
    ).digest()


def _read(capture: Capture, detector: Detector) -> Page:
    if not capture.whole:
        return Page([], 0, "partial")
    if capture.kind == "body":
        body = capture.body if isinstance(capture.body, bytes) else capture.body.encode("utf-8", "replace")
        return read_body(body)
    text = decode(capture.body, capture.encoding)
    if capture.kind == "html":
        return detector.read(text, capture.url)
    return detector.read_text(text, capture.url, is_json=capture.kind == "json")
