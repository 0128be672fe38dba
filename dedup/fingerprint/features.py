"""Which of a page's tokens are hashed, and how they are weighed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes, shingle_hashes
from dedup.fingerprint.simhash import log_weights, simhash
from dedup.fingerprint.sketch import WIDTHS
from dedup.values import Choice, Flag, Number, check

__all__ = ["Features"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a fingerprint.  The defaults are what the evaluation chose, which also varies them."""

    simhash_size: int = 1  #: tokens per simhash feature
    simhash_urls: bool = False  #: whether URL tokens are simhash features
    weights: str = "count"  #: of a simhash feature: "count", "log" = 1 + ln(count), or "one"
    sketch_urls: bool = True  #: whether URL tokens are part of the sketched shingles
    slots: int = 512  #: slots of the sketch, a power of two
    bits: int = 2  #: bits stored per slot

    def __post_init__(self) -> None:
        check("features.simhash_size", self.simhash_size, Number(1, 100))
        check("features.simhash_urls", self.simhash_urls, Flag())
        check("features.weights", self.weights, Choice(("count", "log", "one")))
        check("features.sketch_urls", self.sketch_urls, Flag())
        check("features.slots", self.slots, Choice((64, 128, 256, 512, 1024, 2048)))
        check("features.bits", self.bits, Choice(WIDTHS))

    def simhash(self, hashes: Hashes, words: Hashes) -> int | None:
        """The simhash of a page, of the hashes of all its tokens and of the words among them; None without any."""
        features = shingle_hashes(hashes if self.simhash_urls else words, self.simhash_size)
        if self.weights == "count":  # a feature that is repeated counts each time
            return simhash(features)
        features, counts = np.unique(features, return_counts=True)
        return simhash(features, log_weights(counts) if self.weights == "log" else np.ones_like(counts))

    def shingles(self, hashes: Hashes, words: Hashes, size: int) -> Hashes:
        """The shingles that are sketched, of ``size`` tokens each: uint64, shape (n,)."""
        return shingle_hashes(hashes if self.sketch_urls else words, size)

    def within(self, some: Bools, is_word: Bools, size: int) -> Bools:
        """Which of the `shingles` consist of some tokens only, of which both arguments tell: shape (n,)."""
        chosen = some if self.sketch_urls else some[is_word]
        count = max(1, len(chosen) - size + 1)
        whole = chosen[:count].copy()
        for offset in range(1, min(size, len(chosen))):
            whole &= chosen[offset : offset + count]
        return whole
