"""What differs between two token sequences: the fewest edits, in bounded time and memory."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["MAX_CELLS", "Edit", "edits"]

#: A common subsequence is looked for if the numbers of differing tokens of both pages, multiplied, are at most
#: this, which takes 50 MB and a tenth of a second.  Beyond it, all differing tokens are one edit.
MAX_CELLS = 400_000_000
#: Two edits with at most this many common tokens between them are made one, as these are not worth reading.
CHAFF = 1


class Edit(NamedTuple):
    """The tokens from ``start`` to ``end`` of the old sequence are replaced by ``tokens`` in the new one."""

    start: int
    end: int
    tokens: list[str]


def edits(old: Sequence[str], new: Sequence[str]) -> list[Edit]:
    """The edits that turn the old sequence into the new one, in order.

    Takes O(n m / 64) time, for the n and m tokens that are left without the common start and the common end
    (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004).

    >>> edits("the quick brown fox jumps".split(), "the slow brown fox jumps again".split())
    [Edit(start=1, end=2, tokens=['slow']), Edit(start=5, end=5, tokens=['again'])]
    """
    shortest = min(len(old), len(new))
    head = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    tail = next((at for at in range(shortest - head) if old[-1 - at] != new[-1 - at]), shortest - head)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    common = _common(a, b) if len(a) * len(b) <= MAX_CELLS else []
    found: list[Edit] = []
    start = 0
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *common, (len(a), len(b))]):
        if next_i - i == next_j - j == 1:
            continue
        if found and head + i + 1 - found[-1].end <= CHAFF:
            last = found.pop()
            found.append(Edit(last.start, head + next_i, list(b[start:next_j])))
        else:
            start = j + 1
            found.append(Edit(head + i + 1, head + next_i, list(b[start:next_j])))
    return found


def _common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """The positions, in both sequences, of the tokens of a longest common subsequence."""
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
