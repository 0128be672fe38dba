"""Shingles against plain Python sets and tuples, and values that must never change."""

import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.fingerprint.shingles import containment, hash_tokens, mix, resemblance, shingle_hashes

steady = settings(derandomize=True, database=None, deadline=None)

WORDS = st.lists(st.sampled_from(["to", "be", "or", "not", "that", "is"]), max_size=12)
SETS = st.frozensets(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=30)
SENTENCE = ["the", "crawler", "reads", "/docs/a.html", "each", "Straße", "漢", "page", "once"]


def array(numbers: Any) -> npt.NDArray[np.uint64]:
    return np.array(list(numbers), np.uint64)


def runs(words: list[str] | str, size: int) -> list[Any]:
    """The shingles of a list of words, as tuples."""
    count = max(1, len(words) - size + 1) if words else 0
    return [tuple(words[start : start + size]) for start in range(count)]


# --- Resemblance, containment -------------------------------------------------------------------------


@steady
@given(SETS, SETS)
def test_resemblance_is_common_elements_by_all_elements(a: frozenset[int], b: frozenset[int]) -> None:
    assert resemblance(array(a), array(b)) == (len(a & b) / len(a | b) if a | b else 1.0)


@steady
@given(SETS, SETS)
def test_containment_is_common_elements_by_those_of_the_first(a: frozenset[int], b: frozenset[int]) -> None:
    assert containment(array(a), array(b)) == (len(a & b) / len(a) if a else 1.0)


@steady
@given(st.lists(st.integers(0, 9), max_size=30), st.lists(st.integers(0, 9), max_size=30))
def test_repeats_do_not_count(a: list[int], b: list[int]) -> None:
    assert resemblance(array(a), array(b)) == resemblance(array(set(a)), array(set(b)))
    assert containment(array(a), array(b)) == containment(array(set(a)), array(set(b)))


@steady
@given(SETS, SETS)
def test_resemblance_is_symmetric(a: frozenset[int], b: frozenset[int]) -> None:
    assert resemblance(array(a), array(b)) == resemblance(array(b), array(a))


@pytest.mark.parametrize(
    ("a", "b", "alike", "contained"),
    [
        ([], [], 1.0, 1.0),
        ([], [1], 0.0, 1.0),
        ([1], [], 0.0, 0.0),
        ([1], [1], 1.0, 1.0),
        ([1], [2], 0.0, 0.0),
    ],
)
def test_empty_and_single_sets(a: list[int], b: list[int], alike: float, contained: float) -> None:
    assert (resemblance(array(a), array(b)), containment(array(a), array(b))) == (alike, contained)


# --- Shingles -----------------------------------------------------------------------------------------


@steady
@given(WORDS, WORDS, st.integers(1, 8))
def test_hashes_are_equal_where_the_runs_of_words_are_and_nowhere_else(
    a: list[str], b: list[str], size: int
) -> None:
    hashes = [shingle_hashes(hash_tokens(words), size).tolist() for words in (a, b)]
    pairs = set(zip(hashes[0] + hashes[1], runs(a, size) + runs(b, size), strict=True))
    assert len({h for h, _ in pairs}) == len({run for _, run in pairs}) == len(pairs)


@pytest.mark.parametrize("size", range(1, 9))
def test_a_page_of_n_words_has_this_many_shingles(size: int) -> None:
    for length in range(10):
        expected = 0 if length == 0 else max(1, length - size + 1)
        assert shingle_hashes(array(range(length)), size).shape == (expected,)


def test_the_resemblance_of_two_sentences_is_that_of_their_sets_of_runs() -> None:
    rng = random.Random(2)
    for size in (1, 2, 3, 6):
        a = rng.choices(["a", "b", "c", "d"], k=40)
        b = a[:20] + rng.choices(["a", "b", "c", "d"], k=20)
        exact = len({*runs(a, size)} & {*runs(b, size)}) / len({*runs(a, size)} | {*runs(b, size)})
        assert resemblance(*(shingle_hashes(hash_tokens(words), size) for words in (a, b))) == exact


@pytest.mark.parametrize("size", [2, 6])
def test_the_order_of_words_matters(size: int) -> None:
    words = ["a", "b", "c", "d", "e", "f"]
    hashes = [shingle_hashes(hash_tokens(order), size) for order in (words, words[::-1])]
    assert resemblance(*hashes) == 0


def test_a_page_shorter_than_a_shingle_is_like_itself_only() -> None:
    short = {
        tuple(words): shingle_hashes(hash_tokens(words), 6).item()
        for words in (["a"], ["a", "b"], ["b", "a"])
    }
    assert len(set(short.values())) == 3


@pytest.mark.parametrize("size", [1, 3, 6, 20])
def test_the_hashes_of_the_tokens_are_left_as_they_are(size: int) -> None:
    hashes = hash_tokens(SENTENCE)
    before = hashes.copy()
    shingle_hashes(hashes, size)
    assert (hashes == before).all()


@pytest.mark.parametrize("size", [1, 2, 6])
def test_every_bit_of_the_hashes_is_set_in_half_of_them(size: int) -> None:
    hashes = shingle_hashes(hash_tokens([f"word{number}" for number in range(4000)]), size)
    shares = np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert abs(shares - 0.5).max() < 0.04  # five standard errors


@steady
@given(st.text("aé漢\U0001f600 ", max_size=12), st.text("aé漢\U0001f600 ", max_size=12), st.integers(1, 8))
def test_shingles_of_a_string_are_runs_of_its_characters(a: str, b: str, size: int) -> None:
    either, both = {*runs(a, size)} | {*runs(b, size)}, {*runs(a, size)} & {*runs(b, size)}
    hashes = [shingle_hashes(hash_tokens(text), size) for text in (a, b)]
    assert resemblance(*hashes) == (len(both) / len(either) if either else 1.0)


# --- Hashes -------------------------------------------------------------------------------------------


def test_every_hash_has_its_token() -> None:
    tokens = [str(number) for number in range(10_000)]
    assert len(np.unique(hash_tokens(tokens))) == 10_000


def test_a_seed_changes_every_hash() -> None:
    assert not np.isin(hash_tokens(SENTENCE, seed=1), hash_tokens(SENTENCE)).any()


def test_mix_gives_different_numbers_different_hashes() -> None:
    rng = random.Random(3)
    samples = (
        {rng.getrandbits(64) for _ in range(50_000)} | {1 << bit for bit in range(64)} | set(range(50_000))
    )
    assert len(np.unique(mix(array(samples)))) == len(samples)


def test_mix_can_be_undone() -> None:
    def unshift(number: int, shift: int) -> int:
        original = number
        for _ in range(64 // shift):
            original = number ^ (original >> shift)
        return original

    def unmix(number: int) -> int:
        number = unshift(number, 31) * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
        number = unshift(number, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
        return unshift(number, 30)

    rng = random.Random(4)
    samples = [0, 1, 2**63, 2**64 - 1] + [rng.getrandbits(64) for _ in range(1000)]
    assert [unmix(number) for number in mix(array(samples)).tolist()] == samples


GOLDEN = {
    1: (
        "cb1283631cf33d7d 0ed919a2642107e0 107f62389a1d3a4e 8755d2d475ee40c9 3367356bf148d47e "
        "3ca977a6b5ee5d71 f1fcefecbd882f20 f20db1776345c402 589b38dad1f027d9"
    ),
    3: (
        "eb5579a9381c1c83 7ac16606cf409a89 d3da8295ce7d37c9 123a84c0a2289da3 ee9785d25f0984f4 "
        "6dd093f28c2393b7 744bbb913f121894"
    ),
    6: "029d139421917a4f 3671f323ff6e45ce afb6e5d78cd0c73e bbe763cf3a2a3da3",
}


@pytest.mark.parametrize("size", GOLDEN)
def test_golden_hashes_of_a_sentence(size: int) -> None:
    hashes = shingle_hashes(hash_tokens(SENTENCE), size)
    assert " ".join(f"{number:016x}" for number in hashes.tolist()) == GOLDEN[size]


def test_golden_hashes_of_characters() -> None:
    hashes = shingle_hashes(hash_tokens("Straße 漢"), 6)
    assert " ".join(f"{number:016x}" for number in hashes.tolist()) == (
        "65cce73976a504f5 af356d08664f224c caeac82bf725a18e"
    )


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_hashes_are_the_same_in_every_process(hash_seed: str) -> None:
    program = (
        "from dedup.fingerprint.shingles import hash_tokens, shingle_hashes;"
        f"print(*(f'{{n:016x}}' for n in shingle_hashes(hash_tokens({SENTENCE!a}), 6).tolist()))"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == GOLDEN[6]
