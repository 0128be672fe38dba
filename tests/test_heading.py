"""What a page is called by its heading and its address."""

import pytest

from dedup.page.heading import MAX_WORDS, address_words, place, shared
from dedup.page.html import extract, parse


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/a/Mock-Source.html", ("mock", "source")),
        ("http://example.org/a/caf%C3%A9_list/", ("café", "list")),
        ("http://example.org/2026/11/", ("11",)), ("http://example.org/a/v2.html?page=source", ("2",)),
        ("http://[broken/x", ()), ("", ()),
    ],
)  # fmt: skip
def test_the_words_of_an_address_are_those_of_its_last_part(url: str, words: tuple[str, ...]) -> None:
    assert address_words(url) == words


def test_an_endless_address_has_an_end() -> None:
    assert (
        len(address_words("http://example.org/" + "-".join(f"word{n}x" for n in range(10_000)))) == MAX_WORDS
    )


@pytest.mark.parametrize("version", ["1.2.1", "v2.0", "current", "latest", "3.x", "main"])
def test_versions_of_a_page_are_in_one_place(version: str) -> None:
    assert place(f"http://example.org/docs/{version}/Bolts.html") == "/docs/*/Bolts.html"


@pytest.mark.parametrize(
    "url",
    ["http://example.org/p?name=bolts", "http://example.org/17", "http://example.org/", "http://[x/bolts"],
)
def test_an_address_that_many_pages_share_is_no_place(url: str) -> None:
    assert place(url) == ""


def test_shared_words_are_those_by_which_both_call_a_page() -> None:
    assert shared(("mocksource", "apache"), ("class", "mock", "source")) == ("mocksource",)


def test_the_heading_is_the_title_and_the_first_h1() -> None:
    page = extract(
        parse("<title>Shop</title><h1>Red <b>shoe</b></h1><p>text<h1>Other</h1>"), "http://a/red.html"
    )
    assert page.heading == ("shop", "red", "shoe")
    assert page.names == ("red",)
