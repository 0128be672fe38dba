"""Decodes and parses the HTML of a page when it is first needed, and only once."""

from functools import cached_property

from lxml import etree

from dedup.filter.bodies import Body
from dedup.fingerprint.detector import Detector
from dedup.page.charset import charset, decode
from dedup.page.html import Page, parse
from dedup.page.links import addresses


class Markup:
    """A page that a crawler without Scrapy has fetched.

    >>> page = Markup("<p>the <a href=lamp>lamp</a>".encode(), "http://a.org/", "utf-8", Detector())
    >>> page.read().tokens, page.links()
    (['the', '/lamp', 'lamp'], ['http://a.org/lamp'])
    """

    def __init__(self, html: bytes | str, url: str, encoding: str | None, detector: Detector) -> None:
        """``encoding`` is the character set that the server named, if it named one."""
        self._html = html
        self._url = url
        self._encoding = encoding
        self._detector = detector

    @cached_property
    def _text(self) -> str:
        return decode(self._html, self._encoding)

    @cached_property
    def _root(self) -> etree._Element:
        return parse(self._text)

    def read(self) -> Page:
        """Its tokens, or the reason why there are none."""
        return self._detector.read(self._text, self._url, lambda _: self._root)

    def links(self) -> list[str]:
        """Returns the URLs that it links to."""
        return addresses(self._root, self._url)

    def body(self) -> Body | None:
        """Returns its bytes, if it is certain how they are decoded."""
        codec = charset(self._encoding or "")
        return (
            Body(self._html, codec.replace("_", "-"), "html")
            if codec and isinstance(self._html, bytes)
            else None
        )
