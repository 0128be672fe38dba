"""Weighted hashes -> 64-bit fingerprint (Charikar; Manku, Jain, Das Sarma 2007, section 2).

Component i of a 64-vector grows by a feature's weight where bit i of its hash is 1 and shrinks by it
where it is 0; bit i of the fingerprint is 1 where the component is positive.  Rules that libraries
disagree on: a component of exactly 0 gives 0, and a page without features has no fingerprint.
"""

import math

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes

__all__ = ["BITS", "distance", "distances", "log_weights", "simhash"]

#: Width of a fingerprint.
BITS = 64
#: Weights are fixed-point numbers of this unit, so that sums are exact and alike on every machine.
UNIT = 1024

_LOG_WEIGHTS = np.array([0] + [round(UNIT * (1 + math.log(c))) for c in range(1, 4096)], np.int64)


def log_weights(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """1 + ln(count) in units of 1/1024, for counts >= 1: int64, shape (n,).

    Counts over 4,095 weigh as 4,095, so that one repeated word can't drown a page.

    >>> log_weights(np.array([1, 2, 100])).tolist()
    [1024, 1734, 5740]
    """
    weights: npt.NDArray[np.int64] = _LOG_WEIGHTS[np.minimum(counts, len(_LOG_WEIGHTS) - 1)]
    return weights


def simhash(hashes: Hashes, weights: npt.NDArray[np.int64] | None = None) -> int | None:
    """The fingerprint of features given by their hashes, shape (n,), and weights (default 1 each).

    None for no features.  O(64 n).

    >>> hex(simhash(np.array([0xF0, 0xF1, 0x01], np.uint64)))
    '0xf1'
    >>> hex(simhash(np.array([0xF0, 0x0F], np.uint64), np.array([1, 1])))  # ties give 0
    '0x0'
    """
    if len(hashes) == 0:
        return None
    if weights is None:
        counts = _bit_counts(hashes)
        return _packed(2 * counts > len(hashes))
    bits = np.unpackbits(
        hashes.astype("<u8").view(np.uint8).reshape(len(hashes), 8), axis=1, bitorder="little"
    )
    return _packed(2 * np.einsum("i,ij->j", weights, bits, dtype=np.int64) > weights.sum())


def _bit_counts(hashes: Hashes) -> npt.NDArray[np.int64]:
    """How many hashes have each bit, the lowest first: int64, shape (64,).

    They are laid out in 255 rows, whose sums fit into the octets that they are made of.
    """
    columns = -(-len(hashes) // 255)
    rows = -(-len(hashes) // columns)
    filled = np.zeros(rows * columns, "<u8")
    filled[: len(hashes)] = hashes
    bits = np.unpackbits(filled.view(np.uint8), bitorder="little").reshape(rows, columns * BITS)
    sums = np.add.reduce(bits, axis=0, dtype=np.uint8)
    counts: npt.NDArray[np.int64] = sums.reshape(columns, BITS).sum(axis=0, dtype=np.int64)
    return counts


def _packed(bits: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def distance(a: int, b: int) -> int:
    """In how many bits two fingerprints differ (Hamming distance).

    >>> distance(0b1011, 0b0010)
    2
    """
    return (a ^ b).bit_count()


def distances(fingerprints: Hashes, query: int) -> npt.NDArray[np.uint8]:
    """Distance of each fingerprint, shape (n,), to one: uint8, shape (n,).

    >>> distances(np.array([0, 1, 3], np.uint64), 1).tolist()
    [1, 0, 1]
    """
    differences: npt.NDArray[np.uint8] = np.bitwise_count(fingerprints ^ np.uint64(query))
    return differences
