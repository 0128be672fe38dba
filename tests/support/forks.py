"""Runs tests in forks of the process that has collected them: ``pytest -p tests.support.forks --forks 5``.

What is imported and collected once, all of them have.  A file's tests are run by one fork, in their order; whichever is
free takes the next file.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import groupby
from mmap import mmap
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.warm import programs

#: Bytes of the number of a file.
SIZE = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="how many processes run tests; 0 = this one")


def is_on(session: pytest.Session) -> bool:
    return bool(session.config.option.forks) and not session.config.option.collectonly


def is_ours(session: pytest.Session) -> bool:
    """Whether these are tests of this project, which crawl, and not of `tests/test_forks.py`."""
    return session.config.rootpath == ROOT


def pytest_sessionstart(session: pytest.Session) -> None:
    """Starts the Python that is forked for programs, once for all forks, and `rewrite` beside the collection."""
    if is_on(session) and is_ours(session):
        programs()
        if "tests" in session.config.args and not os.fork():
            with suppress(BaseException):
                rewrite(sorted(Path(__file__).parents[1].rglob("test_*.py"), reverse=True))
            os._exit(0)


def rewrite(files: list[Path]) -> None:
    """Reads tests from the last one on, so that the collection, which begins at the first, finds made what pytest makes
    of their assertions.  This ends where they meet: in a clean clone, it halves the time."""
    for file in files:
        if any(file.parent.glob(f"__pycache__/{file.stem}.*-pytest-*.pyc")):
            return
        with suppress(Exception, pytest.skip.Exception):  # its own collection tells what is wrong with it
            import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Imports what crawls need, once for all forks."""
    if is_on(session) and is_ours(session):
        import_module("tests.support.preloaded")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs all tests, in a fork of this process those of some files."""
    if not is_on(session) or session.testsfailed:
        return None  # pytest goes on as ever
    files = [[*items] for _, items in groupby(session.items, lambda item: item.path)]
    share(session, files, session.config.option.forks)
    return True


def share(session: pytest.Session, files: list[list[pytest.Item]], forks: int) -> None:
    """Runs the tests of some files, in so many forks of this process."""
    turns, write = os.pipe()  # what one has read, nobody else reads
    with open(write, "wb") as file:
        file.write(b"".join(number.to_bytes(SIZE) for number in range(len(files))))
    base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    is_over = mmap(-1, 1)  # which all of them see
    lines: dict[Connection, int] = {}
    for number in range(forks):
        ours, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy see to themselves
            process = os.fork()
        if not process:
            for line in (*lines, ours):
                line.close()
            begin(session.config, theirs, base / f"fork{number}")
            run(session, (item for place in places(turns) for item in files[place]), is_over)
            return
        theirs.close()
        lines[ours] = process
    os.close(turns)
    follow(session, [item for items in files for item in items], lines, is_over)


# --- A fork -------------------------------------------------------------------------------------------


class Teller:
    """Tells the process that was forked what becomes of each test."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self.config = config
        self.line = line

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.line.send(("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.line.send(("pytest_runtest_logreport", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self.line.send(("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))


def begin(config: pytest.Config, line: Connection, folder: Any) -> None:
    """Parts with what a fork may not share: the terminal, the files of what is printed, temporary folders."""
    os.setpgrp()  # an interrupt from the terminal reaches the other alone, which passes it on
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    plugins.register(Teller(config, line))
    config.workerinput = {}  # type: ignore[attr-defined]  # plugins of pytest that write results leave that to the other
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]


def places(turns: int) -> Iterator[int]:
    """The files that nobody else takes."""
    while number := os.read(turns, SIZE):
        yield int.from_bytes(number)


def run(session: pytest.Session, items: Iterator[pytest.Item], is_over: mmap) -> None:
    """Runs tests until there are no more, or all is to end."""
    item = next(items, None)
    while item is not None and not is_over[0] and not session.shouldfail and not session.shouldstop:
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following


# --- The process that was forked ----------------------------------------------------------------------


def follow(
    session: pytest.Session, items: list[pytest.Item], lines: dict[Connection, int], is_over: mmap
) -> None:
    """Reports what the forks tell, until they have ended; a test of which nobody tells the end has failed."""
    hook = session.config.hook
    left = {item.nodeid: item for item in items}
    try:
        for name, data in told(lines):
            if name == "pytest_runtest_logreport":
                data = {"report": hook.pytest_report_from_serializable(config=session.config, data=data)}
            elif name == "pytest_runtest_logfinish":
                left.pop(data["nodeid"], None)
            getattr(hook, name)(**data)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        is_over[0] = (
            1  # after a failure or an interrupt, each ends its test and tears down what it has set up
        )
        for _ in told(lines):
            pass
    for item in left.values():
        text = "It has not come to its end: the process that had its file has died"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        hook.pytest_runtest_logreport(report=report)


def told(lines: dict[Connection, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the forks tell: the names of hooks, and what these are called with.  Ends when all forks have ended."""
    while lines:
        for line in wait([*lines]):
            assert isinstance(line, Connection)
            try:
                yield line.recv()
            except (EOFError, ConnectionResetError):
                os.waitpid(lines.pop(line), 0)
