"""The skew of an index's tables: how unequally their prefixes are shared."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dedup.fingerprint.plans import EXACT, Plan
from dedup.fingerprint.shingles import Hashes


class Skew(NamedTuple):
    """How unequally one table's prefixes are shared: pages that share one are looked at together."""

    table: int  #: 0 is that of the digests
    prefix: int  #: in bits
    largest: int  #: pages of the most common prefix
    mean: float  #: pages that a filed page is looked up among, itself included
    over: int  #: prefixes of more than ``limit`` pages


def skew(keys: Hashes, plan: Plan, limit: int) -> Iterator[Skew]:
    """Yields the skew of every table, of keys of n pages: uint64, shape (n, len(EXACT) + columns).  O(n log n) each."""
    for number, table in enumerate((*EXACT, *plan.tables)):
        prefixes = np.sort(table.permute(keys[:, table.column]) >> np.uint64(table.bits - table.prefix))
        starts = np.flatnonzero(np.concatenate(([True], prefixes[1:] != prefixes[:-1])))
        sizes = np.diff(np.append(starts, len(prefixes)))
        mean = float(np.square(sizes, dtype=np.float64).sum() / len(prefixes))
        yield Skew(number, table.prefix, int(sizes.max()), mean, int((sizes > limit).sum()))
