"""Which pages have to be judged together: those that can have a say in each other's verdicts.

A verdict on a page rests on the kept pages near it, and on the chrome of their hosts and its own, which is learned
from the pages that are kept there, one after another.  So hosts belong together if pages of them are near each other.
Pages of other hosts are judged apart from them, and a page that is near none is not judged at all.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from dedup.batch.pairs import Clusters, Numbers
from dedup.fingerprint.shingles import Hashes

Bools = npt.NDArray[np.bool_]


class Groups:
    """Contents, by their rows in the order of their first pages, that are near each other, chain by chain.

    >>> groups = Groups(np.array([False, False, False, False]))
    >>> groups.join_equal(np.array([7, 8, 7, 9], np.uint64))
    >>> groups.lowest.tolist(), groups.some.tolist(), groups.unsure.tolist()
    ([0, 1, 0, 3], [True, False, True, False], [False, False, True, False])
    """

    def __init__(self, mixed: Bools) -> None:
        """``mixed``: whether a row is of several contents, shape (n,)."""
        self._mixed = mixed
        self._clusters = Clusters(len(mixed))

    def join_equal(self, keys: Hashes) -> None:
        """Joins rows with an equal key; ``keys`` has shape (n,)."""
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        self._clusters.join(np.arange(len(keys)), first[which])

    def join_near(self, keys: Hashes, left: Hashes, right: Hashes) -> None:
        """Joins rows that share a key, and the two rows of each pair."""
        self.join_equal(keys)
        values, first = np.unique(keys, return_index=True)
        self._clusters.join(first[values.searchsorted(left)], first[values.searchsorted(right)])

    @property
    def lowest(self) -> Numbers:
        """For each row, the lowest one that belongs with it."""
        return self._clusters.lowest()

    @property
    def some(self) -> Bools:
        """Which rows belong with others, or are of several contents: only these need verdicts."""
        lowest = self.lowest
        several: Bools = (np.bincount(lowest, minlength=len(lowest))[lowest] > 1) | self._mixed
        return several

    @property
    def unsure(self) -> Bools:
        """Rows whose first page may be dropped.  The first page of any other row is kept, and all its copies are dropped."""
        unsure: Bools = self.some & ((self.lowest != np.arange(len(self._mixed))) | self._mixed)
        return unsure


def parts(groups: Numbers, ties: Iterable[tuple[Numbers, Hashes]]) -> tuple[Numbers, Hashes, Numbers]:
    """Returns what is judged together, given the hosts that groups have pages on, as arrays of pairs.

    Of each row its part; and the hosts, each once, with theirs.

    >>> found = parts(np.array([0, 1, 0, 3]), [(np.array([0, 1, 3]), np.array([77, 77, 88], np.uint64))])
    >>> [array.tolist() for array in found]
    [[0, 0, 0, 3], [77, 88], [0, 3]]
    """
    rows, names = (
        np.concatenate([np.empty(0, kind), *some])
        for kind, some in zip((np.int64, np.uint64), zip(*ties, strict=True), strict=True)
    )
    hosts, which = np.unique(names, return_inverse=True)
    joined = Clusters(len(groups) + len(hosts))
    joined.join(np.arange(len(groups)), groups)
    joined.join(rows, len(groups) + which)
    lowest = joined.lowest()
    return lowest[: len(groups)], hosts, lowest[len(groups) :]
