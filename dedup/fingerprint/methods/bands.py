"""Keys that two pages share exactly, the more often the more they resemble each other.

A signature's min-hashes, each equal in two pages with a probability of their resemblance, are hashed in
groups.  LSH bands: two pages are candidates if any of b groups of r is equal.  Supershingles: groups of 14,
six of them, of which two must be equal; a megashingle is a hash of two of the six, so that one equal among
the 15 megashingles says so (Manasse, "Finding similar things quickly").  The blog's example is 20 bands of 5,
Bing's variant are groups of 5 of which four must be equal:

>>> blog, altavista, bing = Bands(20, 5), Megashingles(14, 2), Megashingles(5, 4)
>>> for resemblance in (0.5, 0.75, 0.9, 0.95):
...     print(resemblance, *(f"{keys.probability(resemblance):.3f}" for keys in (blog, altavista, bing)))
0.5 0.470 0.000 0.000
0.75 0.996 0.005 0.031
0.9 1.000 0.415 0.525
0.95 1.000 0.879 0.866
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import xxhash

from dedup.errors import SettingsError

__all__ = ["Bands", "Megashingles", "plan_bands"]

#: Supershingles of a page.
SUPERSHINGLES = 6
#: Bands that are planned at most: the blog's; each costs a probe and an entry per page.
MAX_BANDS = 20

Signature = npt.NDArray[np.uint32]


def _hash_groups(signature: Signature, groups: int) -> list[int]:
    rows = signature.astype("<u4").reshape(groups, -1)
    return [xxhash.xxh3_64_intdigest(row.tobytes()) for row in rows]


@dataclass(frozen=True, slots=True)
class Bands:
    """b bands of r rows: keys of b values, of a signature of b * r min-hashes."""

    count: int  #: b
    rows: int  #: r

    @property
    def selectors(self) -> int:
        """Min-hashes of a signature."""
        return self.count * self.rows

    def keys(self, signature: Signature) -> tuple[int, ...]:
        """A 64-bit key per band, of a signature of shape (b * r,)."""
        return tuple(_hash_groups(signature, self.count))

    def probability(self, resemblance: float) -> float:
        """That two pages share a key: 1 - (1 - R^r)^b."""
        return 1 - (1 - resemblance**self.rows) ** self.count

    def __str__(self) -> str:
        return f"{self.count} bands of {self.rows} min-hashes"


@dataclass(frozen=True, slots=True)
class Megashingles:
    """C(6, m) megashingles: hashes of any m of six supershingles, each a hash of k min-hashes."""

    size: int  #: k, min-hashes per supershingle
    agree: int  #: m, supershingles per megashingle

    @property
    def count(self) -> int:
        """Megashingles of a page."""
        return math.comb(SUPERSHINGLES, self.agree)

    @property
    def selectors(self) -> int:
        """Min-hashes of a signature."""
        return SUPERSHINGLES * self.size

    def supershingles(self, signature: Signature) -> list[int]:
        """The six supershingles of a signature of shape (6 k,)."""
        return _hash_groups(signature, SUPERSHINGLES)

    def keys(self, signature: Signature) -> tuple[int, ...]:
        """The megashingles: equal at one place exactly if m of the supershingles are.

        >>> signature = np.arange(84, dtype=np.uint32)
        >>> other = signature.copy()
        >>> other[[0, 14, 28, 42]] += 1  # four supershingles differ, two are equal
        >>> keys = Megashingles(14, 2)
        >>> sum(a == b for a, b in zip(keys.keys(signature), keys.keys(other)))
        1
        """
        chosen = combinations(self.supershingles(signature), self.agree)
        packed = (b"".join(part.to_bytes(8, "little") for part in some) for some in chosen)
        return tuple(map(xxhash.xxh3_64_intdigest, packed))

    def probability(self, resemblance: float) -> float:
        """That two pages share a key: that m or more of six groups are equal, each with R^k."""
        equal = resemblance**self.size
        return sum(
            math.comb(SUPERSHINGLES, some) * equal**some * (1 - equal) ** (SUPERSHINGLES - some)
            for some in range(self.agree, SUPERSHINGLES + 1)
        )

    def __str__(self) -> str:
        return f"{self.count} megashingles, of {self.agree} of {SUPERSHINGLES} supershingles of {self.size} min-hashes"


def plan_bands(resemblance: float, recall: float) -> Bands:
    """The bands that share a key with ``recall`` at a resemblance, and least often below it.

    That is the most rows for which `MAX_BANDS` are enough, and as many bands as they then need.
    Raises `SettingsError` where no bands do.

    >>> plan_bands(resemblance=0.75, recall=0.99), plan_bands(resemblance=0.9, recall=0.99)
    (Bands(count=17, rows=5), Bands(count=20, rows=15))
    """
    planned = None
    for rows in range(1, 65):
        equal = resemblance**rows
        needed = 1 if equal == 1 else math.log(1 - recall) / math.log(1 - equal) if equal > 0 else math.inf
        if needed > MAX_BANDS:
            break
        planned = Bands(max(1, math.ceil(needed)), rows)
    if planned is None:
        raise SettingsError(
            f"MIN_RESEMBLANCE is {resemblance!r} and RECALL {recall!r}, for which {MAX_BANDS} bands are not "
            "enough with METHOD 'minhash'; raise the one, lower the other, or use METHOD 'simhash'"
        )
    return planned
