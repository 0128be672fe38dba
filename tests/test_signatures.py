"""Signatures against plain Python, and their estimates' bias and standard error against the formulas."""

import hashlib
import math
import random
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers import bbit
from benchmarks.papers.signatures import (
    agreement,
    bottom_k,
    bottom_k_resemblance,
    one_permutation,
    weighted_resemblance,
    weighted_signature,
)
from dedup.errors import SettingsError
from dedup.fingerprint.shingles import hash_tokens, mix, resemblance
from dedup.fingerprint.signatures import signature

steady = settings(derandomize=True, database=None, deadline=None)

NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 50)
SETS = st.lists(NUMBERS, max_size=60)
KEYS = st.integers(0, 2**64 - 1)
WEIGHTED = st.dictionaries(NUMBERS, st.floats(1e-6, 1e6), max_size=40)
EMPTY = np.array([], np.uint64)
SKETCHES = [signature, one_permutation, bottom_k]


def array(numbers: Any) -> npt.NDArray[np.uint64]:
    return np.array(list(numbers), np.uint64)


def mixed(number: int) -> int:
    return int(mix(array([number % 2**64]))[0])


def pages(
    size: int, common: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Two random pages of ``size`` shingles that have ``common`` of them in common."""
    drawn = rng.integers(0, 2**64, 2 * size - common, np.uint64)
    return drawn[:size], drawn[size - common :]


# --- Against plain Python -----------------------------------------------------------------------------


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
@given(SETS, st.integers(1, 100), KEYS)
def test_each_slot_holds_its_least_or_what_a_filled_one_holds(
    shingles: list[int], slots: int, key: int
) -> None:
    least = {}
    for value in sorted((mixed(shingle ^ key) for shingle in shingles), reverse=True):
        least[(value >> 32) * slots >> 32] = value % 2**32
    expected = [2**32 - 1] * slots
    for slot in range(slots if least else 0):
        source = slot if slot in least else min(least, key=lambda other: mixed(slot * slots + other))
        expected[slot] = least[source]
    assert one_permutation(array(shingles), slots, key).tolist() == expected


@steady
@given(SETS, st.integers(1, 70), KEYS)
def test_the_bottom_k_are_the_k_least(shingles: list[int], k: int, key: int) -> None:
    expected = sorted({mixed(shingle ^ key) for shingle in shingles})[:k]
    found = bottom_k(array(shingles), k, key)
    assert (found.tolist(), found.dtype) == (expected, np.uint64)


@steady
@given(SETS, SETS, st.integers(1, 70))
def test_bottom_k_resemblance_is_the_share_of_the_k_least_of_both(a: list[int], b: list[int], k: int) -> None:
    a += b[::2]
    least = sorted({mixed(shingle) for shingle in a + b})[:k]
    both = {mixed(shingle) for shingle in set(a) & set(b)}
    expected = sum(value in both for value in least) / len(least) if least else 1.0
    found = bottom_k_resemblance(bottom_k(array(a), k), bottom_k(array(b), k), k)
    assert found == expected
    assert k < len(set(a + b)) or found == resemblance(array(a), array(b))


@steady
@given(WEIGHTED, st.integers(1, 20), KEYS)
def test_each_weighted_sample_is_that_of_the_paper(weights: dict[int, float], samples: int, key: int) -> None:
    expected = []
    for sample in range(samples):
        found = [(math.inf, 2**64 - 1)]
        for feature, weight in weights.items():
            hashed = mixed(mixed(feature ^ key))
            first, second, third = (mixed(hashed ^ mixed(3 * sample + draw)) for draw in (1, 2, 3))
            r, c = (
                -math.log((draw // 2**32 + 0.5) * (draw % 2**32 + 0.5) / 2**64) for draw in (first, second)
            )
            beta = ((third >> 12) + 0.5) / 2**52
            t = math.floor(math.log(weight) / r + beta)
            y = math.exp(r * (t - beta))
            assert y <= weight * (1 + 1e-9)
            found.append((c / (y * math.exp(r)), mixed(hashed ^ mixed(t))))
        expected.append(min(found)[1])
    features, amounts = array(weights), np.array(list(weights.values()), np.float64)
    found = weighted_signature(features, amounts, samples, key)
    assert (found.tolist(), found.dtype) == (expected, np.uint64)


@steady
@given(WEIGHTED, WEIGHTED)
def test_weighted_resemblance_is_the_sum_of_the_lesser_by_that_of_the_greater(
    a: dict[int, float], b: dict[int, float]
) -> None:
    b |= dict(list(a.items())[::2])
    either = a.keys() | b.keys()
    low = math.fsum(min(a.get(feature, 0), b.get(feature, 0)) for feature in either)
    high = math.fsum(max(a.get(feature, 0), b.get(feature, 0)) for feature in either)
    found = weighted_resemblance(array(a), np.array([*a.values()]), array(b), np.array([*b.values()]))
    assert found == pytest.approx(low / high if either else 1.0)


# --- Properties ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sketch", SKETCHES)
@steady
@given(shingles=SETS, rng=st.randoms(use_true_random=False))
def test_neither_order_nor_repeats_matter(
    sketch: Callable[..., Any], shingles: list[int], rng: random.Random
) -> None:
    other = rng.sample(shingles, len(shingles)) + shingles[:5]
    assert sketch(array(other), 64).tolist() == sketch(array(shingles), 64).tolist()


@pytest.mark.parametrize("sketch", SKETCHES)
def test_a_key_chooses_other_shingles(sketch: Callable[..., Any]) -> None:
    shingles = hash_tokens([str(number) for number in range(5000)])
    a, b = (sketch(shingles, 128, key) for key in (1, 2))
    assert agreement(a, b) < 0.05


@pytest.mark.parametrize("sketch", SKETCHES)
def test_the_shingles_are_left_as_they_are(sketch: Callable[..., Any]) -> None:
    shingles = array([3, 1, 2])
    sketch(shingles, 8)
    assert shingles.tolist() == [3, 1, 2]


@pytest.mark.parametrize("sketch", [signature, one_permutation])
def test_an_empty_page_resembles_only_an_empty_page(sketch: Callable[..., Any]) -> None:
    empty = sketch(EMPTY, 64)
    assert agreement(empty, empty) == 1
    assert agreement(empty, sketch(array([7]), 64)) == 0


def test_an_empty_page_has_no_bottom_k() -> None:
    some = bottom_k(array(range(9)), 4)
    assert bottom_k(EMPTY, 4).tolist() == []
    assert bottom_k_resemblance(EMPTY, EMPTY, 4) == 1
    assert bottom_k_resemblance(EMPTY, some, 4) == bottom_k_resemblance(some, EMPTY, 4) == 0


@steady
@given(SETS, SETS)
def test_the_signature_of_a_union_is_the_least_of_both(a: list[int], b: list[int]) -> None:
    either = np.minimum(signature(array(a), 40), signature(array(b), 40))
    assert signature(array(a + b), 40).tolist() == either.tolist()


@pytest.mark.parametrize("size", [1, 2, 10, 100])
def test_no_slot_of_a_short_page_is_empty(size: int) -> None:
    found = one_permutation(mix(np.arange(size, dtype=np.uint64)), 512)
    assert 2**32 - 1 not in found
    sources = len(set(found.tolist()))
    assert sources == size if size < 10 else sources <= size


def test_empty_slots_take_from_all_filled_ones_alike() -> None:
    found = one_permutation(mix(np.arange(4, dtype=np.uint64)), 4000)
    assert all(abs(count - 1000) < 120 for count in np.unique(found, return_counts=True)[1])  # 4 sigma


# --- Weights ------------------------------------------------------------------------------------------


@steady
@given(WEIGHTED.filter(bool), st.integers(0, 39), st.floats(0, 1))
def test_a_sample_stays_while_only_weights_that_it_did_not_pick_are_lowered(
    weights: dict[int, float], kept: int, factor: float
) -> None:
    features, amounts = array(weights), np.array([*weights.values()])
    before = weighted_signature(features, amounts, 64)
    kept %= len(features)
    lowered = amounts * factor
    lowered[kept] = amounts[kept]
    alone = weighted_signature(features[[kept]], amounts[[kept]], 64)
    picked = before == alone  # what a feature offers does not depend on the others
    assert (weighted_signature(features, lowered, 64)[picked] == before[picked]).all()


def test_a_sample_stays_when_its_own_weight_is_lowered_as_long_as_its_quantity_fits() -> None:
    features, weights = mix(np.arange(50, dtype=np.uint64)), np.full(50, 8.0)
    samples = [weighted_signature(features, weights * factor, 2000) for factor in (1, 0.5, 0.25, 0.125)]
    for fewer in range(1, 4):
        found = agreement(samples[0], samples[fewer])
        assert abs(found - 2.0**-fewer) < 4 * math.sqrt(2.0**-fewer * (1 - 2.0**-fewer) / 2000)
    # Once a quantity no longer fits it never comes back.
    same = [samples[0] == other for other in samples]
    assert all((same[i + 1] <= same[i]).all() for i in range(3))


def test_weights_of_a_repeated_feature_add_up_and_0_is_none() -> None:
    a = weighted_signature(array([1, 2, 1, 3]), np.array([1.0, 2.0, 0.5, 0.0]), 64)
    b = weighted_signature(array([2, 1]), np.array([2.0, 1.5]), 64)
    assert a.tolist() == b.tolist()
    none = weighted_signature(array([3]), np.array([0.0]), 64)
    assert none.tolist() == weighted_signature(EMPTY, np.array([]), 64).tolist() == [2**64 - 1] * 64


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300, 1.7e308])
def test_extreme_weights_are_weights(weight: float) -> None:
    found = weighted_signature(array([1, 2]), np.array([weight, weight]), 500)
    assert len(set(found.tolist())) > 100
    assert 2**64 - 1 not in found


@steady
@given(SETS, SETS)
def test_with_weights_of_1_weighted_resemblance_is_resemblance(a: list[int], b: list[int]) -> None:
    a, b = array(set(a)), array(set(b))
    found = weighted_resemblance(a, np.ones(len(a)), b, np.ones(len(b)))
    assert found == pytest.approx(resemblance(a, b))


# --- b bits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", bbit.BITS)
def test_values_are_packed_from_the_lowest_bits_up(bits: int) -> None:
    values = signature(array(range(100)), 64)
    expected = [mixed(int(value) ^ mixed(place + 1)) >> 64 - bits for place, value in enumerate(values)]
    packed = bbit.pack(values, bits)
    whole = int.from_bytes(packed, "little")
    assert len(packed) == 64 * bits // 8
    assert [whole >> bits * place & 2**bits - 1 for place in range(64)] == expected


@pytest.mark.parametrize("bits", bbit.BITS)
@pytest.mark.parametrize(
    "values", [signature(array([5, 9]), 64), bottom_k(array(range(99)), 64), one_permutation(EMPTY, 64)]
)
def test_a_packed_signature_agrees_with_itself(values: npt.NDArray[Any], bits: int) -> None:
    packed = bbit.pack(values, bits)
    assert bbit.agreement(packed, packed, bits) == bbit.estimate(packed, packed, bits) == 1.0


@pytest.mark.parametrize("bits", bbit.BITS)
def test_packed_values_are_compared_as_one_by_one(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for _ in range(50):
        a, b = rng.integers(0, 256, (2, 24), np.uint8)
        b = np.where(rng.random(24) < 0.5, a, b)
        ones, others = (
            [octet >> shift & 2**bits - 1 for octet in octets.tolist() for shift in range(0, 8, bits)]
            for octets in (a, b)
        )
        expected = statistics.fmean(one == other for one, other in zip(ones, others, strict=True))
        assert bbit.agreement(a.tobytes(), b.tobytes(), bits) == expected


def test_agreement_by_chance_alone_estimates_nothing() -> None:
    assert bbit.estimate(bytes(4), bytes([0, 0, 255, 255]), 1) == 0
    assert bbit.estimate(bytes(2), bytes([0b10_01_11_00] * 2), 2) == 0


@pytest.mark.parametrize(("selectors", "bits"), [(64, 3), (64, 0), (64, 16), (84, 1), (90, 2)])
def test_what_does_not_fill_bytes_is_refused(selectors: int, bits: int) -> None:
    with pytest.raises(SettingsError, match=f"{selectors} values of {bits} bits can't be packed; allowed: 1"):
        bbit.pack(signature(array([1]), selectors), bits)


# --- Bias and standard error, by simulation -----------------------------------------------------------

SELECTORS, TRIALS = 128, 1000
PAIRS = [(1, 0), (10, 6), (60, 30), (300, 40), (1700, 1457)]  # shingles of each page, common ones


def check(found: list[float], truth: float, variance: float) -> None:
    """The mean is within 4 standard errors, the spread within a tenth (4.5 sigma) of the formula's."""
    error = math.sqrt(variance)
    mean, spread = statistics.fmean(found), statistics.pstdev(found)
    print(f"R {truth:.3f}  mean error {mean - truth:+.5f}  standard error {spread:.5f}, formula {error:.5f}")
    assert abs(mean - truth) <= 4 * error / math.sqrt(len(found)) + 1e-6
    assert abs(spread - error) <= 0.1 * error + 1e-6


def simulate(size: int, common: int, compare: Callable[..., Any]) -> tuple[list[float], float]:
    """Estimates for seeded pairs of pages, and the resemblance of each."""
    rng = np.random.default_rng([size, common])
    return [compare(*pages(size, common, rng)) for _ in range(TRIALS)], common / (2 * size - common)


@pytest.mark.parametrize(("size", "common"), PAIRS)
def test_signature_is_unbiased_with_its_standard_error(size: int, common: int) -> None:
    found, truth = simulate(
        size, common, lambda a, b: agreement(signature(a, SELECTORS), signature(b, SELECTORS))
    )
    check(found, truth, truth * (1 - truth) / SELECTORS)


def test_signature_is_as_good_for_consecutive_numbers_under_many_keys() -> None:
    a, b = np.arange(300, dtype=np.uint64), np.arange(50, 350, dtype=np.uint64)
    found = [agreement(signature(a, SELECTORS, key), signature(b, SELECTORS, key)) for key in range(TRIALS)]
    check(found, 250 / 350, 250 / 350 * 100 / 350 / SELECTORS)


@pytest.mark.parametrize(("size", "common"), PAIRS)
def test_one_permutation_is_unbiased_with_its_standard_error(size: int, common: int) -> None:
    found, truth = simulate(
        size, common, lambda a, b: agreement(one_permutation(a, SELECTORS), one_permutation(b, SELECTORS))
    )
    r, n = SELECTORS, 2 * size - common
    m = r * (1 - (1 - 1 / r) ** n)
    s = 2 * (r - m) + (r - m) * (r - m - 1) / m
    check(found, truth, truth * (1 - truth) / r**2 * (r + s - (r * (r - 1) - s) / (n - 1)))


@pytest.mark.parametrize(("size", "common"), PAIRS)
def test_bottom_k_is_unbiased_with_its_standard_error(size: int, common: int) -> None:
    k, n = 64, 2 * size - common
    found, truth = simulate(
        size, common, lambda a, b: bottom_k_resemblance(bottom_k(a, k), bottom_k(b, k), k)
    )
    check(found, truth, truth * (1 - truth) / k * max(0, n - k) / (n - 1))


@pytest.mark.parametrize("bits", bbit.BITS)
@pytest.mark.parametrize(("size", "common"), PAIRS[1::2])
def test_b_bits_are_unbiased_with_their_standard_error(size: int, common: int, bits: int) -> None:
    def compare(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> float:
        a, b = (bbit.pack(signature(page, SELECTORS), bits) for page in (a, b))
        return bbit.estimate(a, b, bits)

    found, truth = simulate(size, common, compare)
    alike = truth + (1 - truth) / 2**bits
    check(found, truth, alike * (1 - alike) / SELECTORS / (1 - 2**-bits) ** 2)


@pytest.mark.parametrize(("size", "common", "noise"), [(10, 6, 1), (40, 38, 0.1), (40, 40, 0.3), (40, 0, 1)])
def test_weighted_signature_is_unbiased_with_its_standard_error(size: int, common: int, noise: float) -> None:
    rng = np.random.default_rng([size, common])
    features, usual = (
        rng.integers(0, 2**64, 2 * size - common, np.uint64),
        rng.lognormal(0, 2, 2 * size - common),
    )
    a, b = (
        (features[part], usual[part] * rng.lognormal(0, noise, size))
        for part in (slice(size), slice(size - common, None))
    )
    truth = weighted_resemblance(*a, *b)
    found = [
        agreement(weighted_signature(*a, 64, key), weighted_signature(*b, 64, key)) for key in range(TRIALS)
    ]
    check(found, truth, truth * (1 - truth) / 64)


# --- Stored signatures stay comparable ----------------------------------------------------------------

GOLDEN = {
    signature: "42638893bcf528cd26d51d3bc59cf5d9",
    one_permutation: "7bc7c28f3e71fbe8172a94f7569be2c0",
    bottom_k: "02c610b29b0337e7d4c06778d1bb7697",
}


@pytest.mark.parametrize("sketch", GOLDEN)
def test_golden_signatures(sketch: Callable[..., Any]) -> None:
    shingles = hash_tokens([f"shingle {number}" for number in range(100)])
    values = sketch(shingles, 96, key=42)
    packed = b"".join(bbit.pack(values, bits) for bits in bbit.BITS)
    assert hashlib.sha256(values.tobytes() + packed).hexdigest()[:32] == GOLDEN[sketch]


def test_golden_weighted_signature() -> None:
    shingles = hash_tokens([f"shingle {number}" for number in range(100)])
    found = weighted_signature(shingles, np.arange(1.0, 101.0), 4, key=42)
    assert [f"{value:016x}" for value in found.tolist()] == [
        "714850d80485d00d",
        "256d9de94650f365",
        "d1738436c462d60a",
        "d86fe4863acd6449",
    ]
