"""Kinds of page, and what pages of one kind have shown: where they have noise, and what moves on them.

A kind of page is known by its host and the pattern of its address; a place by the tokens that stand around it, or by those
on one side, if it ends with its block on the other.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, islice, takewhile
from urllib.parse import urlsplit

from msgspec import Struct, field, structs

from dedup.filter.answers import differences, differing_blocks
from dedup.filter.moving import Moving
from dedup.filter.places import AROUND, Place, is_break, is_signs
from dedup.page.ids import strip_session
from dedup.page.siblings import PASSING

#: Places of noise on pages of one kind, each counted up to three times beside blocks; if there are more, too much changes to tell
#: noise from content.
MAX_PLACES = 256
#: Kinds of page of which noise is remembered.
MAX_KINDS = 10_000
#: Kept pages of one kind that are fetched again to learn of noise, and twice as many if it is in doubt where there is some.
MAX_KNOWN = 3

_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=64)
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


class Seen(Struct):
    """What pages of a kind have shown at a place of noise."""

    most: int  #: tokens, at most
    page: str  #: the address of the page that has shown noise there first
    has_signs: bool = False  #: true if its signs have changed, too
    is_common: bool = False  #: true if several pages have shown noise there


class Kind(Struct):
    """What pages of a kind have shown when they were fetched again."""

    probed: int = 0  #: kept pages that were fetched again
    pages: set[str] = set()  #: their addresses
    places: dict[Place, Seen] = {}  #: where there is noise
    #: Places at the end of blocks that one page has shown, which are no noise yet.
    shown_once: dict[Place, Seen] = {}
    signs_change: bool = False  #: true if signs were other ones
    moving: Moving = field(default_factory=Moving)
    _is_shown_twice: bool = False  # any place at the end of a block

    @property
    def is_known(self) -> bool:
        """Whether enough pages were fetched again.

        They are not yet if each has shown noise at another end of a block: an advert may have been the same twice.
        """
        is_doubtful = self.shown_once and not self._is_shown_twice
        return self.probed >= (2 if is_doubtful else 1) * MAX_KNOWN

    def learn(self, page: str, a: Sequence[str], b: Sequence[str]) -> bool:
        """Takes what differs between two answers to one request for noise, given as `dedup.filter.places.marked` tokens,
        or as tokens alone.

        False if so much differs that nothing is learned: these are two pages.  O(n) where little differs,
        and quadratic in what differs, which is bounded.
        """
        moving = structs.replace(self.moving)
        moving.learn(a, b)
        (a, _), (b, _) = map(moving.settled, (a, b))
        plain, other = [[t for t in each if not is_break(t) and not is_signs(t)] for each in (a, b)]
        words = accumulate(not is_break(token) and not is_signs(token) for token in a)
        found = differences(plain, other, {at for at, token in zip(words, a, strict=True) if is_break(token)})
        if found is None:
            return False
        self.probed += 1
        self.pages.add(page)
        self.signs_change |= [*filter(is_signs, a)] != [*filter(is_signs, b)]
        if len(found) + len(self.places) > MAX_PLACES:
            return False
        self.moving = moving
        for first, last, most, _ in found:
            around = tuple(plain[max(0, first - AROUND) : first]), tuple(plain[last : last + AROUND])
            self._note(page, Place(*around), most)
        inside, whole = differing_blocks(a, b)
        differ = {at for first, last, *_ in inside for at in range(first, last)}
        halves = dict[Place, tuple[int, bool]]()
        for first, last, most, has_signs in inside + whole:
            before = _beside(a, range(first - 1, -1, -1), differ)[::-1]
            after = _beside(a, range(last, len(a)), differ)
            if len(before) == len(after) == AROUND:
                self._note(page, Place(before, after, has_breaks=True), most, has_signs=has_signs)
            if len(after) == AROUND and before and is_break(before[-1]):
                halves[Place(before[-1:], after, has_breaks=True)] = most, has_signs
            if len(before) == AROUND and after and is_break(after[0]):
                halves[Place(before, after[:1], has_breaks=True)] = most, has_signs
        for half, (most, has_signs) in halves.items():
            self._note_half(page, half, most, has_signs=has_signs)
        return True

    def _note(
        self, page: str, place: Place, most: int, *, has_signs: bool = False, is_common: bool = False
    ) -> None:
        """Notes a place of noise of a page: how many tokens it has at most, and whether it has signs."""
        seen = self.places.setdefault(place, Seen(most, page))
        seen.most = max(seen.most, most)
        seen.has_signs |= has_signs
        seen.is_common |= is_common or seen.page != page

    def _note_half(self, page: str, place: Place, most: int, *, has_signs: bool) -> None:
        """Notes a place of noise that is known by one side, as there is the end of a block on the other.

        What a page itself says may be on the known side, too, so that another page has to show the same.
        """
        seen = self.shown_once.setdefault(place, Seen(most, page))
        if place in self.places or seen.page != page:
            self._is_shown_twice = True
            self._note(page, place, max(most, seen.most), has_signs=has_signs, is_common=True)


def _beside(tokens: Sequence[str], places: Iterable[int], differ: AbstractSet[int]) -> tuple[str, ...]:
    """Returns the tokens by which a place is known on one side, as far as they stay the same."""
    stays = takewhile(lambda at: at not in differ, (at for at in places if not is_signs(tokens[at])))
    return tuple(tokens[at] for at in islice(stays, AROUND))
