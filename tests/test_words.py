"""The contract of dedup.page.words: the fast way to split a text and the plain one agree on every text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup.page import words
from dedup.page.words import BATCH, fold_text, split_tokens
from tests.support.pages.oracle import steady

#: Letters, separators and marks, of scripts with and without spaces, and what vanishes, folds or decomposes oddly.
ODD = "aZ09_ /-.=<>'\n\x1c\x85\xa0\xa9\xad\xb2\xb4\xbd\xdf\u0130\u0301\u0307\u0338\u0345\u05d0\u05b0\u0915\u093f"
ODDER = "\u1100\u1161\u11a8\u200b\u200d\u2019\u2100\u212a\u2260\u3000\u3001\u304b\u3099\u6f22\ufb03\ufdfa\ufe0f\uff0f\uff9e"
TEXTS = st.text(st.sampled_from(ODD + ODDER + "\U00010400\U0001f600\U0001d400"), max_size=30) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
)


def split_words(text: str) -> list[str]:
    """The tokens of a text, the fast way."""
    return fold_text(text).decode().split("\0")[:-1]


@steady(8)
@given(TEXTS)
@example("Don\u2019t \u2013 stop")
@example("a\u2028b")
def test_both_ways_to_split_a_text_agree(text: str) -> None:
    assert split_words(text) == split_tokens(text.replace("/", " "))


def test_an_ascii_letter_with_marks_folds_alike() -> None:
    marks = [chr(code) for code in range(0x300, 0x346)]
    text = " ".join(f"{letter}{a}{b}" for letter in "AEIJKSTZ" for a in marks for b in marks)
    assert split_words(text) == split_tokens(text)


def test_words_are_the_same_once_they_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "remembered", {})
    monkeypatch.setattr(words, "REMEMBERED", 3)
    text = "ä b ö c ü d ß e é ä"
    assert split_words(text) == split_words(text) == split_tokens(text)
    assert len(words.remembered) <= 3


def test_a_word_without_end_is_cut() -> None:
    assert list(map(len, split_words("ä" * (BATCH + 5)))) == [BATCH, 5]
    assert len(split_words("\ufdfa" * 600_000)) < words.MAX_TOKENS + 5 * BATCH
