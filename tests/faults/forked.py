"""Processes that can be killed, forked from a server that has imported what they need.

So a kill falls into the work, its start or its end, and not into the start of the interpreter.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Forked"]

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    ["pytest", "crawler.spiders.site", "dedup.scrapy.middleware", "dedup.index.local", "tests.claims"]
)
# multiprocessing asks after all children whenever it starts one, and who asks first gets the answer.
_lock = threading.Lock()


class Forked:
    """A running process."""

    def __init__(self, work: Callable[..., object], *arguments: Any) -> None:
        with _lock:
            self._process = _server.Process(target=work, args=arguments)
            self._process.start()

    @property
    def status(self) -> int | None:
        """Its exit status, or minus the signal that ended it; None while it runs."""
        with _lock:
            return self._process.exitcode

    def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> int | None:
        """The status after so many seconds, or as soon as there is one, or when it is enough."""
        end = time.monotonic() + seconds
        while (status := self.status) is None and time.monotonic() < end and not enough():
            time.sleep(0.003)
        return status

    def send(self, number: int) -> None:
        """Sends a signal, if it still runs."""
        if self.status is None:
            os.kill(self._process.pid or 0, number)

    def kill(self) -> bool:
        """kill -9; whether it was still running."""
        self.send(signal.SIGKILL)
        return self.wait(10) == -signal.SIGKILL
