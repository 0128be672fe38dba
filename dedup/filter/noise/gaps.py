"""Gaps: where pages were seen to change although nobody has changed them, such as a counter, an advert or the order of a list.

A gap is known by what stays around it: its blocks, and the tokens on either side in its line.  What one page has shown is its
own.  On other pages of its kind a gap is one only if several have shown it, and it forgives only what it has shown on others:
a number where numbers have changed, an advert that was there on another page.

>>> from dedup.filter.noise.answers import changes
>>> from dedup.filter.noise.lines import lines_of
>>> def page(name, seen): return lines_of(f"<h1>{name}</h1><p>Seen {seen} times", "")
>>> kind = Gaps()
>>> for name in ("one", "two"):
...     kind.learn(name, changes(page(name, 17), page(name, 18)))
>>> left = [left_of(page("three", shown), "three", Own(), kind) for shown in (4, 1_250, "many")]
>>> left[0] == left[1], left[0] == left[2], left[0][1].tokens
(True, False, ('<p', 'Seen', '<*', 'times'))
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from dedup.filter.noise.answers import MAX_STEPS, Changes, Pair, said_in
from dedup.filter.noise.lines import BREAK, Line

#: Pages, different in content, that have to show a gap before it is one of their kind; and before it forgives there what it has
#: not shown.
SEVERAL, MANY = 2, 4
#: Tokens on either side by which a gap in a line is known.
AROUND = 3
#: What is remembered at most: gaps of one sort, and what each has shown: beyond that, what changes is content; and kinds of
#: page, with what they say, in a quarter of a megabyte each.
MAX_KNOWN = 256
#: Stands for a gap, and for the ends of a line: no page has such tokens.
GAP, START, END = "<*", "<^", "<$"

_NUMBERS = re.compile(r"0(?:\0[.,:/' -]?\0?0)*")


class Shown(Struct):
    """What pages have shown in a gap."""

    pages: set[str] = set()  #: that have shown it, as many as count
    #: Hashes of what was there, and the page that has shown it; "" if several have.
    values: dict[int, str] = {}
    least: int = 0  #: tokens, at least
    most: int = 0  #: at most
    stay: int = 0  #: lines that stood there in both of two answers
    change: int = 0  #: and that stood in one

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


class Around(NamedTuple):
    """The tokens by which a gap in a line is known."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Gaps(Struct, gc=False):
    """The gaps that pages of a kind have shown: by the path of their lines, or by their places."""

    within: dict[str, dict[Around, Shown]] = {}  #: in lines
    coming: dict[str, Shown] = {}  #: lines that come and go
    moving: dict[str, Shown] = {}  #: lines that change their order
    version: int = 0  #: grows with every gap that is new

    def __bool__(self) -> bool:
        return bool(self.within or self.coming or self.moving)

    def learn(self, page: str, found: Changes) -> None:
        """Takes what differs between two answers to one request of a page for gaps."""
        before = self._size()
        for pair in found.pairs:
            if _has_room(pair.line.path, self.within):
                self._note_within(page, pair)
        for line in found.alone:
            if _has_room(line.place, self.coming):
                values = [hashed(line.tokens)] if _has_words(line) else []  # a number is met by chance
                self.coming.setdefault(line.place, Shown()).add(page, *values)
        stay = Counter(line.place for line in found.stay)
        change = Counter(line.place for line in found.alone)
        for place, shown in self.coming.items():
            shown.stay += stay[place]
            shown.change += change[place]
        for place in sorted(found.moved):
            if _has_room(place, self.moving):
                self.moving.setdefault(place, Shown()).add(page)
        self.version += self._size() != before

    def _size(self) -> tuple[int, ...]:
        alone = sum(not shown.is_all for shown in self.coming.values())
        return sum(map(len, self.within.values())), len(self.coming), alone, len(self.moving)

    def _note_within(self, page: str, pair: Pair) -> None:
        (path, a, _), (_, b, _), found = pair
        line, known = (START, *a, END), self.within.setdefault(path, {})
        ends = [0, *(1 + last for _, last, *_ in found)]
        starts = [*(1 + first for first, *_ in found), len(line)]
        for (first, last, start, end), before, after in zip(found, ends, starts[1:], strict=False):
            mine, theirs = folded(a[first:last]), folded(b[start:end])
            end_at = BREAK if mine == theirs else END  # a counter is one in all cards
            around = Around(
                _to_number(line[max(before, first + 1 - AROUND) : first + 1][::-1], end_at)[::-1],
                _to_number(line[last + 1 : min(after, last + 1 + AROUND)], end_at),
            )
            if not _has_room(around, known):
                continue
            sizes = last - first, end - start
            shown = known.setdefault(around, Shown(least=min(sizes)))
            shown.add(page, mine, theirs)
            shown.least, shown.most = min(shown.least, *sizes), max(shown.most, *sizes)


class Own(Struct, gc=False):
    """What a page has shown to change on itself, and nothing else of it."""

    #: Tokens, from here to before there, by the lines that they are in.
    changed: dict[tuple[Any, ...], set[tuple[int, int]]] = {}
    come: set[tuple[Any, ...]] = set()  #: lines that come and go
    moved: set[str] = set()  #: places of lines that change their order

    def learn(self, found: Changes) -> None:
        """Takes up what differs between two of its answers."""
        for pair in found.pairs:
            for at, line in ((0, pair.line), (2, pair.other)):
                if _has_room(key := tuple(line), self.changed):
                    self.changed.setdefault(key, set()).update(
                        (each[at], each[at + 1]) for each in pair.differences
                    )
        for line in found.alone:
            if len(self.come) < MAX_KNOWN * MANY:
                self.come.add(tuple(line))
        self.moved |= found.moved

    def left(self, lines: Sequence[Line]) -> list[Line]:
        """Returns the lines of the page without what has changed."""
        left = list[Line]()
        for line in lines:
            if (key := tuple(line)) in self.come:
                continue
            runs = self.changed.get(key)
            left.append(Line(line.path, _masked(line.tokens, runs), line.place) if runs else line)
        return left


#: Tells whether a gap is one of a page, given what is there.
_Forgives = Callable[[Shown, int], bool]


class _Rule(NamedTuple):
    """Which gaps are left out of a page."""

    gaps: Gaps
    within: _Forgives
    coming: _Forgives
    several: int  #: pages that have to have shown that lines move


def left_of(lines: Sequence[Line], page: str, own: Own, *kinds: Gaps) -> list[Line]:
    """Returns the lines of a page without what has changed of its ``own``, and without gaps that several of its ``kinds`` have shown.

    O(lines), and a bounded number of steps for each gap.
    """

    def forgives(shown: Shown, value: int) -> bool:
        return shown.forgives(page, value)

    rules = [_Rule(kind, forgives, forgives, SEVERAL) for kind in kinds]
    return _without(own.left(lines), rules, own.moved)


def met_of(lines: Sequence[Line], page: str, own: Own, *kinds: Gaps) -> list[Line]:
    """Returns the lines of a page as `left_of` does, and those that nobody has seen come or go, unless nothing ever stays there."""

    def forgives(shown: Shown, value: int) -> bool:
        return shown.forgives(page, value)

    def has_come(shown: Shown, value: int) -> bool:
        return shown.has_met(page, value) or (not shown.stay and len(shown.pages) >= MANY)

    rules = [_Rule(kind, forgives, has_come, SEVERAL) for kind in kinds]
    return _without(own.left(lines), rules, own.moved)


def steady_of(lines: Sequence[Line], page: str, own: Own, *kinds: Gaps) -> list[Line]:
    """Returns the lines of a page that it has not shown to change; beside some that it has, those count that others have."""

    def has_changed(line: Line, shown: Shown) -> bool:
        return GAP in line.tokens or (line.place in places and shown.has_met(page, hashed(line.tokens)))

    places, coming = {key[2] for key in own.come}, [kind.coming for kind in kinds]
    return [
        line
        for line in left_of(lines, page, own)
        if not any(line.place in each and has_changed(line, each[line.place]) for each in coming)
    ]


def least_of(lines: Sequence[Line], *kinds: Gaps, some: bool = False) -> list[Line]:
    """Returns the lines of a page without all that may be noise, since any page of its ``kinds`` has shown a gap there.

    Lines in whose place others stay are left out only if any page has shown them, or if ``some`` may be noise.
    """

    def may_come(shown: Shown, value: int) -> bool:
        return some or shown.is_all or value in shown.values

    return _without(lines, [_Rule(kind, lambda *_: True, may_come, 1) for kind in kinds])


def digest_of(lines: Iterable[Line]) -> int:
    """Returns 64 bits that stand for lines."""
    return _hash("\0".join(["\0".join((line.path, *line.tokens, "")) for line in lines]))


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


def _has_room(key: object, *known: Mapping[Any, object]) -> bool:
    return any(key in each for each in known) or all(len(each) < MAX_KNOWN for each in known)


def _without(
    lines: Sequence[Line], rules: Sequence[_Rule], moved: AbstractSet[str] = frozenset()
) -> list[Line]:
    rules = [rule for rule in rules if rule.gaps]
    if not rules and not moved:
        return [*lines]
    found, moving, beneath, steps = list[Line](), list[list[Line]](), "\0", MAX_STEPS
    places = {place for rule in rules for known in (rule.gaps.coming, rule.gaps.moving) for place in known}
    paths = {path for rule in rules for path in rule.gaps.within}
    for line in lines:
        path, tokens, place = line
        stays, moves = True, place in moved
        for gaps, _, may_come, several in rules if place in places else ():
            if (coming := gaps.coming.get(place)) and may_come(coming, hashed(tokens)):
                stays = False
            if (order := gaps.moving.get(place)) and len(order.pages) >= several:
                moves = True
        if not stays:
            continue
        for gaps, forgives, _, _ in rules if path in paths else ():
            if within := gaps.within.get(path):
                steps -= len(tokens) * len(within)
                tokens = _without_gaps(tokens, within, forgives) if steps >= 0 else tokens
        if tokens is not line.tokens:
            line = Line(path, tokens, place)
        if place.startswith(beneath):
            moving[-1].append(line)
        elif moves:
            moving.append([line])
            beneath = f"{place}/"
        else:
            found.append(line)
            beneath = "\0"
    return [*found, *(line for lines in sorted(moving) for line in lines)] if moving else found


def _without_gaps(tokens: tuple[str, ...], gaps: dict[Around, Shown], forgives: _Forgives) -> tuple[str, ...]:
    line = (START, *tokens, END)
    runs = list[tuple[int, int]]()
    for (before, after), shown in gaps.items():
        starts = [at + len(before) for at in _places(line, before)]
        last = 0
        for end in _places(line, after) if starts else ():
            first = starts[bisect_right(starts, end - shown.least) - 1]
            if last <= first <= end - shown.least and end - first <= 2 * shown.most + 2:
                last = end
                if forgives(shown, folded(line[first:end])):
                    runs.append((first, end))
    return _masked(line, runs)[1:-1] if runs else tokens


def _masked(tokens: Sequence[str], runs: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Returns tokens with a `GAP` for each run of them."""
    left, last = list[str](), 0
    for first, end in sorted(runs):
        if first > last or not left:
            left += (*tokens[last:first], GAP)
        last = max(last, end)
    return (*left, *tokens[last:])


def _places(line: tuple[str, ...], some: tuple[str, ...]) -> Iterator[int]:
    """Yields where some tokens stand in a line."""
    at = -1
    while True:
        try:
            at = line.index(some[0], at + 1)
        except ValueError:
            return
        if line[at : at + len(some)] == some:
            yield at
