"""The sketches that were last read from a store: a page that many are like is compared with the same ones again and again."""

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes

Numbers = npt.NDArray[np.uint32]

#: No more are held than this: 8 MB of sketches of 128 bytes; memory is taken only for those that are used.
PLACES = 1 << 16


class Sketches:
    """Sketches by the numbers of pages, each in the one place that its number may have; what is under a number never changes."""

    def __init__(self, size: int) -> None:
        """``size`` is that of a sketch, in bytes."""
        self._numbers = np.zeros(PLACES, np.uint32)
        self._words = np.empty((PLACES, size // 8), np.uint64)  # what was never put is never taken for held

    def get(self, numbers: Numbers) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """Returns the sketches of some pages, as they are compared, and which of those are not held, whose are anything.

        Number 0 is never held.
        """
        places = numbers & (PLACES - 1)
        unheld = ((self._numbers[places] != numbers) | (numbers == 0)).nonzero()[0]
        return self._words[places], unheld

    def put(self, numbers: Numbers, words: Hashes) -> None:
        """Holds the sketches of some pages."""
        places = numbers & (PLACES - 1)
        self._numbers[places], self._words[places] = numbers, words
