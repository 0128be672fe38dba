"""The addresses that a page links to, whole, as a crawl would ask for them."""

from itertools import islice
from urllib.parse import urljoin

from lxml import etree

from dedup.page.ids import MAX_URL
from dedup.page.urls import usable_base

__all__ = ["MAX_LINKS", "addresses"]

#: Of how many links of one page the addresses are read: to resolve one takes 10 us.
MAX_LINKS = 1000
_BASE = etree.XPath("string((//base/@href)[1])", smart_strings=False)
_LINKS = etree.XPath("//a/@href | //area/@href", smart_strings=False)


def addresses(root: etree._Element, url: str) -> list[str]:
    """The http(s) URLs in a parsed page's A and AREA elements, without fragments, each once, in document order.

    ``url`` is the page's own address.  Only the first `MAX_LINKS` links are read.

    >>> from dedup.page.html import parse
    >>> page = parse("<a href='b.html#top'>b</a> <a href=b.html>b</a> <a href='mailto:me@a.org'>me</a>")
    >>> addresses(page, "http://a.org/docs/")
    ['http://a.org/docs/b.html']
    """
    base = usable_base(url)
    base = usable_base(_join(base, _BASE(root))) or base
    values = dict.fromkeys(value.strip().partition("#")[0] for value in islice(_LINKS(root), MAX_LINKS))
    found = dict.fromkeys(_join(base, value) for value in values if value and len(value) <= MAX_URL)
    return [each for each in found if each.startswith(("http://", "https://"))]


def _join(base: str, value: str) -> str:
    """The URL that a value names on a page at ``base``; "" if it names none."""
    try:
        return urljoin(base, value)
    except ValueError:  # such as http://[
        return ""
