"""Claims of one crawler that are to be released, until the server has answered that they are."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable

#: No more are remembered than this; copies of the other pages are dropped in doubt.
MAX_RELEASES = 10_000


class Releases:
    """Claims to be released, by their page ids; ``release`` asks the server for one, and raises if that fails."""

    def __init__(self, release: Callable[[str], Awaitable[None]]) -> None:
        self._release = release
        self._due = OrderedDict[str, asyncio.Lock]()  # held while one is on its way

    def add(self, page_id: str) -> None:
        """A claim is to be released, or nobody knows what has become of it: it was cancelled, or its answer is lost."""
        self._due[page_id] = asyncio.Lock()
        if len(self._due) > MAX_RELEASES:
            self._due.popitem(last=False)

    def add_all(self, page_ids: Iterable[str]) -> None:
        """All of these are to be released, however many."""
        self._due |= {page_id: asyncio.Lock() for page_id in page_ids}

    async def forget(self, page_id: str) -> bool:
        """Says that a page is claimed anew, or taken out, and returns whether it was to be released.

        One that is on its way is waited for, else it might come after the claim.
        """
        lock = self._due.get(page_id)
        if lock is None:
            return False
        async with lock:
            return self._due.pop(page_id, None) is not None

    async def make(self, page_id: str) -> None:
        """Makes a release, if it is due."""
        lock = self._due.get(page_id)
        if lock is None:
            return
        async with lock:
            if self._due.get(page_id) is lock:
                await self._release(page_id)
                self._due.pop(page_id, None)

    async def make_all(self) -> None:
        """Makes what could not be made when it was asked for; raises the first error, when all have been tried."""
        for error in await asyncio.gather(*map(self.make, list(self._due)), return_exceptions=True):
            if error is not None:
                raise error
