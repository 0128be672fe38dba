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
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import urlsplit

from xxhash import xxh3_64_intdigest

from dedup.latest import Latest
from dedup.page.ids import strip_session

#: Tokens on either side by which a place is known.
AROUND = 2
#: Tokens that have to be equal between two differences, or else they are one: words of an advert agree by chance.
BETWEEN = 4
#: Tokens of a page that may differ when it is fetched again; if more do, another page was served.
MAX_DIFFERING = 500
#: Noise of one place may be twice as long on another page as it was where it was seen, and a bit, but no more tokens longer.
A_BIT, LONGER = 2, 8
#: A token that a page has more often marks no place on it.
MANY = 1000
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

    def run(self, tokens: Sequence[str], where: "_Where", most: int) -> tuple[int, int] | None:
        """The first and the last token of what may be noise of this place: the shortest run between what is around it.

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
            if not 0 < end - begin <= min(2 * most + A_BIT, most + LONGER):
                continue
            is_behind = tuple(tokens[max(0, begin - AROUND) : begin]) == self.before
            is_in_front = tuple(tokens[end : end + AROUND]) == self.after
            if (is_behind and (is_in_front or len(ends) == 1)) or (is_in_front and len(begins) == 1):
                if found:
                    return None
                found = begin, end
        return found


@dataclass(slots=True)
class _Kind:
    """What is known of a kind of page."""

    probed: int = 0  #: kept pages that were fetched again
    places: dict[_Place, int] = field(default_factory=dict)  #: the most tokens that a place had


class Noise:
    """The noise of a crawl's pages, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, _Kind](MAX_KINDS)
        # The last page that was asked about: it is asked about several times in turn.
        self._asked = "", 0
        self._tokens: Sequence[str] = ()
        self._found: list[tuple[int, int] | None] = []

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
        if len(found) + len(kind.places) > MAX_PLACES:
            return False
        for first, last, length in found:
            place = _Place(tuple(a[max(0, first - AROUND) : first]), tuple(a[last : last + AROUND]))
            kind.places[place] = max(length, kind.places.get(place, 0))
        return True

    def left(self, url: str, tokens: Sequence[str]) -> list[str]:
        """Returns the tokens of a page without those at places of noise.  O(n), and a bounded number of steps for each place."""
        runs = sorted(run for run in self._runs(url, tokens) if run)
        left: list[str] = []
        at = 0
        for first, last in runs:
            left += tokens[at:first]  # none, if it begins within what was left out
            at = max(at, last)
        return [*left, *tokens[at:]]

    def shown(self, url: str, tokens: Sequence[str]) -> list[int]:
        """Returns a hash of what a page shows at each place of noise, in the order in which they were learned; 0 for none."""
        return [
            xxh3_64_intdigest(joined(tokens[slice(*run)])) if run else 0 for run in self._runs(url, tokens)
        ]

    def _runs(self, url: str, tokens: Sequence[str]) -> list[tuple[int, int] | None]:
        """The first and the last token at each place of noise that is known of pages like this one."""
        kind = self._kinds.get(kind_of(url))
        if kind is None or not kind.places:
            return []
        asked = kind_of(url), kind.probed
        if self._asked != asked or self._tokens != tokens:
            where = _Where(tokens)
            self._found = [place.run(tokens, where, most) for place, most in kind.places.items()]
            self._asked, self._tokens = asked, tokens
        return self._found


def joined(tokens: Sequence[str]) -> bytes:
    """Tokens as bytes, to be hashed."""
    return "\0".join(tokens).encode("utf-8", "surrogatepass")


class _Where:
    """Where each token stands on one page."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._count = len(tokens)
        self._places = defaultdict[str, list[int]](list)
        for number, token in enumerate(tokens):
            self._places[token].append(number)

    def behind(self, before: tuple[str, ...]) -> list[int]:
        """The places behind a token, in order; the start of the page behind none."""
        return [at + 1 for at in self._places.get(before[0], ())] if before else [0]

    def at(self, after: tuple[str, ...]) -> list[int]:
        """The places of a token, in order; the end of the page for none."""
        return self._places.get(after[0], []) if after else [self._count]


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
