"""Weighted hashes -> 64-bit fingerprint (Charikar; Manku, Jain, Das Sarma 2007, section 2).

Component i of a 64-vector grows by a feature's weight where bit i of its hash is 1 and shrinks by it
where it is 0; bit i of the fingerprint is 1 where the component is positive.  Rules that libraries
disagree on: a component of exactly 0 gives 0, and a page without features has no fingerprint.
"""

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes

#: Width of a fingerprint.
BITS = 64


def simhash(hashes: Hashes) -> int | None:
    """Returns the fingerprint of features given by their hashes, shape (n,), of weight 1 each.

    A feature that is repeated counts each time.  None for no features.  O(64 n).

    >>> hex(simhash(np.array([0xF0, 0xF1, 0x01], np.uint64)))
    '0xf1'
    >>> hex(simhash(np.array([0xF0, 0x0F], np.uint64)))  # ties give 0
    '0x0'
    """
    if len(hashes) == 0:
        return None
    ones = 2 * _bit_counts(hashes) > len(hashes)
    return int.from_bytes(np.packbits(ones, bitorder="little").tobytes(), "little")


def _bit_counts(hashes: Hashes) -> npt.NDArray[np.int64]:
    """Returns how many hashes have each bit, the lowest first: int64, shape (64,).

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
