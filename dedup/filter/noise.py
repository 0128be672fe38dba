"""Noise: what changes on a page although nobody has changed it, such as a counter, a date or an advert.

It is measured, never assumed.  A kept page is fetched twice more, and what differs between the two answers is noise: at
these places, on pages of this kind.  A place is known by the tokens that stand around it, or by those on one side, if it ends
with its block on the other; and a kind of page by its host and the pattern of its address.  Two pages are equal but for
noise if nothing else differs.

>>> noise = Noise()
>>> words = str.split
>>> noise.learn("http://a.org/view?id=1", words("the page of one seen 17 times by all"), words("the page of one seen 18 times by all"))
True
>>> noise.left("http://a.org/view?id=2", words("the page of two seen 9,000 times by all"))
['the', 'page', 'of', 'two', 'seen', 'times', 'by', 'all']
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice, pairwise, takewhile
from typing import NamedTuple
from urllib.parse import urlsplit

from xxhash import xxh3_64_intdigest

from dedup.filter.answers import differences, differing_blocks
from dedup.filter.own_name import without_own_name
from dedup.filter.places import AROUND, Place, Where, is_break, longest_of
from dedup.latest import Latest
from dedup.page.ids import strip_session
from dedup.page.siblings import PASSING

#: Places of noise on pages of one kind, each counted up to three times beside blocks; if there are more, too much changes to tell
#: noise from content.
MAX_PLACES = 256
#: By what the signs of a whole page are known among its noise.
SIGNS = -1
#: Kinds of page of which noise is remembered.
MAX_KINDS = 10_000
#: Kept pages of one kind that are fetched again to learn of noise.
MAX_KNOWN = 3

_NUMBER = re.compile(r"\d+")


def kind_of(url: str) -> str:
    """Returns the kind of a page: its host and path without numbers, and the names of its parameters; or else its folder.

    Parameters that only say from where it was asked for, or how it is shown, don't count.

    >>> kind_of("http://a.org/shop7/view?id=3&sid=9f86d081884c7d65&ref=home"), kind_of("http://a.org/shop7/brass-lamp.html")
    ('a.org/shop0/view?id', 'a.org/shop0/*')
    """
    try:
        parts = urlsplit(strip_session(url))
    except ValueError:
        return url
    pairs = (pair.partition("=")[0] for pair in re.split("[&;]", parts.query))
    names = sorted({name for name in pairs if name and not PASSING.fullmatch(name)})
    path = _NUMBER.sub("0", parts.path)
    if not names:
        return f"{parts.netloc}{path.rpartition('/')[0]}/*"
    return f"{parts.netloc}{path}?{'&'.join(names)}"


@dataclass(slots=True)
class _Kind:
    """What is known of a kind of page."""

    probed: int = 0  #: kept pages that were fetched again
    places: dict[Place, int] = field(default_factory=dict)  #: the most tokens that a place had
    first: dict[Place, int] = field(default_factory=dict)  #: which of the pages has shown it first
    common: set[Place] = field(default_factory=set)  #: places that several pages have shown
    shown_once: dict[Place, int] = field(
        default_factory=dict
    )  #: places at the end of blocks that one page has shown

    def note(self, place: Place, most: int) -> None:
        """Notes a place of noise, which has so many tokens at most."""
        self.places[place] = max(most, self.places.get(place, 0))
        if self.first.setdefault(place, self.probed) != self.probed:
            self.common.add(place)

    def note_half(self, place: Place, most: int) -> None:
        """Notes a place of noise that is known by one side, as there is the end of a block on the other.

        What a page itself says may be on the known side, too, so that another page has to show the same.
        """
        if place in self.places or place in self.shown_once:
            self.note(place, max(most, self.shown_once.get(place, 0)))
            self.common.add(place)
        else:
            self.shown_once[place] = most


class Shown(NamedTuple):
    """What a page shows where there is noise."""

    probed: int  #: pages of its kind that were fetched again: where there is noise is known by these
    hashes: Mapping[
        int, int
    ]  #: by the number of tokens before it that are neither noise nor the page's own name


class Noise:
    """The noise of a crawl's pages, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, _Kind](MAX_KINDS)
        # The last page that was asked about: it is asked about several times in turn.
        self._asked = "", 0, False
        self._tokens: Sequence[str] = ()
        self._words: list[str] = []
        self._found: list[tuple[int, int]] = []

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
        """Takes what differs between two answers to one request for noise, given as `marked` tokens, or as tokens alone.

        False if so much differs that nothing is learned: these are two pages.  O(n) where little differs,
        and quadratic in what differs, which is bounded.
        """
        plain, other = [[token for token in each if not is_break(token)] for each in (a, b)]
        found = differences(plain, other)
        if found is None:
            return False
        name = kind_of(url)
        kind = self._kinds[name] = self._kinds.get(name) or _Kind()
        kind.probed += 1
        if len(found) + len(kind.places) > MAX_PLACES:
            return False
        for first, last, most in found:
            around = tuple(plain[max(0, first - AROUND) : first]), tuple(plain[last : last + AROUND])
            kind.note(Place(*around), most)
        inside, whole = differing_blocks(a, b)
        differ = {at for first, last, _ in inside for at in range(first, last)}
        halves = dict[Place, int]()
        for first, last, most in inside + whole:
            before = _beside(a, range(first - 1, -1, -1), differ)[::-1]
            after = _beside(a, range(last, len(a)), differ)
            if len(before) == len(after) == AROUND:
                kind.note(Place(before, after, has_breaks=True), most)
            if len(after) == AROUND and before and is_break(before[-1]):
                halves[Place(before[-1:], after, has_breaks=True)] = most
            if len(before) == AROUND and after and is_break(after[0]):
                halves[Place(before, after[:1], has_breaks=True)] = most
        for half, most in halves.items():
            kind.note_half(half, most)
        return True

    def left(self, url: str, tokens: Sequence[str], *, must_be_sure: bool = False) -> list[str]:
        """Returns the tokens of a page without those at places of noise.  O(n), and a bounded number of steps for each place.

        If it ``must_be_sure``, a place that one page alone has shown has no more tokens than it had there, and is known by
        blocks where these are known: beside it may be what the page itself says.
        """
        words, runs = self._runs(url, tokens, must_be_sure)
        ends = [(0, 0), *runs, (len(words), 0)]
        return [*chain.from_iterable(words[last:first] for (_, last), (first, _) in pairwise(ends))]

    def shown(self, like: str, tokens: Sequence[str], url: str) -> Shown:
        """Returns what a page at a URL shows where there is noise on pages like another."""
        words, runs = self._runs(like, tokens)
        hashes = dict[int, int]()
        before = at = 0
        for first, last in runs:
            before += len(without_own_name(words[at:first], url))
            is_signs = last == len(words) and words[-1][:1] == "#"  # see `dedup.filter.kept.whole_of`
            hashes[SIGNS if is_signs else before] = xxh3_64_intdigest(joined(words[first:last]))
            at = last
        return Shown(self.probed(like), hashes)

    def _runs(
        self, url: str, tokens: Sequence[str], must_be_sure: bool = False
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """Returns the tokens without breaks, and the first and the last of each run of noise among them, in order and apart."""
        kind = self._kinds.get(kind_of(url)) or _Kind()
        asked = kind_of(url), kind.probed, must_be_sure
        if self._asked != asked or self._tokens != tokens:
            words = [token for token in tokens if not is_break(token)]
            here, among_breaks = Where(words), Where(tokens)
            before = [0, *accumulate(not is_break(token) for token in tokens)]  # words before each token
            found = list[tuple[int, int]]()
            for place, most in kind.places.items():
                is_doubtful = must_be_sure and place not in kind.common
                if is_doubtful and not place.has_breaks and len(words) < len(tokens):
                    continue
                longest = most if is_doubtful else longest_of(most)
                if not place.has_breaks:
                    run = place.run(words, here, longest)
                elif run := place.run(tokens, among_breaks, longest):
                    run = before[run[0]], before[run[1]]
                if run:
                    found.append(run)
            runs = list[tuple[int, int]]()
            for first, last in sorted(found):
                if runs and first <= runs[-1][1]:
                    runs[-1] = runs[-1][0], max(last, runs[-1][1])
                else:
                    runs.append((first, last))
            self._asked, self._tokens, self._words, self._found = asked, tokens, words, runs
        return self._words, self._found


def _beside(tokens: Sequence[str], places: Iterable[int], differ: AbstractSet[int]) -> tuple[str, ...]:
    """Returns the tokens by which a place is known on one side, as far as they stay the same."""
    return tuple(tokens[at] for at in takewhile(lambda at: at not in differ, islice(places, AROUND)))


def joined(tokens: Sequence[str]) -> bytes:
    """Tokens as bytes, to be hashed."""
    return "\0".join(tokens).encode("utf-8", "surrogatepass")
