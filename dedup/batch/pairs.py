"""Pairs of rows, and the clusters that they make."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Pairs of rows within a distance, ordered by ``left``, then by ``right``: three arrays of one length."""

    left: Numbers  #: numbers of rows, from 0: of the queries, or the lower one of two
    right: Numbers  #: numbers of rows: of what is stored, or the higher one of two
    distances: npt.NDArray[np.uint8]  #: bits in which the two differ


class Clusters:
    """Rows that are joined by pairs: a union-find of whole arrays, O(log rows) steps for each array of pairs.

    >>> clusters = Clusters(6)
    >>> clusters.join(np.array([4, 1]), np.array([2, 4]))
    >>> clusters.lowest().tolist()
    [0, 1, 1, 3, 1, 5]
    """

    def __init__(self, rows: int) -> None:
        self._above: Numbers = np.arange(rows)  # never a higher row; of the lowest one of a cluster, itself

    def join(self, left: Numbers, right: Numbers) -> None:
        """Puts the two rows of each pair in one cluster."""
        while len(left):
            a, b = self._top(left), self._top(right)
            apart = a != b
            left, right, a, b = left[apart], right[apart], a[apart], b[apart]
            np.minimum.at(self._above, np.maximum(a, b), np.minimum(a, b))

    def lowest(self) -> Numbers:
        """For each row, the lowest one of its cluster: int64, shape (rows,)."""
        return self._top(np.arange(len(self._above)))

    def _top(self, rows: Numbers) -> Numbers:
        top = self._above[rows]
        while not np.array_equal(higher := self._above[top], top):
            top = higher
        self._above[rows] = top
        return top
