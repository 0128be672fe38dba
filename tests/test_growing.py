"""Arrays that grow in their place, and in another one if somebody holds a part of them."""

import os

import numpy as np
import pytest

from dedup.index.local.growing import Growing


@pytest.mark.parametrize("is_held", [False, True])
def test_rows_stay_what_they_are_while_room_is_made(is_held: bool) -> None:
    array, right, held = Growing(np.uint64), np.arange(1000, dtype=np.uint64), []
    for size in range(1, 1000, 7):
        array.reserve(size)
        array.rows[:size] = right[:size]
        if is_held:
            held.append(array.rows[size // 2 : size])
        array.reserve(size // 2)  # there is more already
    assert np.array_equal(array.rows[:995], right[:995])
    assert all(np.array_equal(part, right[part[0] : part[0] + np.uint64(len(part))]) for part in held)


def test_a_process_that_is_forked_has_rows_of_its_own() -> None:
    array = Growing(np.uint32)
    array.reserve(3)
    if (child := os.fork()) == 0:
        array.rows[:] = 7
        os._exit(0)
    os.waitpid(child, 0)
    assert not array.rows.any()
