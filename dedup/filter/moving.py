"""Blocks that move: an advert that stands now above the others and now below them, or a list in another order each time.

Of such a block its place is noise, and not what it says.  So a page is compared with its moving blocks behind all else, in an
order that does not depend on the page.  What moves are blocks that were seen to, and all blocks of a list of such blocks.

>>> lists = ("coats for the rain", "oil for your lamp"), ("oil for your lamp", "coats for the rain"), ("ropes", "books about the sea")
>>> first, second, other = (f"\\n1 a story \\n1 {one} \\n1 {two} \\n1 from us".split(" ") for one, two in lists)
>>> moving = Moving()
>>> moving.learn(first, second)
>>> [moving.settled(page)[0] == moving.settled(first)[0] for page in (first, second, other)]
[True, True, False]
>>> moving.settled(other)
(['\\n1', 'a', 'story', '\\n1', 'from', 'us', '\\r', 'books', 'about', 'the', 'sea', '\\r', 'ropes'], [(1, 3), (0, 3)])
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from msgspec import Struct

from dedup.filter.answers import BETWEEN, MAX_BLOCKS, alike, is_long_work, said_in
from dedup.filter.places import AROUND, EDGE, is_break
from dedup.history.differences import equal_ends

#: Blocks that move on pages of one kind, and lists of them; what moves beyond that is not known to.
MAX_MOVING = 256
#: Blocks of one page that begin or end as a list does; around more than these none is looked for.
MAX_ALIKE = 100
#: One block of so many has to have moved, or else they are no list: an advert that moves past a story makes none of that.
ENOUGH = 3
#: What stands between the tokens of a page and those of data in its scripts.
DATA = ""

#: The tokens of a block, without the break in front of them.
Block = tuple[str, ...]


class Moving(Struct):
    """What moves on pages of one kind."""

    blocks: set[Block] = set()
    #: The last tokens in front of a list of blocks that move, the first ones behind it, and how many blocks it has.
    lists: set[tuple[Block, Block, int]] = set()

    def __bool__(self) -> bool:
        return bool(self.blocks or self.lists)

    def learn(self, a: Sequence[str], b: Sequence[str]) -> None:
        """Takes blocks that stand elsewhere in the other of two answers for such, given as `dedup.filter.places.marked` tokens.

        Quadratic in the blocks between the first that differs and the last, which are bounded.
        """
        mine, theirs = ([said_in(each[i:j]) for i, j in _blocks(each)] for each in (a, b))
        places, moved = _places(mine, theirs)
        once = {block for block, times in (Counter(mine) + Counter(theirs)).items() if times == 2}
        stand_elsewhere = {
            mine[at] for at in moved if mine[at] == theirs[places[at]] and len(mine[at]) >= BETWEEN
        }
        found = self.blocks | (stand_elsewhere & once)
        lists = self.lists | {*_around(mine, places, moved)}
        if len(found) + len(lists) <= MAX_MOVING:
            self.blocks, self.lists = found, lists

    def settled(self, tokens: Sequence[str]) -> tuple[list[str], list[tuple[int, int]]]:
        """Returns the tokens of a page with what moves behind all else, and sorted; and in which order that stands on the page.

        The order is for each block how many it stands behind among these, and how many other tokens are before it.
        O(n), and a step for each list.
        """
        places = [*_blocks(tokens)]
        blocks = [said_in(tokens[i:j]) for i, j in places]
        within = _lists(blocks, self.lists)
        left, found, before, last = list[str](), list[Block](), list[int](), 0
        for at, ((first, end), block) in enumerate(zip(places, blocks, strict=True)):
            if block in self.blocks or at in within:
                left += tokens[last:first]
                found.append(block)
                before.append(len(left))
                last = end
        left += tokens[last:]
        ranks = {block: rank for rank, block in enumerate(sorted(found))}
        order = [(ranks[block], others) for block, others in zip(found, before, strict=True)]
        return [*left, *chain.from_iterable((EDGE, *block) for block in sorted(found))], order


def _places(mine: Sequence[Block], theirs: Sequence[Block]) -> tuple[dict[int, int], set[int]]:
    """Where in another answer blocks stand between the first that differs and the last, and which of them have moved."""
    from difflib import SequenceMatcher  # not above: most pages are compared by their digests

    start, end = equal_ends(mine, theirs)
    last, other = len(mine) - end, len(theirs) - end
    places, moved, past = dict[int, int](), set[int](), list[range]()
    if max(last, other) - start > MAX_BLOCKS or is_long_work(mine[start:last], theirs[start:other]):
        return places, moved
    gone, come = list[int](), list[int]()
    matcher = SequenceMatcher(None, mine[start:last], theirs[start:other], autojunk=False)
    for tag, *ends in matcher.get_opcodes():
        some, others = (range(start + i, start + j) for i, j in (ends[:2], ends[2:]))
        if tag != "equal":
            gone += some
            come += others
            continue
        places |= zip(some, others, strict=True)
        if ends[0] - ends[2] not in (0, last - other):
            past.append(some)
    pairs = alike([mine[at] for at in gone], [theirs[at] for at in come]) or []
    mine_once, theirs_once = (Counter(each[side] for each in pairs) for side in (0, 1))
    found = {gone[at]: come[to] for at, to in pairs if mine_once[at] == theirs_once[to] == 1}
    places |= found
    moved |= {i for i, k in found.items() if i - k not in (0, last - other)}
    # Have blocks moved past others, or these past them?  What has fewer tokens has moved.
    size = sum(len(mine[at]) for at in gone)
    moved |= {*chain.from_iterable(some for some in past if sum(len(mine[at]) for at in some) <= size)}
    return places, moved


def _around(
    mine: Sequence[Block], places: dict[int, int], moved: set[int]
) -> Iterator[tuple[Block, Block, int]]:
    """What stands around a list: the same blocks in either answer, of which enough have moved."""
    within = [*moved, *(places[at] for at in moved)]
    some = range(min(within), max(within) + 1) if moved else range(0)
    is_list = ENOUGH * len(moved) >= len(some) and {places.get(at) for at in some} == {*some}
    if is_list and some and some.start > 0 and some.stop < len(mine):
        before, after = mine[some.start - 1], mine[some.stop]
        if before and after:
            yield before[-AROUND:], after[:AROUND], len(some)


def _lists(blocks: Sequence[Block], lists: Iterable[tuple[Block, Block, int]]) -> set[int]:
    """The blocks of lists, which a page has between these tokens, once; or so many on one side, if it has not the other."""
    begins, ends = defaultdict[Block, list[int]](list), defaultdict[Block, list[int]](list)
    for at, block in enumerate(blocks):
        begins[block[-AROUND:]].append(at + 1)
        ends[block[:AROUND]].append(at)
    found = set[int]()
    for before, after, many in lists:
        behind, in_front = begins.get(before, []), ends.get(after, [])
        if len(behind) + len(in_front) > MAX_ALIKE:
            continue
        # Of several that are alike, those stand around the list that have none of the others between them.
        some = [*pairwise(sorted([(at, False) for at in behind] + [(at, True) for at in in_front]))]
        match [(i, j) for (i, is_end), (j, is_other) in some if is_other and not is_end], behind, in_front:
            case [(begin, end)], _, _:
                found |= {*range(begin, end)}
            case [], [], [end]:
                found |= {*range(max(0, end - many), end)}
            case [], [begin], []:
                found |= {*range(begin, min(len(blocks), begin + many))}
    return found


def _blocks(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first token of each block, and the one behind it."""
    end = next((at for at, token in enumerate(tokens) if token == DATA), len(tokens))
    return pairwise([0, *(at for at in range(1, end) if is_break(tokens[at])), end])
