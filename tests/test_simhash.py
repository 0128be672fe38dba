"""The simhash against a loop over bits, values that must never change, and what it is good for."""

import math
import os
import random
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.fingerprint.detector import Detector, Features
from dedup.fingerprint.shingles import hash_tokens
from dedup.fingerprint.simhash import BITS, distance, distances, log_weights, simhash

steady = settings(derandomize=True, database=None, deadline=None)

HASH = st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.sampled_from([2**63, 2**64 - 1])


def oracle(hashes: list[int], weights: list[int]) -> int | None:
    """Charikar's fingerprint, bit by bit."""
    if not hashes:
        return None
    fingerprint = 0
    for bit in range(64):
        component = sum(
            weight if number >> bit & 1 else -weight for number, weight in zip(hashes, weights, strict=True)
        )
        if component > 0:
            fingerprint |= 1 << bit
    return fingerprint


def array(numbers: list[int]) -> npt.NDArray[np.uint64]:
    return np.array(numbers, np.uint64)


# --- The algorithm ------------------------------------------------------------------------------------


@steady
@given(st.lists(st.tuples(HASH, st.integers(1, 2**40)), max_size=40))
def test_each_bit_is_the_sign_of_its_weighted_sum(features: list[tuple[int, int]]) -> None:
    hashes, weights = [number for number, _ in features], [weight for _, weight in features]
    assert simhash(array(hashes), np.array(weights, np.int64)) == oracle(hashes, weights)


@steady
@given(st.lists(HASH, max_size=40))
def test_without_weights_every_feature_weighs_one(hashes: list[int]) -> None:
    assert simhash(array(hashes)) == oracle(hashes, [1] * len(hashes))


@steady
@given(st.lists(HASH, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_the_order_of_features_does_not_matter(hashes: list[int], rng: random.Random) -> None:
    shuffled = rng.sample(hashes, len(hashes))
    assert simhash(array(hashes)) == simhash(array(shuffled))


@steady
@given(HASH)
def test_ties_give_0(number: int) -> None:
    assert simhash(array([number, number ^ (2**64 - 1)])) == 0
    assert simhash(array([number, 0, number ^ (2**64 - 1), 2**64 - 1]), np.array([7, 5, 7, 5])) == 0


def test_no_features_have_no_fingerprint() -> None:
    assert simhash(array([])) is None
    assert simhash(array([]), np.array([], np.int64)) is None


@pytest.mark.parametrize("number", [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF])
def test_one_feature_is_its_own_fingerprint(number: int) -> None:
    assert simhash(array([number])) == number


def test_bit_63_of_the_hashes_is_bit_63_of_the_fingerprint() -> None:
    assert simhash(array([1 << 63, 1 << 63, 1])) == 1 << 63


# --- Distance -----------------------------------------------------------------------------------------


@steady
@given(st.lists(HASH, max_size=20), HASH)
def test_distance_counts_the_bits_that_differ(fingerprints: list[int], query: int) -> None:
    expected = [sum(a >> bit & 1 != query >> bit & 1 for bit in range(64)) for a in fingerprints]
    assert [distance(number, query) for number in fingerprints] == expected
    assert distances(array(fingerprints), query).tolist() == expected


def test_the_greatest_distance_is_64() -> None:
    assert distance(0, 2**64 - 1) == distances(array([0]), 2**64 - 1)[0] == BITS


# --- Weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 4095])
def test_log_weights_are_1_plus_the_logarithm_in_1024ths(count: int) -> None:
    assert abs(log_weights(np.array([count]))[0] / 1024 - (1 + math.log(count))) <= 0.5 / 1024


@pytest.mark.parametrize("count", [4096, 100_000, 2**40])
def test_log_weights_end_at_4095(count: int) -> None:
    assert log_weights(np.array([count])) == log_weights(np.array([4095]))


def test_log_weights_never_shrink() -> None:
    assert (np.diff(log_weights(np.arange(1, 5000))) >= 0).all()


# --- Pages --------------------------------------------------------------------------------------------

STORM = """<html><head><title>Apache Storm</title></head><body><h1>Why use Storm?</h1>
<p>Apache Storm is a free and open source distributed realtime computation system. It makes it easy to
reliably process unbounded streams of data, doing for realtime processing what Hadoop did for batch.</p>
<a href="/releases/current/index.html">Read the documentation</a></body></html>"""
ZEITUNG = """<title>Straße gesperrt</title><p>In Zürich ist die Straße über die Brücke gesperrt. 東京の天気は晴れ。
Погода в Москве: дождь. <img src="wetter.png"> สภาพอากาศ वर्षा <b>12 °C</b></p>"""
GOLDEN = {
    "STORM log": (STORM, "log", "c7360cc537e3d879"),
    "STORM count": (STORM, "count", "87160c8537e3d879"),
    "STORM one": (STORM, "one", "c73604e137e3d858"),
    "ZEITUNG log": (ZEITUNG, "log", "6f48a6ea4c94fd8f"),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_fingerprints_of_two_pages(name: str) -> None:
    page, weights, fingerprint = GOLDEN[name]
    detector = Detector(min_tokens=1, features=Features(weights=weights))
    assert detector.fingerprint(page, "http://example.org/").hex == fingerprint


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_fingerprints_are_the_same_in_every_process(hash_seed: str) -> None:
    page, weights, fingerprint = GOLDEN["ZEITUNG log"]
    program = (
        "import sys; from dedup.fingerprint.detector import Detector, Features;"
        "detector = Detector(min_tokens=1, features=Features(weights=sys.argv[2]));"
        "print(detector.fingerprint(sys.argv[1]).hex)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, page, weights],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == fingerprint


VOCABULARY = [f"word{number}" for number in range(5000)]


def text(rng: random.Random, length: int = 300) -> list[str]:
    """Words with Zipf's frequencies, as in a language."""
    return rng.choices(VOCABULARY, [1 / rank for rank in range(1, 5001)], k=length)


def fingerprint(words: list[str], weights: str = "log") -> int | None:
    return Detector(features=Features(weights=weights)).fingerprint("<p>" + " ".join(words)).simhash


@pytest.mark.parametrize("weights", ["log", "count", "one"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_page_with_two_words_changed_is_near(weights: str, seed: int) -> None:
    rng = random.Random(seed)
    found = []
    for _ in range(30):
        page = text(rng)
        other = page.copy()
        for place in rng.sample(range(len(page)), 2):
            other[place] = "changed"
        found.append(distance(fingerprint(page, weights), fingerprint(other, weights)))
    assert sum(found) / len(found) <= 3


@pytest.mark.parametrize("seed", [1, 2])
def test_pages_of_other_words_are_far(seed: int) -> None:
    rng = random.Random(seed)
    found = [
        distance(
            *(fingerprint([f"{side}{word}" for word in text(rng)]) for side in ("a", "b")),
        )
        for _ in range(30)
    ]
    assert 28 <= sum(found) / len(found) <= 36  # half of the bits
    assert min(found) >= 16


@pytest.mark.parametrize("seed", [1, 2])
def test_pages_of_one_language_about_other_things_are_far(seed: int) -> None:
    rng = random.Random(seed)
    found = [distance(fingerprint(text(rng)), fingerprint(text(rng))) for _ in range(30)]
    assert sum(found) / len(found) >= 16


@pytest.mark.parametrize("seed", [1, 2])
def test_one_word_100_000_times_does_not_drown_a_page_by_log_weights(seed: int) -> None:
    rng = random.Random(seed)
    pages = [text(rng), text(rng)]
    drowned = [fingerprint([*page, *["spam"] * 100_000]) for page in pages]
    assert distance(fingerprint(pages[0]), drowned[0]) < 16
    assert distance(*drowned) >= 10


def test_one_word_100_000_times_is_all_there_is_by_its_count() -> None:
    page = [*text(random.Random(1)), *["spam"] * 100_000]
    assert fingerprint(page, "count") == hash_tokens(["spam"]).item()
