"""Samples of shingles: what each promises, against plain Python; and the inverted index over them."""

import random
import statistics
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.sampling import MODULUS, SIZE, THRESHOLD, WINDOW, InvertedIndex, mod_sample, winnow
from dedup.errors import SettingsError
from dedup.fingerprint.shingles import containment, hash_tokens, mix, resemblance, shingle_hashes

steady = settings(derandomize=True, database=None, deadline=None)

NUMBERS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60)
WORDS = st.lists(st.sampled_from("abcdef"), max_size=30)


def array(numbers: list[int] | range) -> npt.NDArray[np.uint64]:
    return np.array(numbers, np.uint64)


def shingles(words: list[str], size: int = SIZE) -> npt.NDArray[np.uint64]:
    return shingle_hashes(hash_tokens(words), size)


def random_words(count: int, rng: random.Random, vocabulary: int = 5000) -> list[str]:
    return [f"word{rng.randrange(vocabulary)}" for _ in range(count)]


# --- 0 mod m ------------------------------------------------------------------------------------------


@steady
@given(NUMBERS, st.integers(1, 9) | st.integers(1, 2**64 - 1))
def test_what_is_kept_is_0_mod_m(numbers: list[int], m: int) -> None:
    expected = [number for number in numbers if mix(array([number])).item() % m == 0]
    assert mod_sample(array(numbers), m).tolist() == expected


@steady
@given(NUMBERS, NUMBERS, st.integers(1, 9))
def test_a_shingle_is_kept_whatever_else_is_on_the_page(a: list[int], b: list[int], m: int) -> None:
    assert mod_sample(array(a + b), m).tolist() == [*mod_sample(array(a), m), *mod_sample(array(b), m)]


REGULAR = {
    "consecutive": range(60_000),
    "multiples of m": range(0, 60_000 * 2520, 2520),
    "never multiples of m": range(1, 60_000 * 2520, 2520),
    "high bits only": range(0, 60_000 << 48, 1 << 48),
}


@cache
def regular(name: str) -> npt.NDArray[np.uint64]:
    if "words" in name:
        return shingles([f"word{number}" for number in range(60_000)], 4 if "4" in name else 1)
    return array(REGULAR[name])


@pytest.mark.parametrize("m", [2, 3, 4, 7, 10, 100])
@pytest.mark.parametrize("numbers", [*REGULAR, "words", "4 words"])
def test_one_in_m_is_kept_however_regular_the_numbers(numbers: str, m: int) -> None:
    """Within five standard errors of a binomial share."""
    kept = len(mod_sample(regular(numbers), m)) / 60_000
    assert abs(kept - 1 / m) < 5 * (1 / m * (1 - 1 / m) / 60_000) ** 0.5


@pytest.mark.parametrize("m", [3, 25])
@pytest.mark.parametrize("common", [0, 30, 150, 270, 300])
def test_shares_of_samples_are_those_of_the_pages_on_average(common: int, m: int) -> None:
    """The mean of 600 errors lies within four standard errors of 0, with no allowance beside."""
    rng = np.random.default_rng([common, m])
    contained, alike = [], []
    for _ in range(600):
        drawn = rng.integers(0, 2**64, 600 - common, np.uint64)
        a, b = drawn[:300], drawn[300 - common :]
        samples = mod_sample(a, m), mod_sample(b, m)
        assert len(samples[0])  # as good as always: (1 - 1/m)^300 is under 1e-5
        contained.append(containment(*samples) - containment(a, b))
        alike.append(resemblance(*samples) - resemblance(a, b))
    for errors in (contained, alike):
        assert abs(statistics.fmean(errors)) <= 4 * statistics.pstdev(errors) / 600**0.5 + 1e-12


@pytest.mark.parametrize("length", [10, 100, 3000])
def test_a_copy_of_any_length_may_lie_in_a_gap_of_0_mod_m_but_not_of_winnowing(length: int) -> None:
    rng = random.Random(length)
    copied = random_words(SIZE - 1, rng)
    while len(copied) < length:
        copied.append(rng.choice("abcdefghijklmnopqrstuvwxyz"))
        if len(mod_sample(shingles(copied[-SIZE:]), MODULUS)):
            copied.pop()  # this word would have ended the gap
    a, b = (shingles(random_words(300, rng) + copied + random_words(300, rng)) for _ in "ab")
    assert containment(shingles(copied), a) == containment(shingles(copied), b) == 1
    assert containment(mod_sample(a, MODULUS), mod_sample(b, MODULUS)) == 0
    assert containment(winnow(a, WINDOW), winnow(b, WINDOW)) > 0


def test_a_short_page_may_have_no_sample() -> None:
    lengths = [len(mod_sample(shingles([f"{name}", "not", "found"]), MODULUS)) for name in range(300)]
    assert 170 < lengths.count(0) < 230  # two of three pages that are one shingle each
    assert len(mod_sample(array([]), MODULUS)) == 0


@pytest.mark.parametrize("m", [0, -3])
def test_m_is_at_least_1(m: int) -> None:
    with pytest.raises(SettingsError, match=f"^m is {m}; allowed: a whole number from 1"):
        mod_sample(array([1]), m)


# --- Winnowing ----------------------------------------------------------------------------------------


def least_of_windows(numbers: list[int], window: int) -> list[int]:
    """Winnowing as the paper tells it: positions of the rightmost least hash of each window."""
    chosen = []
    for start in range(max(1, len(numbers) - window + 1) if numbers else 0):
        some = range(start, min(start + window, len(numbers)))
        least = min(numbers[position] for position in some)
        chosen.append(max(position for position in some if numbers[position] == least))
    return [numbers[position] for position in sorted(set(chosen))]


@steady
@given(NUMBERS | st.lists(st.integers(0, 3), max_size=60), st.integers(1, 70))
def test_what_is_kept_is_the_least_of_each_window(numbers: list[int], window: int) -> None:
    assert winnow(array(numbers), window).tolist() == least_of_windows(numbers, window)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 8, 100, 1999, 2000, 2001, 10**9])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "equal", "two"])
def test_long_pages_and_any_window(order: str, window: int) -> None:
    rng = random.Random(window)
    numbers = [rng.randrange(2 if order == "two" else 2**64) for _ in range(2000)]
    if order in ("ascending", "descending"):
        numbers.sort(reverse=order == "descending")
    elif order == "equal":
        numbers = [7] * 2000
    assert winnow(array(numbers), window).tolist() == least_of_windows(numbers, window)


@steady
@given(WORDS, WORDS, WORDS, WORDS, st.integers(1, 5), st.integers(1, 9), st.data())
def test_a_common_run_of_window_and_shingle_less_one_tokens_is_found(
    before: list[str],
    after: list[str],
    left: list[str],
    right: list[str],
    w: int,
    window: int,
    data: st.DataObject,
) -> None:
    run = data.draw(st.lists(st.sampled_from("abcdef"), min_size=window + w - 1, max_size=window + w + 5))
    a, b = (winnow(shingles(page, w), window) for page in (before + run + after, left + run + right))
    assert set(a.tolist()) & set(b.tolist()) & set(shingles(run, w).tolist())


@steady
@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_no_gap_is_longer_than_the_window(numbers: set[int], rng: random.Random) -> None:
    page = rng.sample(sorted(numbers), len(numbers))
    for window in range(1, len(page) + 1):
        at = [page.index(number) for number in winnow(array(page), window).tolist()]
        assert at[0] < window
        assert at[-1] >= len(page) - window
        assert all(0 < after - before <= window for before, after in pairwise(at))


@pytest.mark.parametrize("window", [1, 2, 5, 20, 100])
def test_two_in_window_and_one_are_kept(window: int) -> None:
    """Section 3.1: the density is 2 / (W + 1); within 2 % for 100,000 random hashes."""
    hashes = mix(array(range(100_000)))
    assert len(winnow(hashes, window)) / 100_000 == pytest.approx(2 / (window + 1), rel=0.02)


def test_the_windows_keep_as_many_as_the_modulus() -> None:
    assert 2 / (WINDOW + 1) == 1 / MODULUS


def test_the_shingles_are_left_as_they_are() -> None:
    page = array([3, 1, 2, 6])
    winnow(page, 2)
    mod_sample(page, 2)
    assert page.tolist() == [3, 1, 2, 6]


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_is_at_least_one_shingle(window: int) -> None:
    with pytest.raises(SettingsError, match=f"^window is {window}; allowed: a whole number from 1"):
        winnow(array([1]), window)


# --- The inverted index -------------------------------------------------------------------------------


def filed(documents: list[tuple[str, list[int]]]) -> InvertedIndex:
    index = InvertedIndex()
    for name, sample in documents:
        index.add(name, array(sample))
    return index


SAMPLES = st.lists(st.integers(0, 12), max_size=8)


@steady
@given(st.lists(st.tuples(st.sampled_from("abcde"), SAMPLES), max_size=8), SAMPLES)
def test_scores_are_shares_of_the_query_best_first(
    documents: list[tuple[str, list[int]]], query: list[int]
) -> None:
    shared = [(name, len(set(query) & set(sample)) / max(1, len(set(query)))) for name, sample in documents]
    best = sorted((match for match in shared if match[1]), key=lambda match: -match[1])  # stable
    assert filed(documents).scores(array(query)) == best


@steady
@given(SAMPLES.filter(bool), SAMPLES)
def test_the_score_is_the_containment_of_the_samples(query: list[int], document: list[int]) -> None:
    exact = containment(array(query), array(document))
    assert filed([("a", document)]).scores(array(query)) == ([("a", exact)] if exact else [])


def test_a_page_without_a_sample_finds_nothing_and_is_never_found() -> None:
    index = filed([("empty", []), ("page", [1, 2, 3])])
    assert index.scores(array([])) == []
    assert index.scores(array([1])) == [("page", 1.0)]


def test_barbers_search_finds_the_edited_copies_and_no_other_page() -> None:
    rng = random.Random(45)
    pages = [random_words(200, rng) for _ in range(50)]
    index = InvertedIndex()
    for number, page in enumerate(pages):
        index.add(f"page {number}", mod_sample(shingles(page), MODULUS))
    for number, page in enumerate(pages):
        edited = ["rt", *page[:100], "edited", *page[101:], "hurrah"]
        matches = index.scores(mod_sample(shingles(edited), MODULUS))
        assert [name for name, score in matches if score > THRESHOLD] == [f"page {number}"]
