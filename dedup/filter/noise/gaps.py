"""Gaps: where pages were seen to change although nobody has changed them, such as a counter, an advert or the order of a list.

A gap is known by what stays around it: its blocks, and the tokens on either side in its line, a word among them, such as the
label of a row; or else by its place.  If the same stands around what stays, it is none.  What one page has shown is its own.
On other pages of its kind a gap is one only if several have shown it, and it forgives only what it has shown on others: a
number where numbers have changed, an advert that was there on another page.  Where items of a list have only moved, any order
is forgiven, and no other item.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from dedup.filter.noise.answers import MAX_STEPS, Changes, Difference, Pair, said_at, said_in
from dedup.filter.noise.lines import BREAK, Line, has_label, is_one_place

#: Pages, different in content, that have to show a gap before it is one of their kind; and before it forgives there what it has
#: not shown.
SEVERAL, MANY = 2, 4
#: Tokens on either side by which a gap in a line is known; and how often those before it are doubled, if the same stand around
#: what stays.
AROUND = 3
#: What is remembered at most: gaps of one sort, and what each has shown: beyond that, what changes is content; and kinds of
#: page, with what they say, in a quarter of a megabyte each.
MAX_KNOWN = 256
#: Stands for a gap, for any number before one, and for the ends of a line: no page has such tokens.
GAP, NUMBER, START, END = "<*", "<0", "<^", "<$"

_NUMBERS = re.compile(r"0(?:\0[.,:/' -]?\0?0)*")


class Shown(Struct):
    """What pages have shown in a gap."""

    pages: set[str] = set()  #: that have shown it, as many as count
    #: Hashes of what was there, and the page that has shown it; "" if several have.
    values: dict[int, str] = {}
    least: int = 0  #: tokens, at least
    most: int = 0  #: at most
    stay: int = 0  #: what stood there in both of two answers: lines, or numbers in one
    change: int = 0  #: and that stood in one
    steady: set[int] = set()  #: hashes of what stood in both

    def add(self, page: str, *values: int) -> None:
        if len(self.pages) < MANY:
            self.pages.add(page)
        for value in values:
            if value in self.values or len(self.values) < MAX_KNOWN:
                self.values[value] = page if self.values.get(value, page) == page else ""

    @property
    def is_all(self) -> bool:
        """Whether most of what stands there comes and goes."""
        return 2 * self.stay <= self.change

    def has_met(self, page: str, value: int) -> bool:
        """Returns whether others than this page have shown what it has there."""
        return self.values.get(value, page) != page

    def forgives(self, page: str, value: int) -> bool:
        """Returns whether several pages have shown this gap, and others than this one what it has there; or many have."""
        is_known = self.has_met(page, value) or (self.is_all and len(self.pages) >= MANY)
        return is_known and len(self.pages) >= SEVERAL

    def has_come(self, page: str, value: int) -> bool:
        """Returns whether it forgives a line that others have shown, or any if none has stayed there.

        Where more stay than come and go, none of them may have done both.
        """
        is_known = self.has_met(page, value) or self.steady <= self.values.keys()
        is_told = self.stay <= self.change or self.steady.isdisjoint(self.values)
        return is_known and is_told and self.forgives(page, value)


class Around(NamedTuple):
    """The tokens by which a gap in a line is known."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Gaps(Struct, gc=False):
    """The gaps that pages of a kind have shown: by the path of their lines, or by their places."""

    within: dict[str, dict[Around, Shown]] = {}  #: in lines
    coming: dict[str, Shown] = {}  #: lines that come and go
    moving: dict[str, Shown] = {}  #: by group, lines that change their order
    version: int = 0  #: grows with every gap that is new
    ordered: dict[str, dict[Around, Shown]] = {}  #: in lines, where items change their order alone

    def __bool__(self) -> bool:
        return bool(self.within or self.ordered or self.coming or self.moving)

    def learn(self, page: str, found: Changes) -> None:
        """Takes what differs between two answers to one request of a page for gaps."""
        before, steps = self._size(), MAX_STEPS
        for pair in found.pairs:
            steps -= len(pair.differences) * (len(pair.line.tokens) + len(pair.other.tokens))
            if steps >= 0 and pair.differences:
                _note(page, pair, self.ordered if pair.is_order else self.within)
        for line in found.alone:
            if has_room(line.place, self.coming):
                values = [hashed(line.tokens)] if _has_words(line) else []  # a number is met by chance
                shown = self.coming.setdefault(line.place, Shown())
                shown.add(page, *values)
                shown.change += 1
        for line in found.stay:
            if (known := self.coming.get(line.place)) is not None:
                known.stay += 1
                if len(known.steady) < MAX_KNOWN:
                    known.steady.add(hashed(line.tokens))
        for place in sorted(found.moved):
            if has_room(place, self.moving):
                self.moving.setdefault(place, Shown()).add(page)
        self.version += self._size() != before

    def _size(self) -> tuple[int, ...]:
        alone = sum(not shown.is_all for shown in self.coming.values())
        within, ordered = (sum(map(len, known.values())) for known in (self.within, self.ordered))
        return within, ordered, len(self.coming), alone, len(self.moving)


def _note(page: str, pair: Pair, gaps: dict[str, dict[Around, Shown]]) -> None:
    a, b, found = pair.line.tokens, pair.other.tokens, pair.differences
    line, sides = _Around.of(pair.line), _sides(pair)
    ends = [0, *(1 + last for _, last, *_ in found)]
    starts = [*(1 + first for first, *_ in found), len(a) + 2]
    for difference, before, after in zip(found, ends, starts[1:], strict=False):
        first, last, start, end = difference
        mine, theirs = folded(a[first:last]), folded(b[start:end])
        known_by = line.known_by(before, first + 1, last + 1, after, is_counter=mine == theirs)
        sought = (each for each in known_by if not _stays(sides, difference, each[1]))
        where, around = next(sought, ("", None))
        if around is None or not has_room(where, gaps):
            continue
        known = gaps.setdefault(where, {})
        if not has_room(around, known):
            continue
        sizes = last - first, end - start
        shown = known.setdefault(around, Shown(least=min(sizes)))
        if not pair.has_moved:
            shown.add(page, *([] if pair.is_order else (mine, theirs)))  # an order forgives no value
        shown.stay, shown.change = shown.stay + (mine == theirs), shown.change + (mine != theirs)
        shown.least, shown.most = min(shown.least, *sizes), max(shown.most, *sizes)


class _Side(NamedTuple):
    """One of two lines, and where it differs from the other."""

    tokens: tuple[str, ...]
    first: list[int]  #: from each of these
    last: list[int]  #: to before each of these


def _sides(pair: Pair) -> tuple[_Side, _Side]:
    first, last, start, end = map(list, zip(*pair.differences, strict=True))
    return _Side(pair.line.tokens, first, last), _Side(pair.other.tokens, start, end)


def _stays(sides: Iterable[_Side], difference: Difference, around: Around) -> bool:
    """Returns whether the same stands around what has not changed: then nobody can tell where the gap is."""
    first, last, start, end = difference
    size = Shown(least=min(last - first, end - start), most=max(last - first, end - start))
    for side in sides:
        for begins, before in gaps_in(side.tokens, {around: size}, lambda *_: True):
            at = bisect_left(side.last, begins)  # the first difference that ends there, or behind it
            if at == len(side.first) or before < side.first[at]:
                return True
    return False


class _Around(NamedTuple):
    """A line, of which it is sought what stands around its gaps."""

    line: Line
    tokens: tuple[str, ...]
    words: list[int]  #: where they are
    in_tag: list[bool]  #: whether each token is in an attribute

    @classmethod
    def of(cls, line: Line) -> "_Around":
        tokens = START, *line.tokens, END
        in_tag, is_inside = list[bool](), False
        for token in tokens:
            in_tag.append(is_inside)
            is_inside = token != "<>" and (is_inside or (token[0] == " " and len(token) > 1))
        return cls(line, tokens, [at for at in said_at(tokens) if tokens[at][0].isalpha()], in_tag)

    def known_by(
        self, before: int, first: int, last: int, after: int, *, is_counter: bool
    ) -> Iterator[tuple[str, Around]]:
        """Yields the path or the place of a gap, and what stands around it, up to the gaps beside it: ever more before it.

        A word has to stand around it, or else it is known by its place.  In a row of a table that is what the row is of.
        """
        near, spoken = max(before, first - AROUND), bisect_left(self.words, first)
        starts = [min(near, self.words[spoken - 1]) if spoken and self.words[spoken - 1] >= before else near]
        while starts[-1] > before and len(starts) <= AROUND:
            starts.append(max(before, 2 * starts[-1] - first))
        is_in_card = is_counter and not has_label(self.line.path)  # a counter is one in all cards
        for start in starts:
            for end in (BREAK, END) if is_in_card else (END,):
                around = self._around(start, first, last, min(after, last + AROUND), end)
                begins, ends = first - len(around.before), last + len(around.after)
                if self._has_word(begins, first) or self._has_word(last, ends) or self.in_tag[first]:
                    if around.before[-1][:1].isdigit():  # a date before a counter
                        around = around._replace(before=(NUMBER,))
                    yield self.line.path, around
        if is_one_place(self.line.place):
            yield self.line.place, self._around(starts[0], first, last, min(after, last + AROUND), END)

    def _around(self, start: int, first: int, last: int, after: int, end: str) -> Around:
        before = _to_number(self.tokens[start:first][::-1], end)[::-1]
        return Around(before, _to_number(self.tokens[last:after], end))

    def _has_word(self, start: int, end: int) -> bool:
        return bisect_left(self.words, start) < bisect_left(self.words, end)


def gaps_in(
    tokens: tuple[str, ...], gaps: dict[Around, Shown], forgives: Callable[[Shown, int], bool]
) -> Iterator[tuple[int, int]]:
    """Yields where there are gaps among tokens, from here to before there."""
    line, named, there = _framed(tokens)
    for (before, after), shown in gaps.items():
        if not (there.issuperset(before) and there.issuperset(after)):
            continue
        starts = [at + len(before) for at in _places(line, named, before)]
        last = 0
        for end in _places(line, named, after) if starts else ():
            first = starts[bisect_right(starts, end - shown.least) - 1]
            if last <= first <= end - shown.least and end - first <= 2 * shown.most + 2:
                last = end
                if forgives(shown, folded(line[first:end])):
                    yield first - 1, end - 1


@lru_cache(maxsize=2)
def _framed(tokens: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], set[str]]:
    """Returns a line with its ends, the same with a name for its numbers, and the tokens of both."""
    line = (START, *tokens, END)
    named = tuple([NUMBER if token[:1].isdigit() else token for token in line])
    return line, named, {*line, *named}


def _places(line: tuple[str, ...], named: tuple[str, ...], some: tuple[str, ...]) -> Iterator[int]:
    """Yields where some tokens stand in a line, given also with a name for its numbers."""
    line = named if some == (NUMBER,) else line
    at = -1
    while True:
        try:
            at = line.index(some[0], at + 1)
        except ValueError:
            return
        if line[at : at + len(some)] == some:
            yield at


def folded(tokens: Sequence[str]) -> int:
    """Returns a hash of tokens, in which all numbers are alike.

    >>> folded(["1", ",", "250", "hits"]) == folded(["17", "hits"]), folded(["may"]) == folded(["june"])
    (True, False)
    """
    joined = "\0".join(["0" if any(map(str.isdigit, token)) else token for token in tokens])
    return _hash(_NUMBERS.sub("0", joined))


def hashed(tokens: Sequence[str]) -> int:
    """Returns a hash of tokens, the same in every crawl."""
    return _hash("\0".join(tokens))


def _hash(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def _to_number(tokens: tuple[str, ...], end: str) -> tuple[str, ...]:
    """Returns the first tokens, and those behind it up to an end or a number, which may be another on another page, or tomorrow."""
    for at, token in enumerate(tokens):
        if token == end:
            return tokens[: at + 1]
        if at and token[:1].isdigit():
            return tokens[:at]
    return tokens


def _has_words(line: Line) -> bool:
    return not all(token[:1].isdigit() or len(token) == 1 for token in said_in(line.tokens))


def has_room(key: object, *known: Mapping[Any, object]) -> bool:
    return any(key in each for each in known) or all(len(each) < MAX_KNOWN for each in known)
