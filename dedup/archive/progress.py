"""Checks that what is read again is what was read before: a change of an input is found, whatever has changed.

A verdict belongs to a position.  If it were applied to another page, contents would be lost without a word.
"""

from dedup.archive.capture import Item, payload_digest
from dedup.archive.journal import Journal, Verdict
from dedup.errors import DedupError

__all__ = ["ChangedError", "Progress"]


class ChangedError(DedupError):
    """An input is not what it was when it was read first."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name  #: of the input


class Progress:
    """What a journal knows of the items of all inputs, which are asked for in their order."""

    def __init__(self, journal: Journal) -> None:
        self.position = 0  #: of the next item
        self._journal = journal
        self._verdicts = journal.verdicts()
        self._next = next(self._verdicts, None)
        self._damaged = 0

    def verdict(self, item: Item, name: str) -> Verdict | None:
        """The verdict on the next item, from the input of that name; None if it is no page.

        Raises `ChangedError` if it is not what it was.
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
        """There are no more items.  Raises `ChangedError` if there were more, or fewer are damaged."""
        damaged = sum(count for count, _ in self._journal.get("damage").values())
        if self._next is not None or (self.position, self._damaged) != (self._journal.get("items"), damaged):
            raise ChangedError(name)
