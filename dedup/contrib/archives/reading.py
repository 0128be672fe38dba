"""The first part of a cleaning: reads every page, and writes its fingerprint to the journal."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dedup.contrib.archives.capture import Capture, Reader
from dedup.contrib.archives.entries import Place
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
    for mark, made in fingerprints(
        _batches(journal, readers, ranks(readers, others)), detector, workers or cores()
    ):
        rows = [(place, page, one) for (place, page), one in zip(mark.pages, made, strict=True)]
        journal.add(rows, mark.facts, keep)
        pages += len(rows)
        advance(mark.done, pages)


@dataclass(slots=True)
class _Mark:
    """Where a batch ends."""

    pages: list[tuple[Place, Capture]]
    facts: dict[str, Any]  #: what the journal says when it is done
    done: int  #: bytes


def ranks(readers: Sequence[Reader], others: int = 0) -> list[int]:
    """Returns the rank of each reader by its name, so that the order of the arguments doesn't matter.  The first have -1."""
    names = sorted({reader.name for reader in readers})
    return [-1 if n < others else names.index(reader.name) for n, reader in enumerate(readers)]


def _batches(
    journal: Journal, readers: Sequence[Reader], ranks: Sequence[int]
) -> Iterator[tuple[_Mark, list[Capture]]]:
    """Yields what the journal does not have yet, in batches.  Raises `ChangedError`."""
    known = Progress(journal)
    start: int = journal.get("items", 0)
    others: dict[str, tuple[int, str]] = journal.get("others", {})
    damage: dict[str, tuple[int, str]] = journal.get("damage", {})
    pages: list[tuple[Place, Capture]] = []
    position = before = size = 0

    def batch(done: int) -> tuple[_Mark, list[Capture]]:
        facts = {"items": position, "others": dict(others), "damage": dict(damage)}
        return _Mark(pages, facts, done), [page for _, page in pages]

    for reader, rank in zip(readers, ranks, strict=True):
        for item in items(reader):
            position += 1
            if position <= start:
                known.verdict(item, reader.name)
                continue
            if item.capture is not None:
                pages.append((Place(position - 1, rank), item.capture))
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
