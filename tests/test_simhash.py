"""The simhash against a loop over bits, and what it is good for."""

import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.simhash import distance, distances, simhash
from tests.support.fingerprints import array
from tests.support.pages.oracle import steady

HASH = st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.sampled_from([2**63, 2**64 - 1])


def oracle(hashes: list[int]) -> int | None:
    """Charikar's fingerprint, bit by bit."""
    if not hashes:
        return None
    fingerprint = 0
    for bit in range(64):
        component = sum(1 if number >> bit & 1 else -1 for number in hashes)
        if component > 0:
            fingerprint |= 1 << bit
    return fingerprint


# --- The algorithm ------------------------------------------------------------------------------------


@steady()
@given(st.lists(HASH, max_size=40))
def test_each_bit_is_the_sign_of_its_sum(hashes: list[int]) -> None:
    assert simhash(array(hashes)) == oracle(hashes)


# --- Distance -----------------------------------------------------------------------------------------


@steady()
@given(st.lists(HASH, max_size=20), HASH)
def test_distance_counts_the_bits_that_differ(fingerprints: list[int], query: int) -> None:
    expected = [sum(a >> bit & 1 != query >> bit & 1 for bit in range(64)) for a in fingerprints]
    assert [distance(number, query) for number in fingerprints] == expected
    assert distances(array(fingerprints), query).tolist() == expected


# --- Pages --------------------------------------------------------------------------------------------

ZEITUNG = """<title>Straße gesperrt</title><p>In Zürich ist die Straße über die Brücke gesperrt. 東京の天気は晴れ。
Погода в Москве: дождь. <img src="wetter.png"> สภาพอากาศ वर्षा <b>12 °C</b></p>"""


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_fingerprints_are_the_same_in_every_process(hash_seed: str) -> None:
    program = (
        "import sys; from dedup.fingerprint.detector import Detector;"
        "print(Detector(min_tokens=1).fingerprint(sys.argv[1]).hex)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, ZEITUNG],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "46c26aecacd4f92d"


VOCABULARY = [f"word{number}" for number in range(5000)]


def text(rng: random.Random, length: int = 300) -> list[str]:
    """Words with Zipf's frequencies, as in a language."""
    return rng.choices(VOCABULARY, [1 / rank for rank in range(1, 5001)], k=length)


def fingerprint(words: list[str]) -> int | None:
    return Detector().fingerprint("<p>" + " ".join(words)).simhash


@pytest.mark.parametrize("seed", [1, 2])
def test_a_page_with_two_words_changed_is_near(seed: int) -> None:
    rng = random.Random(seed)
    found = []
    for _ in range(30):
        page = text(rng)
        other = page.copy()
        for place in rng.sample(range(len(page)), 2):
            other[place] = "changed"
        found.append(distance(fingerprint(page), fingerprint(other)))
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
