"""What differs between two token sequences: few edits, in bounded time."""

import time
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.texts.differences import edits, small_edits

tokens = st.lists(st.sampled_from("abcd"), max_size=30)


@pytest.mark.parametrize("way", [edits, small_edits])
@given(tokens, tokens)
def test_edits_turn_one_sequence_into_the_other(way: Any, old: list[str], new: list[str]) -> None:
    turned, at, changed = [], 0, 0
    for edit in way(old, new):
        turned += old[at : edit.start] + edit.tokens
        at = edit.end
        changed += edit.end - edit.start
    assert turned + old[at:] == new
    assert not way(old, old)


def test_two_edits_near_each_other_are_told_apart() -> None:
    """The price stands beside the date of the day, which is on every page."""
    old, new = (
        f"a lamp for {price} crowns printed on day {day} of May, from our shop to all who ask".split()
        for price, day in ((7, 1), (8, 2))
    )
    assert [(old[edit.start : edit.end], edit.tokens) for edit in small_edits(old, new)] == [
        (["7"], ["8"]),
        (["1"], ["2"]),
    ]


def test_edits_are_few_and_take_bounded_time() -> None:
    chance = Random(1)
    old = [f"w{chance.randrange(2_000)}" for _ in range(20_000)]
    new = [token for token in old if chance.random() > 0.01]
    started = time.process_time()
    assert sum(edit.end - edit.start - len(edit.tokens) for edit in edits(old, new)) == len(old) - len(new)
    edits(["a", "b"] * 200_000, ["b", "a", "c"] * 200_000)
    assert time.process_time() - started < 5
