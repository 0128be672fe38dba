"""Places on a page: where there is something between tokens that are known.

The tokens may have breaks among them: what stands between two blocks, such as paragraphs, list items and boxes.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from dedup.page.tokens import Breaks, Tokens

#: Tokens on either side by which a place is known.
AROUND = 2
#: Noise of one place may be twice as long on another page as it was where it was seen, and a bit, but no more tokens longer:
#: beyond it may be what the page itself says.
A_BIT, LONGER = 2, 8
#: A token that a page has more often marks no place on it.
MANY = 1000


class Place(NamedTuple):
    """The tokens before noise, and those after it."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    has_breaks: bool = False  #: true if breaks count among the tokens

    def run(self, tokens: Sequence[str], where: "Where", longest: int) -> tuple[int, int] | None:
        """Returns the first token of what may be noise of this place, and the one behind the last: the shortest run between what is around it.

        All of that has to be there; or all of one side, and of the other the nearest token, if the page has that once.  None
        if there is no such run, or more than one: a longer run, or another one, might hold what the page itself says.
        """
        begins, ends = where.behind(self.before[-1:]), where.at(self.after[:1])
        if len(begins) > MANY or len(ends) > MANY:
            return None
        found: tuple[int, int] | None = None
        for end in ends:
            at = bisect_right(begins, end)
            begin = begins[at - 1] if at else end
            if not 0 < end - begin <= longest:
                continue
            is_behind = tuple(tokens[max(0, begin - len(self.before)) : begin]) == self.before
            is_in_front = tuple(tokens[end : end + len(self.after)]) == self.after
            if (is_behind and (is_in_front or len(ends) == 1)) or (is_in_front and len(begins) == 1):
                if found:
                    return None
                found = begin, end
        return found


def longest_of(most: int) -> int:
    """Returns how many tokens the noise of a place may have that had so many at most where it was seen."""
    return min(2 * most + A_BIT, most + LONGER)


class Where:
    """Where each token stands on one page."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._count = len(tokens)
        self._places = defaultdict[str, list[int]](list)
        for number, token in enumerate(tokens):
            self._places[token].append(number)

    def behind(self, before: tuple[str, ...]) -> list[int]:
        """Returns the places behind a token, in order; the start of the page behind none."""
        return [at + 1 for at in self._places.get(before[0], ())] if before else [0]

    def at(self, after: tuple[str, ...]) -> list[int]:
        """Returns the places of a token, in order; the end of the page for none."""
        return self._places.get(after[0], []) if after else [self._count]


def marked(tokens: Sequence[str]) -> list[str]:
    """Returns the tokens of a page with a break between blocks: a line feed, and how deep it is; what no token is like.

    >>> from dedup.page.read import read
    >>> marked(read("<p>one <b>story</b><div>next").tokens)
    ['\\n1', 'one', 'story', '\\n3', 'next', '\\n1']
    """
    return with_breaks([*tokens], tokens.find_breaks() if isinstance(tokens, Tokens) else ())


def with_breaks(tokens: list[str], breaks: Breaks) -> list[str]:
    """Returns these tokens with such breaks between them."""
    found: list[str] = []
    last = 0
    for at, depth in breaks:
        found += tokens[last:at]
        found.append(f"\n{depth}")
        last = at
    return found + tokens[last:]


def is_break(token: str) -> bool:
    """Returns whether a token is a break."""
    return token[:1] == "\n"
