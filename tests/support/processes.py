"""Processes that can be killed, forked from a Python that has imported what they need (see `tests.support.warm`).

A kill falls into the work, its start or its end, and not into the start of the interpreter.
"""

import os
import pickle
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrapy.cmdline import execute

from tests.support import ROOT, warm
from tests.support.waiting import LIMIT

#: What a fork does: it calls a function, which is named by its module, in the folder and the environment of the test.
WORK = f"""import pickle, sys
sys.path.insert(0, {str(ROOT)!r})
work, arguments = pickle.loads(bytes.fromhex(sys.argv[1]))
work(*arguments)
"""


#: What was started and is not known to have ended: `kill_left` sees to it.
_left: list["Forked"] = []


class Forked:
    """A running process."""

    def __init__(self, work: Callable[..., object], *arguments: Any) -> None:
        self._line = warm.start("python", "-c", WORK, pickle.dumps((work, arguments)).hex())
        self._status: int | None = None
        self._lock = threading.Lock()
        _left.append(self)

    @property
    def status(self) -> int | None:
        """The exit status, or minus the number of the signal that ended it; None while it runs."""
        return self._after(0)

    def _after(self, seconds: float) -> int | None:
        # While one thread waits, another one may send a signal.
        if self._status is None and select.select([self._line], [], [], seconds)[0]:
            with self._lock:
                if self._status is None:
                    self._status = warm.ended(self._line)
        return self._status

    def wait(self, seconds: float, enough: Callable[[], bool] | None = None) -> int | None:
        """Waits for its end, for these seconds, or until it is enough; returns its status."""
        if enough is None:
            return self._after(seconds)
        end = time.monotonic() + seconds
        while (status := self._after(0.003)) is None and time.monotonic() < end and not enough():
            pass
        return status

    def send(self, number: int) -> None:
        """Sends a signal, if it still runs."""
        if self.status is None:
            self._line.sendall(bytes([number]))

    def pause(self) -> None:
        """Stops it where it is, and waits until it stands still."""
        self.send(signal.SIGSTOP)
        assert warm.ended(self._line) == -signal.SIGSTOP

    def kill(self) -> bool:
        """Kills it (-9); tells whether it was still running."""
        self.send(signal.SIGKILL)
        return self.wait(LIMIT) == -signal.SIGKILL

    def close(self) -> None:
        """Kills it, if it still runs, and lets go of the line to it."""
        self.kill()
        self._line.close()


@contextmanager
def running(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program that runs for as long as the block; then it is killed, if it still runs, and what it prints is closed."""
    with subprocess.Popen([*map(str, command)], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def kill_left(of: int = 0) -> None:
    """Kills (-9) what still runs of the processes that were started after the first ``of``: a test that fails leaves them.

    Else they would go on, and the session would wait for them at its end.
    """
    for process in _left[of:]:
        process.close()
    del _left[of:]


def started() -> int:
    """Returns how many processes were started, but for those that `kill_left` has seen to."""
    return len(_left)


def _execute(arguments: list[str], environment: dict[str, str], output: Path | None) -> None:
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    if output is not None:
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(output / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    execute(["scrapy", *arguments])


class Scrapy(Forked):
    """A command of Scrapy, run in the project; what it prints goes to files in a folder."""

    def __init__(self, *arguments: object, output: Path | None = None, **environment: str) -> None:
        super().__init__(_execute, [*map(str, arguments)], {**os.environ, **environment}, output)


def options(settings: Mapping[str, object]) -> list[str]:
    """Makes what a command line says of settings."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def scrapy(*arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
    """Runs a command of Scrapy in the project with these settings, to its end."""
    arguments = (*arguments, *options(settings))
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        output = Path(folder)
        status = Scrapy(*arguments, output=output).wait(LIMIT)
        assert status is not None, f"{arguments} takes too long"
        printed = ((output / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, status, *printed)
