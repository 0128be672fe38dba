"""The first part of a cleaning: reads every page, and writes its fingerprint to the journal."""

from collections.abc import Callable, Iterator, Sequence

from dedup.contrib.archives.capture import Capture, Reader
from dedup.contrib.archives.entries import Batch, Place
from dedup.contrib.archives.inputs import items
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.progress import Progress
from dedup.contrib.archives.workers import cores, fingerprints
from dedup.fingerprint.detector import Detector

#: Pages, and bytes of them, that go to a process at once.
BATCH, BATCH_BYTES = 32, 1 << 20
#: Inputs of fewer bytes are read by this process alone.
SMALL = 4_000_000


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
