"""Places on a page: where there is something between tokens that are known.

The tokens may have breaks among them: what stands between two blocks, such as paragraphs, list items and boxes.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, compress
from typing import NamedTuple, TypeVar

from xxhash import xxh3_64_hexdigest

from dedup.page.html import Page
from dedup.page.tokens import Breaks, Tokens, each_of

#: Tokens on either side by which a place is known.
AROUND = 2
#: Noise of one place may be twice as long on another page as it was where it was seen, and a bit, but no more tokens longer:
#: beyond it may be what the page itself says.
A_BIT, LONGER = 2, 8
#: With what breaks and signs begin, which no token does.
_BREAK, _SIGNS = "\n", frozenset("\t")
_BREAKS = re.compile(rb"\n[0-9]+\0")
#: Stands in front of a block that moves (see `dedup.filter.moving`): no noise goes beyond it.
EDGE = "\r"
_MARKS = _SIGNS | {_BREAK}
#: A token that a page has more often marks no place on it.
MANY = 1000


T = TypeVar("T")


class Place(NamedTuple):
    """The tokens before noise, and those after it."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    has_breaks: bool = False  #: true if breaks count among the tokens

    def runs(self, page: "Where", longest: int, *, has_signs: bool = False) -> list[tuple[int, int]]:
        """Returns the first word of what may be noise of this place, and the one behind the last: the shortest run between what is around it,
        but for signs in it that stay.

        All of that has to be there; or all of one side, and of the other the nearest token, if the page has that once.  Nothing
        if there is no such run, or more than one: a longer run, or another one, might hold what the page itself says.  If it
        ``has_signs``, those at its end are in it, too: all that there is of it if it has no token at the ``longest``.
        """
        begins, ends = page.behind(self.before[-1:]), page.at(self.after[:1])
        if len(begins) > MANY or len(ends) > MANY:
            return []
        found: tuple[int, int] | None = None
        for end in ends:
            at = bisect_right(begins, end)
            begin = begins[at - 1] if at else end
            if not min(longest, 1) <= end - begin <= longest:
                continue
            if EDGE in page.tokens[begin:end]:
                continue
            is_behind = tuple(page.tokens[max(0, begin - len(self.before)) : begin]) == self.before
            is_in_front = tuple(page.tokens[end : end + len(self.after)]) == self.after
            if (is_behind and (is_in_front or len(ends) == 1)) or (is_in_front and len(begins) == 1):
                if found:
                    return []
                found = begin, end
        return page.words(*found, has_signs=has_signs) if found else []


def longest_of(most: int) -> int:
    """Returns how many tokens noise may have at a place where it was seen with so many at most; signs are no tokens."""
    return min(2 * most + A_BIT, most + LONGER) if most else 0


class Where:
    """Where the tokens stand on one page by which places are known: never signs, and breaks only if they count."""

    def __init__(self, tokens: Sequence[str], known_by: AbstractSet[str], *, has_breaks: bool) -> None:
        passed_over = _SIGNS if has_breaks else _MARKS
        begins = [token[:1] for token in tokens]
        stays = [begin not in passed_over for begin in begins]
        self.tokens = [*compress(tokens, stays)]
        words = [0, *accumulate([begin != _BREAK for begin in begins])]
        self._words = [*compress(words, stays), words[-1]]  # tokens before each, but for breaks
        self._places = defaultdict[str, list[int]](list)
        for number, token in enumerate(self.tokens):
            if token in known_by:
                self._places[token].append(number)

    def behind(self, before: tuple[str, ...]) -> list[int]:
        """Returns the places behind a token, in order; the start of the page behind none."""
        return [at + 1 for at in self._places.get(before[0], ())] if before else [0]

    def at(self, after: tuple[str, ...]) -> list[int]:
        """Returns the places of a token, in order; the end of the page for none."""
        return self._places.get(after[0], []) if after else [len(self.tokens)]

    def words(self, begin: int, end: int, *, has_signs: bool) -> list[tuple[int, int]]:
        """Returns a run of tokens as runs among all tokens but breaks: one with the signs in it and at its end, or several without."""
        if has_signs:
            first, last = self._words[begin] if begin < end else self._after(begin - 1), self._words[end]
            return [(first, last)] if first < last else []
        found = list[tuple[int, int]]()
        for at in range(begin, end):
            first, last = self._words[at], self._after(at)
            if found and found[-1][1] == first:
                found[-1] = found[-1][0], last
            elif first < last:
                found.append((first, last))
        return found

    def _after(self, at: int) -> int:
        """How many tokens but breaks there are up to one of them."""
        return self._words[at] + (not is_break(self.tokens[at])) if at >= 0 else 0


def marked(page: Page) -> list[bytes]:
    """Returns the tokens of a page in UTF-8, with a break between blocks, and with the signs of each block that has any.

    A break is a line feed, and how deep it is, and signs are a tab, and a hash: no token is like either.

    >>> from dedup.page.read import read
    >>> marked(read("<p>one <b>story</b> \u2713<div>next"))
    [b'\\n1', b'one', b'story', b'\\t48f46c97927cffa2', b'\\n3', b'next', b'\\n1']
    """
    each = each_of(page.tokens)
    breaks = page.tokens.find_breaks() if isinstance(page.tokens, Tokens) else ()
    if breaks:
        return with_breaks(each, breaks, str.encode)
    return [*each, _signs(page.signs).encode()] if page.signs else each


def with_breaks(tokens: list[T], breaks: Breaks, written: Callable[[str], T]) -> list[T]:
    """Returns these tokens with such breaks between them, as they are ``written``."""
    found: list[T] = []
    last = 0
    for at, depth, signs in breaks:
        found += tokens[last:at]
        if signs:
            found.append(written(_signs(signs)))
        found.append(written(f"{_BREAK}{depth}"))
        last = at
    return found + tokens[last:]


def without_breaks(octets: bytes) -> bytes:
    """Returns tokens, joined by NULs, but for breaks, and with signs.

    >>> without_breaks(b"\\n1\\0one\\0\\n2\\0\\t48f46c97927cffa2\\0\\n3\\0")
    b'one\\x00\\t48f46c97927cffa2\\x00'
    """
    return _BREAKS.sub(b"", octets)


def _signs(signs: bytes) -> str:
    return f"\t{xxh3_64_hexdigest(signs)}"


def is_break(token: str) -> bool:
    """Returns whether a token is a break."""
    return token[:1] == _BREAK


def is_signs(token: str) -> bool:
    """Returns whether a token stands for signs."""
    return token[:1] in _SIGNS
