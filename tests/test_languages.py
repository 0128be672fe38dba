"""Copies are found and translations are not taken for copies, whatever the script, with spaces and without."""

from itertools import combinations, pairwise

import pytest

from dedup import Detector
from dedup.fingerprint.shingles import resemblance
from dedup.page.read import read
from tests.support import slow
from tests.support.pages.languages import LANGUAGES, edited, page, paragraphs, translated

DETECTOR = Detector()
PAIRS = list(combinations(LANGUAGES, 2))
SEEDS = range(3)
#: Each language and the one after it; the other pairs are slow.
SOME_PAIRS = [pair if pair in pairwise(LANGUAGES) else slow(*pair) for pair in PAIRS]


def compared(a: list[str], b: list[str]) -> tuple[float, float, bool]:
    """The resemblance of two pages, its estimate, and whether they are near-duplicates."""
    one, other = (read(page(texts), "http://example.org/en/page") for texts in (a, b))
    exact = resemblance(DETECTOR.shingles(one), DETECTOR.shingles(other))
    found = DETECTOR.compare(DETECTOR.fingerprint_page(one), DETECTOR.fingerprint_page(other))
    return exact, found.resemblance or 0.0, found.duplicate


def translations(
    language: str, other: str, share: float, seeds: range = range(1)
) -> list[tuple[float, float, bool]]:
    return [
        compared(text, translated(text, other, seed, share))
        for seed, text in ((seed, paragraphs(language, seed)) for seed in seeds)
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_tokens_of_a_language(language: str) -> None:
    [text] = paragraphs(language, 1, count=1)
    space = LANGUAGES[language][1]
    assert read(f"<p>{text}").tokens == (text.split() if space else [a + b for a, b in pairwise(text)])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_copy_with_small_changes_is_a_near_duplicate(language: str) -> None:
    texts = [paragraphs(language, seed) for seed in SEEDS]
    assert all(
        compared(text, edited(language, text, seed))[2] for seed, text in zip(SEEDS, texts, strict=True)
    )


@pytest.mark.parametrize(("language", "other"), SOME_PAIRS)
def test_a_translation_is_never_a_near_duplicate(language: str, other: str) -> None:
    """Although its links, images and numbers are the same."""
    for exact, estimate, duplicate in translations(language, other, 1):
        assert not duplicate
        assert exact < 0.1
        assert estimate < 0.2


@pytest.mark.parametrize(("language", "other"), SOME_PAIRS)
def test_partly_translated_pages(language: str, other: str) -> None:
    for share, expected in ((0.1, True), (0.5, False)):
        [(exact, estimate, duplicate)] = translations(language, other, share)
        assert estimate == pytest.approx(exact, abs=0.12)
        assert (exact >= 0.75) == expected or exact >= 0.7
        assert not duplicate or exact >= 0.65


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_pages_of_a_language_are_no_near_duplicates(language: str) -> None:
    texts = [paragraphs(language, seed) for seed in SEEDS]
    assert not any(compared(a, b)[2] for a, b in combinations(texts, 2))
