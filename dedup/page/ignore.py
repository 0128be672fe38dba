"""What of a page doesn't count, by the user's own word: elements by CSS selectors, text by regular expressions.

Pages are hostile, so that what a selector costs has to be linear in the size of a page.  Selectors of siblings and
places (``a + b``, ``:nth-child``) are not, and are refused.  The cost of a regular expression is its author's: it
is given the text between two tags, at most `SEGMENT` characters at a time, and `MAX_TEXT` of a page.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import cast

from cssselect import HTMLTranslator, SelectorError
from cssselect import parse as parse_selectors
from cssselect.parser import Attrib, Class, CombinedSelector, Element, Hash, Negation, Tree
from lxml import etree

from dedup.page.flat import CODE, IGNORED
from dedup.settings import SETTINGS

#: Characters that a regular expression is given at a time, and of a page; what is beyond counts as it is.
SEGMENT, MAX_TEXT = 1_000, 200_000

_SEGMENTS = re.compile(rf".{{1,{SEGMENT}}}(?:\s|$)|.{{{SEGMENT}}}", re.DOTALL)
_Find = Callable[[etree._Element], list[etree._Element]]


class Ignore:
    """Elements and text that are left out when a page is read.

    >>> ignore = Ignore(["#banner, .cookies > p"], [r"\\d+ readers"])
    >>> root = etree.HTML("<div id=banner><p>x</div><div class=cookies><p>y</div><p>z")
    >>> etree.tostring(ignore.applied(root)).decode()
    '<html><body><IGNORED id="banner"><p>x</p></IGNORED><div class="cookies"><IGNORED>y</IGNORED></div><p>z</p></body></html>'
    >>> ignore.reader()("The story of 1024 readers")
    'The story of  '
    """

    def __init__(self, selectors: Sequence[str] = (), patterns: Sequence[str] = ()) -> None:
        """Raises `SettingsError` for what is no selector or no regular expression."""
        self._selectors = [tree for selector in selectors for tree in _parsed(selector)]
        self._finds = {id(part): _find(part) for tree in self._selectors for part in _parts(tree)}
        self._patterns = [_compiled(pattern) for pattern in patterns]

    @property
    def is_empty(self) -> bool:
        """True if everything counts."""
        return not self._selectors and not self._patterns

    @property
    def has_patterns(self) -> bool:
        """True if some text doesn't count."""
        return bool(self._patterns)

    def applied(self, root: etree._Element) -> etree._Element:
        """Returns a copy of a tree in which what doesn't count is not shown, and returns the tree itself if everything counts."""
        if self.is_empty:
            return root
        root = deepcopy(root)
        for tree in self._selectors:
            for node in self._matches(tree, root):
                node.tag = IGNORED
        if self._patterns:
            read = self.reader()
            for node in root.iter():
                if node.text and node.tag not in CODE and isinstance(node.tag, str):
                    node.text = read(node.text)
                if node.tail:
                    node.tail = read(node.tail)
        return root

    def _matches(self, tree: Tree, root: etree._Element) -> set[etree._Element]:
        if not isinstance(tree, CombinedSelector):
            return set(self._finds[id(tree)](root))
        outer, inner = self._matches(tree.selector, root), set(self._finds[id(tree.subselector)](root))
        if tree.combinator == ">":
            return {node for node in inner if node.getparent() in outer}
        below: set[etree._Element] = set()
        # In the order of the document, so that no element is met in two of the outer ones.
        for node in root.iter():
            if node in outer and node not in below:
                below.update(node.iterdescendants())
        return inner & below

    def reader(self) -> Callable[[str], str]:
        """Returns a function that gives the texts of one page without what doesn't count."""
        left = MAX_TEXT

        def read(text: str) -> str:
            nonlocal left
            if len(text) > left:
                return text
            left -= len(text)
            segments = [text] if len(text) <= SEGMENT else _SEGMENTS.findall(text)
            for pattern in self._patterns:
                segments = [pattern.sub(" ", segment) for segment in segments]
            return "".join(segments)

        return read if self._patterns else lambda text: text


def _parsed(selector: str) -> list[Tree]:
    """Returns the selectors of a group."""
    try:
        trees = [each.parsed_tree for each in parse_selectors(selector) if each.pseudo_element is None]
    except SelectorError as error:
        raise SETTINGS["ignore"].refusal((selector,), f"which is no CSS selector: {error}") from None
    if not trees or not all(map(_is_cheap, trees)):
        raise SETTINGS["ignore"].refusal((selector,), "which uses a part that is not supported here")
    return trees


def _is_cheap(tree: Tree) -> bool:
    """Returns whether it takes linear time to find what a selector means."""
    if isinstance(tree, CombinedSelector) and tree.combinator not in {" ", ">"}:
        return False
    if isinstance(tree, CombinedSelector | Negation):
        is_simple = not isinstance(tree.subselector, CombinedSelector)
        return is_simple and _is_cheap(tree.selector) and _is_cheap(tree.subselector)
    if isinstance(tree, Attrib | Class | Hash):
        return _is_cheap(tree.selector)
    return isinstance(tree, Element)


def _parts(tree: Tree) -> Iterator[Tree]:
    """Yields the parts of a selector between which there are combinators."""
    if isinstance(tree, CombinedSelector):
        yield from _parts(tree.selector)
        yield tree.subselector
    else:
        yield tree


def _find(part: Tree) -> _Find:
    return cast(_Find, etree.XPath(f"descendant-or-self::{HTMLTranslator().xpath(part)}"))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise SETTINGS["ignore_text"].refusal(
            (pattern,), f"which is no regular expression: {error}"
        ) from None


def markup_of(root: etree._Element) -> str:
    """Returns the markup of a tree to which an `Ignore` was `applied`, without what doesn't count.

    >>> markup_of(Ignore(["b"]).applied(etree.HTML("<p>a <b>story</b> of it")))
    '<html><body><p>a <IGNORED/> of it</p></body></html>'
    """
    root = deepcopy(root)
    for node in root.iter(IGNORED):
        tail = node.tail
        node.clear()
        node.tail = tail
    return etree.tostring(root, encoding="unicode")


#: Everything counts.
NOTHING = Ignore()
