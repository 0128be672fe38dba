"""The sketches that were last read from a store."""

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
