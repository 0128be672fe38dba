"""The links of a page as whole URLs: those that a crawl would ask for, and all that may lead on."""

from collections.abc import Iterable
from itertools import islice

from lxml import etree

from dedup.page.ids import MAX_URL
from dedup.page.urls import base_of, join, usable_base

#: More links of one page are not read: to resolve one takes 10 us.
MAX_LINKS = 2000
_BASE = etree.XPath("string((//base/@href)[1])", smart_strings=False)
_ANCHORS = etree.XPath("//a/@href | //area/@href", smart_strings=False)
_TARGETS = etree.XPath(
    "//a/@href | //area/@href | //link/@href | //iframe/@src | //frame/@src | //form/@action",
    smart_strings=False,
)


def addresses(root: etree._Element, url: str) -> list[str]:
    """Returns the http(s) URLs in a parsed page's A and AREA elements, without fragments, each once, in document order.

    ``url`` is the page's own address.  Only the first `MAX_LINKS` links are read.

    >>> from dedup.page.html import parse
    >>> page = parse("<a href='b.html#top'>b</a> <a href=b.html>b</a> <a href='mailto:me@a.org'>me</a>")
    >>> addresses(page, "http://a.org/docs/")
    ['http://a.org/docs/b.html']
    """
    return _resolved(islice(_ANCHORS(root), MAX_LINKS), _base(root, url))


def targets(root: etree._Element, url: str) -> list[str] | None:
    """Returns the same of all elements by which a spider may get on: LINK, frames and forms, too.

    None if they can't all be told: there are more than `MAX_LINKS`, or the page's own address is no base for them.

    >>> from dedup.page.html import parse
    >>> targets(parse("<link rel=next href='?page=2'><form action=search></form>"), "http://a.org/docs/")
    ['http://a.org/docs/?page=2', 'http://a.org/docs/search']
    """
    values, base = _TARGETS(root), _base(root, url)
    return _resolved(values, base) if base and len(values) <= MAX_LINKS else None


def _base(root: etree._Element, url: str) -> str:
    """Returns the address against which a page's links are resolved; "" if only whole ones can be."""
    return base_of(usable_base(url), _BASE(root))


def _resolved(values: Iterable[str], base: str) -> list[str]:
    unlike = dict.fromkeys(value.strip().partition("#")[0] for value in values)
    found = dict.fromkeys(join(base, value) for value in unlike if value and len(value) <= MAX_URL)
    return [each for each in found if each.startswith(("http://", "https://"))]
