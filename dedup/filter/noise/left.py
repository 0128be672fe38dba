"""What is left of a page without noise: what it has shown to change itself, and the gaps of pages of its kind.

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

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec import Struct

from dedup.filter.noise.answers import MAX_STEPS, Changes, items
from dedup.filter.noise.gaps import (
    GAP,
    MAX_KNOWN,
    SEVERAL,
    Around,
    Gaps,
    Shown,
    gaps_in,
    has_room,
    hashed,
)
from dedup.filter.noise.lines import Line, group_of


class Own(Struct, gc=False):
    """What a page has shown to change on itself, and nothing else of it."""

    #: Tokens, from here to before there, by the lines that they are in.
    changed: dict[tuple[Any, ...], set[tuple[int, int]]] = {}
    #: Likewise those that change their order alone.
    ordered: dict[tuple[Any, ...], set[tuple[int, int]]] = {}
    come: set[tuple[Any, ...]] = set()  #: lines that come and go
    moved: set[str] = set()  #: groups of lines that change their order

    def learn(self, found: Changes, *, is_met: bool = False) -> None:
        """Takes up what differs between two of its answers, but for lines that are also elsewhere in both: nobody knows which has changed.

        The second is compared with no page if it ``is_met``: what changes in its lines is of no use, and each has others.
        """
        stay = {*map(tuple, found.stay)}
        for pair in found.pairs:
            known = self.ordered if pair.is_order else self.changed
            for at, line in ((0, pair.line),) if is_met else ((0, pair.line), (2, pair.other)):
                if (key := tuple(line)) not in stay and has_room(key, known) and not pair.has_moved:
                    runs = known.setdefault(key, set())
                    runs.update((each[at], each[at + 1]) for each in pair.differences)
        for line in found.alone:
            if tuple(line) not in stay and len(self.come) < MAX_KNOWN:
                self.come.add(tuple(line))
        self.moved |= found.moved

    def left(self, lines: Sequence[Line]) -> list[Line]:
        """Returns the lines of the page without what has changed."""
        return _without(lines, [], self)

    def __bool__(self) -> bool:
        return bool(self.changed or self.ordered or self.come or self.moved)


#: Tells whether a gap is one of a page, given what is there.
_Forgives = Callable[[Shown, int], bool]


class _Rule(NamedTuple):
    """Which gaps are left out of a page."""

    gaps: Gaps
    within: _Forgives
    coming: _Forgives
    several: int  #: pages that have to have shown that lines move, or items

    def ordered(self, shown: Shown, _: int) -> bool:
        return len(shown.pages) >= self.several


def left_of(lines: Sequence[Line], page: str, own: Own, *kinds: Gaps, mean_one: bool = False) -> list[Line]:
    """Returns the lines of a page without what has changed of its ``own``, and without gaps that several of its ``kinds`` have shown.

    Lines that come and go are left out if they `Shown.has_come`; if the two addresses ``mean_one``, whatever their place forgives.
    O(lines), and a bounded number of steps for each gap.
    """

    return _without(lines, _rules(page, kinds, mean_one=mean_one), own)


def changed_of(lines: Sequence[Line], page: str, own: Own, *kinds: Gaps) -> list[Line]:
    """Returns the lines of a page without what has changed of its ``own``: a gap of its ``kinds`` as a whole, if it has in a part of it."""
    return _without(lines, [], own, _rules(page, kinds))


def _rules(page: str, kinds: Iterable[Gaps], *, mean_one: bool = False) -> list[_Rule]:
    def forgives(shown: Shown, value: int) -> bool:
        return shown.forgives(page, value)

    def has_come(shown: Shown, value: int) -> bool:
        return shown.has_come(page, value)

    return [_Rule(kind, forgives, forgives if mean_one else has_come, SEVERAL) for kind in kinds]


def as_on(
    lines: Sequence[Line],
    own: Own,
    others: Sequence[Line],
    left: Callable[[Line], list[Line]],
    *,
    words: bool = False,
) -> list[Line]:
    """Returns the lines of a page, but of each that another page shows, too, what is ``left`` of that one's.

    What has changed of its ``own`` may differ there.  So two pages agree that were seen in one minute.  What says ``words``
    that have changed on the other is not taken for noise, if it is not asked for: it may be content that this one keeps.
    """
    there = defaultdict[tuple[str, int], list[Line]](list)
    for line in others:
        there[line.path, len(line.tokens)].append(line)
    masked = dict[tuple[Any, ...], dict[tuple[str, ...], Line]]()
    found, steps = list[Line](), MAX_STEPS
    for line in lines:
        runs = tuple(sorted(own.changed.get(tuple(line), ())))
        key = (line.path, len(line.tokens), runs)
        if (like := masked.get(key)) is None:
            alike = there[key[:2]]
            steps -= len(alike) * len(line.tokens) if runs else 0
            like = {_masked(each.tokens, runs): each for each in alike} if steps >= 0 else {}
            masked[key] = like
        stays = _masked(line.tokens, runs)
        its = left(like[stays]) if stays in like else []
        changed = Counter(stays) - Counter(token for each in its for token in each.tokens)
        found += its if stays in like and (words or all(map(_is_number, changed))) else own.left([line])
    return found


def _is_number(token: str) -> bool:
    return not any(map(str.isalpha, token))


def steady_of(lines: Sequence[Line], page: str, own: Own, *kinds: Gaps) -> list[Line]:
    """Returns the lines of a page that it has not shown to change; beside some that it has, those count that others have."""

    def has_changed(line: Line, shown: Shown) -> bool:
        return line not in there or (line.place in places and shown.has_met(page, hashed(line.tokens)))

    there, places, coming = {*lines}, {key[2] for key in own.come}, [kind.coming for kind in kinds]
    return [
        line
        for line in changed_of(lines, page, own, *kinds)
        if not any(line.place in each and has_changed(line, each[line.place]) for each in coming)
    ]


def least_of(lines: Sequence[Line], *kinds: Gaps, some: bool = False, moved: bool = True) -> list[Line]:
    """Returns the lines of a page without all that may be noise, since any page of its ``kinds`` has shown a gap there.

    Lines in whose place others stay are left out only if any page has shown them, or if ``some`` may be noise.  What stands
    where words have ``moved`` is left out, too, unless that is False.
    """

    def may_be(shown: Shown, _: int) -> bool:
        return moved or bool(shown.pages)

    def may_come(shown: Shown, value: int) -> bool:
        return some or shown.is_all or value in shown.values

    return _without(lines, [_Rule(kind, may_be, may_come, 1) for kind in kinds])


def digest_of(lines: Iterable[Line]) -> int:
    """Returns 64 bits that stand for lines."""
    return hashed(["\0".join((line.path, *line.tokens, "")) for line in lines])


def _without(
    lines: Sequence[Line], rules: Sequence[_Rule], own: Own | None = None, beside: Sequence[_Rule] = ()
) -> list[Line]:
    """Returns lines without the gaps of some rules, and without what has changed of the page's ``own``, with the gaps ``beside`` that."""
    own, rules = own or Own(), [rule for rule in rules if rule.gaps]
    if not (rules or own):
        return [*lines]
    found, moving, beneath, steps = list[Line](), list[list[Line]](), "\0", MAX_STEPS
    places = {place for rule in rules for place in rule.gaps.coming}
    groups = {*own.moved}
    for gaps, _, _, several in rules:
        groups |= {group for group, shown in gaps.moving.items() if len(shown.pages) >= several}
    paths = {path for rule in rules for path in (*rule.gaps.within, *rule.gaps.ordered)}
    for line in lines:
        path, tokens, place = line
        key = tuple(line) if own else ()
        if key in own.come or (
            place in places
            and any(
                (coming := gaps.coming.get(place)) and may_come(coming, hashed(tokens))
                for gaps, _, may_come, _ in rules
            )
        ):
            continue
        runs, ordered = {*own.changed.get(key, ())}, {*own.ordered.get(key, ())}
        for rule in beside if runs else ():
            within, changed = _at(line, rule.gaps.within), own.changed[key]
            steps -= len(tokens) * len(within)
            for first, last in gaps_in(tokens, within, rule.within) if steps >= 0 else ():
                if any(max(first, at) < min(last, end) for at, end in changed):
                    runs.add((first, last))
        for rule in rules if path in paths or place in paths else ():
            within, moving_in = (_at(line, known) for known in (rule.gaps.within, rule.gaps.ordered))
            steps -= len(tokens) * (len(within) + len(moving_in))
            if steps >= 0:
                runs.update(gaps_in(tokens, within, rule.within))
                ordered.update(gaps_in(tokens, moving_in, rule.ordered))
        if runs or ordered:
            line = Line(path, _masked(tokens, runs, ordered), place)
        if place.startswith(beneath):
            moving[-1].append(line)
        elif groups and group_of(place) in groups:
            moving.append([line])
            beneath = f"{place}/"
        else:
            found += (*_in_order(moving), line)
            moving, beneath = [], "\0"
    return [*found, *_in_order(moving)]


def _at(line: Line, known: Mapping[str, dict[Around, Shown]]) -> dict[Around, Shown]:
    """Returns the gaps that are known by the path of a line, or by its place."""
    by_path, by_place = known.get(line.path, {}), known.get(line.place, {})
    return by_path | by_place if by_place else by_path


def _in_order(moving: Sequence[list[Line]]) -> Iterator[Line]:
    """Yields lines that move, sorted if all are of one group: else they may belong together, as a term and what is said of it."""
    groups = {group_of(lines[0].place) for lines in moving}
    yield from chain.from_iterable(sorted(moving) if len(groups) == 1 else moving)


def _masked(
    tokens: Sequence[str], runs: Collection[tuple[int, int]], ordered: Collection[tuple[int, int]] = ()
) -> tuple[str, ...]:
    """Returns tokens with a `GAP` for each run of them, and what is listed sorted where only its order changes."""
    left, last = list[str](), 0
    gaps, orders = (sorted(start for start, _ in each) for each in (runs, ordered))
    gone = {at for first, end in _as_one(runs) for at in range(first, end)} if ordered else ()
    for first, end in _as_one({*runs, *ordered}):
        left += tokens[last:first]
        if bisect_left(gaps, first) < bisect_right(gaps, end):
            left.append(GAP)
        if bisect_left(orders, first) < bisect_right(orders, end):
            listed = [token for at, token in enumerate(tokens[first:end], first) if at not in gone]
            left += chain.from_iterable(sorted(items(listed)))
        last = end
    return (*left, *tokens[last:])


def _as_one(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns runs, those that meet as one."""
    found = list[tuple[int, int]]()
    for first, end in sorted(runs):
        if found and first <= found[-1][1]:
            first, last = found.pop()
            end = max(last, end)
        found.append((first, end))
    return found
