"""METHOD "simhash": candidates are pages whose simhashes differ in a few bits (Manku, Jain, Das Sarma 2007).

The simhash is part of every fingerprint, so the method has no keys of its own.  Which tables find every page
within the distance is planned in `dedup.fingerprint.plans`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.methods.base import Method
from dedup.fingerprint.plans import Plan, block_plan, plan, plan_for
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.simhash import distances


@dataclass(frozen=True, slots=True)
class Simhash(Method):
    """Candidates are within ``max_distance`` bits.

    >>> Simhash(3).plan(1_000_000).size
    4
    """

    max_distance: int  #: k, in bits of 64

    found_by = "distance"
    not_found = "the simhashes are too far apart"
    own_keys = 0

    @property
    def radius(self) -> int:
        return self.max_distance

    @property
    def parameters(self) -> dict[str, str]:
        return {"max_distance": str(self.max_distance)}

    def bands(self, shingles: Hashes, secret: int) -> tuple[int, ...]:
        return ()

    def distances(self, filed: Hashes, own: Hashes) -> npt.NDArray[np.uint8]:
        return distances(filed[:, 0], int(own[0]))

    def plan(self, expected_pages: int, tables: int | None = None, *, in_memory: bool = False) -> Plan:
        if tables is not None:
            return plan_for(tables, self.max_distance)
        return block_plan(self.max_distance) if in_memory else plan(self.max_distance, expected_pages)

    def describe(self, plan: Plan, expected_pages: int, min_resemblance: float) -> str:
        return plan.describe(expected_pages)
