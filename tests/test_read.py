"""The one way in which a page's tokens are obtained: what is read, what is not, and when a tree is asked for."""

import pytest
from lxml import etree

from dedup.page.html import Page, parse
from dedup.page.limits import MAX_TAGS, UNREADABLE, unreadable
from dedup.page.read import read

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
