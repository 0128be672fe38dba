"""Text -> Page: the one way in which the tokens of a page are obtained.

The text is judged by `dedup.page.limits` before anything parses it, so that every caller's work is bounded.
"""

from collections.abc import Callable

from lxml import etree

from dedup.page.html import Page, extract, parse
from dedup.page.limits import unreadable

__all__ = ["read"]


def read(
    text: str, url: str = "", keep_urls: bool = True, tree: Callable[[str], etree._Element] = parse
) -> Page:
    """The tokens of a page's decoded text, or the reason why there are none.  O(characters).

    ``url`` is the page's own address, against which its links are resolved.  ``tree`` parses the text: a
    caller that has a tree already, as Scrapy does, hands it over and saves that work.  It is not called for a
    text that `dedup.page.limits` refuses, and its tree is left as it is.

    >>> read("<title>Storm</title><p>reads <a href='/docs/'>all</a>")
    Page(tokens=['storm', 'reads', '/docs/', 'all'], links=1, reason=None)
    >>> [read(text).reason for text in ("<script>1", "<br>" * 200_000, "<div>" * 5_000 + "deep")]
    ['empty', 'large', 'truncated']
    """
    if reason := unreadable(text):
        return Page([], 0, reason)
    return extract(tree(text), url, keep_urls)
