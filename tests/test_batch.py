"""Many fingerprints against many, beside an oracle that compares each with each."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.batch import Pairs, clusters, hamming, near_pairs, query, tables
from dedup.errors import DedupError, SettingsError
from dedup.fingerprint.shingles import Hashes
from tests.support import slow

steady = settings(derandomize=True, database=None, deadline=None, max_examples=25)


def brute_force(left: Hashes, right: Hashes, k: int) -> list[tuple[int, int, int]]:
    """Every pair within k bits, each compared with each."""
    apart = np.bitwise_count(left[:, np.newaxis] ^ right)
    return [(int(i), int(j), int(apart[i, j])) for i, j in np.argwhere(apart <= k)]


def told(pairs: Pairs) -> list[tuple[int, int, int]]:
    return [*zip(*(each.tolist() for each in pairs), strict=True)]


def flip(rng: np.random.Generator, values: Hashes, most: int) -> Hashes:
    """The same, some with up to so many bits changed."""
    for _ in range(most):
        values = values ^ (
            rng.integers(0, 2, len(values), np.uint64) << rng.integers(0, 64, len(values), np.uint64)
        )
    return values


def crowd(seed: int, size: int, centres: int = 30) -> Hashes:
    """Fingerprints around some centres, up to ten bits away, many of them equal; and as many that are unrelated."""
    rng = np.random.default_rng(seed)
    around = np.random.default_rng(0).integers(0, 2**64, centres, np.uint64)
    near = flip(rng, rng.choice(around, size // 2), 10)
    near[::5] = rng.choice(around, len(near[::5]))
    return rng.permutation(np.concatenate((near, rng.integers(0, 2**64, size - size // 2, np.uint64))))


K = pytest.mark.parametrize("k", [0, slow(1), 2, slow(3), slow(4), slow(5), slow(6), 7])
few = st.lists(
    st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**64 - 1, 2**63]), st.integers(0, 2**9)),
    max_size=40,
).map(lambda values: np.array(values, np.uint64))


@steady
@given(few, few, st.integers(0, 7))
def test_any_fingerprints_are_compared_as_by_brute_force(asked: Hashes, stored: Hashes, k: int) -> None:
    assert told(query(asked, stored, k)) == brute_force(asked, stored, k)
    assert told(near_pairs(stored, k)) == [
        pair for pair in brute_force(stored, stored, k) if pair[0] < pair[1]
    ]


@K
def test_every_plan_of_tables_finds_the_same(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, stored = crowd(1, 60), crowd(2, 90)
    for plan in hamming._plans(k):
        monkeypatch.setattr(hamming, "_plans", lambda _, plan=plan: [plan])
        assert told(query(asked, stored, k)) == brute_force(asked, stored, k), plan
        assert len(near_pairs(stored, k).left) == (len(brute_force(stored, stored, k)) - 90) // 2, plan


def test_parts_and_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, stored = crowd(1, 40), crowd(2, 80)
    wanted = brute_force(asked, stored, 5)
    pairs = [pair for pair in brute_force(stored, stored, 5) if pair[0] < pair[1]]
    for module, name, value in (
        (hamming, "CHUNK", 7),
        (hamming, "PER_QUERY", hamming.LEAST // 100),
        (tables, "COMPARED", 3),
        (tables, "STRETCH", 5),
        (tables, "STEPS", 2),
        (tables, "MAP_BITS", 11),
    ):
        monkeypatch.setattr(module, name, value)
        assert told(query(asked, stored, 5, memory=hamming.LEAST)) == wanted, name
        assert told(near_pairs(stored, 5)) == pairs, name


@K
def test_clusters_are_what_pairs_join_chain_by_chain(k: int) -> None:
    simhashes = crowd(3, 300)
    first = list(range(len(simhashes)))
    for left, right, _ in sorted(told(near_pairs(simhashes, k))):
        a, b = sorted((first[left], first[right]))
        first = [a if other == b else other for other in first]
    assert clusters(simhashes, k).tolist() == first


# --- Many that are equal, or nearly ------------------------------------------------------------------


def test_so_many_equal_fingerprints_have_too_many_pairs() -> None:
    equal = np.full(100_000, 42, np.uint64)
    assert not clusters(equal, 3).any()
    with pytest.raises(DedupError, match=r"^there are more than 16,777,216 pairs, .* ask for clusters$"):
        near_pairs(equal, 3)
    with pytest.raises(DedupError, match=r"^there are more than 4,194,304 pairs"):
        query(equal[:5000], equal[:5000], 3, memory=1 << 28)


# --- Memory ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_more_memory_is_used_than_is_allowed(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    path = tmp_path / "stored.npy"
    np.save(path, rng.integers(0, 2**64, 500_000, np.uint64))
    stored = np.load(path, mmap_mode="r")
    asked = flip(rng, np.array(stored), 3)
    tracemalloc.start()
    try:
        found = query(asked, stored, 3, memory=hamming.LEAST)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.left) == 500_000
    assert peak < hamming.LEAST


# --- What is given -----------------------------------------------------------------------------------


def test_numbers_with_a_sign_and_lists_are_the_same_bits() -> None:
    values = crowd(1, 50)
    pairs = told(near_pairs(values, 3))
    for given_as in (values.view(np.int64), values.tolist(), tuple(values.tolist()), values[::1]):
        assert told(near_pairs(given_as, 3)) == pairs
    assert told(near_pairs(np.repeat(values, 2)[::2], 3)) == pairs  # not next to each other in memory


def test_nothing_is_near_nothing() -> None:
    for asked, stored in ([], [1]), ([1], []), ([], []):
        assert told(query(asked, stored, 3)) == []
    assert told(near_pairs([], 3)) == told(near_pairs([1], 3)) == []
    assert clusters([], 3).tolist() == []


@pytest.mark.parametrize(
    "wrong", [[1.5], [None], ["a"], [2**64], np.zeros((2, 2), np.uint64), np.array([1.0]), 7]
)
def test_what_are_no_fingerprints_is_refused_in_one_line(wrong: object) -> None:
    for call in (lambda: query(wrong, [1], 3), lambda: near_pairs(wrong, 3), lambda: clusters(wrong, 3)):
        with pytest.raises(TypeError, match=r"^(queries|simhashes) .*64") as error:
            call()
        assert "\n" not in str(error.value)


def test_wrong_limits_are_refused() -> None:
    for wrong in (8, -1, 2.5, None):
        for call in (lambda k: query([1], [1], k), lambda k: near_pairs([1], k), lambda k: clusters([1], k)):
            with pytest.raises(
                SettingsError, match=r"^max_distance is .*; allowed: a whole number from 0 to 7$"
            ):
                call(wrong)
    with pytest.raises(SettingsError, match=r"^memory is 5; allowed: a number of bytes from 268435456$"):
        query([1], [1], 3, memory=5)
