"""The first part of a cleaning: reads every page, and writes its fingerprint to the journal.

Whoever reads an input again checks that it has not changed.  A verdict belongs to a position: if another page stood there
now, it could be dropped for no reason.
"""

from collections.abc import Callable, Iterator, Sequence

from dedup.contrib.archives.capture import Capture, Item, Reader, payload_digest
from dedup.contrib.archives.entries import Batch, Place, Verdict
from dedup.contrib.archives.inputs import items
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.workers import cores, fingerprints
from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector

#: Pages, and bytes of them, that go to a process at once.
BATCH, BATCH_BYTES = 32, 1 << 20
#: Inputs of fewer bytes are read by this process alone.
SMALL = 4_000_000


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


def read(
    journal: Journal,
    readers: Sequence[Reader],
    detector: Detector,
    workers: int,
    keep: str,
    others: int,
    advance: Callable[[int, int], None],
) -> None:
    """Reads the pages that are not in the journal yet.  Those of the first ``others`` readers are judged before all others.

    ``keep`` gives the order in which pages are judged (`Capture.turn`).  ``advance`` is called with the bytes and the pages
    that are done."""
    if sum(reader.size for reader in readers) < SMALL:
        workers = 1
    pages = journal.count()
    batches = _batches(journal, readers, ranks(readers, others))
    for batch, made in fingerprints(batches, detector, workers or cores()):
        journal.add(zip(batch.places, batch.pages, made, strict=True), batch.facts, keep)
        pages += len(made)
        advance(batch.done, pages)


def ranks(readers: Sequence[Reader], others: int = 0) -> list[int]:
    """Returns the rank of each reader by its name, so that the order of the arguments doesn't matter.  The first have -1."""
    names = sorted({reader.name for reader in readers})
    return [-1 if n < others else names.index(reader.name) for n, reader in enumerate(readers)]


def _batches(journal: Journal, readers: Sequence[Reader], ranks: Sequence[int]) -> Iterator[Batch]:
    """Yields what the journal does not have yet, in batches.  Raises `ChangedError`."""
    known = Progress(journal)
    start: int = journal.get("items", 0)
    others: dict[str, tuple[int, str]] = journal.get("others", {})
    damage: dict[str, tuple[int, str]] = journal.get("damage", {})
    places: list[Place] = []
    pages: list[Capture] = []
    position = before = size = 0

    def batch(done: int) -> Batch:
        facts = {"items": position, "others": dict(others), "damage": dict(damage)}
        return Batch(places, pages, facts, done)

    for reader, rank in zip(readers, ranks, strict=True):
        for item in items(reader):
            position += 1
            if position <= start:
                known.verdict(item, reader.name)
                continue
            if item.capture is not None:
                places.append(Place(position - 1, rank))
                pages.append(item.capture)
                size += len(item.capture.body)
            else:
                table = damage if item.damaged else others
                count, first = table.get(item.why, (0, reader.name))
                table[item.why] = count + 1, first
            if len(pages) >= BATCH or size >= BATCH_BYTES:
                yield batch(before + reader.tell())
                places, pages, size = [], [], 0
        before += reader.size
    yield batch(before)
