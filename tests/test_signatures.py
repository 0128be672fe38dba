"""Signatures against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup.fingerprint.shingles import mix
from dedup.fingerprint.signatures import signature
from tests.support.fingerprints import array
from tests.support.pages.oracle import steady

NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 50)
SETS = st.lists(NUMBERS, max_size=60)
KEYS = st.integers(0, 2**64 - 1)


def mixed(number: int) -> int:
    return int(mix(array([number % 2**64]))[0])


@steady()
@given(SETS, st.integers(1, 70), KEYS)
def test_each_selector_picks_its_least(shingles: list[int], selectors: int, key: int) -> None:
    values = [mixed(shingle ^ key) >> 32 | 1 for shingle in shingles]
    factors = [mixed(mixed(selector + 1) ^ key) % 2**32 | 1 for selector in range(selectors)]
    expected = [min((factor * value % 2**32 for value in values), default=2**32 - 1) for factor in factors]
    assert signature(array(shingles), selectors, key).tolist() == expected


def test_many_shingles_are_picked_from_in_parts() -> None:
    shingles = mix(np.arange(10_000, dtype=np.uint64))
    parts = [signature(part, 128) for part in np.split(shingles, 4)]
    assert signature(shingles, 128).tolist() == np.min(parts, axis=0).tolist()
