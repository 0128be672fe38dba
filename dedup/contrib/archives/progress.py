"""Checks that an input has not changed since it was read the first time.

A verdict belongs to a position.  If another page stood there now, it could be dropped for no reason.
"""

from dedup.contrib.archives.capture import Item, payload_digest
from dedup.contrib.archives.entries import Verdict
from dedup.contrib.archives.journal import Journal
from dedup.errors import DedupError


class ChangedError(DedupError):
    """An input has changed since it was read the first time."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name  #: of the input


class Progress:
    """Finds the verdict on each item in a journal; the items have to come in their order."""

    def __init__(self, journal: Journal) -> None:
        self.position = 0  #: of the next item
        self._journal = journal
        self._verdicts = journal.verdicts()
        self._next = next(self._verdicts, None)
        self._damaged = 0

    def verdict(self, item: Item, name: str) -> Verdict | None:
        """Returns the verdict on the next item of the input of that name; None if the item is no page.

        Raises `ChangedError` if the item has changed.
        """
        found = self._next if self._next is not None and self._next.position == self.position else None
        page = item.capture
        if (found is None) != (page is None) or (
            found is not None and page is not None and not found.is_of(page, payload_digest(page))
        ):
            raise ChangedError(name)
        if found is not None:
            self._next = next(self._verdicts, None)
        self.position += 1
        self._damaged += item.damaged
        return found

    def end(self, name: str) -> None:
        """Says that there are no more items.  Raises `ChangedError` if there were more, or if fewer were damaged."""
        damaged = sum(count for count, _ in self._journal.get("damage").values())
        if self._next is not None or (self.position, self._damaged) != (self._journal.get("items"), damaged):
            raise ChangedError(name)
