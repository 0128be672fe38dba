"""Octets become tags, texts and comments as the HTML standard says; `test_fast` and `test_noise_lines` compare the compiled form."""

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dedup.page.tokenizer import Kind, tokenize
from tests.support.pages.apps import APPS, app
from tests.support.pages.languages import LANGUAGES, page, paragraphs
from tests.support.pages.shops import Shop
from tests.test_html import growth, trick

#: A folder of the public tests of tokenizers, html5lib-tests/tokenizer, if there is one.
CONFORMANCE = os.environ.get("HTML5LIB_TOKENIZER", "")


def said(markup: str) -> list[str]:
    """The events of a page in short; comments as they are written."""
    octets = markup.encode("utf-8", "surrogatepass")
    found = []
    for kind, start, end, text, attributes, closes in tokenize(octets):
        if kind is Kind.COMMENT:
            found.append(octets[start:end].decode())
        else:
            values = "".join(f" {name}={value}" for name, value in attributes.items())
            found.append(f"{['', '<', '</'][kind]}{text}{values}{'/' * closes}")
    return found


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
        ("1 < 2 <3 </ 4> </><", ["1 < 2 <3 ", "</ 4>", " ", "<"]),
        ("a</", ["a</"]),
        ("<a\0\r\nb>\0", ["<a\ufffd b=", "\0"]),
        # Comments
        ("<!--a--><!--><!---><!----!>b", ["<!--a-->", "<!-->", "<!--->", "<!----!>", "b"]),
        ("<!--a--!-->b<!-- <!-- --><!--c--", ["<!--a--!-->", "b", "<!-- <!-- -->", "<!--c--"]),
        ("<!--a--!", ["<!--a--!"]),
        ("<?php x?><!x></ x><![CDATA[x]]>", ["<?php x?>", "<!x>", "</ x>", "<![CDATA[x]]>"]),
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
        ("<svg><![CDATA[<b>&lt;]]></svg><![CDATA[x]]>", ["<svg", "<b>&lt;", "</svg", "<![CDATA[x]]>"]),
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
        # Sections are as long as in XHTML
        ("<![CDATA[a > <!-- b --> ]]>c<![CDATA[>]", ["<![CDATA[a > <!-- b --> ]]>", "c", "<![CDATA[>]"]),
        ("<!DOCTYPE HTML>a<!doctype public 'b>'", ["<!DOCTYPE HTML>", "a", "<!doctype public 'b>", "'"]),
    ],
)
def test_markup(markup: str, events: list[str]) -> None:
    assert said(markup) == events


def test_extents() -> None:
    octets = "ä<p>é</><svg><![CDATA[x]]></svg><!-- ü --><title>a</title>".encode()
    events = list(tokenize(octets))
    left = b"".join(
        octets[one.end : other.start] for one, other in zip(events, [*events[1:], events[-1]], strict=True)
    )
    assert left == b"</><![CDATA[]]>"


def test_octets_that_are_no_characters_are_replaced() -> None:
    assert [event.text for event in tokenize(b"a\xff<b\xe4>\xed\xa0\x80")] == ["a\ufffd", "b\ufffd", "\ud800"]


PIECES = [
    "<", "</", ">", "/", "=", '"', "'", "&", "&amp", "&not", "&notit;", "&#", "&#x", "&#128;", "&#0", "41",
    ";", " ", "\n", "\r", "\r\n", "\0", "a", "B", "é", "漢", "\ud800", "<!--", "-->", "--!>", "--", "-",
    "!", "<!", "<?", "<![CDATA[", "]]>", "<svg>", "<svg/>", "<SVG ", "</svg>", "<math>", "</math>", "<mi>",
    "<desc>", "<foreignObject>", "</foreignobject>", "<title>", "</title>", "<style>", "</style",
    "<script>", "</script>", "<script ", "</script", "<textarea>", "<xmp>", "</xmp >", "<plaintext>",
    "<p>", "</p>", "<!doctype", " html", " public", "system", "=a", "a=b",
]  # fmt: skip


def pages() -> Iterator[str]:
    rng = random.Random(5)
    shop = Shop("shop.example.org", 300, 150, seed=3)
    yield from (shop.page(number, rng).html for number in range(5))
    yield from (page(paragraphs(language, 1)) for language in LANGUAGES)
    yield from (app(kind, 1, rng) for kind in APPS)


@pytest.mark.parametrize(
    ("size", "make"),
    [
        trick("tags", 5_000, lambda n: b"<b>x" * n),
        trick("tags never closed", 5_000, lambda n: b"<a " * n),
        trick("quotes never closed", 5_000, lambda n: b"<a b='" * n + b'<a b="' * n),
        trick("attributes", 5_000, lambda n: b"<p" + b"".join(b" a%x='v'" % i for i in range(n)) + b">"),
        trick("slashes in a tag", 50_000, lambda n: b"<p" + b"/ " * n),
        trick("equals signs in a tag", 20_000, lambda n: b"<p " + b"= " * n),
        trick("comments never closed", 20_000, lambda n: b"<!--" * n),
        trick("dashes", 100_000, lambda n: b"<!--" + b"-" * n),
        trick("brackets", 100_000, lambda n: b"<svg><![CDATA[" + b"]" * n),
        trick("sections", 10_000, lambda n: b"<svg>" + b"<![CDATA[" * n),
        trick("ampersands", 20_000, lambda n: b"&a" * n),
        trick("digits of a reference", 100_000, lambda n: b"&#" + b"9" * n),
        trick("the name of a reference", 100_000, lambda n: b"&" + b"a" * n),
        trick("names of references in a value", 5_000, lambda n: b"<a b='" + b"&ltx" * n + b"'>"),
        trick("titles never closed", 10_000, lambda n: b"<title>" + b"</titl" * n),
        trick(
            "scripts in a comment of a script", 5_000, lambda n: b"<script><!--" + b"<script></script>" * n
        ),
        trick("SVG in SVG", 10_000, lambda n: b"<svg><desc>" * n + b"</mi>" * n),
        trick("less-than signs", 50_000, lambda n: b"< <" * n),
        trick("doctypes", 5_000, lambda n: b"<!doctype " + b"html public '" * n),
    ],
)
def test_time_is_linear(size: int, make: Callable[[int], bytes]) -> None:
    assert growth(lambda page: list(tokenize(page)), make, size) < 10


def unescaped(value: Any) -> Any:
    """A value of a test in which characters are told by their numbers."""
    if isinstance(value, str):
        return re.sub(r"\\u([0-9A-Fa-f]{4})", lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, dict):
        return {unescaped(name): unescaped(each) for name, each in value.items()}
    return [unescaped(each) for each in value] if isinstance(value, list) else value


def tokens(markup: str) -> list[list[Any]]:
    """Events as the public tests write them, without what a comment says."""
    found: list[list[Any]] = []
    for kind, _, _, text, attributes, closes in tokenize(markup.encode("utf-8", "surrogatepass")):
        if kind is Kind.TEXT and found and found[-1][0] == "Character":
            found[-1][1] += text
        elif kind is Kind.START:
            found.append(["StartTag", text, attributes, *[True] * closes])
        else:
            found.append([{Kind.TEXT: "Character", Kind.END: "EndTag", Kind.COMMENT: "Comment"}[kind], text])
    return found


@pytest.mark.skipif(not CONFORMANCE, reason="HTML5LIB_TOKENIZER names no folder of html5lib's tests")
def test_the_public_tests_pass() -> None:
    count = 0
    for file in Path(CONFORMANCE).glob("*.test"):
        for test in json.loads(file.read_text()).get("tests", []):
            if test.get("doubleEscaped"):
                test |= {"input": unescaped(test["input"]), "output": unescaped(test["output"])}
            if "Data state" in test.get("initialStates", ["Data state"]) and "<![CDATA[" not in test["input"]:
                count += 1
                expected = [
                    ["Comment", ""] if token[0] in ("Comment", "DOCTYPE") else token
                    for token in test["output"]
                ]
                assert tokens(test["input"]) == expected, test["description"]
    assert count > 5_000
