"""The keys of a file's pages, packed: whatever is written and deleted, they are those of the pages that are there."""

import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dedup.index.local import segments
from dedup.index.local.segments import HIGHEST, SCHEMA, pack, put, stored, unpack, update

COLUMNS = 3


def read(connection: sqlite3.Connection) -> dict[int, tuple[int, ...]]:
    """The keys of each page, by its number, in the order in which they are read."""
    parts = [unpack(segment, COLUMNS) for segment in stored(connection)]
    return {
        number: tuple(own)
        for numbers, keys in parts
        for number, own in zip(numbers.tolist(), keys.tolist(), strict=True)
    }


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_after_any_writes_segments_are_those_of_the_pages(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(segments, "SPAN", 8)
    rng, filed = random.Random(seed), dict[int, tuple[int, ...]]()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        for _ in range(100):
            gone = rng.sample(sorted(filed), min(len(filed), rng.choice([0, 1, 5, 30])))
            free = sorted({*range(100), HIGHEST} - (filed.keys() - {*gone}))
            numbers = rng.sample(free, min(len(free), rng.choice([0, 1, 5, 30])))
            added = {number: tuple(rng.getrandbits(64) for _ in range(COLUMNS)) for number in numbers}
            update(connection, gone, added, COLUMNS)
            filed = {number: keys for number, keys in filed.items() if number not in gone} | added
            assert list(read(connection).items()) == sorted(filed.items())
            found = [*stored(connection)]
            everything = (
                np.array(sorted(filed), np.uint32),
                np.array([filed[n] for n in sorted(filed)], np.uint64),
            )
            assert found == list(pack(everything[0], everything[1].reshape(-1, COLUMNS)))


def test_a_bit_or_a_byte_that_is_not_as_it_was_written_is_noticed() -> None:
    numbers = np.array([2048, 2050, 3071], np.uint32)
    (right,) = pack(numbers, np.arange(9, dtype=np.uint64).reshape(3, 3))
    place, octets, seal = right
    assert [part.tolist() for part in unpack(right, 3)] == [
        [2048, 2050, 3071],
        [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
    ]
    wrong: list[tuple[object, ...]] = [
        (place + 1, octets, seal),
        (1 << 40, octets, seal),
        ("2", octets, seal),
        (place, octets.decode("latin-1"), seal),
        (place, octets[:-26], seal),
        (place, octets, seal[:-1]),
        (place, b"", seal),
    ]
    for at in range(len(octets)):
        damaged = bytearray(octets)
        damaged[at] ^= 1 << at % 8
        wrong.append((place, bytes(damaged), seal))
    for segment in wrong:
        with pytest.raises(ValueError, match="not as they were written"):
            unpack(segment, 3)
    with pytest.raises(ValueError, match="not as they were written"):
        unpack(right, 4)


def test_a_segment_that_is_damaged_is_never_written_over() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        put(connection, iter([(0, b"damaged", b"checksum")]))
        with pytest.raises(ValueError, match="not as they were written"):
            update(connection, [], {7: (1, 2, 3)}, COLUMNS)
        assert [*stored(connection)] == [(0, b"damaged", b"checksum")]
