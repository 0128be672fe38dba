"""The sketches that were last read from a file."""

import numpy as np

from dedup.index.sketches import PLACES, Sketches


def test_a_sketch_is_held_until_its_place_is_taken_or_its_row_is_written() -> None:
    held = Sketches(size=16)
    rows = np.array(
        [0, 1, 2, 1 + PLACES], np.uint32
    )  # row 0 is that of a page that the file has not; two have one place
    words = np.arange(8, dtype=np.uint64).reshape(4, 2)
    assert held.get(rows)[1].tolist() == [0, 1, 2, 3]
    held.put(rows, words)
    found, unheld = held.get(rows)
    assert unheld.tolist() == [0, 1]
    assert found[2:].tolist() == words[2:].tolist()
    held.drop(np.array([1, 2], np.uint32))
    assert held.get(rows)[1].tolist() == [0, 1, 2]
