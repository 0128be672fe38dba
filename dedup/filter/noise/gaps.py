"""Gaps: where pages were seen to change although nobody has changed them, such as a counter, an advert or the order of a list.

A gap is known by what stays around it: its blocks, and the tokens on either side in its line.  What one page has shown is its
own.  On other pages of its kind a gap is one only if several have shown it, and it forgives only what it has shown on others:
a number where numbers have changed, an advert that was there on another page.

>>> from dedup.filter.noise.lines import lines_of
>>> def page(name, seen): return lines_of(f"<h1>{name}</h1><p>Seen {seen} times", "")
>>> kind = Gaps()
>>> for name in ("one", "two"):
...     kind.learn(name, page(name, 17), page(name, 18))
>>> left = [left_of(page("three", shown), "three", kind, Gaps()) for shown in (4, 1_250, "many")]
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

#: Pages, different in content, that have to show a gap before it is one of their kind; and before it forgives there what it has
#: not shown.
SEVERAL, MANY = 2, 8
#: Tokens on either side by which a gap in a line is known.
AROUND = 3
#: Gaps of one sort that are remembered, and what each has shown: beyond that, what changes is content.
MAX_GAPS, MAX_SHOWN = 256, 1_024
#: Pairs of tokens, or of lines, that are compared: a third of a second at most.
MAX_PAIRS = 1_000_000
#: Stands for a gap, and for the ends of a line: no page has such tokens.
GAP, START, END = "<*", "<^", "<$"

_NUMBERS = re.compile(r"0(?:\0[.,:/' -]?\0?0)*")
_SIGNS = frozenset(".,:/'-")


class Shown(Struct):
    """What pages have shown in a gap."""

    pages: set[str] = set()  #: that have shown it, as many as count
    #: Hashes of what was there, and the page that has shown it; "" if several have.
    values: dict[int, str] = {}
    least: int = 0  #: tokens, at least
    most: int = 0  #: at most
    is_all: bool = True  #: false where most of what stands there stays

    def add(self, page: str, *values: int) -> None:
        if len(self.pages) < MANY:
            self.pages.add(page)
        for value in values:
            if value in self.values or len(self.values) < MAX_SHOWN:
                self.values[value] = page if self.values.get(value, page) == page else ""

    def forgives(self, page: str, value: int) -> bool:
        """Returns whether several pages have shown this gap, and others than this one what it has there; or many have."""
        is_met = len(self.pages) >= SEVERAL and self.values.get(value, page) != page
        return is_met or (self.is_all and len(self.pages) >= MANY)


class Around(NamedTuple):
    """The tokens by which a gap in a line is known."""

    before: tuple[str, ...]
    after: tuple[str, ...]


#: Where a line is: its path, between those of the lines beside it.
Place = tuple[str, str, str]


class Gaps(Struct):
    """The gaps that pages of a kind, or one page, have shown: by the path of their lines, or by their places."""

    within: dict[str, dict[Around, Shown]] = {}  #: in lines
    coming: dict[Place, Shown] = {}  #: lines that come and go
    moving: dict[str, Shown] = {}  #: lines that change their order
    version: int = 0  #: grows with every gap that is new

    def __bool__(self) -> bool:
        return bool(self.within or self.coming or self.moving)

    def learn(self, page: str, a: Sequence[Line], b: Sequence[Line]) -> None:
        """Takes what differs between two answers to one request of a page for gaps."""
        before = self._size()
        mine, theirs = Counter(a), Counter(b)
        gone, come, both = mine - theirs, theirs - mine, mine & theirs
        stay = Counter(place for place, line in zip(_places(a), a, strict=True) if line in both)
        left, others = _by_path(a, gone), _by_path(b, come)
        for path in left.keys() | others.keys():
            pairs, alone = _paired(left.get(path, []), others.get(path, []))
            for (place, one), (_, other) in pairs:
                stay[place] += 1
                if _has_room(path, self.within):
                    self._note_within(page, path, one.tokens, other.tokens)
            times = Counter(place for place, _ in alone)
            for place, line in alone:
                if _has_room(place, self.coming):
                    shown = self.coming.setdefault(place, Shown())
                    shown.add(page, hash(line.tokens))
                    shown.is_all &= 2 * stay[place] <= times[place]
        for path in _moved(a, b, both):
            if _has_room(path, self.moving):
                self.moving.setdefault(path, Shown()).add(page)
        self.version += self._size() != before

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


def left_of(lines: Sequence[Line], page: str, kind: Gaps, own: Gaps) -> list[Line]:
    """Returns the lines of a page without its ``own`` gaps, and without those that several others of its ``kind`` have shown.

    O(lines), and a bounded number of steps for each gap.
    """
    found = _without(lines, own, lambda shown, value: True, lambda shown, value: value in shown.values, 1)
    return _without(found, kind, *2 * (lambda shown, value: shown.forgives(page, value),), SEVERAL)


def least_of(lines: Sequence[Line], kind: Gaps, *, some: bool = False) -> list[Line]:
    """Returns the lines of a page without all that may be noise, since any page of its ``kind`` has shown a gap there.

    Lines in whose place others stay are left out only if any page has shown them, or if ``some`` may be noise.
    """

    def may_come(shown: Shown, value: int) -> bool:
        return some or shown.is_all or value in shown.values

    return _without(lines, kind, lambda shown, value: True, may_come, 1)


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

    >>> differences("Seen 1 , 234 times by 3".split(), "Seen 1 , 240 times by 4".split())
    [(1, 4, 1, 4), (6, 7, 6, 7)]
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
        if found and found[-1][1] >= i:
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


def _places(lines: Sequence[Line]) -> Iterator[Place]:
    """Yields the place of each line."""
    paths = ["", *(line.path for line in lines), ""]
    return zip(paths, paths[1:-1], paths[2:], strict=False)


def _by_path(lines: Sequence[Line], some: Counter[Line]) -> dict[str, list[tuple[Place, Line]]]:
    """Returns the lines that are among some, with their places, by path."""
    found = dict[str, list[tuple[Place, Line]]]()
    for place, line in zip(_places(lines), lines, strict=True):
        if line in some:
            found.setdefault(line.path, []).append((place, line))
    return found


Placed = tuple[Place, Line]


def _paired(mine: list[Placed], theirs: list[Placed]) -> tuple[list[tuple[Placed, Placed]], list[Placed]]:
    """Returns which line has become which, and those that have come or gone."""
    if len(mine) * len(theirs) > MAX_GAPS**2:
        return [], [*mine, *theirs]
    said = [_folded_words(line) for _, line in theirs]
    pairs, free, alone = list[tuple[Placed, Placed]](), dict.fromkeys(range(len(theirs))), list[Placed]()
    for placed in mine:
        words = _folded_words(placed[1])
        found = next((at for at in free if _are_alike(words, said[at])), None)
        if found is None:
            alone.append(placed)
        else:
            del free[found]
            pairs.append((placed, theirs[found]))
    return pairs, [*alone, *(theirs[at] for at in free)]


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
    """Returns the paths of lines that two answers have in another order."""
    from difflib import SequenceMatcher  # as above

    first, second = (_those(lines, both) for lines in (a, b))
    start, end = equal_ends(first, second)
    first, second = first[start : len(first) - end], second[start : len(second) - end]
    if not first or len(first) * len(second) > MAX_PAIRS:
        return set()
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return {line.path for tag, i, j, *_ in matcher.get_opcodes() if tag != "equal" for line in first[i:j]}


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


def _without(
    lines: Sequence[Line], gaps: Gaps, is_gap: _Forgives, is_coming: _Forgives, several: int
) -> list[Line]:
    if not gaps:
        return [*lines]
    found, moving, beneath = list[Line](), list[list[Line]](), "\0"
    for place, line in zip(_places(lines), lines, strict=True):
        path, tokens = line
        if (coming := gaps.coming.get(place)) and is_coming(coming, hash(tokens)):
            continue
        if within := gaps.within.get(path):
            line = Line(path, _without_gaps(tokens, within, is_gap))
        if path.startswith(beneath):
            moving[-1].append(line)
        elif (moves := gaps.moving.get(path)) and len(moves.pages) >= several:
            moving.append([line])
            beneath = f"{path}/"
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
