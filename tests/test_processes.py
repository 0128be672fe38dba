"""What a test has started ends with it, whatever becomes of the test; what a module's fixture has started, with the module."""

import signal
import time
from collections.abc import Iterator
from threading import Timer

import pytest

from tests.support.processes import Forked
from tests.support.waiting import LIMIT

_left = list[Forked]()


@pytest.fixture(scope="module", autouse=True)
def shared() -> Iterator[Forked]:
    process = Forked(time.sleep, 300)
    yield process
    assert process.kill(), "it has not lived as long as the module"


@pytest.mark.xfail(strict=True, reason="that tests fail is what this is about")
def test_that_fails_and_leaves_a_process(shared: Forked) -> None:
    _left.append(Forked(time.sleep, 300))
    assert shared.status is not None


def test_finds_it_killed_and_that_of_the_module_alive(shared: Forked) -> None:
    assert [process.status for process in _left] == [-9]
    assert shared.status is None


def test_is_sent_a_signal_while_another_thread_waits_for_its_end() -> None:
    process = Forked(time.sleep, 300)
    Timer(0.1, process.send, [signal.SIGTERM]).start()
    assert process.wait(LIMIT) == -signal.SIGTERM
    process.send(signal.SIGTERM)  # which nobody is there for any more
    assert process.status == -signal.SIGTERM
