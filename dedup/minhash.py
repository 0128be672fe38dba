"""Sketches: small samples of a page's shingles from which the resemblance of two pages is estimated.

One-permutation hashing with b-bit values (Ping Li; Manasse, "Finding similar things quickly"): one hash
gives each shingle a slot and a value, each slot keeps its smallest, of which b bits are stored.  Value 0
means that the slot is empty, so that short pages, which leave most slots empty, are compared rightly:
empty against empty does not count, empty against filled differs.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dedup.shingles import Hashes, mix

__all__ = ["estimate", "match_counts", "resemblances", "signature", "sketch"]

#: Widths of a slot that fit a 64-bit word and leave a value for "empty".
WIDTHS = (2, 4, 8)


def signature(shingles: Hashes, selectors: int, key: int = 0) -> npt.NDArray[np.uint32]:
    """What each of r selectors picks from a set of shingle hashes: uint32, shape (r,).  O(n * r).

    Selector i picks the least of a_i x + b_i mod 2^32 over the mixed hashes x, a_i odd: two sets agree on it
    with a probability of their resemblance, since the mixed hashes are already as good as random and the
    affine maps, which are all that an element costs per selector, only have to differ from each other.

    >>> a, b = (np.arange(start, start + 900, dtype=np.uint64) for start in (0, 100))  # resemblance .8
    >>> round(float((signature(a, 1000) == signature(b, 1000)).mean()), 2)
    0.8
    """
    factors, offsets = _selectors(selectors, key)
    values = (mix(shingles ^ np.uint64(key)) >> np.uint64(32)).astype(np.uint32)
    least = np.full(selectors, 0xFFFFFFFF, np.uint32)
    for some in range(0, selectors, 16):  # 16 rows at a time stay in the cache
        chosen = slice(some, some + 16)
        for start in range(0, len(values), 4096):
            drawn = factors[chosen] * values[start : start + 4096]
            drawn += offsets[chosen]
            np.minimum(least[chosen], drawn.min(axis=1), out=least[chosen])
    return least


@lru_cache(maxsize=8)
def _selectors(count: int, key: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Odd factors and offsets: uint32, shape (count, 1) each."""
    drawn = mix(mix(np.arange(1, count + 1, dtype=np.uint64)) ^ np.uint64(key))[:, np.newaxis]
    return drawn.astype(np.uint32) | np.uint32(1), (drawn >> np.uint64(32)).astype(np.uint32)


def sketch(shingles: Hashes, slots: int, bits: int, key: int = 0) -> bytes:
    """The sketch of a set of shingle hashes: ``slots * bits / 8`` bytes.  O(n log n).

    ``slots`` is a power of two, at least 64; ``bits`` one of `WIDTHS`.  ``key`` makes the choice of
    shingles independent of the hashes, which a page's author may know.

    >>> few = np.arange(1, 4, dtype=np.uint64)
    >>> sum(octet != 0 for octet in sketch(few, slots=64, bits=8))
    3
    """
    values = np.sort(mix(shingles ^ np.uint64(key)))
    shift = 64 - (slots.bit_length() - 1)
    slot = values >> shift
    first = np.flatnonzero(np.diff(slot, prepend=slot[:1] + 1 if len(slot) else slot))
    filled = np.zeros(slots, np.uint8)
    # The low bits of the smallest value are independent of its being the smallest.
    filled[slot[first].astype(np.intp)] = (values[first] & 0xFFFFFFFF) % ((1 << bits) - 1) + 1
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
