"""METHOD "supershingle": candidates are pages that share a megashingle (Manasse, "Finding similar things quickly").

A supershingle is a hash of k min-hashes, and a page has six.  A megashingle is a hash of m of the six, so that
one equal among the C(6, m) megashingles says that m supershingles are equal.  AltaVista's are two of six of 14
min-hashes, Bing's variant four of six of 5.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import xxhash

from dedup.fingerprint.methods.base import SharedKeys
from dedup.fingerprint.signatures import Signature, hash_groups

#: Supershingles of a page.
SUPERSHINGLES = 6


@dataclass(frozen=True, slots=True)
class Megashingles(SharedKeys):
    """C(6, m) megashingles: hashes of any m of six supershingles, each a hash of k min-hashes."""

    size: int  #: k, min-hashes per supershingle
    agree: int  #: m, supershingles per megashingle

    found_by = "megashingle"
    not_found = "no megashingle is equal"

    @property
    def own_keys(self) -> int:
        return math.comb(SUPERSHINGLES, self.agree)

    @property
    def selectors(self) -> int:
        return SUPERSHINGLES * self.size

    def keys(self, signature: Signature) -> tuple[int, ...]:
        """Returns the megashingles of a signature: equal at one place exactly if m of the supershingles are.

        >>> import numpy as np
        >>> signature = np.arange(84, dtype=np.uint32)
        >>> other = signature.copy()
        >>> other[[0, 14, 28, 42]] += 1  # four supershingles differ, two are equal
        >>> keys = Megashingles(14, 2)
        >>> sum(a == b for a, b in zip(keys.keys(signature), keys.keys(other)))
        1
        """
        chosen = combinations(hash_groups(signature, SUPERSHINGLES), self.agree)
        packed = (b"".join(part.to_bytes(8, "little") for part in some) for some in chosen)
        return tuple(map(xxhash.xxh3_64_intdigest, packed))

    def probability(self, resemblance: float) -> float:
        """Returns the chance that m or more of six supershingles are equal, each with a probability of R^k."""
        equal = resemblance**self.size
        return sum(
            math.comb(SUPERSHINGLES, some) * equal**some * (1 - equal) ** (SUPERSHINGLES - some)
            for some in range(self.agree, SUPERSHINGLES + 1)
        )

    def __str__(self) -> str:
        return f"{self.own_keys} megashingles, of {self.agree} of {SUPERSHINGLES} supershingles of {self.size} min-hashes"
