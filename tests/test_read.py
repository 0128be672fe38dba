"""The one way in which a page's tokens are obtained: what is read, what is not, and when a tree is asked for."""

import subprocess
import sys

import pytest
from lxml import etree

from dedup.page.html import Page, _parse, parse
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
    text = "<p>One <a href='/two'>two</a>"
    assert read(text) == Page(["one", "/two", "two"], 1, None, markup=text)


@pytest.mark.parametrize("reason", REFUSED)
def test_a_text_beyond_the_limits_is_never_parsed(reason: str) -> None:
    assert read(REFUSED[reason], tree=refuse) == Page([], 0, reason)


def test_every_reason_of_the_limits_is_listed() -> None:
    assert set(map(unreadable, REFUSED.values())) == set(REFUSED) == UNREADABLE


def test_links_are_resolved_or_left_out() -> None:
    text = "<a href='b.html'>b</a>"
    assert read(text, "http://example.org/a/").tokens == ["/b.html", "b"]
    assert read(text, "http://example.org/a/", keep_urls=False) == Page(["b"], 1, markup=text)


def test_a_tree_that_is_there_is_read_and_left_as_it_is() -> None:
    text = "<p>One <a href='/two'>two</a>"
    root = parse(text)
    before = etree.tostring(root)
    assert read(text, tree=lambda _: root) == read(text)
    assert etree.tostring(root) == before


# --- Cut off is cut off ---------------------------------------------------------------------------------

#: Reads a page in forks while there are so many megabytes left, and tells how many of its words were found.
STARVED = """
import os, resource, sys
from dedup import Detector
detector = Detector()
detector.fingerprint("<p>\xe4 words" * 50, "http://e.org/")
page = "".join(f"<p>w{number} \xe4{number % 50}" for number in range(60_000))
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
for megabytes in sys.argv[1:]:
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    try:
        resource.setrlimit(resource.RLIMIT_AS, (used + int(megabytes) * 1_000_000, resource.RLIM_INFINITY))
        found = detector.read(page)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(len(found.tokens), found.reason, flush=True)
    finally:
        os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is only limited there")
def test_a_parser_without_memory_gives_no_page() -> None:
    command = [sys.executable, "-c", STARVED, *map(str, (10, 14, 18, 24, 500))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [line.split() for line in done.stdout.splitlines()]
    assert found.pop() == ["120000", "None"]
    # What is printed of no page at all is that memory was too short for Python, too.
    assert {reason for _, reason in found} <= {"truncated", "internal_error", "empty"}
    assert any(0 < int(tokens) < 120_000 for tokens, _ in found)


@pytest.mark.parametrize("end", ["<a href='x", '<a href="x', "<p clas", "<p ", "</p", "<a href=x"])
def test_a_page_that_ends_within_a_tag_is_truncated(end: str) -> None:
    text = "<p>Some words" + end
    assert read(text) == Page(["some", "words"], 0, "truncated", markup=text)


@pytest.mark.parametrize(
    "end",
    [
        "", "</html>", "</body></html> <!-- x --> <!-- y -->", "<!-- never", "<!-- never --",
        "<script>var x", "<script>\x01", "<style>", "<textarea>", "<xmp>", "<svg><![CDATA[ x", "<table>",
        "<", " &am", "\x00", " \n",
    ],
)  # fmt: skip
def test_a_page_that_ends_elsewhere_is_whole(end: str) -> None:
    text = "<p>" + "Some words " * 20 + end
    page = read(text)
    assert (page.tokens[:2], page.reason) == (["some", "words"], None)
    assert etree.tostring(parse(text).getroottree()) == etree.tostring(_parse(text).getroottree())


def test_a_second_opinion_on_a_part_is_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    # The html.parser of newer releases of Python finds nothing in such a comment, as browsers do.
    monkeypatch.setattr("bs4.BeautifulSoup", lambda text, parser: text.replace("<!--", "<p>"))
    assert read("<!-- never closed " + "words " * 200).reason is None
    assert read("<!-- never closed " + "words " * 2_000).reason == "truncated"


# --- It never raises ------------------------------------------------------------------------------------


def fail(_: str) -> etree._Element:
    raise RuntimeError("no tree")


def test_an_unreadable_page_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert read("<p>words", "http://e.org/\ud83d", tree=fail) == Page([], 0, "internal_error")
    assert "The page 'http://e.org/\\ud83d' can't be read" in caplog.text
    assert "no tree" in caplog.text
    read("<p>words", "http://me:secret@e.org/", tree=fail)
    assert "The page 'http://e.org/' can't be read" in caplog.text


def test_half_an_emoji_in_a_url_raises_nothing() -> None:
    page = read('<p>word<script type="application/ld+json">{"url": "/caf\\ud83d"}</script>', "http://e.org/")
    assert (page.reason, page.data[0]) == (None, "/caf\\ud83d")


# --- What is not HTML -----------------------------------------------------------------------------------


def test_of_a_text_nothing_is_taken_for_markup() -> None:
    text = "if a<b and c>d: <!-- see --> [the docs](http://example.org/docs/) &amp; <script>x</script>"
    words = "if a b and c d see the docs http example org docs amp script x script"
    assert " ".join(read_text(text).tokens) == words
    assert read_text("<" * (MAX_TAGS + 1) + "word").tokens == ["word"]


@pytest.mark.parametrize("reason", ["binary", "undecodable"])
def test_a_text_that_is_none_is_refused(reason: str) -> None:
    assert read_text(REFUSED[reason]) == Page([], 0, reason)


@pytest.mark.parametrize(
    "text", ['{"a": ["one", 2, {"token": "9f86d081"}], "url": "http://x.org/"}', '\ufeff ["one", 2]']
)
def test_of_json_its_strings_and_numbers_are_read(text: str) -> None:
    assert read_text(text, is_json=True).tokens == ["one", "2"]


def test_what_is_called_json_and_is_none_is_text() -> None:
    assert read_text("{'one': 2} {}", is_json=True).tokens == ["one", "2"]


def test_a_text_has_a_place() -> None:
    page = read_text("words", "http://example.org/docs/storm-notes.md")
    assert page.place == "/docs/storm-notes.md"


def test_another_body_is_its_digest() -> None:
    assert read_body(b"%PDF").body == read_body(b"%PDF").body != read_body(b"%PDG").body
    assert read_body(b"").reason == "empty"


def test_empty_and_huge_texts() -> None:
    assert [read_text(text).reason for text in ("", " \n", "...", "a" * 4_000_001)] == ["empty"] * 3 + [
        "large"
    ]
    assert tokens_as_page(["word"] * (MAX_TOKENS + 1)).reason == "truncated"
