"""Noise: what changes on a page although nobody has changed it, such as a counter, a date or an advert.

It is measured, never assumed.  A kept page is fetched twice more, and what differs between the two answers is noise: at
these places, on pages of this kind (see `dedup.filter.kinds`).  Two pages are equal but for noise if nothing else differs.

>>> noise = Noise()
>>> words = str.split
>>> noise.learn("http://a.org/view?id=1", words("the page of one seen 17 times by all"), words("the page of one seen 18 times by all"))
True
>>> noise.left("http://a.org/view?id=2", words("the page of two seen 9,000 times by all"))
['the', 'page', 'of', 'two', 'seen', 'times', 'by', 'all']
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from sys import intern

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from dedup.filter.kinds import MAX_KINDS, Kind, kind_of
from dedup.filter.own_name import joined, own_name
from dedup.filter.places import Where, is_break, longest_of
from dedup.latest import Latest
from dedup.page.siblings import one_address
from dedup.page.tokens import without_each

#: No number of tokens.
MOVING = -1

#: What is known of a kind if none of its pages was fetched again.  Nobody changes it.
_UNKNOWN = Kind()

#: The hashes of a page without noise.  Nobody changes them.
_NO_HASHES = dict[int, int]()

#: How it is known where there is noise: by a kind of page, and by how many of its pages were fetched again.
Basis = tuple[str, int]


class Among(Struct, frozen=True, gc=False):
    """The noise of a page among what is left of it."""

    left: int  #: a hash of that
    #: Of noise, by the number of tokens before it that are left, and `MOVING`, of what moves in its order.
    hashes: dict[int, int]

    def differing(self, other: "Among") -> set[int]:
        """Returns where two pages show something else."""
        places = self.hashes.keys() | other.hashes.keys()
        return {place for place in places if self.hashes.get(place) != other.hashes.get(place)}


class Shown(Struct, frozen=True, gc=False):
    """What a page shows where there is noise."""

    basis: Basis
    #: Among all that is left of the page, and among what is left but for its own name: as `dedup.filter.kept.digests` are.
    among: tuple[Among, Among]


class Noise:
    """The noise of a crawl's pages, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, Kind](MAX_KINDS)
        # The last page that was asked about: it is asked about several times in turn.
        self._asked = "", 0, False
        self._tokens: Sequence[str] = ()
        self._words: list[str] = []
        self._order: int | None = None  # a hash of what moves, in its order; None if nothing does
        self._found: list[tuple[int, int]] = []

    def is_known(self, url: str) -> bool:
        """Whether enough pages of this kind were fetched again."""
        return self._kind(url).is_known

    def may_tell(self, url: str) -> bool:
        """Whether a page may tell more of the noise of its kind: it was not fetched again yet, nor were enough others."""
        kind = self._kind(url)
        return not kind.is_known and one_address(url) not in kind.pages

    def is_tried(self, url: str) -> bool:
        """Whether any page of this kind was fetched again."""
        return kind_of(url) in self._kinds

    def is_met(self, url: str) -> bool:
        """Whether there is any noise on pages of this kind."""
        kind = self._kind(url)
        return bool(kind.places or kind.moving)

    def probed(self, url: str) -> int:
        """How many pages of this kind were fetched again: what is known of their noise has changed if that has."""
        return self._kind(url).probed

    def signs_change(self, url: str) -> bool:
        """Whether signs were other ones when a page of this kind was fetched again."""
        return self._kind(url).signs_change

    def basis(self, url: str) -> Basis:
        """Returns how it is known where there is noise on pages of this kind."""
        return intern(kind_of(url)), self.probed(url)  # one name for what many pages have shown

    def learn(self, url: str, a: Sequence[str], b: Sequence[str]) -> bool:
        """Takes what differs between two answers to one request for noise on pages of this kind (see `Kind.learn`)."""
        name = kind_of(url)
        kind = self._kinds.get(name) or Kind()
        before = kind.probed
        has_learned = kind.learn(one_address(url), a, b)
        if kind.probed > before:
            self._kinds[name] = kind
        return has_learned

    def left(self, url: str, tokens: Sequence[str], *, must_be_sure: bool = False) -> list[str]:
        """Returns the tokens of a page without those at places of noise.  O(n), and a bounded number of steps for each place.

        If it ``must_be_sure``, a place that one page alone has shown has no more tokens than it had there, and is known by
        blocks where these are known: beside it may be what the page itself says.
        """
        words, runs = self._runs(url, tokens, must_be_sure)
        if not runs:
            return [*words]
        ends = [(0, 0), *runs, (len(words), 0)]
        return [*chain.from_iterable(words[last:first] for (_, last), (first, _) in pairwise(ends))]

    def words(self, url: str, tokens: Sequence[str]) -> list[str]:
        """Returns the tokens of a page, as they are compared: without breaks, and with what moves behind all others."""
        return self._runs(url, tokens)[0]

    def shown(self, like: str, tokens: Sequence[str], url: str) -> Shown:
        """Returns what a page at a URL shows where there is noise on pages like another."""
        words, runs = self._runs(like, tokens)
        among = _among(words, runs, frozenset(), self._order)
        nameless = _among(words, runs, own_name(joined(words), url).tokens, self._order)
        return Shown(self.basis(like), (among, among if nameless == among else nameless))

    def shown_by(self, like: str, words: bytes, url: str) -> Shown:
        """Returns the same of a page like one that has no noise, given its tokens without breaks, joined by NULs: in less time."""
        left = words, without_each(words, own_name(words, url).tokens)
        among, nameless = (Among(xxh3_64_intdigest(each), _NO_HASHES) for each in left)
        return Shown(self.basis(like), (among, among if nameless == among else nameless))

    def _kind(self, url: str) -> Kind:
        return self._kinds.get(kind_of(url), _UNKNOWN)

    def _runs(
        self, url: str, tokens: Sequence[str], must_be_sure: bool = False
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """Returns the tokens without breaks, and the first and the last of each run of noise among them, in order and apart."""
        kind = self._kind(url)
        asked = kind_of(url), kind.probed, must_be_sure
        if self._asked != asked or (self._tokens is not tokens and self._tokens != tokens):
            stays, order = kind.moving.settled(tokens) if kind.moving else (tokens, [])
            words = [token for token in stays if not is_break(token)]
            known_by = {token for place in kind.places for token in (*place.before[-1:], *place.after[:1])}
            needed = {place.has_breaks for place in kind.places}
            where = {has_breaks: Where(stays, known_by, has_breaks=has_breaks) for has_breaks in needed}
            found = list[tuple[int, int]]()
            for place, seen in kind.places.items():
                is_doubtful = must_be_sure and not seen.is_common
                if is_doubtful and not place.has_breaks and len(words) < len(stays):
                    continue
                longest = seen.most if is_doubtful else longest_of(seen.most)
                found += place.runs(where[place.has_breaks], longest, has_signs=seen.has_signs)
            runs = list[tuple[int, int]]()
            for first, last in sorted(found):
                if runs and first <= runs[-1][1]:
                    runs[-1] = runs[-1][0], max(last, runs[-1][1])
                else:
                    runs.append((first, last))
            self._asked, self._tokens, self._words, self._found = asked, tokens, words, runs
            self._order = xxh3_64_intdigest(joined([f"{each}" for each in order])) if order else None
        return self._words, self._found


def _among(
    words: Sequence[str], runs: Sequence[tuple[int, int]], name: AbstractSet[str], order: int | None
) -> Among:
    """Returns runs of noise among the other words, but for those of a name; ``order`` is a hash of what moves."""
    hashes = dict[int, int]()
    left, at = list[str](), 0
    for first, last in runs:
        left += _but_for(name, words[at:first])
        # Between two runs there may be nothing but that name.
        hashes[len(left)] = xxh3_64_intdigest(joined(words[first:last]), hashes.get(len(left), 0))
        at = last
    left += _but_for(name, words[at:])
    if order is not None:
        hashes[MOVING] = order
    # Of most pages, there is nothing to remember but that.
    return Among(xxh3_64_intdigest(joined(left)), hashes or _NO_HASHES)


def _but_for(name: AbstractSet[str], words: Sequence[str]) -> Sequence[str]:
    return [word for word in words if word not in name] if name else words
