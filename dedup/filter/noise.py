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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise, takewhile
from typing import NamedTuple
from urllib.parse import urlsplit

from xxhash import xxh3_64_intdigest

from dedup.filter.answers import differences, differing_blocks
from dedup.filter.moving import Moving
from dedup.filter.own_name import without_own_name
from dedup.filter.places import AROUND, Place, Where, is_break, is_signs, longest_of
from dedup.latest import Latest
from dedup.page.ids import strip_session
from dedup.page.siblings import PASSING, one_address

#: Places of noise on pages of one kind, each counted up to three times beside blocks; if there are more, too much changes to tell
#: noise from content.
MAX_PLACES = 256
#: Kinds of page of which noise is remembered.
MAX_KINDS = 10_000
#: Kept pages of one kind that are fetched again to learn of noise, and twice as many if it is in doubt where there is some.
MAX_KNOWN = 3

#: No number of tokens.
MOVING = -1

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
    pages: set[str] = field(default_factory=set)  #: the addresses of these
    first: dict[Place, str] = field(default_factory=dict)  #: which of the pages has shown it first
    common: set[Place] = field(default_factory=set)  #: places that several pages have shown
    #: Places at the end of blocks that one page has shown: the most tokens, and the page.
    shown_once: dict[Place, tuple[int, str]] = field(default_factory=dict)
    with_signs: set[Place] = field(default_factory=set)  #: places whose signs have changed, too
    signs_change: bool = False
    moving: Moving = field(default_factory=Moving)
    _is_shown_twice: bool = False  # any such place

    @property
    def is_doubtful(self) -> bool:
        """Whether pages have shown such places, and no two of them the same: an advert may have been the same twice."""
        return bool(self.shown_once) and not self._is_shown_twice

    def note(self, page: str, place: Place, most: int, *, has_signs: bool = False) -> None:
        """Notes a place of noise of a page, which has so many tokens at most, and signs."""
        self.places[place] = max(most, self.places.get(place, 0))
        if has_signs:
            self.with_signs.add(place)
        if self.first.setdefault(place, page) != page:
            self.common.add(place)

    def note_half(self, page: str, place: Place, most: int, *, has_signs: bool) -> None:
        """Notes a place of noise that is known by one side, as there is the end of a block on the other.

        What a page itself says may be on the known side, too, so that another page has to show the same.
        """
        before, first = self.shown_once.setdefault(place, (most, page))
        if place in self.places or first != page:
            self._is_shown_twice = True
            self.note(page, place, max(most, before), has_signs=has_signs)
            self.common.add(place)


#: By what it is known where there is noise: a kind of page, and how many pages of it were fetched again.
Basis = tuple[str, int]


class Among(NamedTuple):
    """The noise of a page among what is left of it."""

    left: int  #: a hash of that
    #: Of noise, by the number of tokens before it that are left, and `MOVING`, of what moves in its order.
    hashes: dict[int, int]

    def differing(self, other: "Among") -> set[int]:
        """Returns where two pages show something else."""
        places = self.hashes.keys() | other.hashes.keys()
        return {place for place in places if self.hashes.get(place) != other.hashes.get(place)}


class Shown(NamedTuple):
    """What a page shows where there is noise."""

    basis: Basis
    #: Among all that is left of the page, and among what is left but for its own name: as `dedup.filter.kept.digests` are.
    among: tuple[Among, Among]


class Noise:
    """The noise of a crawl's pages, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, _Kind](MAX_KINDS)
        # The last page that was asked about: it is asked about several times in turn.
        self._asked = "", 0, False
        self._tokens: Sequence[str] = ()
        self._words: list[str] = []
        self._order = 0  # a hash of what moves, in its order
        self._found: list[tuple[int, int]] = []

    def is_known(self, url: str) -> bool:
        """Whether enough pages of this kind were fetched again."""
        kind = self._kinds.get(kind_of(url)) or _Kind()
        return kind.probed >= (2 if kind.is_doubtful else 1) * MAX_KNOWN

    def may_tell(self, url: str) -> bool:
        """Whether a page may tell more of the noise of its kind: it was not fetched again yet, nor were enough others."""
        kind = self._kinds.get(kind_of(url)) or _Kind()
        return not self.is_known(url) and one_address(url) not in kind.pages

    def is_tried(self, url: str) -> bool:
        """Whether any page of this kind was fetched again."""
        return kind_of(url) in self._kinds

    def is_met(self, url: str) -> bool:
        """Whether there is any noise on pages of this kind."""
        kind = self._kinds.get(kind_of(url))
        return kind is not None and bool(kind.places or kind.moving)

    def probed(self, url: str) -> int:
        """How many pages of this kind were fetched again: what is known of their noise has changed if that has."""
        kind = self._kinds.get(kind_of(url))
        return 0 if kind is None else kind.probed

    def signs_change(self, url: str) -> bool:
        """Whether signs were other ones when a page of this kind was fetched again."""
        kind = self._kinds.get(kind_of(url))
        return kind is not None and kind.signs_change

    def basis(self, url: str) -> Basis:
        """By what it is known where there is noise on pages of this kind."""
        return kind_of(url), self.probed(url)

    def learn(self, url: str, a: Sequence[str], b: Sequence[str]) -> bool:
        """Takes what differs between two answers to one request for noise, given as `marked` tokens, or as tokens alone.

        False if so much differs that nothing is learned: these are two pages.  O(n) where little differs,
        and quadratic in what differs, which is bounded.
        """
        name = kind_of(url)
        kind = self._kinds.get(name) or _Kind()
        moving = replace(kind.moving)
        moving.learn(a, b)
        (a, _), (b, _) = map(moving.settled, (a, b))
        plain, other = [[t for t in each if not is_break(t) and not is_signs(t)] for each in (a, b)]
        found = differences(plain, other)
        if found is None:
            return False
        self._kinds[name] = kind
        page = one_address(url)
        kind.probed += 1
        kind.pages.add(page)
        kind.signs_change |= [*filter(is_signs, a)] != [*filter(is_signs, b)]
        if len(found) + len(kind.places) > MAX_PLACES:
            return False
        kind.moving = moving
        for first, last, most, _ in found:
            around = tuple(plain[max(0, first - AROUND) : first]), tuple(plain[last : last + AROUND])
            kind.note(page, Place(*around), most)
        inside, whole = differing_blocks(a, b)
        differ = {at for first, last, *_ in inside for at in range(first, last)}
        halves = dict[Place, tuple[int, bool]]()
        for first, last, most, has_signs in inside + whole:
            before = _beside(a, range(first - 1, -1, -1), differ)[::-1]
            after = _beside(a, range(last, len(a)), differ)
            if len(before) == len(after) == AROUND:
                kind.note(page, Place(before, after, has_breaks=True), most, has_signs=has_signs)
            if len(after) == AROUND and before and is_break(before[-1]):
                halves[Place(before[-1:], after, has_breaks=True)] = most, has_signs
            if len(before) == AROUND and after and is_break(after[0]):
                halves[Place(before, after[:1], has_breaks=True)] = most, has_signs
        for half, (most, has_signs) in halves.items():
            kind.note_half(page, half, most, has_signs=has_signs)
        return True

    def left(self, url: str, tokens: Sequence[str], *, must_be_sure: bool = False) -> list[str]:
        """Returns the tokens of a page without those at places of noise.  O(n), and a bounded number of steps for each place.

        If it ``must_be_sure``, a place that one page alone has shown has no more tokens than it had there, and is known by
        blocks where these are known: beside it may be what the page itself says.
        """
        words, runs = self._runs(url, tokens, must_be_sure)
        ends = [(0, 0), *runs, (len(words), 0)]
        return [*chain.from_iterable(words[last:first] for (_, last), (first, _) in pairwise(ends))]

    def words(self, url: str, tokens: Sequence[str]) -> list[str]:
        """Returns the tokens of a page, as they are compared: without breaks, and with what moves behind all others."""
        return self._runs(url, tokens)[0]

    def shown(self, like: str, tokens: Sequence[str], url: str) -> Shown:
        """Returns what a page at a URL shows where there is noise on pages like another."""
        words, runs = self._runs(like, tokens)
        among = _among(words, runs), _among(words, runs, but_name_of=url)
        for each in among:
            each.hashes[MOVING] = self._order
        return Shown(self.basis(like), among)

    def _runs(
        self, url: str, tokens: Sequence[str], must_be_sure: bool = False
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """Returns the tokens without breaks, and the first and the last of each run of noise among them, in order and apart."""
        kind = self._kinds.get(kind_of(url)) or _Kind()
        asked = kind_of(url), kind.probed, must_be_sure
        if self._asked != asked or self._tokens != tokens:
            stays, order = kind.moving.settled(tokens) if kind.moving else (tokens, [])
            words = [token for token in stays if not is_break(token)]
            where = {has_breaks: Where(stays, has_breaks=has_breaks) for has_breaks in (False, True)}
            found = list[tuple[int, int]]()
            for place, most in kind.places.items():
                is_doubtful = must_be_sure and place not in kind.common
                if is_doubtful and not place.has_breaks and len(words) < len(stays):
                    continue
                longest = most if is_doubtful else longest_of(most)
                found += place.runs(where[place.has_breaks], longest, has_signs=place in kind.with_signs)
            runs = list[tuple[int, int]]()
            for first, last in sorted(found):
                if runs and first <= runs[-1][1]:
                    runs[-1] = runs[-1][0], max(last, runs[-1][1])
                else:
                    runs.append((first, last))
            self._asked, self._tokens, self._words, self._found = asked, tokens, words, runs
            self._order = xxh3_64_intdigest(joined([f"{each}" for each in order]))
        return self._words, self._found


def _among(words: Sequence[str], runs: Sequence[tuple[int, int]], but_name_of: str = "") -> Among:
    """Returns runs of noise among the other words, but for a page's own name if its URL is given."""
    hashes = defaultdict[int, int](int)
    left, at = list[str](), 0
    for first, last in runs:
        left += without_own_name(words[at:first], but_name_of)
        # Between two runs there may be nothing but that name.
        hashes[len(left)] = xxh3_64_intdigest(joined(words[first:last]), hashes[len(left)])
        at = last
    left += without_own_name(words[at:], but_name_of)
    return Among(xxh3_64_intdigest(joined(left)), hashes)


def _beside(tokens: Sequence[str], places: Iterable[int], differ: AbstractSet[int]) -> tuple[str, ...]:
    """Returns the tokens by which a place is known on one side, as far as they stay the same."""
    stays = takewhile(lambda at: at not in differ, (at for at in places if not is_signs(tokens[at])))
    return tuple(tokens[at] for at in islice(stays, AROUND))


def joined(tokens: Sequence[str]) -> bytes:
    """Tokens as bytes, to be hashed."""
    return "\0".join(tokens).encode("utf-8", "surrogatepass")
