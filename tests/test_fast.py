"""What is compiled finds what Python finds, on every page, and survives pages that are made to hurt."""

import random
from contextlib import suppress

import numpy as np
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from dedup import compiled
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.features import Features
from dedup.fingerprint.numbers import Maker, Numbers
from dedup.fingerprint.shingles import ascending, hash_tokens, mix
from dedup.fingerprint.signatures import factors_of, signature, signature_in_numpy
from dedup.fingerprint.sketch import WIDTHS, Sketcher
from dedup.page import limits, tokenizer, walk, words
from dedup.page.charset import decode
from dedup.page.flat import ATTRIBUTES
from dedup.page.html import parse
from dedup.page.tokens import Tokens, join, without
from tests.support import slow
from tests.support.pages.apps import APPS, app
from tests.support.pages.languages import LANGUAGES, page, paragraphs
from tests.support.pages.oracle import LINKS, steady
from tests.support.pages.shops import Shop

pytest.importorskip("dedup.fast")

URL = "http://example.org/docs/page.html"
TAGS = [
    "a", "article", "area", "aside", "base", "b", "br", "button", "div", "footer", "form", "h1", "header",
    "iframe", "img", "input", "link", "main", "menu", "meta", "nav", "noscript", "object", "p", "script", "span",
    "section", "style", "svg", "template", "textarea", "title", "xmp",
]  # fmt: skip
NAMES = ["href", "src", "rel", "role", "type", "class", "name", "data-x", "hrefs", "ALT", *ATTRIBUTES]
VALUES = LINKS | st.sampled_from([
    "navigation", " Search ", "canonical", "x", "application/json", "/a?tok=9f86d081884c7d65", "Hidden",
    "submit", "Description", "A & b != c", "/9f86d081884c7d65.png 2x, /b 1x", ",", "url(/a.png)",
    "data:image/png;base64,A", "a\nb", "Qu\xe4lität – !", "{&quot;a&quot;: [1]}", "operator&lt;&lt;",
])  # fmt: skip
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
        st.lists(
            st.builds(' {}="{}"'.format, st.sampled_from(NAMES), VALUES)
            | st.sampled_from(NAMES).map(" {}".format),
            max_size=3,
        ),
    ),
)


def both(root: etree._Element, keep_urls: bool = True, url: str = URL) -> list[dict[str, object]]:
    """What the two walks find, as far as anybody can tell them apart."""
    fast, slow = (each(root, url, keep_urls) for each in (walk.walk_fast, walk.walk_in_python))
    return [each._asdict() | {"breaks": each.tokens.find_breaks()} for each in (fast, slow)]


@steady()
@given(st.lists(PIECES, max_size=25).map("".join), st.booleans())
@example(
    '<header>a<section role=search>b<header>c</header></section>d</header><a role="banner" href=x>e', True
)
@example(
    "<template><link rel=canonical href=x></template><base href=/b/><a href=y><base href=/c/><a href=z>", True
)
@example("<a title>x", True)
@example(
    "<b role=menu>one<i role=x>two</i><b>three</b></b>!<nav role=form><span role=search>?<p>four</span></nav>",
    True,
)
@example("<script>1<p>2</script><style><b></style><div>-<br>\xad\u200b<hr>+</div>*", True)
@example("".join(f"<x-{n} role=search>{n}</x-{n}><b role=search>!<b role=>" for n in range(8)), True)
def test_both_walks_find_the_same_in_any_markup(markup: str, keep_urls: bool) -> None:
    fast, slow = both(parse(markup), keep_urls)
    assert fast == slow


#: What URLs are made of that the rules for them tell apart, and some other text.
URL_PIECES = st.sampled_from([
    "/", "/", "../", "./", "..", ".", "//", "?", "&", ";", "=", ":", "#", "%", "%3D", "-", "_", "+", "(A(",
    "))", "http://", "https://", "HTTP:", "mailto:", "example.org", "Other.org:80", "docs", "page.html",
    "b", "B", "x y", "sid=", "PHPSESSID=", "utm_a=", "cfid=", "cftoken=1", "a=1", "q=2", "tok=", "7",
    "0123456789", "\xe4", "\x01", "9f86d081884c7d65", "9f86d081-884c-7d65-9a2f-eaa0c55ad015",
    "deadbeef-dead-beef-dead-beefdeadbeef", "aGVsbG8gd29ybGQ-x_4kQ", "Release_Notes_For_Storm_2",
    "a-light-in-the-attic-1000", "x" * 700,
])  # fmt: skip
BASES = st.sampled_from([
    "", "http://example.org", "http://example.org/", URL, "http://Example.org/docs/b/B/", "file:///docs/b/",
    "http://example.org:80/docs/?/b/", "http://example.org/d\xe4/", "http://example.org//b/",
    "https://other.org:80/b/a",
])  # fmt: skip


@steady()
@given(st.lists(st.lists(URL_PIECES, max_size=6).map("".join), min_size=1, max_size=4), BASES)
@example(["../b/c/d", "../../docs/b/B", "b/c", "../../../../docs/page.html"], "http://example.org/docs/b/B/")
def test_both_walks_resolve_urls_alike(urls: list[str], base: str) -> None:
    root = etree.HTML("<body>")
    for url in urls:
        with suppress(ValueError):  # lxml takes no control characters
            etree.SubElement(root, "a", href=url)
    fast, slow = both(root, url=base)
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
        pytest.param("<div>" * 10_000 + "deep", id="deep"),
        pytest.param("<p>" + "x" * 150_000 + "ä" * 30_000, id="one long word"),
        pytest.param("<p>" + "a " * 20_000, id="many words"),
        pytest.param("<p>" + "\ufdfa" * 8_000, id="characters that unfold"),
        pytest.param("word<!-- x -->" * 2_000, id="comments"),
        pytest.param("<p>&#1;&#xD800;&bogus;&#0;\ufffe\uffff" * 500, id="entities"),
        pytest.param("<?x y>" * 2_000, id="instructions"),
        pytest.param("<nav><h1><section><a href=x>" * 1_000, id="structure"),
        pytest.param("<a href=/x?tok=9f86d081884c7d65>" * 1_000, id="links"),
        pytest.param("\x00\x01<a href='\x01'>\x01 \x01\x01 b", id="control characters"),
        pytest.param("", id="nothing"),
    ],
)
def test_hostile_pages_are_walked_alike(markup: str) -> None:
    fast, slow = both(parse(markup))
    assert fast == slow


@pytest.mark.parametrize("tag", [slow("b"), "x-y", "nav", slow("a"), slow("section")])
def test_parts_within_parts_are_walked_alike_as_deep_as_the_parser_goes(tag: str) -> None:
    fast, slow = both(parse("words" + f"<{tag} role=search>x" * 2_030))
    assert fast == slow


def test_a_very_long_word_is_always_cut_in_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    root = parse("<p>" + "x" * 40_000 + "\u2012" + "y" * 40_000 + "\xe4" * 70_000)
    fast, slow = both(root)
    assert fast == slow
    assert [len(token) for token in slow["tokens"]] == [40_000, 65_536, 44_464]  # type: ignore[attr-defined]
    monkeypatch.setattr(words, "_SEPARATORS", "\u2012")  # as once it is known
    assert both(root)[1] == slow


def test_one_that_was_built_for_another_version_is_not_used_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert compiled._load() is not None
    monkeypatch.setattr("dedup.fast.VERSION", compiled.VERSION - 1)
    assert compiled._load() is None
    assert "it was built from older sources" in caplog.text


@given(
    st.text(st.sampled_from("a< \0\x01\t\n\x0e\x1b\x1f\xe9"), max_size=8),
    st.sampled_from(["", "\ufffd", "漢", "\U0001f600\ufffd"]),
    st.integers(1, 600),
    st.integers(0, 700),
)
def test_texts_are_surveyed_alike(some: str, other: str, times: int, head: int) -> None:
    text = some * times + other
    assert compiled.fast is not None
    assert compiled.fast.survey(text, head) == limits.survey_in_python(text, head)


@given(st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=12))
@example("Ünder ★ \xa0\u0301\u0967½\U0001d400\U0001f600".encode())
@example(b"\xc0\xaf\xe0\x80\x80\xf0\x80\x80\x80\xf4\x90\x80\x80\xed\xa0\x80\xe2\x82")
def test_letters_are_left_out_of_signs_alike(signs: bytes) -> None:
    assert words.without_letters(signs) == words._without_letters(signs)


# --- Numbers ------------------------------------------------------------------------------------------

TOKENS = st.lists(
    st.sampled_from(["", "a", "b", "/", "/a", "ä", "漢", "x" * 60, "/" + "y" * 140, "nul\0"])
    | st.text(max_size=3),
    max_size=40,
)


@steady()
@given(
    TOKENS,
    TOKENS,
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from([1, 2, 6, 50]),
    st.sampled_from([(64, 8), (512, 2), (128, 4)]),
    st.booleans(),
)
def test_both_ways_make_the_same_numbers(
    tokens: list[str],
    data: list[str],
    cuts: list[int],
    size: int,
    kind: tuple[int, int],
    keep_urls: bool,
) -> None:
    ends = sorted(min(cut, len(tokens)) for cut in cuts)
    chrome = tuple(zip(ends[::2], ends[1::2], strict=False))
    maker = Maker(Features(), Sketcher(*kind, key=7), keep_urls, size, least_words=10, seed=len(cuts))
    words, more = ([decode(token) for token in some] for some in (tokens, data))
    same(maker.make(words, more, chrome), maker.make_in_numpy(words, more, chrome))


def test_many_tokens_have_the_same_numbers() -> None:
    rng = random.Random(1)
    tokens = [rng.choice("/abc") + str(rng.getrandbits(14)) for _ in range(20_000)]
    maker = Maker(Features(), Sketcher(512, 2), True, 6, least_words=30, seed=0)
    chrome = ((0, 10), (500, 18_000))
    same(maker.make(tokens, (), chrome), maker.make_in_numpy(tokens, (), chrome))


def test_tokens_whose_hashes_begin_alike_have_the_same_numbers() -> None:
    sketcher, words = Sketcher(64, 2), [f"w{number}" for number in range(15_000)]
    values = sketcher.values(hash_tokens(words)).tolist()
    alike = [word for word, value in zip(words, values, strict=True) if value >> 56 == 0]
    assert len(alike) > 50
    maker = Maker(Features(), sketcher, True, 1, least_words=1, seed=0)
    for tokens in (alike, alike * 20, words[:9] * 1_000):
        same(maker.make(tokens, (), ((3, 40),)), maker.make_in_numpy(tokens, (), ((3, 40),)))


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, 0x0123456789ABCDEF])
def test_tokens_of_any_length_have_the_hashes_of_the_specification(seed: int) -> None:
    maker = Maker(Features(), Sketcher(64, 2), True, 1, least_words=1, seed=seed)
    for length in range(300):
        token = "".join(chr(33 + at * 7 % 90) for at in range(length)).replace("/", "x")
        assert maker.make([token], (), ()).simhash == xxhash.xxh3_64_intdigest(token.encode(), seed)


def same(fast: Numbers, slow: Numbers) -> None:
    for one, other in zip(fast, slow, strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@given(TOKENS, st.lists(st.integers(0, 40), max_size=6))
def test_what_is_left_of_tokens_is_the_same(tokens: list[str], cuts: list[int]) -> None:
    some = [decode(token).replace("\0", "") for token in tokens]
    ends = sorted(min(cut, len(some)) for cut in cuts)
    ranges = tuple(zip(ends[::2], ends[1::2], strict=False))
    assert without(Tokens(join(some), len(some)), ranges) == without(some, ranges)


MARKUP = [
    "<!--", "-->", "--!>", "<!-->", "<![CDATA[", "]]>", "<!", "-", "!", "]", "<", ">", "'", '"', "x", "ä",
    "\0", "<script>", "</script>", "</scripts", "<TITLE>", "</title ", "<xmp", "<a title='", '<p b="',
    "</p>",
]  # fmt: skip


@steady()
@given(st.lists(st.sampled_from(MARKUP), max_size=15).map("".join))
@example("<!" * 2_000 + "<a '\"" * 2_000 + "<script>" * 2_000 + "<!--" * 2_000)
def test_comments_are_left_out_alike(markup: str) -> None:
    octets = markup.encode()
    fast = tokenizer.without_comments(octets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "fast", None)
        assert fast == tokenizer.without_comments(octets)


def test_nothing_has_no_comments() -> None:
    assert compiled.fast is not None
    assert compiled.fast.without_comments(b"") == b""


# --- What a page has of its own -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 7, 5_000])
@pytest.mark.parametrize("selectors", [1, 85, 300])
def test_signatures_are_made_as_in_numpy(count: int, selectors: int) -> None:
    shingles = mix(np.arange(count, dtype=np.uint64) + np.uint64(7))
    picked = signature_in_numpy(shingles, factors_of(selectors, 5), 5)
    assert np.array_equal(signature(shingles, selectors, 5), picked)
    sketcher = Sketcher(slots=64, bits=2, key=3**40)
    assert np.array_equal(sketcher.shingles(sketcher.values(shingles)), shingles)


@steady()
@given(st.integers(0, 2**32), st.sampled_from([64, 512, 4096]), st.sampled_from(WIDTHS), st.integers(0, 600))
def test_sketches_are_made_and_compared_as_in_numpy(seed: int, slots: int, bits: int, size: int) -> None:
    rng, sketcher = np.random.default_rng(seed), Sketcher(slots, bits)
    values, counts = ascending(rng.integers(0, 2**64, size, np.uint64)), rng.integers(0, 12, size, np.uint8)
    made = []
    for most, rare in ((2.0, 0.0), (3.4, 2.4), (9.0, 3.0), (float("inf"), 4.0)):
        found = sketcher.select(values, counts, most, rare)
        expected = sketcher.select_in_numpy(values, counts, most, rare)
        assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
        made.append(found)
    words, rares = (np.array(each) for each in zip(*made, strict=True))
    stored = words ^ (
        rng.integers(0, 2**64, words.shape, np.uint64) & rng.integers(0, 2**64, words.shape, np.uint64)
    )
    both = (each(stored, words, rares) for each in (sketcher.matches, sketcher.matches_in_numpy))
    assert np.array_equal(*both)


@steady()
@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 300))
def test_shingles_are_counted_as_in_numpy(seed: int, pages: int, size: int) -> None:
    rng, chrome = np.random.default_rng(seed), Chrome()
    some = mix(rng.integers(0, 2**64, 900, np.uint64))
    for _ in range(pages):
        chrome.add(ascending(rng.choice(some, 200) if pages % 2 else some[:200]))
    main = ascending(rng.choice(some, size))
    assert np.array_equal(chrome.counts(main), chrome.counts_in_numpy(main))


def test_both_ways_learn_the_same_of_pages() -> None:
    rng, one, other = np.random.default_rng(1), Chrome(), Chrome()
    some = mix(rng.integers(0, 2**64, 20_000, np.uint64))
    for pages in range(300):
        page = np.concatenate((some[:100], rng.choice(some, pages % 7 * 100)))[:: 1 + pages % 2]
        assert compiled.fast is not None
        assert compiled.fast.learn(page, one._cells, one._marks) == other.learn_in_numpy(page)
    assert one.to_bytes() == other.to_bytes()
    assert one._cells.max() == 255
