"""Blocks: where elements such as paragraphs, list items and boxes begin and end among the tokens of a page.

What changes in a page from one answer to the next is mostly all of a block, such as an advert, and where that is cannot be
told by the words around it if these are content.
"""

from itertools import accumulate

from lxml import etree

from dedup.page.flat import INLINE, is_chrome_role, read_flat
from dedup.page.tokens import Breaks
from dedup.page.walk import MARKS, Walk
from dedup.page.words import without_letters


class _Blocks(Walk):
    """A walk that notes where blocks begin and end."""

    def __init__(self, url: str, keep_urls: bool) -> None:
        super().__init__(url, keep_urls)
        self.depth = 0
        self.parts: list[bool] = []  # of each part that is open, whether it is a block
        self.breaks: list[
            tuple[int, int, bytes]
        ] = []  # before which piece, how deep, and the signs before it

    def note(self) -> None:
        signs = b"".join((*self.signs, self.signs_of_texts()))
        self.signs.clear()
        self.breaks.append((len(self.pieces), self.depth, without_letters(signs)))


def find_breaks(root: etree._Element, url: str, keep_urls: bool) -> Breaks:
    """Returns where blocks begin and end in a tree, as `dedup.page.walk.walk` reads it: O(size of the tree).

    Where several do, the outermost counts.  Each has the signs that stand before it, but behind the one before.

    >>> tree = etree.HTML("<div>one story<p>and <b>more</b> of it!</div><p>next")
    >>> find_breaks(tree, "", True)
    [(0, 1, b''), (2, 4, b''), (6, 3, b'!'), (7, 1, b'')]
    """
    met = _Blocks(url, keep_urls)
    for mark, value, text in read_flat(root, blocks=True):
        if mark == "p":
            tag, _, role = value.partition(" ")
            met.parts.append(tag not in INLINE or is_chrome_role(role))
        if mark == "k" or (mark == "p" and met.parts[-1]):
            met.depth += 1
            met.note()
        if mark in MARKS:
            MARKS[mark](met, value)
        if mark == "K" or (mark == "/" and met.parts.pop()):
            met.note()
            met.depth -= 1
        met.add_text(text)
    before = [0, *accumulate(piece.count(0) for piece in met.pieces)]
    breaks: dict[int, tuple[int, bytes]] = {}
    for piece, depth, signs in met.breaks:
        outer, met_before = breaks.get(before[piece], (depth, b""))
        breaks[before[piece]] = min(depth, outer), met_before + signs
    return [(at, depth, signs) for at, (depth, signs) in breaks.items()]
