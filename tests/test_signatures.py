"""Signatures against plain Python, and their estimates' bias and standard error against the formula."""

import hashlib
import math
import random
import statistics
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.fingerprint.shingles import hash_tokens, mix
from dedup.fingerprint.signatures import Signature, signature

steady = settings(derandomize=True, database=None, deadline=None)

NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 50)
SETS = st.lists(NUMBERS, max_size=60)
KEYS = st.integers(0, 2**64 - 1)


def array(numbers: Any) -> npt.NDArray[np.uint64]:
    return np.array(list(numbers), np.uint64)


def mixed(number: int) -> int:
    return int(mix(array([number % 2**64]))[0])


def agreement(a: Signature, b: Signature) -> float:
    """The share of selectors that picked the same."""
    return float((a == b).mean())


@steady
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


@steady
@given(shingles=SETS, rng=st.randoms(use_true_random=False))
def test_neither_order_nor_repeats_matter(shingles: list[int], rng: random.Random) -> None:
    other = rng.sample(shingles, len(shingles)) + shingles[:5]
    assert signature(array(other), 64).tolist() == signature(array(shingles), 64).tolist()


def test_a_key_chooses_other_shingles() -> None:
    shingles = hash_tokens([str(number) for number in range(5000)])
    assert agreement(signature(shingles, 128, 1), signature(shingles, 128, 2)) < 0.05


def test_the_shingles_are_left_as_they_are() -> None:
    shingles = array([3, 1, 2])
    signature(shingles, 8)
    assert shingles.tolist() == [3, 1, 2]


def test_an_empty_page_resembles_no_other() -> None:
    assert agreement(signature(array([]), 64), signature(array([7]), 64)) == 0


@steady
@given(SETS, SETS)
def test_the_signature_of_a_union_is_the_least_of_both(a: list[int], b: list[int]) -> None:
    either = np.minimum(signature(array(a), 40), signature(array(b), 40))
    assert signature(array(a + b), 40).tolist() == either.tolist()


SELECTORS, TRIALS = 128, 1000
#: Shingles of each page, and common ones.
PAIRS = [(1, 0), (10, 6), (60, 30), (300, 40), (1700, 1457)]


def check(found: list[float], truth: float, variance: float) -> None:
    """The mean is within 4 standard errors, the spread within a tenth (4.5 sigma) of the formula's."""
    error = math.sqrt(variance)
    mean, spread = statistics.fmean(found), statistics.pstdev(found)
    print(f"R {truth:.3f}  mean error {mean - truth:+.5f}  standard error {spread:.5f}, formula {error:.5f}")
    assert abs(mean - truth) <= 4 * error / math.sqrt(len(found)) + 1e-6
    assert abs(spread - error) <= 0.1 * error + 1e-6


@pytest.mark.parametrize(("size", "common"), PAIRS)
def test_signature_is_unbiased_with_its_standard_error(size: int, common: int) -> None:
    rng, found = np.random.default_rng([size, common]), list[float]()
    for _ in range(TRIALS):
        drawn = rng.integers(0, 2**64, 2 * size - common, np.uint64)
        pages = drawn[:size], drawn[size - common :]
        found.append(agreement(*(signature(page, SELECTORS) for page in pages)))
    truth = common / (2 * size - common)
    check(found, truth, truth * (1 - truth) / SELECTORS)


def test_signature_is_as_good_for_consecutive_numbers_under_many_keys() -> None:
    a, b = np.arange(300, dtype=np.uint64), np.arange(50, 350, dtype=np.uint64)
    found = [agreement(signature(a, SELECTORS, key), signature(b, SELECTORS, key)) for key in range(TRIALS)]
    check(found, 250 / 350, 250 / 350 * 100 / 350 / SELECTORS)


def test_golden_signature() -> None:
    values = signature(hash_tokens([f"shingle {number}" for number in range(100)]), 96, key=42)
    assert hashlib.sha256(values.tobytes()).hexdigest()[:32] == "9a03f8dabf305062056339243c379ea0"
