"""Two answers to one request: which tokens differ between them, which lines have come or gone, and which have moved."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from dedup.filter.noise.lines import BREAK, Line, group_of, is_card, is_one_place
from dedup.texts.differences import MAX_CELLS, edits, equal_ends

#: Lines of one place or path, times their tokens, that are compared to see which has become which; and tokens of a page, times the gaps
#: that are sought among them: half a second at most.  Beyond that, lines have come and gone, and no gap is known.
MAX_STEPS = 1_000_000

_SIGNS = frozenset(".,:/'-")
#: What stands between items of a list, the sign first that parts lists in a list; and at its ends.
_BETWEEN = "|", ";", ","
_ENDS = {*_BETWEEN, ".", ":", "<>"}
#: What two lists of tokens have at one place: in either, from here to before here.
Difference = tuple[int, int, int, int]
#: What a line says, with its path.
Said = tuple[str, tuple[str, ...]]


class Pair(NamedTuple):
    """Lines of either answer that are one, and say something else."""

    line: Line
    other: Line
    differences: list[Difference]
    is_order: bool = False  #: it is one, and nothing but another order of items
    has_moved: bool = False  #: it is one in which words have moved: nobody knows what else has changed


class Changes(NamedTuple):
    """What differs between two answers."""

    pairs: list[Pair]
    alone: list[Line]  #: lines of one of them
    stay: list[Line]  #: lines of the first that are in both
    moved: set[str]  #: groups of lines that they have in another order


def changes(a: Sequence[Line], b: Sequence[Line]) -> Changes:
    """Returns what differs between two answers.  In bounded time: beyond that, lines have come and gone."""
    mine, theirs = Counter(a), Counter(b)
    gone, come = _left(a, mine - theirs, b), _left(b, theirs - mine, a)
    found = Changes([], [], [line for line in a if line in theirs], set())
    names = _names(a) & _names(b) if any(map(is_card, (*gone, *come))) else set()
    steps = MAX_STEPS
    for group in (attrgetter("place"), attrgetter("path")):
        left, others, gone, come = _grouped(gone, group), _grouped(come, group), [], []
        for name in left | others:
            went, came = left.get(name, []), others.get(name, [])
            steps -= (len(went) + len(came)) * sum(len(line.tokens) for line in (*went, *came))
            pairs, went, came = _paired(went, came, names) if steps >= 0 else ([], went, came)
            found.pairs.extend(compared(*pair) for pair in pairs)
            gone += went
            come += came
    found.alone.extend((*_only(gone, come), *_only(come, gone)))
    found.moved.update(_moved(a, b, mine & theirs, found.pairs))
    return found


def compared(line: Line, other: Line) -> Pair:
    """Returns in what two lines differ that are one."""
    a, b = line.tokens, other.tokens
    head, tail = equal_ends(a, b)
    while head > 1 and a[head - 1] not in _ENDS:
        head -= 1
    while tail and a[-tail] not in _ENDS:
        tail -= 1
    last, end = len(a) - tail, len(b) - tail
    if Counter(items(a[head:last])) == Counter(items(b[head:end])) and BREAK not in a:
        return Pair(line, other, [(head, last, head, end)], is_order=True)
    found = differences(a, b)
    if not _have_moved(a, b, found):
        return Pair(line, other, found)
    (first, _, start, _), (_, last, _, end) = found[0], found[-1]
    return Pair(line, other, [(first, last, start, end)], has_moved=True)


def _have_moved(a: Sequence[str], b: Sequence[str], found: Sequence[Difference]) -> bool:
    """Whether a word or an id that both lists have equally often is in what differs of either; or nothing differs but the order."""
    gone = {token for first, last, _, _ in found for token in a[first:last]}
    come = {token for *_, first, last in found for token in b[first:last]}
    mine, theirs = Counter(a), Counter(b)
    moved = (token for token in gone & come if mine[token] == theirs[token])
    return (bool(gone) and gone == come) or any(any(map(str.isalpha, token)) for token in moved)


def items(tokens: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns what is listed, with the signs between, but for lists in a list; of one tag its attributes.

    >>> items("oil , brass lamps".split()), items(["Ann", ":", "tea", ",", "oil", ";", "Bob"])
    ([('oil',), (',',), ('brass', 'lamps')], [('Ann', ':', 'tea', ',', 'oil'), (';',), ('Bob',)])
    >>> items("rope 1 , 50".split()), items([" id=", "7", " lang=", "en"])
    ([('rope', '1', ',', '50')], [(' id=', '7'), (' lang=', 'en')])
    """
    attributes = [at for at, token in enumerate(tokens) if token[:1] == " " and len(token) > 1]
    if attributes and not any(token[:1] == "<" for token in tokens):
        cuts = {*attributes}
    else:
        signs = [*_signs_between(tokens)]
        sign = next((sign for sign in _BETWEEN if any(tokens[at] == sign for at in signs)), "")
        cuts = {end for at in signs if tokens[at] == sign for end in (at, at + 1)}
    return [tuple(tokens[start:end]) for start, end in pairwise(sorted({0, *cuts, len(tokens)}))]


def _signs_between(tokens: Sequence[str]) -> Iterator[int]:
    """Yields where signs stand that may part items: not in a tag, nor in a number."""
    is_inside = False
    for at, token in enumerate(tokens):
        is_inside = token != "<>" and (is_inside or (token[:1] == " " and len(token) > 1))
        if token in _BETWEEN and not is_inside and not _is_number(tokens[max(0, at - 1) : at + 2]):
            yield at


def _only(lines: Sequence[Line], others: Sequence[Line]) -> Iterator[Line]:
    """Yields lines but for those of which something is still there: what they say in other blocks alone, or a part of it in their own."""
    paths = defaultdict[tuple[str, ...], set[str]](set)
    parts = {(other.path, part) for other in others for part in _parts_of(other)}
    for line in others:
        paths[_all_of(line)].add(line.path)
    for line in lines:
        there = paths.get(_all_of(line), {line.path})
        if line.path in there and parts.isdisjoint((line.path, part) for part in _parts_of(line)):
            yield line


def _all_of(line: Line) -> tuple[str, ...]:
    """Returns what a line says, or else its tags and attributes."""
    return tuple(said_in(line.tokens)) or line.tokens


def differences(a: Sequence[str], b: Sequence[str]) -> list[Difference]:
    """Returns where two lists of tokens differ: first and last in either.

    >>> differences("Seen 1,234 times by you and other 3".split(), "Seen 999 times by you and other 4".split())
    [(1, 2, 1, 2), (7, 8, 7, 8)]
    >>> differences("Ann sells lamps to Bob".split(), "Eve sells lamps to Joe".split())
    [(0, 1, 0, 1), (4, 5, 4, 5)]
    >>> differences("Room 7 : 12 of 30 free".split(), "Room 7 : 9 of 28 free".split())
    [(3, 4, 3, 4), (5, 6, 5, 6)]
    """
    found = list[Difference]()
    shift = 0
    for start, end, tokens in edits(a, b, 0):
        i, j, k, m = start, end, start + shift, start + shift + len(tokens)
        shift = m - j
        found.append((i, j, k, m))
    return found


def _is_number(tokens: Sequence[str]) -> bool:
    return all(token in _SIGNS or token[:1].isdigit() for token in tokens)


def said_in(tokens: Sequence[str]) -> Iterator[str]:
    """Yields the tokens of a line but for tags and attributes."""
    return (tokens[at] for at in said_at(tokens))


def said_at(tokens: Sequence[str]) -> Iterator[int]:
    """Yields where these are."""
    is_inside = False
    for at, token in enumerate(tokens):
        if token == "<>":
            is_inside = False
        elif len(token) > 1 and token[0] == " ":
            is_inside = True
        elif not is_inside and (token[:1] != "<" or len(token) == 1):
            yield at


def _moved(a: Sequence[Line], b: Sequence[Line], both: Counter[Line], pairs: Iterable[Pair]) -> Iterator[str]:
    """Yields the groups of lines that have moved, whether they say the same in both answers or not."""
    became = {pair.other: pair.line for pair in pairs if pair.line not in both and pair.other not in both}
    first, second = _those(a, both + Counter(became.values())), _those(b, both + Counter(became.keys()))
    if len(first) * len(second) > MAX_CELLS:
        return
    names = {line: str(number) for number, line in enumerate({*first})}
    shift = 0
    for start, end, come in edits(
        [names[line] for line in first], [names[became.get(line, line)] for line in second], 0
    ):
        for line in (*first[start:end], *second[start + shift : start + shift + len(come)]):
            yield group_of(line.place)
        shift += len(come) - (end - start)


def _left(lines: Sequence[Line], some: Counter[Line], others: Sequence[Line]) -> list[Line]:
    """Returns those lines that are among some, but for as many as are in one place with others: these have stayed there."""
    found, there = list[Line](), Counter(tuple(line) for line in others if line in some)
    for line in lines:
        if line in some:
            there[tuple(line)] -= 1
            if there[tuple(line)] < 0:
                found.append(line)
    return found


def _grouped(lines: Iterable[Line], group: Callable[[Line], str]) -> dict[str, list[Line]]:
    found = dict[str, list[Line]]()
    for line in lines:
        found.setdefault(group(line), []).append(line)
    return found


def _names(lines: Sequence[Line]) -> set[Said]:
    """Returns what one card of a path says alone, by which it is known."""
    counts = Counter(part for line in lines if is_card(line) for part in {*_said(line)})
    return {part for part, count in counts.items() if count == 1}


def _paired(
    mine: list[Line], theirs: list[Line], names: AbstractSet[Said]
) -> tuple[list[tuple[Line, Line]], list[Line], list[Line]]:
    """Returns which line has become which, and those that have gone, and have come: of lines that are alike, nobody can tell which."""
    first, second = ([_Words.of(line) for line in lines] for lines in (mine, theirs))
    pairs, left, free = list[tuple[Line, Line]](), [*range(len(mine))], dict.fromkeys(range(len(theirs)))
    for are_one in (_differ_in_numbers, partial(_are_alike, names), _share_part):
        alone = list[int]()
        for at in left:
            alike = [there for there in free if are_one(first[at], second[there])]
            if len(alike) == 1 == sum(are_one(first[at], first[other]) for other in left):
                del free[alike[0]]
                pairs.append((mine[at], theirs[alike[0]]))
            else:
                alone.append(at)
        left = alone
    return pairs, [mine[at] for at in left], [theirs[at] for at in free]


class _Words(NamedTuple):
    """What a line says, as it is compared with many."""

    first: Said
    said: frozenset[Said]
    words: frozenset[tuple[str, int]]  #: each with how often it was there before
    is_card: bool
    parts: frozenset[tuple[str, ...]]  #: see `_parts_of`

    @classmethod
    def of(cls, line: Line) -> "_Words":
        said, before = _said(line), Counter[str]()
        words = set[tuple[str, int]]()
        for word in chain.from_iterable(part for _, part in said):
            words.add((word, before[word]))
            before[word] += 1
        return cls(said[0], frozenset(said), frozenset(words), len(said) > 1, frozenset(_parts_of(line)))


def _differ_in_numbers(a: _Words, b: _Words) -> bool:
    return a.said == b.said


def _are_alike(names: AbstractSet[Said], a: _Words, b: _Words) -> bool:
    """Whether half of the words of two lines are the same; of two cards, most of them or their first lines, and a name."""
    both, most = 2 * len(a.words & b.words), max(len(a.words), len(b.words))
    if a.is_card or b.is_card:
        return (both > most or (both == most and a.first == b.first)) and not names.isdisjoint(
            a.said & b.said
        )
    return both >= most


def _share_part(a: _Words, b: _Words) -> bool:
    return not a.parts.isdisjoint(b.parts)


def _parts_of(line: Line) -> Iterator[tuple[str, ...]]:
    """Yields the words and numbers that a line says between tags and signs, if there is no other of its kind in its place."""
    is_one = is_one_place(line.place) and not is_card(line)
    said, part = {*said_at(line.tokens)} if is_one else set(), list[str]()
    for at, token in enumerate((*line.tokens, "<")):
        if at in said and token[0].isalnum():
            part.append(token)
        elif part:
            yield tuple(part)
            part = []


def _said(line: Line) -> list[Said]:
    """Returns what each line of a card says; all tokens of a line that says nothing."""
    tokens, start, found = line.tokens, 0, list[Said]()
    for end in [*(at for at, token in enumerate(tokens) if token == BREAK), len(tokens)]:
        if said := _folded(said_in(tokens[start:end])):
            found.append((line.path, said))
        start = end + 1
    return found or [(line.path, _folded(tokens))]


def _folded(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple(["0" if token[:1].isdigit() else token for token in tokens])


def _those(lines: Sequence[Line], some: Counter[Line]) -> list[Line]:
    """Returns the lines that are among some, each as often as there."""
    left = Counter(some)
    found = list[Line]()
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
            found.append(line)
    return found
