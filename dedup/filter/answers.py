"""What differs between two answers to one request, token by token and block by block.

>>> differences("seen 17 times by all".split(), "seen 18 times by all".split())
[Differing(first=1, last=2, most=1, has_signs=False)]
>>> answers = [["\\n1", "a", "story", "\\n1", advert, "from", "us", "\\n1", "seen", counter] for advert, counter in ("ab", "cd")]
>>> differing_blocks(*answers)
([Differing(first=4, last=5, most=1, has_signs=False), Differing(first=9, last=10, most=1, has_signs=False)], [])
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise, product
from typing import NamedTuple

from dedup.filter.places import AROUND, is_break, is_signs
from dedup.history.differences import equal_ends

#: Tokens that have to be equal between two differences, or else they are one: words of an advert agree by chance.
BETWEEN = 4
#: Tokens of a page that may differ when it is fetched again; if more do, another page was served.
MAX_DIFFERING = 500
#: Blocks that are compared, at most: from the first that differs to the last.
MAX_BLOCKS = 2_000
#: Pairs of equal tokens, or blocks, of two answers: a third of a second.
MAX_EQUAL = 1_000_000
#: Tokens that are compared to tell which block of an answer is which of the other, each with all blocks of that.
MAX_COMPARED = 200_000


class Differing(NamedTuple):
    """Tokens of the first answer that differ from those of the second."""

    first: int
    last: int  #: the one behind them
    most: int  #: how many they are, but for signs, or those of the second answer if these are more
    has_signs: bool = False  #: true if signs are among them


def differences(
    a: Sequence[str], b: Sequence[str], edges: AbstractSet[int] = frozenset()
) -> list[Differing] | None:
    """Returns what differs between two lists of tokens; None if that is too much.  Quadratic in what differs, which is bounded.

    Blocks of the first begin at the ``edges``: what differs in one is another difference than what does in the one before, if
    anything between is equal.
    """
    from difflib import SequenceMatcher  # not above: most pages are compared by their digests

    start, end = equal_ends(a, b)
    inner, other = a[start : len(a) - end], b[start : len(b) - end]
    if max(len(inner), len(other)) > 20 * MAX_DIFFERING or is_long_work(inner, other):
        return None
    found: list[list[int]] = []  # first and last in `inner`, first and last in `other`
    for tag, i, j, k, m in SequenceMatcher(None, inner, other, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if found and i - found[-1][1] < BETWEEN and edges.isdisjoint(range(start + found[-1][1], start + i)):
            found[-1][1], found[-1][3] = j, m
        else:
            found.append([i, j, k, m])
    if sum(max(j - i, m - k) for i, j, k, m in found) > MAX_DIFFERING:
        return None
    return [_differing(start + i, start + j, inner[i:j], other[k:m]) for i, j, k, m in found]


def is_long_work(a: Sequence[Hashable], b: Sequence[Hashable]) -> bool:
    """Whether it takes too long to tell what two lists have in common: each item is compared with all that are equal to it.

    >>> is_long_work(range(2_000), range(2_000)), is_long_work(2_000 * "a", 2_000 * "a")
    (False, True)
    """
    times, others = Counter(a), Counter(b)
    return sum(many * others[item] for item, many in times.items()) > MAX_EQUAL


def differing_blocks(a: Sequence[str], b: Sequence[str]) -> tuple[list[Differing], list[Differing]]:
    """Returns what differs between two lists of tokens with breaks (see `dedup.filter.places.marked`), block by block.

    And blocks of which most differs, each with all that is in it.  One that only one of the answers has is left out: where
    it is missing, what is beside it would be taken for it.
    """
    from difflib import SequenceMatcher  # as above

    starts, others = _starts(a), _starts(b)
    mine, theirs = ([tuple(each[i:j]) for i, j in pairwise(at)] for each, at in ((a, starts), (b, others)))
    said, their = ([said_in(block) for block in blocks] for blocks in (mine, theirs))
    first, end = equal_ends(said, their)
    last, other = len(mine) - end, len(theirs) - end
    found, whole = list[Differing](), list[Differing]()
    if max(last, other) - first > MAX_BLOCKS or is_long_work(said[first:last], their[first:other]):
        return found, whole
    matcher = SequenceMatcher(None, said[first:last], their[first:other], autojunk=False)
    for tag, *at in matcher.get_opcodes():
        if tag != "replace":
            continue
        i, j, k, m = (first + each for each in at)
        pairs = alike(said[i:j], their[k:m])
        if pairs is None:
            continue
        if j - i == m - k and all(one == other for one, other in pairs):
            _compare(starts[i], mine[i:j], theirs[k:m], found, whole)
        elif pairs:  # more or fewer stand around them: so it is not known what stood where
            for one, other in pairs:
                found += _inside(starts[i + one], mine[i + one], theirs[k + other])
        else:
            here, there = a[starts[i] : starts[j]], b[others[k] : others[m]]
            found.append(_differing(starts[i] + 1, starts[j], here, there))
    return found, whole


def alike(mine: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]) -> list[tuple[int, int]] | None:
    """Returns which blocks are like which: half of their tokens are the same, as of an advert with another number in it.

    None if there are too many tokens to tell.
    """
    if len(theirs) * sum(map(len, mine)) + len(mine) * sum(map(len, theirs)) > MAX_COMPARED:
        return None
    some, others = ([Counter(block) for block in blocks] for blocks in (mine, theirs))
    return [
        (at, place)
        for (at, a), (place, b) in product(enumerate(some), enumerate(others))
        if a and b and 2 * (a & b).total() >= max(a.total(), b.total())
    ]


def _inside(start: int, block: Sequence[str], other: Sequence[str]) -> list[Differing]:
    """Returns what differs between two blocks, the first of which begins at ``start``, but for how deep they are."""
    said, behind = said_in(block), start + len(block)
    inner = differences(said, said_in(other)) or [_differing(0, len(said), block, other)]
    return [
        each._replace(first=behind - len(said) + each.first, last=behind - len(said) + each.last)
        for each in inner
    ]


def _compare(
    start: int,
    mine: Sequence[Sequence[str]],
    theirs: Sequence[Sequence[str]],
    found: list[Differing],
    whole: list[Differing],
) -> None:
    """Adds what differs between as many blocks of either answer, which are side by side; the first begins at ``start``."""
    outer: int | None = (
        None  # how deep the last whole block begins, unless one that stays the same has followed
    )
    for block, other in zip(mine, theirs, strict=True):
        all_of_it = _differing(1, len(block), block, other)
        inner = _inside(start, block, other)
        found += inner
        before, behind = inner[0].first - start, start + len(block) - inner[-1].last
        is_between_words = before >= AROUND and behind >= AROUND
        if is_between_words or 2 * sum(each.last - each.first for each in inner) <= len(block):
            outer = None
        elif outer is not None and _depth(block) > outer:
            outermost = whole[-1]
            whole[-1] = Differing(
                outermost.first,
                start + len(block),
                outermost.most + all_of_it.most,
                outermost.has_signs or all_of_it.has_signs,
            )
        else:
            outer = _depth(block)
            whole.append(all_of_it._replace(first=start + 1, last=start + len(block)))
        start += len(block)


def _differing(first: int, last: int, mine: Sequence[str], theirs: Sequence[str]) -> Differing:
    """Returns that these tokens of either answer differ."""
    signs = [sum(map(is_signs, tokens)) for tokens in (mine, theirs)]
    most = max(len(mine) - signs[0], len(theirs) - signs[1])
    return Differing(first, last, most, any(signs))


def _depth(block: Sequence[str]) -> int:
    """How deep the break is with which a block begins."""
    return int(block[0][1:]) if is_break(block[0]) else 0


def _starts(tokens: Sequence[str]) -> list[int]:
    """Where blocks begin, and the end."""
    return [0, *(at for at, token in enumerate(tokens) if at and is_break(token)), len(tokens)]


def said_in(block: Sequence[str]) -> tuple[str, ...]:
    """Returns the tokens of a block but for the break in front of them."""
    return tuple(block[1:] if block and is_break(block[0]) else block)
