"""Makes fingerprints in several processes.  Pages are sent in batches, and the fingerprints come back in the same order."""

import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from typing import Any, TypeVar

import numpy as np

from dedup.archive.capture import Capture, fingerprint, payload_digest
from dedup.archive.journal import Made
from dedup.archive.packing import pack
from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector

__all__ = ["cores", "fingerprints", "pool"]

T = TypeVar("T")

#: Batches that wait for each worker, so that none waits for the reader.
AHEAD = 3


def cores() -> int:
    """Returns how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fingerprints(
    batches: Iterable[tuple[T, Sequence[Capture]]], detector: Detector, workers: int
) -> Iterator[tuple[T, list[Made]]]:
    """Yields the packed fingerprints of each batch, with what was given beside the batch, in the order of the batches.

    With one worker, this process does the work itself.  At most `AHEAD` batches for each worker are in memory.
    """
    if workers == 1:
        for what, batch in batches:
            yield what, _make(batch, detector)
        return
    waiting: deque[tuple[T, Future[list[Made]]]] = deque()
    with pool(workers, detector) as submit:
        for what, batch in batches:
            waiting.append((what, submit(_work, batch)))
            if len(waiting) >= AHEAD * workers:
                what, future = waiting.popleft()
                yield what, future.result()
        while waiting:
            what, future = waiting.popleft()
            yield what, future.result()


@contextmanager
def pool(workers: int, detector: Detector) -> Iterator[Callable[..., Future[Any]]]:
    """Starts processes that all have the detector, and yields a function that gives them work.

    Raises `DedupError` if one of them is killed."""
    # Not forked: other threads of this process may hold locks.
    made = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (detector,))

    def submit(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with _deaf():
            return made.submit(work, *arguments)

    try:
        yield submit
    except BrokenProcessPool:
        why = 'is there too little memory, or no `if __name__ == "__main__":` in the program that calls this?'
        raise DedupError(f"a process that makes fingerprints was killed; {why}") from None
    finally:
        made.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Makes the processes that are started here ignore Ctrl-C.  This process heeds it again once they are started."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_detector: Detector


def _begin(detector: Detector) -> None:
    """Prepares a process: it will end when the process that started it does."""
    global _detector
    _detector = detector
    logging.basicConfig(format="dedup: %(message)s", level=logging.WARNING)  # as the command has it
    threading.Thread(target=_end_with, args=(os._exit,), daemon=True).start()


def _end_with(end: Callable[[int], None]) -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        end(1)


def _work(batch: Sequence[Capture]) -> list[Made]:
    return _make(batch, _detector)


def _make(batch: Sequence[Capture], detector: Detector) -> list[Made]:
    return [(payload_digest(page), *_packed(page, detector)) for page in batch]


def _packed(page: Capture, detector: Detector) -> tuple[bytes, int, bytes]:
    read, made = fingerprint(page, detector)
    keys = (made.digest, made.view or made.digest, *made.keys) if made.reason is None else ()
    return pack(read, made), made.tokens, np.array(keys, np.uint64).tobytes()
