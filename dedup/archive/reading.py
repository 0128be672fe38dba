"""The first part of a cleaning: every page of the inputs is read, and its fingerprint goes into the journal."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dedup.archive.capture import Capture, Reader
from dedup.archive.inputs import items
from dedup.archive.journal import Journal
from dedup.archive.progress import Progress
from dedup.archive.workers import cores, fingerprints
from dedup.fingerprint.detector import Detector

__all__ = ["read"]

#: Pages, and bytes of them, that go to a process at once.
BATCH, BATCH_BYTES = 32, 1 << 20
#: Inputs of fewer bytes are read by this process alone.
SMALL = 4_000_000


def read(
    journal: Journal,
    readers: Sequence[Reader],
    detector: Detector,
    workers: int,
    advance: Callable[[int, int], None],
) -> None:
    """Reads what the journal has not yet.  ``advance`` is told how many bytes are done, and how many pages."""
    if sum(reader.size for reader in readers) < SMALL:
        workers = 1
    pages = journal.count()
    for mark, made in fingerprints(_batches(journal, readers), detector, workers or cores()):
        rows = [(place, page, one) for (place, page), one in zip(mark.pages, made, strict=True)]
        journal.add(rows, mark.facts)
        pages += len(rows)
        advance(mark.done, pages)


@dataclass(slots=True)
class _Mark:
    """Where a batch ends."""

    pages: list[tuple[int, Capture]]  #: with their positions
    facts: dict[str, Any]  #: what the journal says when it is done
    done: int  #: bytes


def _batches(journal: Journal, readers: Sequence[Reader]) -> Iterator[tuple[_Mark, list[Capture]]]:
    """What is left of the inputs, from where the journal ends.  Raises `ChangedError`."""
    known = Progress(journal)
    start: int = journal.get("items", 0)
    others: dict[str, tuple[int, str]] = journal.get("others", {})
    damage: dict[str, tuple[int, str]] = journal.get("damage", {})
    pages: list[tuple[int, Capture]] = []
    position = before = size = 0

    def batch(done: int) -> tuple[_Mark, list[Capture]]:
        facts = {"items": position, "others": dict(others), "damage": dict(damage)}
        return _Mark(pages, facts, done), [page for _, page in pages]

    for reader in readers:
        for item in items(reader):
            position += 1
            if position <= start:
                known.verdict(item, reader.name)
                continue
            if item.capture is not None:
                pages.append((position - 1, item.capture))
                size += len(item.capture.body)
            else:
                table = damage if item.damaged else others
                count, first = table.get(item.why, (0, reader.name))
                table[item.why] = count + 1, first
            if len(pages) >= BATCH or size >= BATCH_BYTES:
                yield batch(before + reader.tell())
                pages, size = [], 0
        before += reader.size
    yield batch(before)
