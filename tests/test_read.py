"""The one way in which a page's tokens are obtained: what is read, what is not, and when a tree is asked for."""

import pytest
from lxml import etree

from dedup.page.html import Page, parse
from dedup.page.limits import MAX_TAGS, MAX_TOKENS, UNREADABLE, unreadable
from dedup.page.read import read, read_body, read_text, tokens_as_page

#: A text for each reason for which none is read.
REFUSED = {
    "large": "<br>" * (MAX_TAGS + 1),
    "hostile": "<p" + "".join(f" a{number}" for number in range(40_000)) + ">",
    "binary": "\x00\x01 words",
    "undecodable": "\ufffd" * 9 + " words",
}


def refuse(text: str) -> etree._Element:
    raise AssertionError("it must not be parsed")


def test_a_page_has_its_tokens_and_no_reason() -> None:
    assert read("<p>One <a href='/two'>two</a>") == Page(["one", "/two", "two"], 1, None)


@pytest.mark.parametrize("reason", REFUSED)
def test_a_text_beyond_the_limits_is_never_parsed(reason: str) -> None:
    assert read(REFUSED[reason], tree=refuse) == Page([], 0, reason)


def test_every_reason_of_the_limits_is_listed() -> None:
    assert set(map(unreadable, REFUSED.values())) == set(REFUSED) == UNREADABLE


@pytest.mark.parametrize("text", ["", " ", "<script>words</script>", "<!-- words -->"])
def test_a_page_without_tokens_is_empty(text: str) -> None:
    assert read(text) == Page([], 0, "empty")


def test_a_page_that_is_nested_too_deeply_has_the_tokens_above_and_is_truncated() -> None:
    assert read("<p>top" + "<div>" * 5_000 + "deep") == Page(["top"], 0, "truncated")


def test_links_are_resolved_against_the_page_and_left_out_on_request() -> None:
    text = "<a href='b.html'>b</a>"
    assert read(text, "http://example.org/a/").tokens == ["/b.html", "b"]
    assert read(text, "http://example.org/a/", keep_urls=False) == Page(["b"], 1)


def test_a_tree_that_is_there_is_read_and_left_as_it_is() -> None:
    root = parse("<p>One <a href='/two'>two</a>")
    before = etree.tostring(root)
    assert read("its text", tree=lambda _: root) == read("<p>One <a href='/two'>two</a>")
    assert etree.tostring(root) == before


# --- What is not HTML -----------------------------------------------------------------------------------


def test_of_a_text_nothing_is_taken_for_markup() -> None:
    text = "if a<b and c>d: <!-- see --> [the docs](http://example.org/docs/) &amp; <script>x</script>"
    words = [
        "if",
        "a",
        "b",
        "and",
        "c",
        "d",
        "see",
        "the",
        "docs",
        "http",
        "example",
        "org",
        "docs",
        "amp",
        "script",
        "x",
        "script",
    ]
    assert read_text(text).tokens == words
    assert read_text("<" * (MAX_TAGS + 1) + "word").tokens == ["word"]


@pytest.mark.parametrize("reason", ["binary", "undecodable"])
def test_a_text_that_is_none_is_refused(reason: str) -> None:
    assert read_text(REFUSED[reason]) == Page([], 0, reason)


def test_an_empty_text_is_empty_and_a_huge_one_is_large_or_truncated() -> None:
    assert [read_text(text).reason for text in ("", " \n", "...", "a" * 4_000_001)] == ["empty"] * 3 + [
        "large"
    ]
    assert tokens_as_page(["word"] * (MAX_TOKENS + 1)).reason == "truncated"


@pytest.mark.parametrize(
    "text", ['{"a": ["one", 2, {"token": "x"}], "url": "http://x.org/"}', '\ufeff ["one", 2]']
)
def test_of_json_its_strings_and_numbers_are_read(text: str) -> None:
    assert read_text(text, is_json=True).tokens == ["one", "2"]


def test_what_is_called_json_and_is_none_is_text() -> None:
    assert read_text("{'one': 2} {}", is_json=True).tokens == ["one", "2"]


def test_a_text_has_an_address_and_a_place() -> None:
    page = read_text("words", "http://example.org/docs/storm-notes.md")
    assert (page.address, page.place) == (("storm", "notes"), "/docs/storm-notes.md")


def test_another_body_is_its_digest() -> None:
    assert read_body(b"%PDF").body == read_body(b"%PDF").body != read_body(b"%PDG").body
    assert read_body(b"").reason == "empty"
