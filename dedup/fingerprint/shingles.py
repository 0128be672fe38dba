"""Tokens -> 64-bit hashes of w-shingles, and what two sets of them have in common.

Source: Broder et al.'s w-shingling as told in Barber, "Shingling" (2009), and Manasse, "Finding similar
things quickly"; a shingle is a run of w consecutive tokens.  Hashes are xxh3 of the UTF-8 token, so they
are the same on every machine, in every process and for ever.  A secret ``seed`` makes them unforgeable.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xxhash

Hashes = npt.NDArray[np.uint64]

#: The multiplier of the polynomial over a shingle's tokens (2^64 / golden ratio; odd, so invertible).
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def hash_tokens(tokens: Sequence[str], seed: int = 0) -> Hashes:
    """xxh3 of each token: uint64, shape (n,).  O(characters).

    >>> [hex(h) for h in hash_tokens(["storm", "crawler"]).tolist()]
    ['0x8a5e0a9570a5cbef', '0xed919a2642107e0']

    A string is taken character by character, and then its shingles are runs of characters:

    >>> texts = "The dog which chased the cat", "The dog that chased the cat"
    >>> resemblance(*(shingle_hashes(hash_tokens(text), 3) for text in texts))
    0.6
    """
    return hash_octets([token.encode() for token in tokens], seed)


def hash_octets(tokens: Sequence[bytes], seed: int) -> Hashes:
    """Returns the same of tokens in UTF-8."""
    return np.array([xxhash.xxh3_64_intdigest(token, seed) for token in tokens], np.uint64)


def mix(hashes: Hashes) -> Hashes:
    """Spreads every bit of each hash over all 64 (the finaliser of splitmix64; a bijection).

    >>> [hex(h) for h in mix(np.array([0, 1], np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5']
    """
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def unmix(hashes: Hashes) -> Hashes:
    """Returns what `mix` was given.

    >>> unmix(mix(np.array([0, 1, 2**64 - 1], np.uint64))).tolist()
    [0, 1, 18446744073709551615]
    """
    hashes = (hashes ^ (hashes >> np.uint64(31)) ^ (hashes >> np.uint64(62))) * np.uint64(0x319642B2D24D8EC3)
    hashes = (hashes ^ (hashes >> np.uint64(27)) ^ (hashes >> np.uint64(54))) * np.uint64(0x96DE1B173F119089)
    found: Hashes = hashes ^ (hashes >> np.uint64(30)) ^ (hashes >> np.uint64(60))
    return found


def shingle_hashes(hashes: Hashes, size: int) -> Hashes:
    """Hashes of all runs of ``size`` token hashes: uint64, shape (n - size + 1,), repeats included.

    A page of fewer than ``size`` tokens is one shingle; an empty page has none.  O(n * size).

    >>> a, b = hash_tokens("to be or not to be".split()), hash_tokens("to be or".split())
    >>> shingle_hashes(a, 2).shape, shingle_hashes(b, 6).shape
    ((5,), (1,))
    >>> bool(shingle_hashes(a, 2)[0] == shingle_hashes(a, 2)[4])
    True
    """
    if size == 1 or len(hashes) == 0:
        return hashes
    count = max(1, len(hashes) - size + 1)
    combined = hashes[:count].copy()
    for offset in range(1, min(size, len(hashes))):
        combined *= MULTIPLIER
        combined += hashes[offset : offset + count]
    return mix(combined)


def resemblance(a: Hashes, b: Hashes) -> float:
    """|A and B| / |A or B| of two sets of shingles (Jaccard); 1 when both are empty.  O(n log n).

    >>> a, b = (shingle_hashes(hash_tokens(text.split()), 1) for text in ("a b c d", "b c d e"))
    >>> resemblance(a, b)
    0.6
    """
    a_size, b_size, common = _sizes(a, b)
    union = a_size + b_size - common
    return common / union if union else 1.0


def containment(a: Hashes, b: Hashes) -> float:
    """|A and B| / |A|: how much of A is found in B; 1 when A is empty.  O(n log n).

    >>> a, b = hash_tokens("a b".split()), hash_tokens("a b c d".split())
    >>> containment(a, b), containment(b, a)
    (1.0, 0.5)
    """
    a_size, _, common = _sizes(a, b)
    return common / a_size if a_size else 1.0


def _sizes(a: Hashes, b: Hashes) -> tuple[int, int, int]:
    """|A|, |B| and |A and B|; repeats are not counted."""
    # np.unique sorts if it is asked for counts; else it fills a hash table, which takes many times as long.
    a, b = (np.unique(hashes, return_counts=True)[0] for hashes in (a, b))
    return len(a), len(b), len(np.intersect1d(a, b, assume_unique=True))


def ascending(hashes: Hashes) -> Hashes:
    """Returns the different ones, in ascending order.  O(n log n).

    >>> ascending(np.array([3, 1, 3], np.uint64)).tolist()
    [1, 3]
    """
    ordered = np.sort(hashes)  # np.unique fills a hash table, which takes many times as long
    differs = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return ordered[differs]
