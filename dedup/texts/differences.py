"""What differs between two token sequences: the fewest edits, in bounded time and memory."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

#: A common subsequence is looked for if the numbers of differing tokens of both pages, multiplied, are at most
#: this, which takes 50 MB and a tenth of a second.  Beyond it, all differing tokens are one edit.
MAX_CELLS = 400_000_000
#: Two edits with at most this many common tokens between them are made one, as these are not worth reading: on pages that are
#: laid side by side, and where only what differs is told.
CHAFF, BETWEEN = 1, 3
#: Two sequences that differ agree again where this many tokens are equal, if that is not more than this many tokens farther on.
ANCHOR, STEP = 6, 64


class Edit(NamedTuple):
    """The tokens from ``start`` to ``end`` of the old sequence are replaced by ``tokens`` in the new one."""

    start: int
    end: int
    tokens: list[str]


def edits(old: Sequence[str], new: Sequence[str], chaff: int = CHAFF) -> list[Edit]:
    """Returns the edits that turn the old sequence into the new one, in order.

    Takes O(n m / 64) time, for the n and m tokens that are left without the common start and the common end
    (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004).

    >>> edits("the quick brown fox jumps".split(), "the slow brown fox jumps again".split())
    [Edit(start=1, end=2, tokens=['slow']), Edit(start=5, end=5, tokens=['again'])]
    """
    head, tail = equal_ends(old, new)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    common = _common(a, b) if len(a) * len(b) <= MAX_CELLS else []
    found: list[Edit] = []
    start = 0
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *common, (len(a), len(b))]):
        if next_i - i == next_j - j == 1:
            continue
        if found and head + i + 1 - found[-1].end <= chaff:
            last = found.pop()
            found.append(Edit(last.start, head + next_i, list(b[start:next_j])))
        else:
            start = j + 1
            found.append(Edit(head + i + 1, head + next_i, list(b[start:next_j])))
    return found


def equal_ends(a: Sequence[object], b: Sequence[object]) -> tuple[int, int]:
    """Returns how many items are equal at the beginning of two sequences, and at the end of what is left."""
    shorter = min(len(a), len(b))
    head = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    tail = next((at for at in range(shorter - head) if a[-1 - at] != b[-1 - at]), shorter - head)
    return head, tail


def small_edits(old: Sequence[str], new: Sequence[str]) -> list[Edit]:
    """Edits likewise, not always the fewest, and in O(n + m) where they are small.

    >>> small_edits(list("the quick fox"), list("the slow fox"))
    [Edit(start=4, end=9, tokens=['s', 'l', 'o', 'w'])]
    """
    found: list[Edit] = []
    at, its = 0, 0
    while True:
        while (step := old[at : at + STEP]) and step == new[its : its + STEP]:
            at, its = at + len(step), its + len(step)
        rest = min(len(old) - at, len(new) - its, STEP)
        same = next((n for n in range(rest) if old[at + n] != new[its + n]), rest)
        at, its = at + same, its + same
        if at == len(old) and its == len(new):
            return found
        if (met := _meet_again(old[at : at + STEP], new[its : its + STEP])) is None:
            met = len(old) - at, len(new) - its
        some = edits(old[at : at + met[0]], new[its : its + met[1]], BETWEEN)
        found += [edit._replace(start=at + edit.start, end=at + edit.end) for edit in some]
        at, its = at + met[0], its + met[1]


def _meet_again(a: Sequence[str], b: Sequence[str]) -> tuple[int, int] | None:
    """Returns the nearest places from which on the same `ANCHOR` tokens stand; None if there are none."""
    places: dict[tuple[str, ...], int] = {}
    for at in range(len(a) - ANCHOR, -1, -1):
        places[tuple(a[at : at + ANCHOR])] = at
    met = [
        (its + at, at, its)
        for its in range(len(b) - ANCHOR + 1)
        if (at := places.get(tuple(b[its : its + ANCHOR]), -1)) >= 0
    ]
    return min(met)[1:] if met else None


def _common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the positions, in both sequences, of the tokens of a longest common subsequence."""
    positions: dict[str, int] = defaultdict(int)  # for each token, a bit for each of its places in a
    for at, token in enumerate(a):
        positions[token] |= 1 << at
    every = (1 << len(a)) - 1
    # Bit i of row j is 0 if a[:i + 1] has one more token in common with b[:j] than a[:i] has.
    row, rows = every, [every]
    for token in b:
        matching = row & positions.get(token, 0)
        row = ((row + matching) | (row - matching)) & every
        rows.append(row)
    return list(_walk(a, b, rows))[::-1]


def _walk(a: Sequence[str], b: Sequence[str], rows: list[int]) -> Iterator[tuple[int, int]]:
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            yield i, j
        elif rows[j] >> (i - 1) & 1:
            i -= 1
        else:
            j -= 1
