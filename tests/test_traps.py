"""Pages that are kept because of their own content, and those of them that look like a trap."""

import pytest

from dedup.filter import Counts
from dedup.filter.traps import LEAST, Traps
from dedup.fingerprint.evidence import Evidence
from dedup.index.verdict import Near

KEPT = "http://example.org/x?i=0"
NEW_WORDS = Near(KEPT, Evidence(matching=30, new=30, gone=0))


def told(near: Near, pages: int, url: str = "http://example.org/x?i={}") -> Counts:
    """What is counted of so many pages."""
    counts = Counts()
    traps = Traps(counts)
    for number in range(1, pages + 1):
        traps.add(url.format(number), near)
    return counts


def test_many_pages_of_one_pattern_that_differ_in_a_few_words_look_like_a_trap() -> None:
    assert told(NEW_WORDS, LEAST - 1) == {"dedup/own_content": LEAST - 1}
    assert told(NEW_WORDS, 300) == {
        "dedup/own_content": 300,
        "dedup/trap": "http://example.org/x?i=*: 300 pages that differ in about 30 shingles each",
    }


def test_pages_that_are_called_otherwise_are_other_pages() -> None:
    evidence = NEW_WORDS.evidence
    assert evidence
    assert told(Near(KEPT, evidence._replace(other_name=True)), 300) == {"dedup/own_content": 300}


def test_pages_of_a_host_that_is_not_known_yet_are_counted_apart() -> None:
    assert told(Near(KEPT, None), 7) == {"dedup/own_content": 7, "dedup/own_content/host_unknown": 7}


def test_urls_without_a_pattern_are_no_trap() -> None:
    assert told(NEW_WORDS, 300, "http://example.org/x") == {"dedup/own_content": 300}


def test_what_a_url_holds_is_fit_to_be_printed() -> None:
    trap = told(NEW_WORDS, LEAST, "http://example.org/\x1b[2J?i={}")["dedup/trap"]
    assert trap.isascii()
    assert trap.isprintable()


def test_short_pages_that_are_word_for_word_alike_are_told_by_their_folder(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counts = Counts()
    traps = Traps(counts)
    for number in range(1, 121):
        traps.short(f"http://example.org/calendar/{number}/", ["nothing", "here"])
        traps.short(f"http://example.org/news/{number}", ["short", f"{number}"])
        traps.short(f"http://example.org/{number}", ["nothing", "here"])
    trap = "http://example.org/calendar/*: 1 new of 120, the others are short and word for word alike"
    assert counts == {"dedup/trap": trap}
    assert len(caplog.messages) == 2
    assert trap in caplog.text
