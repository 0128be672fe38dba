"""The sketches that were last read from a store: a page that many are like is compared with the same ones again and again."""

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes

__all__ = ["Sketches"]

Numbers = npt.NDArray[np.uint32]

#: How many are held: 8 MB of sketches of 128 bytes; memory is taken only for those that are used.
PLACES = 1 << 16


class Sketches:
    """Sketches by row, each in the one place that its row may have."""

    def __init__(self, size: int) -> None:
        """``size`` is that of a sketch, in bytes."""
        self._rows = np.zeros(PLACES, np.uint32)
        self._words = np.zeros((PLACES, size // 8), np.uint64)

    def get(self, rows: Numbers) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """The sketches in some rows, as they are compared, and which of those are not held; row 0 never is."""
        places = rows % PLACES
        unheld = ((self._rows[places] != rows) | (rows == 0)).nonzero()[0]
        return self._words[places], unheld

    def put(self, rows: Numbers, words: Hashes) -> None:
        """Holds the sketches in some rows."""
        places = rows % PLACES
        self._rows[places], self._words[places] = rows, words

    def drop(self, rows: Numbers) -> None:
        """Forgets those of some rows, which are written."""
        places = rows % PLACES
        self._rows[places[self._rows[places] == rows]] = 0
