"""How fingerprints are spread: figures 2a and 2b of Manku, Jain, Das Sarma 2007, and the skew of the tables.

Fingerprints of unrelated pages look like random numbers; near-duplicates, templates and error pages don't.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.plans import EXACT, Plan
from dedup.fingerprint.shingles import Hashes

__all__ = ["BUCKETS", "Skew", "expected_leading_bits", "fill", "leading_bits", "skew"]

#: Equal intervals that figure 2b cuts the fingerprints into.
BUCKETS = 128


def leading_bits(simhashes: Hashes) -> npt.NDArray[np.int64]:
    """Figure 2a: how many neighbours, in sorted order, differ first at each bit.  int64, shape (65,).

    Of uint64, shape (n,).  Place b + 1 counts those whose highest differing bit is b (0 the lowest);
    place 0 counts equal neighbours.  O(n log n).

    >>> leading_bits(np.array([0, 0b100, 0b101, 0b101], np.uint64))[:5].tolist()
    [1, 1, 0, 1, 0]
    """
    ordered = np.sort(simhashes)
    differ = ordered[1:] ^ ordered[:-1]
    for shift in (1, 2, 4, 8, 16, 32):
        differ |= differ >> np.uint64(shift)  # every bit below the highest
    return np.bincount(np.bitwise_count(differ), minlength=65).astype(np.int64)


def expected_leading_bits(pages: int) -> npt.NDArray[np.float64]:
    """What `leading_bits` gives on average for random fingerprints: float64, shape (65,).

    Neighbours part at bit b where a run of 2^(63-b) equal prefixes has fingerprints on either side.

    >>> expected_leading_bits(1000).round()[52:58].tolist()
    [54.0, 96.0, 153.0, 199.0, 189.0, 123.0]
    """
    prefixes = 2.0 ** (63 - np.arange(64))
    both = prefixes * np.square(-np.expm1(-pages / (2 * prefixes)))
    return np.concatenate(([0.0], both))


def fill(simhashes: Hashes) -> npt.NDArray[np.int64]:
    """Figure 2b: how many fingerprints lie in each of `BUCKETS` equal intervals.  int64, shape (128,)."""
    top = (simhashes >> np.uint64(57)).astype(np.int64)
    return np.bincount(top, minlength=BUCKETS).astype(np.int64)


class Skew(NamedTuple):
    """How unequally one table's prefixes are shared: pages that share one are looked at together."""

    table: int  #: 0 is that of the digests
    prefix: int  #: in bits
    largest: int  #: pages of the most common prefix
    mean: float  #: pages that a filed page is looked up among, itself included
    over: int  #: prefixes of more than ``limit`` pages


def skew(keys: Hashes, plan: Plan, limit: int) -> Iterator[Skew]:
    """The skew of every table, of keys of n pages: uint64, shape (n, 2 + columns).  O(n log n) each."""
    for number, table in enumerate((*EXACT, *plan.tables)):
        prefixes = np.sort(table.permute(keys[:, table.column]) >> np.uint64(table.bits - table.prefix))
        starts = np.flatnonzero(np.concatenate(([True], prefixes[1:] != prefixes[:-1])))
        sizes = np.diff(np.append(starts, len(prefixes)))
        mean = float(np.square(sizes, dtype=np.float64).sum() / len(prefixes))
        yield Skew(number, table.prefix, int(sizes.max()), mean, int((sizes > limit).sum()))
