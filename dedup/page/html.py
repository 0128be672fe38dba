"""Page -> tokens: the AltaVista normalisation (Manasse, "Finding similar things quickly", section
"Feature extraction": ignore case, discard most markup other than the URLs in HREFs and IMGs).

The contract:

* **Kept**, in document order: the words of the visible text and of the title; the HREF of every
  ``a`` and ``area`` and the SRC of every ``img``, as URL tokens.
* **Dropped**: ``script``, ``style``, ``noscript``, ``template``, comments, processing instructions
  and the rest of the markup.  Markup separates words.  Data in scripts is kept apart (`dedup.page.data`).
* **Folded**: text is NFKC-normalised and case-folded; zero-width characters vanish.  A word is a run of
  letters, digits, underscores and their combining marks.  Scripts written without spaces (Han, kana,
  Thai, Lao, Khmer, Burmese) give one token per character.
* **URL tokens** start with ``/``, which no word does.  They are resolved against the page (or its
  ``base``), lose scheme, fragment, session and click-tracking parameters, and what they share with the
  page's own address: its host and the folders they have in common, so that a mirror under another path,
  or the next version of a manual, has the same tokens.  Other hosts are kept (``//host/path``).  Values that
  look like nothing but an id go, unless they are all that tells two links of the page apart.  Links
  within the page, links that are not http(s), and URLs over 2,000 characters are dropped.  Nothing is
  resolved against an address of more than 20 folders.

>>> page = '<title>Storm</title><p>The <b>Crawler</b><a href="/Docs/?PHPSESSID=9f&v=2#top">reads</a>'
>>> extract(parse(page), "http://example.org/a/").tokens
['storm', 'the', 'crawler', '/docs/?v=2', 'reads']

Where markup is broken, the words are those that libxml2 sees: ``one</i>two`` is one word to it.

This module does not know about fingerprints.  Everything here takes time linear in the size of the page, and
no page makes it raise.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple, cast

from bs4 import BeautifulSoup
from bs4.exceptions import ParserRejectedMarkup
from lxml import etree

from dedup.page.data import read_data
from dedup.page.heading import address_words, place, shared
from dedup.page.ignore import NOTHING, Ignore
from dedup.page.limits import MAX_TOKENS
from dedup.page.shell import DROPPED, is_shell
from dedup.page.urls import MAX_URL, folder, join, strip_ids, url_token, url_tokens, usable_base
from dedup.page.words import MARK, is_url, split_words

__all__ = ["Page", "extract", "parse"]

#: The attribute that holds a URL worth keeping, per element.
URL_ATTRIBUTES = {"a": "href", "area": "href", "img": "src"}
#: Elements, and ARIA roles, that mark the chrome of a site: what is around a page, and on many pages alike.
CHROME = frozenset({"nav", "aside", "form", "menu"})
CHROME_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "form", "menu"})
#: Elements that are chrome unless they are the header or footer of what a page is about.
MARGINS = frozenset({"header", "footer"})
CONTENT = frozenset({"main", "article", "section"})
#: Elements that say what a page is called; of the second, the first in the page.
TITLE, HEADING = "title", "h1"
#: libxml2's XML_ERR_RESOURCE_LIMIT, for which older versions of lxml have no name.
RESOURCE_LIMIT = 114
#: Characters that html.parser is given at most, since it takes quadratic time on broken tags.
SECOND_OPINION = 4_096

#: Elements of which `extract` takes note.
_TELLING = DROPPED | CHROME | MARGINS | CONTENT | {TITLE, HEADING, "base"}
#: All nodes in document order; and how many are within one.
_NODES = cast(
    Callable[[etree._Element], list[etree._Element | str]],
    etree.XPath("descendant-or-self::node()", regexp=False, smart_strings=False),
)
_UNSEEN = cast(
    Callable[[etree._Element], float],
    etree.XPath("count(descendant::comment()) + count(descendant::processing-instruction())", regexp=False),
)
#: Comments and processing instructions of a page from which on lxml would take too long to list its nodes: before it
#: gives a text, it goes back to the element before it.
MANY_UNSEEN = 500
_COUNT = cast(Callable[[etree._Element], float], etree.XPath("count(descendant::node())", regexp=False))
_Find = Callable[[etree._Element], list[etree._Element]]
_RELATED = cast(_Find, etree.XPath("descendant::link[@rel and @href]", regexp=False))
_WITH_ROLE = cast(_Find, etree.XPath("descendant-or-self::*/@role/..", regexp=False))


class _Part(Enum):
    """What a run of a page's pieces belongs to."""

    TEXT = 0
    CHROME = 1
    NAME = 2


class Page(NamedTuple):
    """The tokens of a page, and why it can't be judged by them, if it can't.

    The reason is "truncated" where a part of the page is missing, because it is nested deeper than the parser
    goes or lies beyond `MAX_TOKENS`; "scripted" where the page shows little but the shell that its scripts fill,
    and carries no data; "empty" where the page has no tokens; or one of those that
    `dedup.page.limits.unreadable` gives, and then nothing of the page was read.
    """

    tokens: list[str]  #: words and URL tokens in document order
    links: int  #: how many different URLs its HREFs name
    reason: str | None = None  #: None for a page that was read as a whole
    chrome: tuple[
        tuple[int, int], ...
    ] = ()  #: runs of tokens, from ... to before ..., that are marked as chrome
    heading: tuple[str, ...] = ()  #: words of the title and of the first h1
    address: tuple[str, ...] = ()  #: words of the last part of its address
    names: tuple[str, ...] = ()  #: those of them that its heading says, too
    place: str = ""  #: its path, but for hosts and versions
    data: tuple[str, ...] = ()  #: tokens of the data in its scripts
    canonical: str = ""  #: the URL that it says it should be known by; "" if it names none
    body: bytes = b""  #: of a page that is no text: a digest of all its bytes, by which alone it is judged


def parse(text: str) -> etree._Element:
    """The lxml tree of a page, parsed as Scrapy's selectors do.

    Where lxml finds no body in a page that has some text (an unclosed comment or title swallows it),
    html.parser gives a second opinion on its first 4,096 characters.
    """
    root = _parse(text)
    if root.find("body") is None and root.find("frameset") is None and text.strip():
        with warnings.catch_warnings(), suppress(ParserRejectedMarkup):
            warnings.simplefilter("ignore")
            second = _parse(str(BeautifulSoup(text[:SECOND_OPINION], "html.parser")))
            if second.find("body") is not None:
                return second
    return root


def _parse(text: str) -> etree._Element:
    data = text.strip().replace("\x00", "").encode("utf-8", "replace") or b"<html/>"
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:  # a document of which nothing is left
        root = None
    return root if root is not None else etree.fromstring(b"<html/>", parser)


def extract(root: etree._Element, url: str = "", keep_urls: bool = True, ignore: Ignore = NOTHING) -> Page:
    """The tokens of a parsed page, whose tree is left as it is.  O(size of the tree).

    ``url`` is the page's own address, against which its links are resolved; ``ignore`` finds what doesn't count.

    >>> page = extract(parse("<title>Storm 2.0</title><nav>Home</nav><h1>Bolts</h1><p>A bolt"))
    >>> page.tokens, page.chrome, page.heading
    (['storm', '2', '0', 'home', 'bolts', 'a', 'bolt'], ((3, 4),), ('storm', '2', '0', 'bolts'))
    """
    walk = _Walk(root, usable_base(url), keep_urls, ignore)
    page = walk.page(url)._replace(canonical=_canonical(root, walk.base))
    if not walk.scripts or page.reason == "truncated":
        return page

    def data_token(value: str) -> str | None:
        token = url_token(value, walk.base) if keep_urls else None
        return token and strip_ids(token)

    data = read_data(walk.scripts, data_token)
    if not data and is_shell(page.tokens, page.chrome, root):
        return page._replace(reason="scripted")
    return page._replace(data=data)


class _Walk:
    """One walk over the nodes of a tree, in document order."""

    def __init__(self, root: etree._Element, url: str, keep_urls: bool, ignore: Ignore) -> None:
        self.base = self._url = url
        self._folder = folder(url)
        self.links: set[str] = set()
        self.scripts: list[tuple[str, str]] = []  # type and text
        self._root = root
        self._keep_urls = keep_urls
        self._strip = ignore.reader() if ignore.has_patterns else None
        self._ignored = ignore.elements(root)
        self._with_role = frozenset(node for node in _WITH_ROLE(root) if _has_chrome_role(node))
        # Texts; and a mark for each URL, and wherever another part begins.
        self._pieces: list[str] = []
        self._marks: list[str | _Part] = []
        self._bare: dict[str, set[str]] = {}  # URL tokens by what is left of them without ids
        self._chrome = self._content = self._named = False  # whether such an element is open
        self._unnamed = {TITLE, HEADING}
        self._visit(_nodes(root))

    def _visit(self, nodes: Iterator[etree._Element | str]) -> None:
        add, strip, special = self._pieces.append, self._strip, self._ignored | self._with_role
        telling, attributes, add_url = _TELLING, URL_ATTRIBUTES, self._add_url
        for node in nodes:
            if isinstance(node, str):
                add(node if strip is None or node.isspace() else strip(node))
                continue
            tag = node.tag
            if tag in attributes and not special:
                if value := node.get(attributes[tag]):
                    add_url(value, attributes[tag] == "href")
            elif tag in telling or (special and (node in special or tag in attributes)):
                self._open(node, str(tag), nodes)

    def _open(self, node: etree._Element, tag: str, nodes: Iterator[etree._Element | str]) -> None:
        """Visits an element that is more than text or a link, and what is in it."""
        if tag in DROPPED or node in self._ignored:
            if tag == "script" and node not in self._ignored:
                self.scripts.append((node.get("type") or "", node.text or ""))
            deque(_within(node, nodes), maxlen=0)
            return
        before = self._chrome, self._content, self._named
        if not self._content and tag in CONTENT:
            self._content = True
        elif not self._named and tag in self._unnamed:
            self._unnamed.discard(tag)
            self._named = True
        elif not self._chrome and (
            tag in CHROME or node in self._with_role or (tag in MARGINS and not self._content)
        ):
            self._chrome = True
        opened = before != (self._chrome, self._content, self._named)
        if opened:
            self._mark_part()
        if attribute := URL_ATTRIBUTES.get(tag):
            if value := node.get(attribute):
                self._add_url(value, attribute == "href")
        elif tag == "base" and self.base == self._url and (value := node.get("href")):
            self.base = usable_base(join(self._url, value)) or self._url
            self._folder = folder(self.base)
        if opened:
            self._visit(_within(node, nodes))
            self._chrome, self._content, self._named = before
            self._mark_part()

    def _mark_part(self) -> None:
        self._pieces.append(MARK)
        self._marks.append(_Part.NAME if self._named else _Part.CHROME if self._chrome else _Part.TEXT)

    def _add_url(self, value: str, is_link: bool) -> None:
        if (found := url_tokens(value, self.base, self._folder)) is None:
            return
        token, stripped = found
        if self._keep_urls:
            self._pieces.append(MARK)
            self._marks.append(token)
            if stripped != token:
                self._bare.setdefault(stripped, set()).add(token)
        if is_link:
            self.links.add(token)

    def page(self, url: str) -> Page:
        """What was found; between two pieces there is always markup, which separates words."""
        text = " ".join(self._pieces)
        if text.count(MARK[0]) != len(MARK) * len(self._marks):
            text = " ".join(piece if piece is MARK else piece.replace(MARK[0], " ") for piece in self._pieces)
        words = split_words(text)
        if len(words) > MAX_TOKENS:
            return Page(words, len(self.links), "truncated")
        # Where ids are not needed to tell URLs apart, they are left out.
        bare = {token: key for key, tokens in self._bare.items() if len(tokens) == 1 for token in tokens}
        tokens: list[str] = []
        chrome: list[tuple[int, int]] = []
        heading: list[str] = []
        part, start, at = _Part.TEXT, 0, -1
        for mark in (*self._marks, None):
            at = len(words) if mark is None else words.index(MARK, at + 1)
            if isinstance(mark, str):
                words[at] = bare.get(mark, mark).lower()
                continue
            run = words[start:at]
            if part is _Part.CHROME and run:
                chrome.append((len(tokens), len(tokens) + len(run)))
            elif part is _Part.NAME:
                heading += [token for token in run if not is_url(token)]
            tokens += run
            part, start = mark or _Part.TEXT, at + 1
        reason = "truncated" if _is_truncated(self._root) else None if tokens else "empty"
        address = address_words(url)
        return Page(
            tokens,
            len(self.links),
            reason,
            tuple(chrome),
            tuple(heading),
            address,
            shared(address, heading),
            place(url),
        )


def _nodes(root: etree._Element) -> Iterator[etree._Element | str]:
    """All nodes of a tree in document order."""
    return iter(_NODES(root)) if _UNSEEN(root) < MANY_UNSEEN else _nodes_by_hand(root)


def _nodes_by_hand(root: etree._Element) -> Iterator[etree._Element | str]:
    """The same in linear time, whatever the tree; iterwalk and itertext take as long as an XPath."""
    open_elements: list[etree._Element] = []
    for node in root.iter():
        parent = node.getparent()
        while open_elements and open_elements[-1] is not parent:
            if tail := open_elements.pop().tail:
                yield tail
        open_elements.append(node)
        yield node
        if isinstance(node.tag, str) and node.text:
            yield node.text
    for node in open_elements[:0:-1]:
        if node.tail:
            yield node.tail


def _within(node: etree._Element, nodes: Iterator[etree._Element | str]) -> Iterator[etree._Element | str]:
    """Those of the nodes to come that are within an element; only a few elements of a page are asked for theirs."""
    if len(node):
        return islice(nodes, int(_COUNT(node)))
    return _texts(len(node.text or ""), nodes)


def _texts(characters: int, nodes: Iterator[etree._Element | str]) -> Iterator[etree._Element | str]:
    if not characters:
        return
    for text in nodes:
        yield text
        characters -= len(text)
        if characters <= 0:
            return


def _canonical(root: etree._Element, base: str) -> str:
    """The canonical URL that a page names, the first if there are several; "" without one."""
    for node in _RELATED(root):
        if "canonical" in (node.get("rel") or "").lower().split():
            named = join(base, (node.get("href") or "").strip())
            return named if len(named) <= MAX_URL and named.startswith(("http://", "https://")) else ""
    return ""


def _has_chrome_role(node: etree._Element) -> bool:
    return (node.get("role") or "").strip().lower() in CHROME_ROLES


def _is_truncated(root: etree._Element) -> bool:
    parser = root.getroottree().parser
    if parser is None:
        return False
    return any(error.type == RESOURCE_LIMIT for error in parser.error_log)
