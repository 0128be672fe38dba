"""Tables in few bits: they hold what was put in, and a probe finds what a search of the sorted fingerprints finds."""

import numpy as np
import pytest

from benchmarks.papers.compression import HuffmanTable
from benchmarks.papers.packed import PackedTable
from dedup.fingerprint.plans import Table, plan_for
from dedup.fingerprint.shingles import Hashes

SIZES = (0, 1, 2, 7, 8, 9, 127, 128, 129, 3000)
TABLES = plan_for(4, max_distance=3).tables


def random(size: int) -> Hashes:
    return np.random.default_rng(size).integers(0, 2**64, size, np.uint64)


def crowded(size: int) -> Hashes:
    """They share bits in the middle, as those of one site do."""
    return random(size) & np.uint64(0xFFFF00000000FFFF)


def equal(size: int) -> Hashes:
    return np.full(size, 0xFEDCBA9876543210, np.uint64)


def extreme(size: int) -> Hashes:
    """The lowest and the highest that there are."""
    return np.where(random(size) > np.uint64(1 << 63), np.uint64(0), np.uint64(2**64 - 1))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [random, crowded, equal, extreme])
def test_a_packed_table_is_a_sorted_array(kind, size: int, table: Table) -> None:
    stored = kind(size)
    packed = PackedTable(stored, table)
    ordered = table.restore(np.sort(table.permute(stored)))
    assert len(packed) == size
    assert np.array_equal(packed[:], ordered)
    for first, end in np.random.default_rng(1).integers(0, size + 1, (10, 2)).tolist():
        assert np.array_equal(packed[first:end], ordered[first:end])
    for asked in (
        *stored[:20].tolist(),
        *(stored[:20] ^ np.uint64(0b101)).tolist(),
        *random(5).tolist(),
        0,
        2**64 - 1,
    ):
        shares = table.prefix_of(ordered) == np.uint64(table.prefix_of(asked))
        right = ordered[shares & (np.bitwise_count(ordered ^ np.uint64(asked)) <= 3)]
        assert np.array_equal(packed.near(asked, 3), right)


def test_a_packed_table_takes_the_bits_that_it_promises() -> None:
    for magnitude in (12, 16):
        packed = PackedTable(random(1 << magnitude))
        assert 8 * packed.nbytes / len(packed) <= 66 - magnitude + 0.3 + 600 / len(packed)


def test_a_packed_table_is_read_place_by_place() -> None:
    with pytest.raises(ValueError, match="a step of 2 was asked"):
        PackedTable(random(9))[::2]


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("kind", [random, crowded, np.arange])
def test_the_papers_table_is_a_sorted_array(kind, size: int) -> None:
    stored = np.unique(kind(size).astype(np.uint64))
    table = HuffmanTable(stored)
    assert np.array_equal(np.concatenate(list(table)), stored)
    bounds = np.sort(np.concatenate((random(20), stored[:10], stored[-10:])).reshape(-1, 2), axis=1)
    for low, high in (*bounds.tolist(), (0, 2**64 - 1)):
        right = stored[(stored >= np.uint64(low)) & (stored <= np.uint64(high))]
        assert np.array_equal(table.between(low, high), right)


def test_the_papers_table_wants_fingerprints_in_order() -> None:
    with pytest.raises(ValueError, match="in ascending order"):
        HuffmanTable(np.array([2, 1], np.uint64))
