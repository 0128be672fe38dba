"""Noise: what changes on a page although nobody has changed it, such as a counter, a date or an advert.

It is measured, never assumed.  A kept page is fetched twice more, and what differs between the two answers is noise: at
these places, on pages of this kind.  A place is known by the tokens that stand around it, and a kind of page by its host
and the pattern of its address.  Two pages are equal but for noise if nothing else differs.

>>> noise = Noise()
>>> words = str.split
>>> noise.learn("http://a.org/view?id=1", words("the page of one seen 17 times by all"), words("the page of one seen 18 times by all"))
True
>>> noise.left("http://a.org/view?id=2", words("the page of two seen 9,000 times by all"))
['the', 'page', 'of', 'two', 'seen', 'times', 'by', 'all']
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import urlsplit

from dedup.latest import Latest
from dedup.page.ids import strip_session

#: Tokens on either side by which a place is known; all of one side, and the nearest of the other, have to be there.
AROUND = 2
#: Tokens that have to be equal between two differences, or else they are one: words of an advert agree by chance.
BETWEEN = 4
#: Tokens of a page that may differ when it is fetched again; if more do, another page was served.
MAX_DIFFERING = 500
#: Noise of one place may be this many times as long on another page as it was where it was seen, and a bit.
LONGER, A_BIT = 2, 2
#: Where noise may end is tried this often: its first token may be in the noise itself by chance.
TRIED = 8
#: Places of noise on pages of one kind; if there are more, too much changes to tell noise from content.
MAX_PLACES = 64
#: Kinds of page of which noise is remembered.
MAX_KINDS = 10_000
#: Kept pages of one kind that are fetched again to learn of noise.
MAX_KNOWN = 3

_NUMBER = re.compile(r"\d+")


def kind_of(url: str) -> str:
    """Returns the kind of a page: its host and path without numbers, and the names of its parameters.

    >>> kind_of("http://a.org/shop/item-12.html"), kind_of("http://a.org/view?id=3&sid=9f86d081884c7d65")
    ('a.org/shop/item-0.html', 'a.org/view?id')
    """
    try:
        parts = urlsplit(strip_session(url))
    except ValueError:
        return url
    names = sorted({pair.partition("=")[0] for pair in re.split("[&;]", parts.query) if pair})
    path = _NUMBER.sub("0", parts.path)
    return f"{parts.netloc}{path}" + (f"?{'&'.join(names)}" if names else "")


class _Place(NamedTuple):
    """The tokens before noise, and those after it."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def is_at(self, tokens: Sequence[str], first: int, last: int) -> bool:
        """Whether the noise of this place may be the tokens between."""
        after = tuple(tokens[last : last + AROUND])
        if after[:1] != self.after[:1]:
            return False
        return after == self.after or tuple(tokens[max(0, first - AROUND) : first]) == self.before


@dataclass(slots=True)
class _Kind:
    """What is known of a kind of page."""

    probed: int = 0  #: kept pages that were fetched again
    #: The most tokens that a place had, by the token before it, and then by those before and after it.
    places: dict[tuple[str, ...], dict[_Place, int]] = field(default_factory=dict)


class Noise:
    """The noise of a crawl's pages, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, _Kind](MAX_KINDS)

    def is_known(self, url: str) -> bool:
        """Whether enough pages of this kind were fetched again."""
        return self.probed(url) >= MAX_KNOWN

    def is_tried(self, url: str) -> bool:
        """Whether any page of this kind was fetched again."""
        return kind_of(url) in self._kinds

    def is_met(self, url: str) -> bool:
        """Whether there is any noise on pages of this kind."""
        kind = self._kinds.get(kind_of(url))
        return kind is not None and bool(kind.places)

    def probed(self, url: str) -> int:
        """How many pages of this kind were fetched again."""
        kind = self._kinds.get(kind_of(url))
        return 0 if kind is None else kind.probed

    def learn(self, url: str, a: Sequence[str], b: Sequence[str]) -> bool:
        """Takes what differs between the tokens of two answers to one request for noise.

        False if so much differs that nothing is learned: these are two pages.  O(n) where little differs,
        and quadratic in what differs, which is bounded.
        """
        found = _differences(a, b)
        if found is None:
            return False
        name = kind_of(url)
        kind = self._kinds[name] = self._kinds.get(name) or _Kind()
        kind.probed += 1
        if len(found) + sum(map(len, kind.places.values())) > MAX_PLACES:
            return False
        for first, last, length in found:
            place = _Place(tuple(a[max(0, first - AROUND) : first]), tuple(a[last : last + AROUND]))
            known = kind.places.setdefault(place.before[-1:], {})
            known[place] = max(length, known.get(place, 0))
        return True

    def left(self, url: str, tokens: Sequence[str]) -> list[str]:
        """Returns the tokens of a page without those at places of noise.  O(n) for each place."""
        kind = self._kinds.get(kind_of(url))
        if kind is None or not kind.places:
            return list(tokens)
        begins = {before[0] for before in kind.places if before}
        first = [0] if () in kind.places else []
        left: list[str] = []
        ends = _Ends(tokens)
        at = 0
        for begin in first + [number for number, token in enumerate(tokens, 1) if token in begins]:
            if begin < at:
                continue  # it is within what was left out, or right behind that
            places = kind.places[tuple(tokens[max(0, begin - 1) : begin])]
            found = (ends.end(begin, place, most) for place, most in places.items())
            end = min((end for end in found if end > begin), default=begin)
            left += [*tokens[at:begin], *tokens[end : end + 1]]
            at = end + 1
        return [*left, *tokens[at:]]


class _Ends:
    """Finds where noise ends among the tokens of one page; asked from left to right."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._next: dict[str, int] = {}  # where a token is met next

    def end(self, first: int, place: _Place, most: int) -> int:
        """Returns where the noise that begins here ends; ``first`` if nothing that may follow it is found."""
        tokens, limit = self._tokens, first + LONGER * most + A_BIT
        if not place.after:
            return len(tokens) if len(tokens) <= limit else first
        last = first
        for _ in range(TRIED):
            last = self._find(place.after[0], last)
            if last > limit or last == len(tokens):
                return first
            if place.is_at(tokens, first, last):
                return last
            last += 1
        return first

    def _find(self, token: str, start: int) -> int:
        known = self._next.get(token, -1)
        if known < start:
            try:
                known = self._tokens.index(token, start)
            except ValueError:
                known = len(self._tokens)
            self._next[token] = known
        return known


def _differences(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int]] | None:
    """The first and last place in ``a`` of each difference, and the tokens it has at most; None if they are too many."""
    start, end = 0, 0
    shorter = min(len(a), len(b))
    while start < shorter and a[start] == b[start]:
        start += 1
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner, other = a[start : len(a) - end], b[start : len(b) - end]
    if not inner and not other:
        return []
    if max(len(inner), len(other)) > 20 * MAX_DIFFERING:
        return None
    found: list[list[int]] = []  # first and last in `inner`, first and last in `other`
    for tag, i, j, k, m in SequenceMatcher(None, inner, other, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if found and i - found[-1][1] < BETWEEN:
            found[-1][1], found[-1][3] = j, m
        else:
            found.append([i, j, k, m])
    if sum(max(j - i, m - k) for i, j, k, m in found) > MAX_DIFFERING:
        return None
    return [(start + i, start + j, max(j - i, m - k)) for i, j, k, m in found]
