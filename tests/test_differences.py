"""What differs between two token sequences: few edits, in bounded time."""

import time
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dedup.history.differences import edits

tokens = st.lists(st.sampled_from("abcd"), max_size=30)


@given(tokens, tokens)
def test_edits_turn_one_sequence_into_the_other(old: list[str], new: list[str]) -> None:
    turned, at, changed = [], 0, 0
    for edit in edits(old, new):
        turned += old[at : edit.start] + edit.tokens
        at = edit.end
        changed += edit.end - edit.start
    assert turned + old[at:] == new
    assert not edits(old, old)


def test_edits_are_few_and_take_bounded_time() -> None:
    chance = Random(1)
    old = [f"w{chance.randrange(2_000)}" for _ in range(20_000)]
    new = [token for token in old if chance.random() > 0.01]
    started = time.process_time()
    assert sum(edit.end - edit.start - len(edit.tokens) for edit in edits(old, new)) == len(old) - len(new)
    edits(["a", "b"] * 200_000, ["b", "a", "c"] * 200_000)
    assert time.process_time() - started < 5
