"""The manner of a request: all that it asks with besides its URL, so that another one is answered in the same way."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from dedup.scrapy.requests.carried import is_known
from dedup.scrapy.requests.visits import OWN, TAB

#: Headers that ask for less than a page, or say where its URL was found.
_NOT_ASKED = frozenset({b"If-Modified-Since", b"If-None-Match", b"Range", b"Referer"})
#: Known keys of meta that say what has become of a request, or which is of no use to another one.
_STATES = frozenset(
    {
        TAB,
        "cache_timestamp",
        "cached_response",
        "depth",
        "download_latency",
        "is_start_request",
        "link_text",
        "playwright_include_page",  # nobody would close the page
        "proxy_retry_times",
        "rule",
    }
)
#: Seconds that the filter waits for an answer of its own, since pages may wait with it: at most that, or TIMES as long as the
#: page took beside which it asks, and never longer than the crawl does.
PATIENCE, TIMES = 10.0, 2
_PREFIXES = ("_callback", "_retry", "dedup", "redirect_", "retry_")


class Manner(NamedTuple):
    """How a page was asked for."""

    #: With the cookies that were sent.
    headers: tuple[tuple[bytes, tuple[bytes, ...]], ...]
    #: What says how a page is fetched: proxy, browser, credentials, timeouts.
    meta: tuple[tuple[str, Any], ...]


def manner_of(request: Request) -> Manner | None:
    """Returns the manner of a request that was sent; None if it may have changed something, or has a body."""
    if request.method != "GET" or request.body:
        return None
    headers = ((name, tuple(values)) for name, values in request.headers.items() if name not in _NOT_ASKED)
    return Manner(tuple(sorted(headers)), tuple(_how(request.meta.items())))


def _how(items: Iterable[tuple[Any, Any]]) -> Iterable[tuple[str, Any]]:
    return (
        (key, value)
        for key, value in items
        if is_known(key) and key not in _STATES and not key.startswith(_PREFIXES)
    )


def asking(url: str, request: Request, manner: Manner) -> Request:
    """Returns the filter's own request for a page, in a manner; what is the user's in ``meta`` is that of a request of his.

    It is answered in due time, or not at all; not by a cache, unless the page beside which it asks came from there: what a
    cache answers twice says nothing of what changes.  Its cookies are those that were sent, and neither it nor its answer
    changes the cookies of the crawl.
    """
    own = {key: value for key, value in request.meta.items() if not is_known(key)}
    meta = own | dict(manner.meta) | {"dont_merge_cookies": True, "dedup": False, OWN: True}
    if "download_latency" in request.meta:
        meta["dont_cache"] = True
    meta["download_timeout"] = _patience(request, meta.get("download_timeout"))
    return request.replace(
        url=url,
        headers=dict(manner.headers),
        cookies={},
        meta=meta,
        callback=NO_CALLBACK,
        errback=None,
        dont_filter=True,
        flags=[],
    )


def _patience(request: Request, timeout: Any) -> float:
    """Returns the seconds for an answer; from its being sent on, so that neither queues nor delays count."""
    took = request.meta.get("download_latency")
    patience = max(PATIENCE, TIMES * took) if isinstance(took, int | float) else PATIENCE
    return min(patience, timeout) if isinstance(timeout, int | float) and timeout > 0 else patience
