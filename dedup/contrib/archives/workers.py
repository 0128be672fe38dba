"""Makes fingerprints in several processes.  Pages are sent in batches, and the fingerprints come back in the same order."""

import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from types import ModuleType
from typing import Any

import numpy as np

from dedup.contrib.archives.capture import Capture, fingerprint, payload_digest
from dedup.contrib.archives.entries import Batch, Imprint
from dedup.contrib.archives.packing import pack
from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector

#: Batches that wait for each worker, so that none waits for the reader.
AHEAD = 3


def cores() -> int:
    """Returns how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fingerprints(
    batches: Iterable[Batch], detector: Detector, workers: int
) -> Iterator[tuple[Batch, list[Imprint]]]:
    """Yields each batch with the packed fingerprints of its pages, in the order of the batches.

    With one worker, this process does the work itself.  At most `AHEAD` batches for each worker are in memory.
    """
    if workers == 1:
        for batch in batches:
            yield batch, _make(batch.pages, detector)
        return
    waiting: deque[tuple[Batch, Future[list[Imprint]]]] = deque()
    with pool(workers, detector, "makes fingerprints") as submit:
        for batch in batches:
            waiting.append((batch, submit(_work, batch.pages)))
            if len(waiting) >= AHEAD * workers:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()


@contextmanager
def pool(workers: int, detector: Detector, does: str) -> Iterator[Callable[..., Future[Any]]]:
    """Starts processes that all have the detector, and yields a function that gives them work.

    Raises `DedupError` if one of them is killed, in which it says what such a process ``does``."""
    # Not forked from this process, whose other threads may hold locks, but from one that has loaded what all of them need.
    context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    context.set_forkserver_preload([__name__])
    made = ProcessPoolExecutor(workers, context, _begin, (detector,))

    def submit(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with _deaf(), _without_program():
            return made.submit(work, *arguments)

    try:
        yield submit
    except BrokenProcessPool:
        raise DedupError(f"a process that {does} was killed; is there too little memory?") from None
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


@contextmanager
def _without_program() -> Iterator[None]:
    """Has the processes that are started here not load the program, such as all of Scrapy: they need none of it."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


_detector: Detector


def _begin(detector: Detector) -> None:
    """Prepares a process: it will end when the process that started it does."""
    global _detector
    _detector = detector
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(format="dedup: %(message)s", level=logging.WARNING)  # as the command has it
    threading.Thread(target=_end_with, args=(os._exit,), daemon=True).start()


def _end_with(end: Callable[[int], None]) -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        end(1)


def _work(batch: Sequence[Capture]) -> list[Imprint]:
    return _make(batch, _detector)


def _make(batch: Sequence[Capture], detector: Detector) -> list[Imprint]:
    return [(payload_digest(page), *_packed(page, detector)) for page in batch]


def _packed(page: Capture, detector: Detector) -> tuple[bytes, int, bytes]:
    read, made = fingerprint(page, detector)
    keys = (made.digest, made.markup or made.digest, *made.keys) if made.reason is None else ()
    return pack(read, made), made.tokens, np.array(keys, np.uint64).tobytes()
