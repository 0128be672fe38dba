"""Octets become tags, texts and comments as the HTML standard says, and the same in Python as compiled."""

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dedup.page.tokenizer
from dedup.page.tokenizer import Content, Event, Kind, tokenize
from tests.support.counting import MOST, grows
from tests.support.pages.apps import APPS, app
from tests.support.pages.languages import LANGUAGES, page, paragraphs
from tests.support.pages.oracle import steady
from tests.support.pages.shops import Shop
from tests.test_html import growth

#: A folder of the public tests of tokenizers, html5lib-tests/tokenizer, if there is one.
CONFORMANCE = os.environ.get("HTML5LIB_TOKENIZER", "")
#: What we don't do: a script that is said to be the text of another element than ``script``.
EXCEPTIONS = {"Script data state: lowercase endtags"}

Tokenize = Callable[..., Iterator[Event]]


def in_python(
    markup: bytes | str, content: Content = Content.DATA, name: str = "", *, sections: bool = False
) -> Iterator[Event]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.page.tokenizer, "fast", None)
        return tokenize(markup, content, name, sections=sections)


def compiled(
    markup: bytes | str, content: Content = Content.DATA, name: str = "", *, sections: bool = False
) -> Iterator[Event]:
    pytest.importorskip("dedup.fast")
    return tokenize(markup, content, name, sections=sections)


both = pytest.mark.parametrize("tokenize", [in_python, compiled])


def said(event: Event) -> str:
    """An event in short."""
    attributes = "".join(f" {name}={value}" for name, value in event.attributes.items())
    signs = ["", "<", "</", "!", "?"]
    return f"{signs[event.kind]}{event.text}{attributes}{'/' * event.flag}"


@both
@pytest.mark.parametrize(
    ("markup", "events"),
    [
        # Tags
        ("<P Class=A class=b ID>x</P x=y>", ["<p class=A id=", "x", "</p"]),
        ("<a/><a b=/><a b/><a b='c'/><a / >", ["<a/", "<a b=/", "<a b=/", "<a b=c/", "<a"]),
        ("<a =b c = 'd'e=\"f\"g = h>", ["<a =b= c=d e=f g=h"]),
        ("<a b=>c", ["<a b=", "c"]),
        ("<a b='>'>c<d", ["<a b=>", "c"]),
        ("a<b c='", ["a"]),
        ("1 < 2 <3 </ 4> </><", ["1 < 2 <3 ", "! 4", " ", "<"]),
        ("a</", ["a</"]),
        ("<a\0\r\nb>\0", ["<a\ufffd b=", "\0"]),
        # Comments
        ("<!--a--><!--><!---><!----!>b", ["!a", "!", "!", "!", "b"]),
        ("<!--a--!-->b<!-- <!-- --><!--c--", ["!a--!", "b", "! <!-- ", "!c"]),
        ("<!--a--!", ["!a"]),
        ("<?php x?><!x></ x><![CDATA[x]]>", ["!?php x?", "!x", "! x", "![CDATA[x]]"]),
        # Texts of elements
        ("<title>a <b> &lt;</b></title >", ["<title", "a <b> <</b>", "</title"]),
        ("<style><b></style", ["<style", "<b></style"]),
        ("<textarea></title></TEXTAREA/>", ["<textarea", "</title>", "</textarea"]),
        ("<script>a<!--<script></script>--></script>", ["<script", "a<!--<script></script>-->", "</script"]),
        ("<script><!--></script><p>", ["<script", "<!-->", "</script", "<p"]),
        ("<script><!-- </script><p>", ["<script", "<!-- ", "</script", "<p"]),
        ("<script><script></script><p>", ["<script", "<script>", "</script", "<p"]),
        ("<plaintext></plaintext>&lt;", ["<plaintext", "</plaintext>&lt;"]),
        ("<xmp>&lt;\0", ["<xmp", "&lt;\ufffd"]),
        # References
        ("&lt &ltx &notit; &notin; &nix; &amp;lt;", ["< <x ¬it; ∉ &nix; &lt;"]),
        ("<a b='&lt &ltx &lt= &lt; &notit;'>", ["<a b=< &ltx &lt= < &notit;"]),
        (
            "&#65;&#x41&#X41;&#0;&#x80;&#x81;&#xD800;&#x110000;&#9999999999;&#;&#x;",
            ["AAA\ufffd€\x81\ufffd\ufffd\ufffd&#;&#x;"],
        ),
        ("&#13;\r\r\n&NotEqualTilde;&", ["\r\n\n\u2242\u0338&"]),
        # SVG and MathML
        ("<svg><![CDATA[<b>&lt;]]></svg><![CDATA[x]]>", ["<svg", "<b>&lt;", "</svg", "![CDATA[x]]"]),
        ("<svg><style><g></style></svg>", ["<svg", "<style", "<g", "</style", "</svg"]),
        (
            "<svg><title><style><b></style></title><![CDATA[x",
            ["<svg", "<title", "<style", "<b>", "</style", "</title", "x"],
        ),
        ("<svg/><style><b>", ["<svg/", "<style", "<b>"]),
        ("<svg><p><style><b>", ["<svg", "<p", "<style", "<b>"]),
        (
            "<math><mi><title><b></title></mi><title><b>",
            ["<math", "<mi", "<title", "<b>", "</title", "</mi", "<title", "<b"],
        ),
        # Doctypes
        ("<!DOCTYPE HTML>", ["?html"]),
        ("<!doctype html public 'a'\"b\"c>", ["?html public=a system=b"]),
        ("<!doctype html SYSTEM 'a>", ["?html system=a/"]),
        ("<!doctype html x><!doctype>", ["?html/", "?/"]),
        ("<!doctype html public 'a'", ["?html public=a/"]),
    ],
)
def test_markup_is_read_as_the_standard_says(tokenize: Tokenize, markup: str, events: list[str]) -> None:
    assert [said(event) for event in tokenize(markup)] == events


@both
def test_events_stand_one_after_another(tokenize: Tokenize) -> None:
    octets = "ä<p>é</><svg><![CDATA[x]]></svg><!-- ü --><title>a</title>".encode()
    events = list(tokenize(octets))
    left = b"".join(
        octets[one.end : other.start] for one, other in zip(events, [*events[1:], events[-1]], strict=True)
    )
    assert left == b"</><![CDATA[]]>"


@both
def test_a_section_of_html_may_be_as_long_as_in_xhtml(tokenize: Tokenize) -> None:
    events = tokenize("<![CDATA[a > <!-- b --> ]]>c<![CDATA[>]", sections=True)
    assert [said(event) for event in events] == ["![CDATA[a > <!-- b --> ", "c", "![CDATA[>]"]


@both
def test_octets_that_are_no_characters_are_replaced(tokenize: Tokenize) -> None:
    assert [event.text for event in tokenize(b"a\xff<b\xe4>\xed\xa0\x80")] == ["a\ufffd", "b\ufffd", "\ud800"]


# --- In Python as compiled ----------------------------------------------------------------------------

PIECES = [
    "<", "</", ">", "/", "=", '"', "'", "&", "&amp", "&not", "&notit;", "&#", "&#x", "&#128;", "&#0", "41",
    ";", " ", "\n", "\r", "\r\n", "\0", "a", "B", "é", "漢", "\ud800", "<!--", "-->", "--!>", "--", "-", "!",
    "<!", "<?", "<![CDATA[", "]]>", "<svg>", "<svg/>", "<SVG ", "</svg>", "<math>", "</math>", "<mi>",
    "<desc>", "<foreignObject>", "</foreignobject>", "<title>", "</title>", "<style>", "</style",
    "<script>", "</script>", "<script ", "</script", "<textarea>", "<xmp>", "</xmp >", "<plaintext>", "<p>",
    "</p>", "<!doctype", " html", " public", "system", "=a", "a=b",
]  # fmt: skip
BEGINNINGS = st.sampled_from(
    [
        *[(Content.DATA, "")] * 4,
        *((Content.RCDATA, "title"), (Content.RAWTEXT, "xmp"), (Content.RAWTEXT, "")),
        *((Content.SCRIPT, "script"), (Content.PLAINTEXT, ""), (Content.CDATA, "")),
    ]
)


@steady(4)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), BEGINNINGS, st.booleans())
def test_markup_is_read_alike(markup: str, beginning: tuple[Content, str], sections: bool) -> None:
    read = (tokenize(markup, *beginning, sections=sections) for tokenize in (in_python, compiled))
    assert list(next(read)) == list(next(read))


def pages() -> Iterator[str]:
    rng = random.Random(5)
    shop = Shop("shop.example.org", 300, 150, seed=3)
    yield from (shop.page(number, rng).html for number in range(5))
    yield from (page(paragraphs(language, 1)) for language in LANGUAGES)
    yield from (app(kind, 1, rng) for kind in APPS)


def test_pages_of_sites_are_read_alike() -> None:
    for each in pages():
        assert list(in_python(each)) == list(compiled(each))


@pytest.mark.slow
def test_pages_that_were_damaged_are_read_alike() -> None:
    rng, whole = random.Random(7), [each.encode() for each in pages()]
    for _ in range(100_000):
        page = rng.choice(whole)
        start = rng.randrange(len(page))
        octets = bytearray(page[start : start + 400])
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(octets))
            octets[at : at + rng.randrange(3)] = rng.choice(PIECES).encode("utf-8", "surrogatepass")
        assert list(in_python(bytes(octets))) == list(compiled(bytes(octets)))


# --- Hostile pages ------------------------------------------------------------------------------------


#: What a page may be full of, and how many of it.
TRICKS: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "tags": (5_000, lambda n: b"<b>x" * n),
    "tags never closed": (5_000, lambda n: b"<a " * n),
    "quotes never closed": (5_000, lambda n: b"<a b='" * n + b'<a b="' * n),
    "attributes": (5_000, lambda n: b"<p" + b"".join(b" a%x='v'" % i for i in range(n)) + b">"),
    "slashes in a tag": (50_000, lambda n: b"<p" + b"/ " * n),
    "equals signs in a tag": (20_000, lambda n: b"<p " + b"= " * n),
    "comments never closed": (20_000, lambda n: b"<!--" * n),
    "dashes": (100_000, lambda n: b"<!--" + b"-" * n),
    "brackets": (100_000, lambda n: b"<svg><![CDATA[" + b"]" * n),
    "sections": (10_000, lambda n: b"<svg>" + b"<![CDATA[" * n),
    "ampersands": (20_000, lambda n: b"&a" * n),
    "digits of a reference": (100_000, lambda n: b"&#" + b"9" * n),
    "the name of a reference": (100_000, lambda n: b"&" + b"a" * n),
    "names of references in a value": (5_000, lambda n: b"<a b='" + b"&ltx" * n + b"'>"),
    "titles never closed": (10_000, lambda n: b"<title>" + b"</titl" * n),
    "scripts in a script": (5_000, lambda n: b"<script><!--" + b"<script></script>" * n),
    "SVG in SVG": (10_000, lambda n: b"<svg><desc>" * n + b"</mi>" * n),
    "less-than signs": (50_000, lambda n: b"< <" * n),
    "doctypes": (5_000, lambda n: b"<!doctype " + b"html public '" * n),
}


def test_no_page_is_read_with_ever_more_calls() -> None:
    for name, (size, make) in TRICKS.items():
        assert grows(lambda page: list(in_python(page)), make, size // 100) <= MOST, name


@pytest.mark.slow
@both
@pytest.mark.parametrize(("size", "make"), TRICKS.values(), ids=TRICKS)
def test_time_grows_with_a_page_full_of(tokenize: Tokenize, size: int, make: Callable[[int], bytes]) -> None:
    assert growth(lambda page: list(tokenize(page)), make, size) < 10


# --- Conformance --------------------------------------------------------------------------------------


def unescaped(value: Any) -> Any:
    """A value of a test in which characters are told by their numbers."""
    if isinstance(value, str):
        return re.sub(r"\\u([0-9A-Fa-f]{4})", lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, dict):
        return {unescaped(name): unescaped(each) for name, each in value.items()}
    return [unescaped(each) for each in value] if isinstance(value, list) else value


def tokens(events: Iterator[Event]) -> list[list[Any]]:
    """Events as the public tests write them."""
    found: list[list[Any]] = []
    for kind, _, _, text, attributes, flag in events:
        if kind is Kind.TEXT and found and found[-1][0] == "Character":
            found[-1][1] += text
        elif kind is Kind.START:
            found.append(["StartTag", text, attributes, *[True] * flag])
        elif kind is Kind.DOCTYPE:
            found.append(
                ["DOCTYPE", text or None, attributes.get("public"), attributes.get("system"), not flag]
            )
        else:
            found.append([{Kind.TEXT: "Character", Kind.END: "EndTag", Kind.COMMENT: "Comment"}[kind], text])
    return found


@pytest.mark.skipif(not CONFORMANCE, reason="HTML5LIB_TOKENIZER names no folder of html5lib's tests")
@both
def test_the_public_tests_of_tokenizers_pass(tokenize: Tokenize) -> None:
    states = {f"{each.name} state": each for each in Content} | {
        "Data state": Content.DATA,
        "Script data state": Content.SCRIPT,
        "CDATA section state": Content.CDATA,
    }
    failed, count = set(), 0
    for file in Path(CONFORMANCE).glob("*.test"):
        for test in json.loads(file.read_text()).get("tests", []):
            if test.get("doubleEscaped"):
                test |= {"input": unescaped(test["input"]), "output": unescaped(test["output"])}
            for state in test.get("initialStates", ["Data state"]):
                count += 1
                if (
                    tokens(tokenize(test["input"], states[state], test.get("lastStartTag", "")))
                    != test["output"]
                ):
                    failed.add(f"{state}: {test['description']}")
    assert count > 6_000
    assert failed == EXCEPTIONS
