"""Min-hash signatures: what r selectors pick from a page; two pages' agree about as often as the pages resemble.

A selector orders all shingles at random, the same way for every page, and picks a page's least: from two pages
it picks the same one with a probability of their resemblance (Broder 1997; Manasse, "Finding similar things
quickly").  The methods "minhash" and "supershingle" make their keys from groups of these min-hashes.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import xxhash

from dedup.compiled import fast
from dedup.fingerprint.shingles import Hashes, mix

Signature = npt.NDArray[np.uint32]


def signature(shingles: Hashes, selectors: int, key: int = 0) -> Signature:
    """Returns what each of r selectors picks from a set of shingle hashes: uint32, shape (r,).  O(n * r).

    Selector i picks the least of a_i x mod 2^32, where a_i is odd and x is the mixed hash, cut to 32 bits and
    made odd.  Odd times odd permutes the odd numbers, so no shingle is always the least, as 0 would be.  The
    mixed hashes are already as good as random: the selectors only have to differ from each other, which costs
    one multiplication an element.  Neither the order of the shingles nor repeats matter.

    The share of selectors that agree on two pages estimates their resemblance R with a standard error of
    sqrt(R (1 - R) / r).  Two shingles of one value bias it upwards, by about n / 2^31.

    >>> a, b = (np.arange(start, start + 900, dtype=np.uint64) for start in (0, 100))  # resemblance .8
    >>> round(float((signature(a, 1000) == signature(b, 1000)).mean()), 2)
    0.8
    """
    factors = factors_of(selectors, key)
    if fast:
        return np.frombuffer(fast.signature(np.ascontiguousarray(shingles), factors, key), np.uint32)
    return signature_in_numpy(shingles, factors, key)


def signature_in_numpy(shingles: Hashes, factors: npt.NDArray[np.uint32], key: int) -> Signature:
    """Returns the same, by the factors of the selectors."""
    selectors = len(factors)
    values = (mix(shingles ^ np.uint64(key)) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    least = np.full(selectors, 2**32 - 1, np.uint32)
    for some in range(0, selectors, 32):  # 32 rows of 4,096 stay in the cache
        chosen = slice(some, some + 32)
        for start in range(0, len(values), 4096):
            drawn = factors[chosen] * values[start : start + 4096]
            np.minimum(least[chosen], drawn.min(axis=1), out=least[chosen])
    return least


@lru_cache(maxsize=8)
def factors_of(count: int, key: int) -> npt.NDArray[np.uint32]:
    """Returns the odd factors of some selectors: uint32, shape (count, 1)."""
    drawn = mix(mix(np.arange(1, count + 1, dtype=np.uint64)) ^ np.uint64(key))
    return drawn.astype(np.uint32)[:, np.newaxis] | np.uint32(1)


def hash_groups(signature: Signature, groups: int) -> list[int]:
    """Returns a 64-bit hash (xxh3) of each of equally many consecutive min-hashes, alike on every machine."""
    octets = signature.astype("<u4").tobytes()
    size = len(octets) // groups
    return [xxhash.xxh3_64_intdigest(octets[at : at + size]) for at in range(0, len(octets), size)]
