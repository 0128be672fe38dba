"""A look at what an index has stored, without opening it: it takes no lock and no lease, and changes nothing.

A survey may be taken while crawls are running, and of a damaged index: what can be read is read, and what
can't is counted.  `Survey.findings` says which invariants don't hold, and how to repair that.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Self

from msgspec import Struct

from dedup.fingerprint.chrome import Chrome
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.parameters import Parameters

#: Pages that are read at once.
BATCH = 500
#: How to repair an index that stores something twice, in ways that contradict each other.
REBUILD = "rebuild it: export it, which reads every readable page, and import those pages into another index"


class StoredPage(NamedTuple):
    """A page as it was found."""

    entry: Entry | None  #: None if it can't be read
    #: DONE, PENDING or DEAD.  A survey does not ask whether the run of a confirmed page lives, or has finished.
    state: State


class KnownHost(NamedTuple):
    """What is stored of a host (see `dedup.index.hosts`)."""

    name: str
    table: Chrome | None  #: None if it can't be read: the host counts as unknown


class Finding(Struct, frozen=True):
    """An invariant that does not hold."""

    kind: str  #: what is wrong with any number of things
    what: str  #: which thing it is here
    repair: str = REBUILD


class Survey(ABC):
    """What one index has stored.  Raises `DedupError`s only.  ``async with`` closes it at the end of the block."""

    def __init__(self, where: str, parameters: Parameters, header: Mapping[str, str]) -> None:
        self.where = where
        self.parameters = parameters  #: with the table plan that is stored
        self.header = header

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def count(self) -> int:
        """Returns how many pages are filed, readable or not; a guess where the index is damaged."""

    async def pages(self, *, run: str = "", before: float = math.inf) -> AsyncIterator[StoredPage]:
        """Yields every page, in the order of their filing (part by part, if there are parts); or those of a run, or filed ``before`` a time.

        The time is in seconds since 1970.  A page that can't be read may be one of these, and is told, if it is met.
        """
        async for found in self._pages(run, before):
            entry = found.entry
            if entry is None or (run in ("", entry.run) and entry.filed < before):
                yield found

    @abstractmethod
    def _pages(self, run: str, before: float) -> AsyncIterator[StoredPage]:
        """Yields these pages in filing order.  It may yield others as well, but as few as the store can manage."""

    @abstractmethod
    def hosts(self) -> AsyncIterator[KnownHost]:
        """Yields the table of every host that is stored, in no certain order."""

    @abstractmethod
    def findings(self) -> AsyncIterator[Finding]:
        """Yields what is damaged; nothing if every invariant holds."""

    @abstractmethod
    async def stored(self) -> tuple[int | None, str]:
        """Returns how many bytes the index takes, None if that can't be told; and how they were measured."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of the store."""

    def readable(self, entry: Entry | None, state: State) -> StoredPage:
        """Returns a page as it was found; without its entry if no claim could be compared with it."""
        return StoredPage(None if entry is None or self.parameters.flaw(entry) else entry, state)
