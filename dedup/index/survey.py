"""A look at what an index has stored, without opening it: no lock, no lease, nothing made or changed.

It may be taken while crawls are running, and of an index that is damaged: what can be read is read, and
what can't is counted.  `Survey.findings` says which invariants don't hold, and how to repair that.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dedup.index.contract import Entry, Index
from dedup.index.scopes import scope_mask

__all__ = ["BATCH", "REBUILD", "Filed", "Finding", "Standing", "Survey", "flaw"]

#: Pages that are read at once.
BATCH = 500
#: How to repair what is stored twice, in ways that contradict each other.
REBUILD = (
    "rebuild it: scrapy index export FILE reads every readable page, scrapy index import FILE files them "
    "anew under another DEDUP_INDEX or DEDUP_NAMESPACE"
)

#: dead: a claim of a run that has neither confirmed it nor lives on; it shadows nothing.
Standing = Literal["done", "pending", "dead"]


class Filed(NamedTuple):
    """A page as it was found."""

    entry: Entry | None  #: None if it can't be read
    state: Standing


@dataclass(frozen=True, slots=True)
class Finding:
    """An invariant that does not hold."""

    kind: str  #: what is wrong, of any number of things
    what: str  #: this one
    repair: str


class Survey(ABC):
    """What one index has stored.  Raises `DedupError`s only."""

    def __init__(self, index: Index, header: Mapping[str, str]) -> None:
        self.index = index
        self.header = header

    @abstractmethod
    async def count(self) -> int:
        """How many pages are filed, readable or not; a guess where the index is damaged."""

    @abstractmethod
    def pages(self) -> AsyncIterator[Filed]:
        """Every page, in the order of their filing."""

    @abstractmethod
    def findings(self) -> AsyncIterator[Finding]:
        """What is damaged; nothing if every invariant holds."""

    @abstractmethod
    async def stored(self) -> tuple[int | None, str]:
        """How many bytes the index takes, None if that can't be told; and of what they are."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of the store."""

    def unsound(self, name: str, entry: Entry) -> Finding | None:
        """What is wrong with a page that can be read."""
        if wrong := flaw(self.index, entry):
            return Finding("unreadable pages", f"{name}: {wrong}", REBUILD)
        if entry.scope != scope_mask(self.index.scope, entry.url):
            return Finding("pages of a wrong scope", f"{name}: its scope is not that of its URL", REBUILD)
        return None


def flaw(index: Index, entry: Entry) -> str | None:
    """Why no claim can be compared with a page; None if every one can."""
    octets = index.detector.sketcher.size
    bands = index.detector.finder.own_keys
    if len(entry.sketch) != octets:
        return f"its sketch has {len(entry.sketch)} bytes instead of {octets}"
    if len(entry.bands) != bands:
        return f"it has {len(entry.bands)} bands instead of {bands}"
    if not 0 <= entry.filed < 1 << 32:
        return f"it was filed at {entry.filed}"
    if not re.fullmatch("[0-9a-f]{32}", entry.run):
        return "it names no run"
    return None
