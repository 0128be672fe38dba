"""Which of a page's tokens are hashed, and into what."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes, shingle_hashes
from dedup.fingerprint.simhash import simhash
from dedup.fingerprint.sketch import WIDTHS
from dedup.values import Choice, check

Bools = npt.NDArray[np.bool_]
#: What indexes name, too, and the evaluation alone varies (benchmarks/quality/features.py).
FIXED = {"simhash_size": 1, "simhash_urls": False, "weights": "count", "sketch_urls": True}


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a fingerprint: words, each as often as it is there, for the simhash; all tokens for the sketch."""

    slots: int = 512  #: slots of the sketch, a power of two
    bits: int = 2  #: bits stored per slot

    def __post_init__(self) -> None:
        check("features.slots", self.slots, Choice((64, 128, 256, 512, 1024, 2048)))
        check("features.bits", self.bits, Choice(WIDTHS))

    def simhash(self, hashes: Hashes, words: Hashes) -> int | None:
        """Returns the simhash of a page, of the hashes of all its tokens and of the words among them; None without any."""
        return simhash(shingle_hashes(words, 1))

    def shingles(self, hashes: Hashes, words: Hashes, size: int) -> Hashes:
        """Returns the shingles that are sketched, of ``size`` tokens each: uint64, shape (n,)."""
        return shingle_hashes(hashes, size)

    def within(self, some: Bools, is_word: Bools, size: int) -> Bools:
        """Returns which of the `shingles` consist only of the tokens that both arguments mark: shape (n,)."""
        count = max(1, len(some) - size + 1)
        whole = some[:count].copy()
        for offset in range(1, min(size, len(some))):
            whole &= some[offset : offset + count]
        return whole
