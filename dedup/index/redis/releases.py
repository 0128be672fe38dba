"""Claims of one crawler that are to be released, until the server has answered that they are."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from dedup.index.entry import Entry

__all__ = ["Releases"]

#: How many are remembered at most; of the others, copies are dropped in doubt.
MAX_RELEASES = 10_000


@dataclass(slots=True, eq=False)
class _Release:
    """A claim that is to be released."""

    claimed: Entry
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # while it is on its way


class Releases:
    """Claims to be released, by their page ids; ``release`` asks the server for one, and raises if that fails."""

    def __init__(self, release: Callable[[Entry], Awaitable[None]]) -> None:
        self._release = release
        self._due: dict[str, _Release] = {}

    def add(self, entry: Entry) -> None:
        """A claim is to be released, or nobody knows what has become of it: it was cancelled, or its answer is lost."""
        self._due[entry.page_id] = _Release(entry)
        if len(self._due) > MAX_RELEASES:
            del self._due[next(iter(self._due))]

    def add_all(self, entries: Iterable[Entry]) -> None:
        """All of these are to be released, however many."""
        self._due |= {entry.page_id: _Release(entry) for entry in entries}

    async def forget(self, page_id: str) -> bool:
        """The page is claimed anew, or taken out; whether it was to be released.

        One that is on its way is waited for, else it might come after the claim.
        """
        release = self._due.get(page_id)
        if release is None:
            return False
        async with release.lock:
            return self._due.pop(page_id, None) is not None

    async def make(self, page_id: str) -> None:
        """Makes a release, if it is due."""
        release = self._due.get(page_id)
        if release is None:
            return
        async with release.lock:
            if self._due.get(page_id) is release:
                await self._release(release.claimed)
                self._due.pop(page_id, None)

    async def make_all(self) -> None:
        """Makes what could not be made when it was asked for; raises the first error, when all have been tried."""
        for error in await asyncio.gather(*map(self.make, list(self._due)), return_exceptions=True):
            if error is not None:
                raise error

    def drop(self, page_ids: Iterable[str]) -> None:
        """These pages are taken out as they are."""
        for page_id in page_ids:
            self._due.pop(page_id, None)
