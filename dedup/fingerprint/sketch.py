"""Sketches: small samples of a page's shingles from which the resemblance of two pages is estimated.

One-permutation hashing with b-bit values (Ping Li; Manasse, "Finding similar things quickly"): one hash
gives each shingle a slot and a value, each slot keeps its smallest, of which b bits are stored.  Value 0
means that the slot is empty, so that short pages, which leave most slots empty, are compared rightly:
empty against empty does not count, empty against filled differs.
"""

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes, mix

__all__ = ["estimate", "match_counts", "resemblances", "sketch"]

#: Widths of a slot that fit a 64-bit word and leave a value for "empty".
WIDTHS = (2, 4, 8)


def sketch(shingles: Hashes, slots: int, bits: int, key: int = 0) -> bytes:
    """The sketch of a set of shingle hashes: ``slots * bits / 8`` bytes.  O(n).

    ``slots`` is a power of two, at least 64; ``bits`` one of `WIDTHS`.  ``key`` makes the choice of
    shingles independent of the hashes, which a page's author may know.

    >>> few = np.arange(1, 4, dtype=np.uint64)
    >>> sum(octet != 0 for octet in sketch(few, slots=64, bits=8))
    3
    """
    values = mix(shingles ^ np.uint64(key))
    slot = (values >> np.uint64(64 - (slots.bit_length() - 1))).astype(np.intp)
    least, filled = np.full(slots, 2**64 - 1, np.uint64), np.zeros(slots, np.uint8)
    np.minimum.at(least, slot, values)
    filled[slot] = 1
    # The low bits of the smallest value are independent of its being the smallest.
    filled *= ((least & np.uint64(0xFFFFFFFF)) % np.uint64((1 << bits) - 1) + np.uint64(1)).astype(np.uint8)
    lanes = 8 // bits
    weights = (1 << (bits * np.arange(lanes))).astype(np.uint8)
    packed: npt.NDArray[np.uint8] = (filled.reshape(-1, lanes) * weights).sum(axis=1, dtype=np.uint8)
    return packed.tobytes()


def _lanes(words: Hashes, bits: int) -> Hashes:
    """Per lane of ``bits`` bits: 1 if any bit is set, else 0."""
    shift = 1
    while shift < bits:
        words = words | (words >> np.uint64(shift))
        shift *= 2
    return words & np.uint64(0xFFFFFFFFFFFFFFFF // ((1 << bits) - 1))


def match_counts(stored: Hashes, query: Hashes, bits: int) -> npt.NDArray[np.int64]:
    """How the slots of n sketches, as words of shape (n, w), compare with those of one, shape (w,).

    int64, shape (3, n): slots filled on either side, filled on both, and filled on both and equal.
    claim.lua counts the same three.
    """
    a, b = _lanes(stored, bits), _lanes(query, bits)
    either, both, differ = a | b, a & b, _lanes(stored ^ query, bits)
    counts = [
        np.bitwise_count(words).sum(axis=-1, dtype=np.int64) for words in (either, both, both & ~differ)
    ]
    return np.array(counts, np.int64)


def estimate(either: int, both: int, equal: int, *, bits: int) -> float:
    """The resemblance that three slot counts speak for; unbiased, except that it is kept within 0..1.

    Filled slots of different shingles are equal by chance once in c = 2^bits - 1; without those,
    equal slots out of non-empty ones estimate the resemblance (Li, Owen, Zhang 2012).  Its standard
    error is about sqrt(P(1-P) / slots) / (1 - 1/c) with P = R + (1-R)/c for pages of many shingles.

    >>> estimate(100, 100, 100, bits=2), estimate(100, 100, 50, bits=8), estimate(0, 0, 0, bits=2)
    (1.0, 0.498..., 1.0)
    """
    if either == 0:
        return 1.0
    values = (1 << bits) - 1
    return max(0.0, (values * equal - both) / ((values - 1) * either))


def resemblances(stored: Hashes, query: bytes, bits: int) -> npt.NDArray[np.float64]:
    """Estimated resemblance of n sketches, as words of shape (n, w), to one: float64, shape (n,).

    Here two sets of 4,000 that share 3,000, so 0.6 is right:

    >>> a, b = (sketch(np.arange(i, i + 4000, dtype=np.uint64), 512, 2) for i in (0, 1000))
    >>> resemblances(np.frombuffer(a + b, np.uint64).reshape(2, -1), a, 2).round(2).tolist()
    [1.0, 0.56]
    """
    counts = match_counts(stored, np.frombuffer(query, np.uint64), bits)
    return np.array([estimate(*triple, bits=bits) for triple in counts.T.tolist()])
