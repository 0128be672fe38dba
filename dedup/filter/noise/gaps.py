"""Gaps: where pages were seen to change although nobody has changed them, such as a counter, an advert or the order of a list.

A gap is known by what stays around it: its blocks, and the tokens on either side in its line.  What one page has shown is its
own.  On other pages of its kind a gap is one only if several have shown it, and it forgives only what it has shown on others:
a number where numbers have changed, an advert that was there on another page.

>>> from dedup.filter.noise.lines import lines_of
>>> def page(name, seen): return lines_of(f"<h1>{name}</h1><p>Seen {seen} times", "")
>>> kind = Gaps()
>>> for name in ("one", "two"):
...     kind.learn(name, page(name, 17), page(name, 18))
>>> left = [left_of(page("three", shown), Seen("three", 0), Gaps(), kind) for shown in (4, 1_250, "many")]
>>> left[0] == left[1], left[0] == left[2], left[0][1].tokens
(True, False, ('<p', 'Seen', '<*', 'times'))
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from dedup.filter.noise.lines import Line
from dedup.history.differences import equal_ends
from dedup.page.ids import is_opaque

#: Pages, different in content, that have to show a gap before it is one of their kind; and before it forgives there what it has
#: not shown.
SEVERAL, MANY = 2, 6
#: Tokens on either side by which a gap in a line is known; and that are between two gaps, or else these are one: words of an
#: advert agree by chance.
AROUND, BETWEEN = 3, 4
#: Gaps of one sort that are remembered, and what each has shown: beyond that, what changes is content.
MAX_GAPS, MAX_SHOWN = 256, 1_024
#: Pairs of tokens, or of lines, that are compared: a third of a second at most.
MAX_PAIRS = 1_000_000
#: Characters of the shortest token that looks like an id.
LONG = 16
#: Stands for a gap, and for the ends of a line: no page has such tokens.
GAP, START, END = "<*", "<^", "<$"

_NUMBERS = re.compile(r"0(?:\0[.,:/' -]?\0?0)*")
_SIGNS = frozenset(".,:/'-")


class Shown(Struct):
    """What pages have shown in a gap."""

    pages: set[str] = set()  #: that have shown it, as many as count
    #: Hashes of what was there, and the page that has shown it; "" if several have.
    values: dict[int, str] = {}
    #: The same of what stands there on kept pages, by what is left of these without all that may be noise; 0 if on several.
    stands: dict[int, int] = {}
    least: int = 0  #: tokens, at least
    most: int = 0  #: at most
    stay: int = 0  #: lines that stood there in both of two answers
    change: int = 0  #: and that stood in one

    def add(self, page: str, *values: int) -> None:
        if len(self.pages) < MANY:
            self.pages.add(page)
        for value in values:
            if value in self.values or len(self.values) < MAX_SHOWN:
                self.values[value] = page if self.values.get(value, page) == page else ""

    @property
    def is_all(self) -> bool:
        """Whether most of what stands there comes and goes."""
        return 2 * self.stay <= self.change

    def forgives(self, page: "Seen", value: int) -> bool:
        """Returns whether several pages have shown this gap, and others than this one what it has there; or many have."""
        is_met = (
            self.values.get(value, page.address) != page.address
            or self.stands.get(value, page.left) != page.left
        )
        return len(self.pages) >= SEVERAL and (is_met or (self.is_all and len(self.pages) >= MANY))


class Seen(NamedTuple):
    """A page, as others are told from it."""

    address: str
    left: int  #: a digest of what is left of it without all that may be noise


class Around(NamedTuple):
    """The tokens by which a gap in a line is known."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Gaps(Struct):
    """The gaps that pages of a kind, or one page, have shown: by the path of their lines, or by their places."""

    within: dict[str, dict[Around, Shown]] = {}  #: in lines
    coming: dict[str, Shown] = {}  #: lines that come and go
    moving: dict[str, Shown] = {}  #: lines that change their order
    version: int = 0  #: grows with every gap that is new

    def __bool__(self) -> bool:
        return bool(self.within or self.coming or self.moving)

    def learn(self, page: str, a: Sequence[Line], b: Sequence[Line]) -> None:
        """Takes what differs between two answers to one request of a page for gaps."""
        before = self._size()
        mine, theirs = Counter(a), Counter(b)
        gone, come, both = mine - theirs, theirs - mine, mine & theirs
        stay, times = Counter(line.place for line in a if line in both), Counter[str]()
        left, others = _by_path(a, gone), _by_path(b, come)
        for path in left.keys() | others.keys():
            pairs, alone = _paired(left.get(path, []), others.get(path, []))
            stay.update(line.place for line, _ in pairs)
            times.update(line.place for line in alone)
            if _has_room(path, self.within):
                for one, other in pairs:
                    self._note_within(page, path, one.tokens, other.tokens)
            for line in alone:
                if _has_room(line.place, self.coming):
                    self.coming.setdefault(line.place, Shown()).add(page, hash(line.tokens))
        for place in (stay + times).keys() & self.coming.keys():
            self.coming[place].stay += stay[place]
            self.coming[place].change += times[place]
        for place in _moved(a, b, both):
            if _has_room(place, self.moving):
                self.moving.setdefault(place, Shown()).add(page)
        self.version += self._size() != before

    def stand(self, left: int, lines: Sequence[Line]) -> None:
        """Notes what stands on a kept page where lines come and go."""
        for line in lines:
            if (shown := self.coming.get(line.place)) is not None and len(shown.stands) < MAX_SHOWN:
                value = hash(line.tokens)
                shown.stands[value] = left if shown.stands.get(value, left) == left else 0

    def _size(self) -> tuple[int, ...]:
        alone = sum(not shown.is_all for shown in self.coming.values())
        return sum(map(len, self.within.values())), len(self.coming), alone, len(self.moving)

    def _note_within(self, page: str, path: str, a: Sequence[str], b: Sequence[str]) -> None:
        found = differences(a, b)
        line, known = (START, *a, END), self.within.setdefault(path, {})
        ends = [0, *(1 + last for _, last, *_ in found)]
        starts = [*(1 + first for first, *_ in found), len(line)]
        for (first, last, start, end), before, after in zip(found, ends, starts[1:], strict=False):
            around = Around(
                line[max(before, first + 1 - AROUND) : first + 1],
                line[last + 1 : min(after, last + 1 + AROUND)],
            )
            if not _has_room(around, known):
                continue
            sizes = last - first, end - start
            shown = known.setdefault(around, Shown(least=min(sizes)))
            shown.add(page, folded(a[first:last]), folded(b[start:end]))
            shown.least, shown.most = min(shown.least, *sizes), max(shown.most, *sizes)


#: Tells whether a gap is one of a page, given what is there.
_Forgives = Callable[[Shown, int], bool]


class _Rule(NamedTuple):
    """Which gaps are left out of a page."""

    gaps: Gaps
    within: _Forgives
    coming: _Forgives
    several: int  #: pages that have to have shown that lines move


def left_of(lines: Sequence[Line], page: Seen, own: Gaps | None, *kinds: Gaps) -> list[Line]:
    """Returns the lines of a page without its ``own`` gaps, and without those that several others of its ``kinds`` have shown.

    O(lines), and a bounded number of steps for each gap.
    """

    def forgives(shown: Shown, value: int) -> bool:
        return shown.forgives(page, value)

    rules = [_Rule(kind, forgives, forgives, SEVERAL) for kind in kinds]
    if own is not None:
        rules.insert(0, _Rule(own, lambda *_: True, lambda shown, value: value in shown.values, 1))
    return _without(lines, rules)


def least_of(lines: Sequence[Line], *kinds: Gaps, some: bool = False) -> list[Line]:
    """Returns the lines of a page without all that may be noise, since any page of its ``kinds`` has shown a gap there.

    Lines in whose place others stay are left out only if any page has shown them, or if ``some`` may be noise.
    """

    def may_come(shown: Shown, value: int) -> bool:
        return some or shown.is_all or value in shown.values

    return _without(lines, [_Rule(kind, lambda *_: True, may_come, 1) for kind in kinds])


def digest_of(lines: Iterable[Line]) -> int:
    """Returns 64 bits that stand for lines."""
    joined = "\0".join(["\0".join((line.path, *line.tokens, "")) for line in lines])
    return xxh3_64_intdigest(joined.encode("utf-8", "surrogatepass"))


def folded(tokens: Sequence[str]) -> int:
    """Returns a hash of tokens, in which all numbers are alike.

    >>> folded(["1", ",", "250", "hits"]) == folded(["17", "hits"]), folded(["may"]) == folded(["june"])
    (True, False)
    """
    joined = "\0".join(["0" if any(map(str.isdigit, token)) else token for token in tokens])
    return hash(_NUMBERS.sub("0", joined))


def differences(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Returns where two lists of tokens differ: whole numbers, first and last in either.

    >>> differences("Seen 1 , 234 times by you and other 3".split(), "Seen 1 , 240 times by you and other 4".split())
    [(1, 4, 1, 4), (9, 10, 9, 10)]
    """
    from difflib import SequenceMatcher  # not above: most pages are compared by their digests

    start, end = equal_ends(a, b)
    first, second = a[start : len(a) - end], b[start : len(b) - end]
    ops: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(first), 0, len(second))]
    if len(first) * len(second) <= MAX_PAIRS:
        ops = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    found = list[tuple[int, int, int, int]]()
    for tag, i, j, k, m in ops:
        if tag == "equal":
            continue
        i, j, k, m = start + i, start + j, start + k, start + m
        while i and k and a[i - 1] == b[k - 1] and _is_in_number(a, i - 1):
            i, k = i - 1, k - 1
        while j < len(a) and m < len(b) and a[j] == b[m] and _is_in_number(a, j):
            j, m = j + 1, m + 1
        if found and found[-1][1] + BETWEEN > i:
            i, k = found.pop()[::2]
        found.append((i, j, k, m))
    return found


def _is_in_number(tokens: Sequence[str], at: int) -> bool:
    """Whether a token is a part of a number of several tokens, or of a time or a date."""

    def is_number(place: int) -> bool:
        return 0 <= place < len(tokens) and tokens[place][:1].isdigit()

    return (
        (is_number(at) and not at)
        or (tokens[at] in _SIGNS and is_number(at - 1) and is_number(at + 1))
        or (
            is_number(at)
            and any(
                0 <= at + way < len(tokens) and tokens[at + way] in _SIGNS and is_number(at + 2 * way)
                for way in (-1, 1)
            )
        )
    )


def said_in(tokens: Sequence[str]) -> Iterator[str]:
    """Yields the tokens of a line but for tags and attributes."""
    is_inside = False
    for token in tokens:
        if token == "<>":
            is_inside = False
        elif len(token) > 1 and token[0] == " ":
            is_inside = True
        elif not is_inside and (token[:1] != "<" or len(token) == 1):
            yield token


def _by_path(lines: Sequence[Line], some: Counter[Line]) -> dict[str, list[Line]]:
    found = dict[str, list[Line]]()
    for line in lines:
        if line in some:
            found.setdefault(line.path, []).append(line)
    return found


def _paired(mine: list[Line], theirs: list[Line]) -> tuple[list[tuple[Line, Line]], list[Line]]:
    """Returns which line has become which, and those that have come or gone: of lines that are alike, nobody can tell which.

    Unless all that differs between two looks like an id.
    """
    if len(mine) * len(theirs) > MAX_GAPS**2:
        return [], [*mine, *theirs]
    said = [_folded_words(line) for line in theirs]
    pairs, free, alone = list[tuple[Line, Line]](), dict.fromkeys(range(len(theirs))), list[Line]()
    for line in mine:
        words = _folded_words(line)
        alike = [at for at in free if _are_alike(words, said[at])]
        if len(alike) > 1 or sum(_are_alike(words, _folded_words(other)) for other in mine) > 1:
            shape = _without_ids(line)
            alike = [at for at in alike if _without_ids(theirs[at]) == shape][:1]
        if alike:
            del free[alike[0]]
            pairs.append((line, theirs[alike[0]]))
        else:
            alone.append(line)
    return pairs, [*alone, *(theirs[at] for at in free)]


def _without_ids(line: Line) -> list[str]:
    return [GAP if len(token) >= LONG and is_opaque(token) else token for token in line.tokens]


def _are_alike(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether half of the words of two lines are the same, in their order."""
    from difflib import SequenceMatcher  # as above

    start, end = equal_ends(a, b)
    first, second, most = a[start : len(a) - end], b[start : len(b) - end], max(len(a), len(b))
    if 2 * (start + end) >= most or 2 * (Counter(a) & Counter(b)).total() < most:
        return 2 * (start + end) >= most
    if len(first) * len(second) > MAX_PAIRS:
        return False
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return 2 * (start + end + sum(block.size for block in blocks)) >= most


def _folded_words(line: Line) -> list[str]:
    return ["0" if token[:1].isdigit() else token for token in (*said_in(line.tokens),) or line.tokens]


def _moved(a: Sequence[Line], b: Sequence[Line], both: Counter[Line]) -> set[str]:
    """Returns the places of lines that two answers have in another order."""
    from difflib import SequenceMatcher  # as above

    first, second = (_those(lines, both) for lines in (a, b))
    start, end = equal_ends(first, second)
    first, second = first[start : len(first) - end], second[start : len(second) - end]
    if not first or len(first) * len(second) > MAX_PAIRS:
        return set()
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return {line.place for tag, i, j, *_ in matcher.get_opcodes() if tag != "equal" for line in first[i:j]}


def _those(lines: Sequence[Line], some: Counter[Line]) -> list[Line]:
    """Returns the lines that are among some, each as often as there."""
    left = Counter(some)
    found = list[Line]()
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
            found.append(line)
    return found


def _has_room(key: object, *known: Mapping[Any, object]) -> bool:
    return any(key in each for each in known) or all(len(each) < MAX_GAPS for each in known)


def _without(lines: Sequence[Line], rules: Sequence[_Rule]) -> list[Line]:
    rules = [rule for rule in rules if rule.gaps]
    if not rules:
        return [*lines]
    found, moving, beneath = list[Line](), list[list[Line]](), "\0"
    for line in lines:
        path, tokens, place = line
        stays, moves = True, False
        for gaps, _, may_come, several in rules:
            if (coming := gaps.coming.get(place)) and may_come(coming, hash(tokens)):
                stays = False
            if (moved := gaps.moving.get(place)) and len(moved.pages) >= several:
                moves = True
        if not stays:
            continue
        for gaps, forgives, _, _ in rules:
            if within := gaps.within.get(path):
                tokens = _without_gaps(tokens, within, forgives)
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
        size = len(before)
        for at in range(size, len(line)):
            if line[at - 1] != before[-1] or line[at - size : at] != before:
                continue
            for end in range(at + shown.least, min(at + 2 * shown.most + 2, len(line) - 1) + 1):
                if line[end] == after[0] and line[end : end + len(after)] == after:
                    if forgives(shown, folded(line[at:end])):
                        runs.append((at, end))
                    break
    if not runs:
        return tokens
    left, last = list[str](), 0
    for first, end in sorted(runs):
        if first > last or not left:
            left += (*line[last:first], GAP)
        last = max(last, end)
    return tuple([*left, *line[last:]][1:-1])
