"""How candidates are found: under which keys a page is filed, and which pages those keys find, for each METHOD.

Every page is filed under the digest of its tokens too, whatever the method.  "simhash" finds pages whose simhashes differ in
a few bits (Manku, Jain, Das Sarma 2007); which tables do so is planned in `dedup.fingerprint.plans`.  The others find pages
that share a key, made from groups of min-hashes.

"minhash" finds pages that share a band (LSH banding).  Each min-hash of a signature is equal in two pages with a
probability of their resemblance R, so a band of r is equal with a probability of R^r, and one of b bands with 1 - (1 - R^r)^b.

"supershingle" finds pages that share a megashingle (Manasse, "Finding similar things quickly").  A supershingle is a hash of
k min-hashes, and a page has six.  A megashingle is a hash of m of the six, so that one equal among the C(6, m) megashingles
says that m supershingles are equal.

The blog's example of "minhash" is 20 bands of 5 min-hashes; AltaVista's "supershingle" asks for two of six supershingles of
14 min-hashes each, Bing's variant for four of six, of 5 each.  The chance that they find a page, by its resemblance:

>>> blog, altavista, bing = Bands(20, 5), Megashingles(14, 2), Megashingles(5, 4)
>>> for resemblance in (0.5, 0.75, 0.9, 0.95):
...     print(resemblance, *(f"{method.probability(resemblance):.3f}" for method in (blog, altavista, bing)))
0.5 0.470 0.000 0.000
0.75 0.996 0.005 0.031
0.9 1.000 0.415 0.525
0.95 1.000 0.879 0.866

To add a method: a class like those here, its line in `METHODS`, its settings in `Detector`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import xxhash

from dedup.errors import SettingsError
from dedup.fingerprint.plans import Plan, block_plan, exact_plan, plan, plan_for
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.signatures import Signature, hash_groups, signature
from dedup.fingerprint.simhash import distances

#: The distance of two keys that are not near at all: more than 64 bits can differ in.
APART = 65
#: No more bands are planned than this, as many as the blog has; each costs a probe and an entry per page.
MAX_BANDS = 20
#: Supershingles of a page.
SUPERSHINGLES = 6


class Method(ABC):
    """Under which keys a page is filed, and which pages they find."""

    #: What two candidates have in common, and what is said of two pages that are none.
    found_by: ClassVar[str]
    not_found: ClassVar[str]

    @property
    @abstractmethod
    def own_keys(self) -> int:
        """How many keys of its own the method gives a page; 0 if its only key is the simhash."""

    @property
    @abstractmethod
    def radius(self) -> int:
        """How far from a page's key its candidates may be, in bits."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, str]:
        """What an index of this method is built with.  It is stored, so it has to stay as it is."""

    @abstractmethod
    def bands(self, shingles: Hashes, secret: int) -> tuple[int, ...]:
        """Returns the method's own keys of a page, 64 bits each, given its shingles: `own_keys` of them."""

    @abstractmethod
    def distances(self, filed: Hashes, own: Hashes) -> npt.NDArray[np.uint8]:
        """Returns how far the keys of n pages, shape (n, c), are from those of one, shape (c,): uint8, shape (n,).

        Pages are candidates if that is at most `radius`.
        """

    @abstractmethod
    def plan(self, expected_pages: int, tables: int | None = None, *, in_memory: bool = False) -> Plan:
        """Returns the tables in which a page is filed: see `dedup.Detector.plan`."""

    def probability(self, resemblance: float) -> float | None:
        """Returns the chance that a page of this resemblance is found; None if resemblance does not determine it."""
        return None

    @abstractmethod
    def describe(self, plan: Plan, expected_pages: int, min_resemblance: float) -> str:
        """Returns how pages are found with a plan, in one line for people."""


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


class SharedKeys(Method):
    """A method by which pages are candidates if they share a key, made from groups of min-hashes."""

    radius = 0

    @property
    @abstractmethod
    def selectors(self) -> int:
        """How many min-hashes the signature of a page has."""

    @abstractmethod
    def keys(self, signature: Signature) -> tuple[int, ...]:
        """Returns the keys of a signature of shape (selectors,), 64 bits each."""

    @abstractmethod
    def probability(self, resemblance: float) -> float:
        """Returns the chance that two pages of this resemblance share a key."""

    @property
    def parameters(self) -> dict[str, str]:
        return {"bands": str(self)}

    def bands(self, shingles: Hashes, secret: int) -> tuple[int, ...]:
        return self.keys(signature(shingles, self.selectors, secret))

    def distances(self, filed: Hashes, own: Hashes) -> npt.NDArray[np.uint8]:
        return np.where((filed == own).any(axis=1), np.uint8(0), np.uint8(APART))

    def plan(self, expected_pages: int, tables: int | None = None, *, in_memory: bool = False) -> Plan:
        if tables is not None:
            why = f"but this method has a table for each of its {self}"
            raise SettingsError(name="tables", value=tables, why=why, allowed="None with this method")
        return exact_plan(self.own_keys)

    def describe(self, plan: Plan, expected_pages: int, min_resemblance: float) -> str:
        found = f"{self.probability(min_resemblance):.4f}"
        return f"{self}: a page of resemblance {min_resemblance:g} is found with probability {found}"


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


#: What makes a method, by its name, and the settings that it is made from.
METHODS: dict[str, tuple[Callable[..., Method], tuple[str, ...]]] = {
    "simhash": (Simhash, ("max_distance",)),
    "minhash": (plan_bands, ("min_resemblance", "recall")),
    "supershingle": (Megashingles, ("supershingle_size", "megashingle_size")),
}
