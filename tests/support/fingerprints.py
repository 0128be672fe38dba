"""Fingerprints made of a chosen simhash and sketch, so that every distance and resemblance is known."""

import random
from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.fingerprint import Fingerprint

ALL_BITS = 2**64 - 1

#: The arguments of `Index.claim`: page id, URL, fingerprint.
Claim = tuple[str, str, Fingerprint]


def array(numbers: Iterable[int]) -> npt.NDArray[np.uint64]:
    """Makes an array of 64-bit hashes."""
    return np.array(list(numbers), np.uint64)


@cache
def sketch(changed: int = 0) -> bytes:
    """Makes a sketch of 512 filled slots, of which the first ``changed`` differ from those of ``sketch()``.

    Two of these that differ in n slots have a resemblance of 1 - 3n/1024: 0.7 lies between 102 and 103.
    """
    slots = [2] * changed + [1] * (512 - changed)
    octets = bytes(a | b << 2 | c << 4 | d << 6 for a, b, c, d in zip(*[iter(slots)] * 4, strict=True))
    return octets + (1000).to_bytes(8, "little")


def fingerprint_of(simhash: int, changed: int = 0) -> Fingerprint:
    """Makes the fingerprint of a page that can be judged."""
    digest = (simhash + changed * 0x9E3779B97F4A7C15) & ALL_BITS
    return Fingerprint(simhash, sketch(changed), tokens=100, links=0, digest=digest)


def flip(simhash: int, bits: int, rng: random.Random) -> int:
    """Changes that many bits of a simhash, chosen at random."""
    for bit in rng.sample(range(64), bits):
        simhash ^= 1 << bit
    return simhash
