"""Decides which hosts a command may ask: only those that it was given, and internal addresses only if they were meant.

The URLs of a log, or of a redirect, are chosen by strangers.  They must not make this machine ask what only it, or
its network, can reach.
"""

import ipaddress
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer

from dedup.printing import printable
from dedup.scrapy.compat import accept_spider

#: Its place among the middlewares: before that of robots.txt, so that of a refused host not even that is asked.
ORDER = 50
#: The field of a request's meta with the URL that the command asks for, from which a redirect may have led away.
ASKED = "dedup_asked"


class RefusedError(IgnoreRequest):
    """A host may not be asked; the text says why."""


def is_internal(address: str) -> bool:
    """Returns whether an IP address may be reached from this machine or its network only.

    >>> [is_internal(address) for address in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "224.0.0.1")]
    [True, True, True, True, True]
    >>> [is_internal(address) for address in ("::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1")]
    [True, True, True, True, True]
    >>> is_internal("93.184.215.14"), is_internal("2606:2800:21f:cb07:6820:80da:af6b:8b2c")
    (False, False)
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_internal(str(inner))
    return found.is_multicast or not found.is_global


#: Where IPv6 reaches the whole of IPv4 (RFC 6052).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@accept_spider
class Doorkeeper:
    """A downloader middleware; its crawler's spider has ``urls``, which are asked for, and ``internal``.

    If ``internal`` is true, the very hosts and ports of these URLs may be internal.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._turns: dict[str, DeferredLock] = {}  # by host

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Is called by Scrapy."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Raises `RefusedError`."""
        spider: Any = self._crawler.spider
        asked = request.meta.get(ASKED)
        urls: Iterable[str] = [asked] if asked else spider.urls  # robots.txt is for any of them
        name = urlparse_cached(request).hostname or ""
        if not any(_is_within(name, Request(url)) for url in urls):
            raise RefusedError(f"it redirects to another host, {printable(name)}")
        if spider.internal and any(_door(request) == _door(Request(url)) for url in urls):
            return
        # Of two that ask at once, the later answer would take the place of one that was found good.
        turn = self._turns.setdefault(name, DeferredLock())
        await maybe_deferred_to_future(turn.acquire())
        try:
            addresses = await _resolve(name)
        finally:
            turn.release()
        if not addresses:
            raise RefusedError(f"{printable(name)} has no known address")
        if internal := [address for address in addresses if is_internal(address)]:
            raise RefusedError(f"{printable(name)} has an internal address, {internal[0]}")


def _is_within(name: str, asked: Request) -> bool:
    """Returns whether a host is the one that was asked, or a subdomain."""
    return f".{name}".endswith(f".{urlparse_cached(asked).hostname}")


def _door(request: Request) -> tuple[str | None, int | None]:
    """Host and port."""
    url = urlparse_cached(request)
    return url.hostname, url.port or {"http": 80, "https": 443}.get(url.scheme)


@implementer(IResolutionReceiver)
class _Addresses:
    """Takes the addresses of a host."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.complete: Deferred[None] = Deferred()

    def resolutionBegan(self, resolution: object) -> None:  # noqa: N802
        """Is of no use here."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        self.found.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        self.complete.callback(None)


async def _resolve(name: str) -> list[str]:
    """Returns the addresses of a host.  Scrapy's resolver holds them, so that the connection is made to one of these."""
    reactor: Any = import_module("twisted.internet.reactor")
    addresses = _Addresses()
    reactor.nameResolver.resolveHostName(addresses, name)
    await maybe_deferred_to_future(addresses.complete)
    return addresses.found
