"""Tells what requests carry to their callbacks: ``cb_kwargs``, and the keys of ``meta`` that no framework puts there.

A callback that is handed a half-made item makes another item of the same page for each, and so does another callback.
So pages are compared only where their requests carried equal data to the same callback.

Data are what the spider gave to a request.  Downloader middlewares add to it, scrapy-poet for one, so its keys are noted
when the request leaves the scheduler, and what such a middleware returns for it, as on a redirect, carries no others.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from secrets import randbits
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request

from dedup.filter import Stats
from dedup.filter.stats import count
from dedup.printing import inert
from dedup.scrapy.requests.callbacks import callback_of
from dedup.scrapy.requests.digests import digest

#: Keys of meta that say how a page is fetched, and those that Scrapy, its plug-ins and this filter put there.
_KNOWN = re.compile(
    r"""_(auth_proxy|callback|depth|dont_cache|scheme_proxy)$ | _(ban|retry|rotating_prox|scrapy_poet|splash|zyte)
    | (allow_offsite|bindaddress|cache_timestamp|cached_response|cookiejar|depth|depth_reset|http_auth_domain)$
    | ftp_(local_filename|passive|password|user)$ | http_(pass|user)$ | impersonate(_args)?$ | is_(secure|start_request)$
    | (link_text|max_retry_times|priority_adjust|proxy|proxy_retry_times|referrer_policy|rule|verbatim_url)$
    | autothrottle_ | crawlera | dedup | deltafetch_ | dont_ | download_ | handle_httpstatus | playwright | pyppeteer
    | redirect_ | retry_ | scrapy_poet | scrapy-zyte | selenium | splash | zyte_""",
    re.VERBOSE,
)
#: In the meta of a scheduled request that a downloader middleware has made of another one: the names of what that carried.
CARRIED = "dedup_carried"
#: How many values, in all and of each key, and how many keys are told apart for the summary.
MAX_VALUES, MAX_KEYS = 10_000, 30
#: How many keys the summary names.
NAMED = 5


@lru_cache(maxsize=1000)
def is_known(key: object) -> bool:
    """Returns whether a key of meta is known, and so holds no data of the user.

    >>> is_known("download_slot"), is_known("item")
    (True, False)
    """
    return isinstance(key, str) and _KNOWN.match(key) is not None


class Carried:
    """Tells what requests carry by a number each, and counts it; nothing of it but names is held in memory."""

    def __init__(self, stats: Stats, ignored: Iterable[str] = ()) -> None:
        """``ignored`` are keys that don't matter."""
        self._stats = stats
        self._ignored = frozenset(ignored)
        self._values = set[int]()
        self._by_key = defaultdict[str, set[int]](set)
        self._noted = WeakKeyDictionary[Request, list[str]]()
        self._numbers = WeakKeyDictionary[Request, int]()

    def note(self, request: Request) -> None:
        """Notes what is carried by a request that leaves the scheduler."""
        names = request.meta.pop(CARRIED, None)
        self._noted[request] = (
            names if isinstance(names, list) else [name for name, _ in self._items(request)]
        )

    def hand_on(self, request: Request, made: Request) -> None:
        """Has the request that a downloader middleware has made of a noted one carry the same."""
        if (noted := self._noted.get(request)) is not None:
            made.meta[CARRIED] = noted

    def number(self, request: Request) -> int:
        """Returns a number that requests share if they carry equal data to one callback, here and in other processes.

        It is 0 if they carry nothing to the default callback.  What can't be looked through, such as a response, or is
        very large, is equal to nothing.
        """
        if (number := self._numbers.get(request)) is None:
            number = self._numbers[request] = self._number(request)
        return number

    def has_data(self, request: Request) -> bool:
        """Returns whether the spider has given a request data, in its callback or beside that."""
        noted = self._noted.get(request)
        return any(self._items(request) if noted is None else noted) or bool(callback_of(request)[1])

    def _number(self, request: Request) -> int:
        callback, held = ("", []) if "callback" in self._ignored else callback_of(request)
        noted = self._noted.get(request)
        items = self._items(request)
        found = {name: digest(value) for name, value in items if noted is None or name in noted}
        if held:
            found["the callback"] = digest(held)
        if not found:
            return (digest(callback) or 0) if callback else 0
        number = 0 if None in found.values() else digest((callback, found)) or 0
        number = number or randbits(63) + 1
        count(self._stats, "carries")
        _note(self._values, number)
        for name, value in found.items():
            if name in self._by_key or len(self._by_key) < MAX_KEYS:
                _note(self._by_key[name], value or number)
        return number

    def _items(self, request: Request) -> Iterator[tuple[str, Any]]:
        """Yields the names and the values of what counts."""
        for key, value in request.cb_kwargs.items():
            if key not in self._ignored:
                yield f"cb_kwargs {key}", value
        for key, value in request.meta.items():
            if not is_known(key) and key not in self._ignored:
                yield f"meta {key}", value

    def close(self) -> None:
        """Puts into the stats how many different things were carried, and which keys have most of them."""
        if self._values:
            self._stats.set_value("dedup/carries/different", len(self._values))
            most = sorted(self._by_key.items(), key=lambda item: -len(item[1]))[:NAMED]
            named = [f"{inert(name.partition(' ')[2])} ({len(values):,})" for name, values in most]
            self._stats.set_value("dedup/carries/keys", ", ".join(named))


def _note(values: set[int], number: int) -> None:
    if len(values) < MAX_VALUES:
        values.add(number)
