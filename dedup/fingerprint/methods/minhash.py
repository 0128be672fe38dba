"""METHOD "minhash": candidates are pages that share a band, a group of min-hashes (LSH banding).

Each min-hash of a signature is equal in two pages with a probability of their resemblance R, so a band of r is
equal with a probability of R^r, and one of b bands with 1 - (1 - R^r)^b.
"""

import math
from dataclasses import dataclass

from dedup.errors import SettingsError
from dedup.fingerprint.methods.base import SharedKeys
from dedup.fingerprint.signatures import Signature, hash_groups

#: No more bands are planned than this, as many as the blog has; each costs a probe and an entry per page.
MAX_BANDS = 20


@dataclass(frozen=True, slots=True)
class Bands(SharedKeys):
    """b bands of r rows: b keys, made from a signature of b * r min-hashes."""

    count: int  #: b
    rows: int  #: r

    found_by = "band"
    not_found = "no band is equal"

    @property
    def own_keys(self) -> int:
        return self.count

    @property
    def selectors(self) -> int:
        return self.count * self.rows

    def keys(self, signature: Signature) -> tuple[int, ...]:
        return tuple(hash_groups(signature, self.count))

    def probability(self, resemblance: float) -> float:
        return 1 - (1 - resemblance**self.rows) ** self.count

    def __str__(self) -> str:
        return f"{self.count} bands of {self.rows} min-hashes"


def plan_bands(resemblance: float, recall: float) -> Bands:
    """Returns the bands that share a key with a probability of ``recall`` at a resemblance, and least often below it.

    These have the most rows for which `MAX_BANDS` are enough, and as many bands as they then need.
    Raises `SettingsError` where no bands are enough.

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
        others = {"recall": recall, "method": "minhash"}
        why = f"for which {MAX_BANDS} bands are not enough"
        allowed = "a higher resemblance, a lower recall, or another method"
        raise SettingsError(
            name="min_resemblance", value=resemblance, others=others, why=why, allowed=allowed
        )
    return planned
