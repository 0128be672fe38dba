"""How the fingerprints of an index are spread: leading bits, fill, skew."""

import random
from itertools import pairwise

import numpy as np
import pytest

from dedup.fingerprint.plans import EXACT, plan_for
from dedup.lab.distributions import expected_leading_bits, fill, leading_bits, skew
from tests.support.fingerprints import ALL_BITS


def test_leading_bits_are_those_of_the_neighbours_in_sorted_order() -> None:
    rng = random.Random(2)
    simhashes = [rng.getrandbits(64) for _ in range(500)] + [0, 0, ALL_BITS, ALL_BITS, ALL_BITS]
    counts = [0] * 65
    ordered = sorted(simhashes)
    for one, another in pairwise(ordered):
        counts[(one ^ another).bit_length()] += 1
    assert leading_bits(np.array(simhashes, np.uint64)).tolist() == counts
    assert leading_bits(np.empty(0, np.uint64)).sum() == leading_bits(np.array([7], np.uint64)).sum() == 0


def test_random_fingerprints_are_spread_as_expected() -> None:
    rng = np.random.default_rng(4)
    found = sum(leading_bits(rng.integers(0, 2**64, 1000, np.uint64)) for _ in range(200)) / 200
    expected = expected_leading_bits(1000)
    assert abs(float(expected.sum()) - 999) < 0.01
    assert np.abs(found - expected).max() < 3 * np.sqrt(expected.max() / 200)


def test_fill_counts_equal_intervals() -> None:
    assert fill(np.array([0, 1, 2**57, ALL_BITS], np.uint64)).tolist() == [2, 1, *[0] * 125, 1]


def test_skew_is_how_many_pages_share_a_prefix() -> None:
    plan = plan_for(4, max_distance=3)
    rng = random.Random(8)
    keys = [
        (rng.getrandbits(64), rng.choice([7, 8]), rng.choice([5, 6 << 40, rng.getrandbits(64)]))
        for _ in range(400)
    ]
    for one in skew(np.array(keys, np.uint64), plan, limit=100):
        table = (*EXACT, *plan.tables)[one.table]
        shared: dict[int, int] = {}
        for key in keys:
            prefix = table.permute(key[table.column]) >> (64 - table.prefix)
            shared[prefix] = shared.get(prefix, 0) + 1
        assert one.largest == max(shared.values())
        assert one.over == sum(size > 100 for size in shared.values())
        assert one.mean == pytest.approx(sum(size * size for size in shared.values()) / 400)
