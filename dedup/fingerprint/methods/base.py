"""The protocol of a METHOD, and what the methods have in common that file a page under keys of its own."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dedup.errors import SettingsError
from dedup.fingerprint.plans import Plan, exact_plan
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.signatures import Signature, signature

#: The distance of two keys that are not near at all: more than 64 bits can differ in.
APART = 65


class Method(ABC):
    """Under which keys a page is filed, and which pages they find.

    Every page is filed under the digest of its tokens too, whatever the method.
    """

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
        """Returns the tables in which a page is filed, ``tables`` of them if that is asked for.

        ``in_memory``: a look-up may read many prefixes of a table, which costs next to nothing there.  Raises
        `SettingsError` for a number of tables that is not possible.
        """

    def probability(self, resemblance: float) -> float | None:
        """Returns the chance that a page of this resemblance is found; None if resemblance does not determine it."""
        return None

    @abstractmethod
    def describe(self, plan: Plan, expected_pages: int, min_resemblance: float) -> str:
        """Returns how pages are found with a plan, in one line for people."""


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
