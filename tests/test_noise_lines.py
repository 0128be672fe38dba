"""A page's lines hold all that anybody could see of it, and are the same in Python as compiled."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dedup.filter.noise.lines
import dedup.page.tokenizer
from dedup.filter.noise.lines import Line, lines_of
from tests.support.pages.oracle import steady
from tests.test_tokenizer import PIECES, pages

URL = "http://e.org/view/a.html?id=7"
Read = Callable[..., list[Line]]


def in_python(markup: str, url: str = URL, *, marks_like: bool = False) -> list[Line]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.filter.noise.lines, "fast", None)
        patch.setattr(dedup.page.tokenizer, "fast", None)
        return lines_of(markup, url, marks_like=marks_like)


def compiled(markup: str, url: str = URL, *, marks_like: bool = False) -> list[Line]:
    pytest.importorskip("dedup.fast")
    return lines_of(markup, url, marks_like=marks_like)


both = pytest.mark.parametrize("read", [in_python, compiled])


@both
@pytest.mark.parametrize(
    ("markup", "lines"),
    [
        ("<p>a<!-- b --><p>c", ["p0|<p a", "p1|<p c"]),
        ("<p title=it's>a<p title='>'>b", ["p0|<p  title= it ' s <> a", "p1|<p  title= > <> b"]),
        ("<p>a<b title='c", ["p0|<p a"]),  # a tag that never ends is not there
        ("<p a=1 A=2>", ["p0|<p  a= 1 <>"]),
        ("<textarea><p>&lt;</textarea>", ["|<textarea < p > < </textarea"]),
        ("<script>a &lt; b</script>c<pre> d <script> e</script>", ["|<script a & lt ; b c", "pre0|<pre   d   <script e"]),
        ("<p>?a=1&copy=2<a href='?a=1&copy=2'>", ["p0|<p ? a = 1 © = 2 <a  href= ? a = 1 & copy = 2 <>"]),
        ("<!DOCTYPE html><p>0123456789abcdef-=", ["|< ! DOCTYPE html >", "p0|<p 0123456789 abcdef - ="]),
        ("<p>1,234 12:30pm 3: 37 4,5678 IMG_1001 a1-b2 37\u4ef6 9f0a", ["p0|<p 1,234 12:30 pm 3 : 37 4 , 5678 IMG _ 1001 a1 - b2 37 \u4ef6 9f0a"]),
        ("<p>lamp-front-view-3f9a DuqOA_5v92-cZ75jGDj3= IMG_1001_1699999999", ["p0|<p lamp - front - view - 3f9a DuqOA_5v92-cZ75jGDj3= IMG _ 1001 _ 1699999999"]),
        ("<![CDATA[> <!-- x --> ]]>", ["|< ! [ CDATA [ > < ! - - x - - > ] ] >"]),
        ("<![CDATA[x]]><?y?>", ["|< ! [ CDATA [ x ] ] > < ? y ? >"]),
        ("<link rel='x canonical' href=/a><meta property=og:url content=/a><link rel=x>", ["|<link  rel= x <>"]),
        ("<div class='a b9'><div class=a></div></div><div class='a b9'>", ["div.ab|<div  class= a b9 <> <| <div  class= a <>", "div.ab01|<div  class= a b9 <>"]),
        ("<div class=a>b<p>c</div><div class=a>d<p>e<p>f</div>", ["div.a|<div  class= a <> b <| <p c", "div.a|<div  class= a <> d <| <p e <| <p f"]),
        ("<ul><li>a<p>b<li>c<ul><li>d<li>e</ul>", ["ul0|<ul", "ul0/li|<li a <| <p b", "ul0/li|<li c", "ul0/li/ul0|<ul", "ul0/li/ul0/li|<li d", "ul0/li/ul0/li|<li e"]),
        ("<table><tr><td>a<p>b<td>c<tr><td>d", ["table0|<table", "table0/tr|<tr <| <td a <| <p b <| <td c", "table0/tr|<tr <| <td d"]),
        ("<dl><dt>a</dt><dd>b</dd><dt>c<dd>d</dl>", ["dl0|<dl", "dl0/dt|<dt a <| <dd b", "dl0/dt|<dt c <| <dd d"]),
        ("<div>b<p>c</div><div>d<p>e</div>", ["div0|<div b", "div0/p0|<p c", "div1|<div d", "div1/p0|<p e"]),
        ("<a href=a.html?id=7#x1>é漢 a\u0301", ["|<a  href= @ x1 <> é漢 a \u0301"]),
        ("<a href=http://e.org/view/a.html?id=7&b=1>", ["|<a  href= @ & b = 1 <>"]),
    ],
)  # fmt: skip
def test_lines_hold_what_can_be_seen(read: Read, markup: str, lines: list[str]) -> None:
    assert [f"{line.place}|{' '.join(line.tokens)}" for line in read(markup)] == lines


@both
def test_a_page_may_have_no_address(read: Read) -> None:
    assert read("<p title='a b'>c", "") == [Line("p", ("<p", " title=", "a", "b", "<>", "c"), "p0")]


@both
def test_links_to_addresses_that_differ_in_numbers_are_marked(read: Read) -> None:
    (line,) = read("<a href=/view/a.html?id=٨ title=7>", marks_like=True)
    assert line.tokens == ("<a", " href=", "<@1", "٨", " title=", "7", "<>")


MARKUP = [
    *PIECES, "<li>", "<ul class=b1>", "<ul class='b 1'>", "</ul>", "<pre>", "</pre>", "<td>", "<tr>", "<br>",
    "<hr>", "<b>", "</b>", "<meta property=og:url>", "<link rel=canonical ", "word ", "0123456789abcdeF", "٣",
    "\x1c", "\xa0", "x=1-", f"<a href='{URL}'>", f"<a href='{URL}&amp;b#c'>", "<a href='?id=7#d'>",
    "<a href='#d'>", "<a href='a.html?id=8'>",
]  # fmt: skip


@steady(20)
@given(st.lists(st.sampled_from(MARKUP), max_size=30).map("".join), st.booleans())
def test_lines_are_found_alike(markup: str, marks_like: bool) -> None:
    found = [[tuple(line) for line in read(markup, marks_like=marks_like)] for read in (in_python, compiled)]
    assert found[0] == found[1]


def test_lines_of_sites_are_found_alike() -> None:
    for page in pages():
        assert [tuple(line) for line in in_python(page)] == [tuple(line) for line in compiled(page)]
