"""Other features than those that the evaluation has chosen: each switch is a row of the ablation in benchmarks/RESULTS.md."""

import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.features import Features
from dedup.fingerprint.shingles import Hashes, shingle_hashes

#: Weights are fixed-point numbers of this unit, so that sums are exact and alike on every machine.
UNIT = 1024
_LOG_WEIGHTS = np.array([0] + [round(UNIT * (1 + math.log(c))) for c in range(1, 4096)], np.int64)


@dataclass(frozen=True, slots=True)
class Ablated(Features):
    """Features by other rules."""

    simhash_size: int = 1  #: tokens per simhash feature
    simhash_urls: bool = False  #: whether URL tokens are simhash features
    weights: str = "count"  #: of a simhash feature: "count", "log" = 1 + ln(count), or "one"
    sketch_urls: bool = True  #: whether URL tokens are part of the sketched shingles

    def simhash(self, hashes: Hashes, words: Hashes) -> int | None:
        features = shingle_hashes(hashes if self.simhash_urls else words, self.simhash_size)
        features, counts = np.unique(features, return_counts=True)
        rule = {
            "count": lambda: counts,
            "log": lambda: log_weights(counts),
            "one": lambda: np.ones_like(counts),
        }
        return weighted(features, rule[self.weights]())

    def shingles(self, hashes: Hashes, words: Hashes, size: int) -> Hashes:
        return shingle_hashes(hashes if self.sketch_urls else words, size)

    def within(
        self, some: npt.NDArray[np.bool_], is_word: npt.NDArray[np.bool_], size: int
    ) -> npt.NDArray[np.bool_]:
        return Features.within(self, some if self.sketch_urls else some[is_word], is_word, size)


def ablated(text: str) -> Features:
    """The features that a text such as ``weights=log,slots=64`` asks for; those of a crawl by default."""
    kinds = {field.name: type(field.default) for field in fields(Ablated)}
    values = dict(part.split("=") for part in filter(None, text.split(",")))
    read = {
        name: value == "True" if kinds[name] is bool else kinds[name](value) for name, value in values.items()
    }
    return Ablated(**read) if read.keys() - {"slots", "bits"} else Features(**read)


def log_weights(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """1 + ln(count) in units of 1/1024, for counts >= 1: int64, shape (n,).

    Counts over 4,095 weigh as 4,095, so that one repeated word can't drown a page.

    >>> log_weights(np.array([1, 2, 100])).tolist()
    [1024, 1734, 5740]
    """
    return _LOG_WEIGHTS[np.minimum(counts, len(_LOG_WEIGHTS) - 1)]


def weighted(hashes: Hashes, weights: npt.NDArray[np.int64]) -> int | None:
    """The simhash of features that have weights; None for no features.

    >>> hex(weighted(np.array([0xF0, 0x0F], np.uint64), np.array([2, 1])))
    '0xf0'
    """
    if len(hashes) == 0:
        return None
    bits = np.unpackbits(hashes.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    ones = 2 * np.einsum("i,ij->j", weights, bits, dtype=np.int64) > weights.sum()
    return int.from_bytes(np.packbits(ones, bitorder="little").tobytes(), "little")
