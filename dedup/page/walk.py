"""Tree -> words and URLs: the walk over the nodes of a page.

There are two walks, which find the same: one in Python, and a compiled one, which is used where the package
shingleback-fast is installed.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import islice
from types import SimpleNamespace
from typing import NamedTuple, cast

from lxml import etree

from dedup.compiled import fast
from dedup.page.ignore import Ignore
from dedup.page.shell import DROPPED, SHELL_WITH_MOUNT
from dedup.page.tokens import Ranges, Tokens, join
from dedup.page.urls import base_of, folder, plain_folder, url_tokens
from dedup.page.words import BATCH, MARK, fold_each, is_url, remembered, separators, split_words

__all__ = ["Found", "walk"]

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
#: Elements of which the walk takes note.
_TELLING = DROPPED | CHROME | MARGINS | CONTENT | {TITLE, HEADING, "base"}
#: All nodes in document order; and how many are within one.
_NODES = cast(
    Callable[[etree._Element], list[etree._Element | str]],
    etree.XPath("descendant-or-self::node()", regexp=False, smart_strings=False),
)
#: Comments and processing instructions of a page from which on lxml would take too long to list its nodes: before it
#: gives a text, it goes back to the element before it.
MANY_UNSEEN = 500
_COUNT = cast(Callable[[etree._Element], float], etree.XPath("count(descendant::node())", regexp=False))
_Find = Callable[[etree._Element], list[etree._Element]]
_WITH_ROLE = cast(_Find, etree.XPath("descendant-or-self::*/@role/..", regexp=False))


class Part(Enum):
    """What a run of a page's pieces belongs to."""

    TEXT = 0
    CHROME = 1
    NAME = 2


class Found(NamedTuple):
    """What a walk has found, in document order."""

    tokens: Sequence[str]
    chrome: Ranges  #: runs of tokens, from ... to before ..., that are marked as chrome
    heading: tuple[str, ...]  #: words of the title and of the first h1
    left: int  #: words outside marked chrome; beyond `SHELL_WITH_MOUNT`, it may say less than there are
    links: int  #: how many different URLs its HREFs name
    scripts: list[tuple[str, str]]  #: type and text
    related: list[tuple[str, str]]  #: rel and href
    base: str


#: What the compiled walk asks Python for.
_RULES = SimpleNamespace(
    BATCH=BATCH,
    CHROME_ROLES=CHROME_ROLES,
    base_of=base_of,
    fold_each=fold_each,
    folder=folder,
    plain_folder=plain_folder,
    remembered=remembered,
    separators=separators,
    url_tokens=url_tokens,
)


def walk(root: etree._Element, url: str, keep_urls: bool, ignore: Ignore) -> Found:
    """What is in a tree, which is left as it is.  O(size of the tree).

    ``url`` is that against which links are resolved, ``ignore`` finds what doesn't count.
    """
    return (walk_fast if fast and ignore.is_empty else walk_in_python)(root, url, keep_urls, ignore)


def walk_fast(root: etree._Element, url: str, keep_urls: bool, ignore: Ignore) -> Found:
    assert fast
    octets, count, *found = fast.walk(root, url, keep_urls, _RULES)
    return Found(Tokens(octets, count), *found)


def walk_in_python(root: etree._Element, url: str, keep_urls: bool, ignore: Ignore) -> Found:
    walk = _Walk(root, url, keep_urls, ignore)
    text = " ".join(walk.pieces)
    if text.count(MARK[0]) != len(MARK) * len(walk.marks):
        text = " ".join(piece if piece is MARK else piece.replace(MARK[0], " ") for piece in walk.pieces)
    tokens, chrome, heading = _settle(split_words(text), walk.marks, walk.bare)
    related = [
        (rel, href)
        for node in root.iter("link")
        if (rel := node.get("rel")) is not None and (href := node.get("href")) is not None
    ]
    left = _main_words(tokens, chrome, SHELL_WITH_MOUNT)
    return Found(
        Tokens(join(tokens), len(tokens), tokens),
        chrome,
        heading,
        left,
        len(walk.links),
        walk.scripts,
        related,
        walk.base,
    )


def _settle(
    words: list[str], marks: list[str | Part], bare: dict[str, set[str]]
) -> tuple[list[str], Ranges, tuple[str, ...]]:
    """The tokens, the runs of chrome and the heading that words and the marks among them make.

    ``bare`` has the URL tokens by what is left of them without ids.
    """
    # Where ids are not needed to tell URLs apart, they are left out.
    shorter = {token: key for key, tokens in bare.items() if len(tokens) == 1 for token in tokens}
    tokens: list[str] = []
    chrome: list[tuple[int, int]] = []
    heading: list[str] = []
    part, start, at = Part.TEXT, 0, -1
    for mark in (*marks, None):
        try:
            at = len(words) if mark is None else words.index(MARK, at + 1)
        except ValueError:  # there were too many tokens
            at = len(words)
        if isinstance(mark, str):
            words[at : at + 1] = [shorter.get(mark, mark).lower()]
            continue
        run = words[start:at]
        if part is Part.CHROME and run:
            if chrome and chrome[-1][1] == len(tokens):
                chrome[-1] = chrome[-1][0], len(tokens) + len(run)
            else:
                chrome.append((len(tokens), len(tokens) + len(run)))
        elif part is Part.NAME:
            heading += [token for token in run if not is_url(token)]
        tokens += run
        part, start = mark or Part.TEXT, at + 1
    return tokens, tuple(chrome), tuple(heading)


def _main_words(tokens: list[str], chrome: Ranges, most: int) -> int:
    """How many words of a page are outside marked chrome; counting ends soon after ``most``."""
    words = start = 0
    for end, following in (*chrome, (len(tokens), 0)):
        while start < end and words < most:
            words += list(map(is_url, tokens[start : min(start + most, end)])).count(False)
            start += most
        start = following
    return words


class _Walk:
    """The walk in Python."""

    def __init__(self, root: etree._Element, url: str, keep_urls: bool, ignore: Ignore) -> None:
        self.base = self._url = url
        self._folder = folder(url)
        self.links: set[str] = set()
        self.scripts: list[tuple[str, str]] = []
        self._keep_urls = keep_urls
        self._strip = ignore.reader() if ignore.has_patterns else None
        self._ignored = ignore.elements(root)
        self._with_role = frozenset(node for node in _WITH_ROLE(root) if _has_chrome_role(node))
        self.pieces: list[str] = []  # texts and marks
        self.marks: list[str | Part] = []
        self.bare: dict[str, set[str]] = {}
        self._chrome = self._content = self._named = False  # whether such an element is open
        self._unnamed = {TITLE, HEADING}
        self._visit(_nodes(root))

    def _visit(self, nodes: Iterator[etree._Element | str]) -> None:
        add, strip, special = self.pieces.append, self._strip, self._ignored | self._with_role
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
            self.base = base_of(self._url, value)
            self._folder = folder(self.base)
        if opened:
            self._visit(_within(node, nodes))
            self._chrome, self._content, self._named = before
            self._mark_part()

    def _mark_part(self) -> None:
        self.pieces.append(MARK)
        self.marks.append(Part.NAME if self._named else Part.CHROME if self._chrome else Part.TEXT)

    def _add_url(self, value: str, is_link: bool) -> None:
        if (found := url_tokens(value, self.base, self._folder)) is None:
            return
        token, stripped = found
        if self._keep_urls:
            self.pieces.append(MARK)
            self.marks.append(token)
            if stripped != token:
                self.bare.setdefault(stripped, set()).add(token)
        if is_link:
            self.links.add(token)


def _nodes(root: etree._Element) -> Iterator[etree._Element | str]:
    """All nodes of a tree in document order."""
    unseen = root.iter(etree.Comment, etree.PI)
    are_many = next(islice(unseen, MANY_UNSEEN, None), None) is not None
    return _nodes_by_hand(root) if are_many else iter(_NODES(root))


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


def _has_chrome_role(node: etree._Element) -> bool:
    return (node.get("role") or "").strip().lower() in CHROME_ROLES
