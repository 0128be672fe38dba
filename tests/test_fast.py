"""What is compiled finds what Python finds, on every page, and survives pages that are made to hurt."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from dedup.fingerprint.features import Features
from dedup.fingerprint.numbers import Maker
from dedup.fingerprint.sketch import Sketcher
from dedup.page import walk
from dedup.page.html import parse
from dedup.page.ignore import NOTHING
from tests.support.pages.apps import APPS, app
from tests.support.pages.languages import LANGUAGES, page, paragraphs
from tests.support.pages.oracle import LINKS, steady
from tests.support.pages.shops import Shop

pytest.importorskip("shingleback_fast")

URL = "http://example.org/docs/page.html"
TAGS = [
    "a",
    "article",
    "area",
    "aside",
    "base",
    "b",
    "br",
    "footer",
    "form",
    "h1",
    "header",
    "img",
    "link",
    "main",
    "menu",
    "nav",
    "noscript",
    "p",
    "script",
    "section",
    "style",
    "svg",
    "template",
    "textarea",
    "title",
    "xmp",
]
NAMES = ["href", "src", "rel", "role", "type", "class"]
VALUES = LINKS | st.sampled_from(
    ["navigation", " Search ", "canonical", "x", "application/json", "/a?tok=9f86d081884c7d65"]
)
TEXTS = st.text(
    st.sampled_from("aZ9_ /-\n\x01\xa0\u2019\u2013\xad\u200bäß漢\ufdfa\U0001f600\u0301&<>"), max_size=12
)
PIECES = st.one_of(
    TEXTS,
    st.sampled_from(TAGS).map("</{}>".format),
    st.sampled_from(["<!-- x -->", "<?php y ?>", "<![CDATA[z]]>", "&amp;", "&#1;", "&nbsp;", "<p<q>", "<a"]),
    st.builds(
        lambda tag, attributes: f"<{tag}{''.join(attributes)}>",
        st.sampled_from(TAGS),
        st.lists(st.builds(' {}="{}"'.format, st.sampled_from(NAMES), VALUES), max_size=3),
    ),
)


def both(root: etree._Element, keep_urls: bool = True) -> list[dict[str, object]]:
    """What the two walks find, as far as anybody can tell them apart."""
    found = []
    for each in (walk.walk_fast, walk.walk_in_python):
        fields = each(root, URL, keep_urls, NOTHING)._asdict()
        found.append(fields | {"words": _with_marks(fields.pop("words"), fields.pop("marks"))})
    return found


def _with_marks(words: list[str], marks: list[object]) -> list[object]:
    """Each word with the part that it belongs to: marks where no word is in between make no difference."""
    rest, part = iter(marks), walk.Part.TEXT
    told: list[object] = []
    for word in words:
        if word != walk.MARK:
            told.append((word, part))
        elif isinstance(mark := next(rest), walk.Part):
            part = mark
        else:
            told.append((mark, part))
    assert next(rest, None) is None
    return told


@steady(800)
@given(st.lists(PIECES, max_size=25).map("".join), st.booleans())
@example(
    '<header>a<section role=search>b<header>c</header></section>d</header><a role="banner" href=x>e', True
)
@example(
    "<template><link rel=canonical href=x></template><base href=/b/><a href=y><base href=/c/><a href=z>", True
)
def test_both_walks_find_the_same_in_any_markup(markup: str, keep_urls: bool) -> None:
    fast, slow = both(parse(markup), keep_urls)
    assert fast == slow


def test_both_walks_find_the_same_on_pages_of_sites() -> None:
    rng = random.Random(5)
    shop = Shop("shop.example.org", 300, 150, seed=3)
    pages = [shop.page(number, rng).html for number in range(5)]
    pages += [page(paragraphs(language, 1)) for language in LANGUAGES]
    pages += [app(kind, 1, rng) for kind in APPS]
    for each in pages:
        fast, slow = both(parse(each))
        assert fast == slow


@pytest.mark.parametrize(
    "markup",
    [
        pytest.param("<div>" * 100_000 + "deep", id="deep"),
        pytest.param("<p>" + "x" * 3_000_000 + "ä" * 300_000, id="one long word"),
        pytest.param("<p>" + "a " * 500_000, id="many words"),
        pytest.param("<p>" + "\ufdfa" * 200_000, id="characters that unfold"),
        pytest.param("word<!-- x -->" * 20_000, id="comments"),
        pytest.param("<p>&#1;&#xD800;&bogus;&#0;\ufffe\uffff" * 5_000, id="entities"),
        pytest.param("<?x y>" * 20_000, id="instructions"),
        pytest.param("<nav><h1><section><a href=x>" * 5_000, id="structure"),
        pytest.param("<a href=/x?tok=9f86d081884c7d65>" * 20_000, id="links"),
        pytest.param("\x00\x01<a href='\x01'>\x01 \x01\x01 b", id="control characters"),
        pytest.param("", id="nothing"),
    ],
)
def test_hostile_pages_are_walked_alike(markup: str) -> None:
    fast, slow = both(parse(markup))
    assert fast == slow


# --- Numbers ------------------------------------------------------------------------------------------

TOKENS = st.lists(
    st.sampled_from(["", "a", "b", "/", "/a", "ä", "漢", "x" * 60, "nul\0"]) | st.text(max_size=3),
    max_size=40,
)


@steady(500)
@given(
    TOKENS,
    TOKENS,
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from([1, 2, 6, 50]),
    st.sampled_from([64, 512]),
    st.booleans(),
)
def test_both_ways_make_the_same_numbers(
    tokens: list[str], data: list[str], cuts: list[int], size: int, slots: int, keep_urls: bool
) -> None:
    ends = sorted(min(cut, len(tokens)) for cut in cuts)
    chrome = tuple(zip(ends[::2], ends[1::2], strict=False))
    maker = Maker(Features(), Sketcher(slots, 2, key=7), keep_urls, size, least_words=10, seed=len(cuts))
    words = [token.encode("utf-8", "replace").decode() for token in tokens]
    fast, slow = maker.make_fast(words, data, chrome), maker.make_in_numpy(words, data, chrome)
    assert repr(fast) == repr(slow)
    assert fast.least.tobytes() == slow.least.tobytes()
    assert fast.marked.tobytes() == slow.marked.tobytes()


def test_many_tokens_have_the_same_numbers() -> None:
    rng = random.Random(1)
    tokens = [rng.choice("/abc") + str(rng.getrandbits(14)) for _ in range(100_000)]
    maker = Maker(Features(), Sketcher(512, 2), True, 6, least_words=30, seed=0)
    chrome = ((0, 10), (500, 90_000))
    fast, slow = maker.make_fast(tokens, (), chrome), maker.make_in_numpy(tokens, (), chrome)
    assert (fast.words, fast.left, fast.simhash, fast.different) == (
        slow.words,
        slow.left,
        slow.simhash,
        slow.different,
    )
    assert fast.least.tobytes() + fast.marked.tobytes() == slow.least.tobytes() + slow.marked.tobytes()
