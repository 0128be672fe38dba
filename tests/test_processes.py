"""What a test has started ends with it, whatever becomes of the test; what a module's fixture has started, with the module."""

import time
from collections.abc import Iterator

import pytest

from tests.support.processes import Forked

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
