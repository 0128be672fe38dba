"""Blocks: where elements such as paragraphs, list items and boxes begin and end among the tokens of a page.

What changes in a page from one answer to the next is mostly all of a block, such as an advert, and where that is cannot be
told by the words around it if these are content.
"""

from itertools import accumulate

from lxml import etree

from dedup.page.flat import read_flat
from dedup.page.tokens import Breaks
from dedup.page.walk import MARKS, Walk


class _Blocks(Walk):
    """A walk that notes where blocks begin and end."""

    def __init__(self, url: str, keep_urls: bool) -> None:
        super().__init__(url, keep_urls)
        self.depth = 0
        self.breaks: list[tuple[int, int]] = []  # before which piece, and how deep

    def note(self) -> None:
        self.breaks.append((len(self.pieces), self.depth))


def find_breaks(root: etree._Element, url: str, keep_urls: bool) -> Breaks:
    """Returns where blocks begin and end in a tree, as `dedup.page.walk.walk` reads it: O(size of the tree).

    Where several do, the outermost counts.

    >>> tree = etree.HTML("<div>one story<p>and <b>more</b> of it</div><p>next")
    >>> find_breaks(tree, "", True)
    [(0, 1), (2, 4), (6, 3), (7, 1)]
    """
    met = _Blocks(url, keep_urls)
    for mark, value, text in read_flat(root, blocks=True):
        if mark in {"k", "p"}:
            met.depth += 1
            met.note()
        if mark in MARKS:
            MARKS[mark](met, value)
        if mark in {"K", "/"}:
            met.note()
            met.depth -= 1
        met.add_text(text)
    before = [0, *accumulate(piece.count(0) for piece in met.pieces)]
    breaks: dict[int, int] = {}
    for piece, depth in met.breaks:
        at = before[piece]
        breaks[at] = min(depth, breaks.get(at, depth))
    return [*breaks.items()]
