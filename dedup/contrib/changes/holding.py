"""What is stored of a page so that it need not be sent again.

Its words are in the history.  The links that were followed from it are stored as requests, if all of them can be packed
and none holds what belongs to one crawl alone: cookies, headers, a body, a session, a proxy.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Struct
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from dedup.contrib.changes.validators import Held
from dedup.filter import Visit
from dedup.page.heading import address_words, place, shared
from dedup.page.html import Page
from dedup.page.ids import strip_session
from dedup.scrapy.requests.packing import Packing
from dedup.texts.texts import Text

#: The flag of a response that stands for a page which was not sent.
FLAG = "not_modified"
#: Bytes of the links of a page, packed: pages with more are fetched whole.
MAX_LINKS = 1_000_000
#: Fields of a request that belong to one crawl alone, and keys of its meta.
_FIELDS = frozenset({"body", "cookies", "headers", "method"})
_KEYS = frozenset({"bindaddress", "cookiejar", "http_pass", "http_user", "proxy"})


class Revisit(Struct):
    """A page that has not changed, as the server says."""

    page: Page
    links: Sequence[Request]
    response: Response  #: stands for the page; its callback gives the links
    size: int  #: bytes that were not sent
    is_followed: bool = False  #: whether its links were given to the crawl

    def seen(self, visit: Visit) -> Visit:
        """Returns the visit of the response, as if the page had been sent."""
        urls = [request.url for request in self.links]
        return replace(visit, read=lambda: self.page, size=self.size, links=lambda: urls, body=lambda: None)


def pack_link(packing: Packing, request: Request) -> bytes | None:
    """Packs a request that a callback has made of a page; returns None if another crawl can't use it."""
    is_of_any_crawl = strip_session(request.url) == request.url.partition("#")[0].rstrip("?&")
    return packing.pack(request, _FIELDS, _KEYS) if is_of_any_crawl else None


def pack_links(links: Sequence[bytes]) -> bytes | None:
    """Packs all links of a page; returns None if there are too many."""
    return zlib.compress(msgspec.msgpack.encode(links)) if sum(map(len, links)) <= MAX_LINKS else None


def revisit(packing: Packing, request: Request, response: Response, held: Held, text: Text) -> Revisit:
    """Returns the page for which a response "not modified" stands, by its stored words and links.  Raises `ValueError`."""
    try:
        octets = zlib.decompressobj().decompress(held.links, 2 * MAX_LINKS)
        links = [packing.unpack(link) for link in msgspec.msgpack.decode(octets, type=list[bytes])]
    except zlib.error as error:
        raise ValueError(str(error)) from None

    def follow(response: Response, **_: Any) -> Iterator[Request]:
        yield from links
        found.is_followed = True

    heading = tuple(held.heading.split())
    page = Page(
        text.tokens,
        len(links),
        chrome=tuple(text.chrome),
        heading=heading,
        names=shared(address_words(request.url), heading),
        place=place(request.url),
        data=tuple(text.data),
        signs=text.signs or b"",
        markup=request.url,  # what it was is not stored: no page of another address is known to be equal
    )
    asked = request.replace(callback=follow)
    headers: dict[Any, Any] = {"No-Vary-Search": held.search} if held.search else {}
    stands = HtmlResponse(request.url, headers=headers | dict(response.headers), request=asked, flags=[FLAG])
    found = Revisit(page, links, stands, held.size)
    return found
