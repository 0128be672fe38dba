"""Text -> Page: the one way in which the tokens of a page are obtained, be it HTML, plain text, JSON or none of these.

A text is judged by `dedup.page.limits` before anything parses it, so that every caller's work is bounded.  No page makes
anything here raise: one that can't be read, whatever the reason, is "internal_error", and is told to the log.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence

from lxml import etree

from dedup.page.data import read_json
from dedup.page.heading import place
from dedup.page.html import Page, extract, parse
from dedup.page.ids import MAX_URL
from dedup.page.ignore import NOTHING, Ignore, markup_of
from dedup.page.limits import MAX_TOKENS, no_text, unreadable
from dedup.page.tokens import Tokens
from dedup.page.urls import strip_user
from dedup.page.words import fold_text, signs_of, without_letters

logger = logging.getLogger(__name__)


def read(
    text: str,
    url: str = "",
    keep_urls: bool = True,
    tree: Callable[[str], etree._Element] = parse,
    ignore: Ignore = NOTHING,
) -> Page:
    """Returns the tokens of a page's decoded text, or the reason why there are none.  O(characters).

    ``url`` is the page's own address, against which its links are resolved.  ``tree`` parses the text: a
    caller that has a tree already, as Scrapy does, hands it over and saves that work.  It is not called for a
    text that `dedup.page.limits` refuses, and its tree is left as it is.  ``ignore`` finds what doesn't count.

    >>> page = read("<title>Storm</title><p>reads <a href='/docs/'>all</a>")
    >>> page.tokens, page.links, page.reason
    (['storm', 'reads', '/docs/', 'all'], 1, None)
    >>> [read(text).reason for text in ("<script>1", "<br>" * 200_000, "<div>" * 5_000 + "deep")]
    ['empty', 'large', 'truncated']
    """

    def find() -> Page:
        if reason := unreadable(text):
            return Page([], 0, reason)
        root = ignore.applied(tree(text))
        markup = text if ignore.is_empty else markup_of(root)
        return extract(root, url, keep_urls)._replace(markup=markup)

    return _whatever_happens(find, url)


def read_text(text: str, url: str = "", *, is_json: bool = False, ignore: Ignore = NOTHING) -> Page:
    """Returns the tokens of plain text, Markdown or JSON, or the reason why there are none.  O(characters).

    Nothing is taken for markup.  Of JSON, its strings and numbers are read as those of `dedup.page.data`; JSON that
    can't be parsed is text.  Only text is given to ``ignore``.

    >>> read_text("if a < b and c > d: see /docs").tokens
    ['if', 'a', 'b', 'and', 'c', 'd', 'see', 'docs']
    >>> read_text('{"name": "Brass lamp", "csrf": "x"}', is_json=True).tokens
    ['brass', 'lamp']
    """

    def find() -> Page:
        if reason := no_text(text):
            return Page([], 0, reason)
        found = read_json(text, MAX_TOKENS) if is_json else None
        if found:
            return tokens_as_page(found[0], url)._replace(data=found[1], markup=text)
        counting = (
            "".join(map(ignore.reader(), text.splitlines(keepends=True))) if ignore.has_patterns else text
        )
        octets = fold_text(counting)
        page = tokens_as_page(Tokens(octets[:-1], octets.count(0)), url)
        return page._replace(signs=without_letters(signs_of(counting)), markup=counting)

    return _whatever_happens(find, url)


def _whatever_happens(find: Callable[[], Page], url: str) -> Page:
    """Returns what ``find`` gives, or a page that is not judged."""
    try:
        return find()
    except Exception:
        logger.exception("The page %a can't be read, and is kept", strip_user(url)[:MAX_URL])
        return Page([], 0, "internal_error")


def read_body(body: bytes) -> Page:
    """Returns a page that is no text, such as a PDF or an image: it is judged only by whether another is equal."""
    if not body:
        return Page([], 0, "empty")
    return Page([], 0, body=hashlib.blake2b(body, digest_size=32).digest())


def tokens_as_page(tokens: Sequence[str], url: str = "") -> Page:
    """Returns the page that tokens make."""
    reason = "truncated" if len(tokens) > MAX_TOKENS else None if tokens else "empty"
    return Page(tokens, 0, reason, place=place(url))
