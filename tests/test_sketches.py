"""The sketches that were last read from a store."""

import multiprocessing

import numpy as np

from dedup.index.sketches import PLACES, Sketches
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.stores import opened_at


def test_a_sketch_is_held_until_its_place_is_taken() -> None:
    held = Sketches(size=16)
    numbers = np.array([0, 1, 2, 1 + PLACES], np.uint32)  # 0 stands for an empty place; two have one place
    words = np.arange(8, dtype=np.uint64).reshape(4, 2)
    assert held.get(numbers)[1].tolist() == [0, 1, 2, 3]
    held.put(numbers, words)
    found, unheld = held.get(numbers)
    assert unheld.tolist() == [0, 1]
    assert found[2:].tolist() == words[2:].tolist()


def test_what_a_forked_process_holds_is_its_own() -> None:
    """A page of one number is another page there, whose sketch would say of ours that they are alike."""
    held, numbers = Sketches(size=16), np.array([1, 2], np.uint32)
    held.put(numbers[:1], np.array([[7, 7]], np.uint64))
    child = multiprocessing.get_context("fork").Process(
        target=held.put, args=(numbers, np.full((2, 2), 9, np.uint64))
    )
    child.start()
    child.join()
    assert child.exitcode == 0
    found, unheld = held.get(numbers)
    assert (found[0].tolist(), unheld.tolist()) == ([7, 7], [1])


@driven
async def test_the_sketch_of_a_page_may_be_asked_for_twice_at_once() -> None:
    async with opened_at("memory:") as index:
        for page in (0, 1):
            await index.claim(
                str(page), f"http://a/{page}", fingerprint_of(page * 0x5555_5555_5555, changed=page * 300)
            )
        held, words = await index.sketches([0, 1, 0])  # type: ignore[attr-defined]
    assert held == [0, 1, 0]
    assert words[0].tolist() == words[2].tolist() != words[1].tolist()
