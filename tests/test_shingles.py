"""Shingles against plain Python sets and tuples; tests/test_detector.py has values that must never change."""

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dedup.fingerprint.shingles import containment, hash_tokens, resemblance, shingle_hashes
from tests.support.fingerprints import array
from tests.support.pages.oracle import steady

WORDS = st.lists(st.sampled_from(["to", "be", "or", "not", "that", "is"]), max_size=12)
SETS = st.frozensets(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=30)
SENTENCE = ["the", "crawler", "reads", "/docs/a.html", "each", "Straße", "漢", "page", "once"]


def runs(words: list[str] | str, size: int) -> list[Any]:
    """The shingles of a list of words, as tuples."""
    count = max(1, len(words) - size + 1) if words else 0
    return [tuple(words[start : start + size]) for start in range(count)]


# --- Resemblance, containment -------------------------------------------------------------------------


@steady()
@given(SETS, SETS)
@example(frozenset(), frozenset())
@example(frozenset(), frozenset({1}))
@example(frozenset({1}), frozenset())
def test_resemblance_is_common_elements_by_all_elements(a: frozenset[int], b: frozenset[int]) -> None:
    assert resemblance(array(a), array(b)) == (len(a & b) / len(a | b) if a | b else 1.0)


@steady()
@given(SETS, SETS)
@example(frozenset(), frozenset())
@example(frozenset(), frozenset({1}))
@example(frozenset({1}), frozenset())
def test_containment_is_common_elements_by_those_of_the_first(a: frozenset[int], b: frozenset[int]) -> None:
    assert containment(array(a), array(b)) == (len(a & b) / len(a) if a else 1.0)


@steady()
@given(st.lists(st.integers(0, 9), max_size=30), st.lists(st.integers(0, 9), max_size=30))
def test_repeats_do_not_count(a: list[int], b: list[int]) -> None:
    assert resemblance(array(a), array(b)) == resemblance(array(set(a)), array(set(b)))
    assert containment(array(a), array(b)) == containment(array(set(a)), array(set(b)))


# --- Shingles -----------------------------------------------------------------------------------------


@steady()
@given(WORDS, WORDS, st.integers(1, 8))
def test_hashes_are_equal_where_runs_are(a: list[str], b: list[str], size: int) -> None:
    hashes = [shingle_hashes(hash_tokens(words), size).tolist() for words in (a, b)]
    pairs = set(zip(hashes[0] + hashes[1], runs(a, size) + runs(b, size), strict=True))
    assert len({h for h, _ in pairs}) == len({run for _, run in pairs}) == len(pairs)


@steady()
@given(st.text("aé漢\U0001f600 ", max_size=12), st.text("aé漢\U0001f600 ", max_size=12), st.integers(1, 8))
def test_shingles_of_a_string_are_runs_of_its_characters(a: str, b: str, size: int) -> None:
    either, both = {*runs(a, size)} | {*runs(b, size)}, {*runs(a, size)} & {*runs(b, size)}
    hashes = [shingle_hashes(hash_tokens(text), size) for text in (a, b)]
    assert resemblance(*hashes) == (len(both) / len(either) if either else 1.0)


# --- Hashes -------------------------------------------------------------------------------------------


def test_a_seed_changes_every_hash() -> None:
    assert not np.isin(hash_tokens(SENTENCE, seed=1), hash_tokens(SENTENCE)).any()
