"""The sketches that were last read from a store."""

import numpy as np

from dedup.index.sketches import PLACES, Sketches


def test_a_sketch_is_held_until_its_place_is_taken() -> None:
    held = Sketches(size=16)
    numbers = np.array([0, 1, 2, 1 + PLACES], np.uint32)  # 0 stands for an empty place; two have one place
    words = np.arange(8, dtype=np.uint64).reshape(4, 2)
    assert held.get(numbers)[1].tolist() == [0, 1, 2, 3]
    held.put(numbers, words)
    found, unheld = held.get(numbers)
    assert unheld.tolist() == [0, 1]
    assert found[2:].tolist() == words[2:].tolist()
