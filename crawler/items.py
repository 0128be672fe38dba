"""The item that a crawl yields."""

from dataclasses import dataclass


@dataclass(slots=True)
class PageItem:
    """A page that was kept."""

    url: str
    status: int
    title: str | None
    depth: int  #: links from the start
    fingerprint: str | None  #: simhash, 16 hex digits; None if the page could not be judged
    fetched: str  #: the time, ISO 8601, UTC
