"""Coroutines for callers that have no event loop, or one that is running, as in a notebook."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """Runs coroutines for any thread, in an event loop that has a thread of its own.

    >>> loop = Loop()
    >>> loop.run(asyncio.sleep(0, "done"))
    'done'
    >>> loop.close()
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._work, name="dedup", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns what a coroutine returns, or raises.  50 us more than awaiting it, and more if the processor is busy."""
        if self._process != os.getpid() or self._loop.is_closed():
            coroutine.close()
            forked = self._process != os.getpid()
            why = (
                "was opened before this process was forked; open it in each process"
                if forked
                else "is closed"
            )
            raise RuntimeError(f"this index {why}")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def finish(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Has a last coroutine run, and ends the thread then; waits for neither."""

        async def last() -> None:
            try:
                await coroutine
            finally:
                self._loop.stop()

        asyncio.run_coroutine_threadsafe(last(), self._loop)

    def close(self) -> None:
        """Ends the thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


class AtOnce:
    """Runs coroutines that wait for nothing, such as those of an index in memory, in the thread that asks.

    >>> async def add(a, b):
    ...     return a + b
    >>> AtOnce().run(add(1, 2))
    3
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns what a coroutine returns, or raises."""
        if self._closed:
            coroutine.close()
            raise RuntimeError("this index is closed")
        with self._lock:
            try:
                while coroutine.send(None) is None:  # it only lets others have their turn
                    pass
            except StopIteration as end:
                value: T = end.value
                return value
        coroutine.close()
        raise AssertionError("a coroutine waited")

    def finish(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Nobody needs what a last coroutine would do."""
        coroutine.close()

    def close(self) -> None:
        """No more is run."""
        self._closed = True
