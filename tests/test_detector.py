"""What a Detector accepts, what it says of itself, and when it calls two pages duplicates."""

import hashlib
import pickle
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.features import Features
from dedup.fingerprint.fingerprint import Comparison
from dedup.page import html
from dedup.page.read import read, read_body
from tests.support.pages.oracle import steady

NAN = float("nan")
SECRET = "correct horse battery staple"


def page(seed: int, words: int = 200, changed: int = 0) -> str:
    """A page of its own; some of its words changed."""
    rng = random.Random(seed)
    text = [f"{seed}w{rng.randrange(500)}" for _ in range(words)]
    for place in random.Random(changed).sample(range(words), changed):
        text[place] = f"changed{place}"
    links = "".join(f'<a href="/{seed}/{number}.html">{seed}l{number}</a>' for number in range(5))
    return f"<html><title>Page {seed}</title><body><p>{' '.join(text)}</p>{links}</body></html>"


# --- Parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "changed"),
    [
        ("max_distance", {"max_distance": 1}),
        ("min_resemblance", {"min_resemblance": 0.12}),
        ("shingle_size", {"shingle_size": 9}),
        ("min_tokens", {"min_tokens": 7}),
        ("keep_urls", {"keep_urls": False}),
        ("ignore", {"ignore": (".banner",)}),
        ("ignore_text", {"ignore_text": (r"\d+",)}),
        ("hash_key", {"hash_key": SECRET}),
        ("features.slots", {"features": Features(slots=64)}),
        ("features.bits", {"features": Features(bits=8)}),
    ],
)
def test_a_setting_changes_its_own_parameter_and_no_other(entry: str, changed: dict[str, Any]) -> None:
    usual, other = Detector().parameters, Detector(**changed).parameters
    assert usual.keys() == other.keys()
    assert [name for name in usual if usual[name] != other[name]] == [entry]


def test_a_detector_that_was_used_goes_to_another_process() -> None:
    story = "one and the same story, which is told again and again " * 5
    detector = Detector(ignore=(".cookies",), ignore_text=("x+",))
    page = f"<p>{story}<p class=cookies>We like cookies"
    before = detector.fingerprint(page)
    other = pickle.loads(pickle.dumps(detector))
    assert other == detector
    assert other.fingerprint(page) == before


# --- Wrong values -------------------------------------------------------------------------------------

#: Values that nobody gives in a settings file, where all are text: tests/test_bad_input.py has those.
WRONG = {
    "max_distance": ([-1, 3.0, "3", True, None, NAN, float("inf"), [3]], "whole number from 0 to 7"),
    "min_resemblance": ([-0.1, NAN, float("inf"), "0.7", True, None], "number from 0 to 1"),
    "min_tokens": ([-1, 50.0, "50", False, None, NAN], "whole number from 0 to 1,000,000"),
    "keep_urls": ([0, 1, "yes", None], "True, False"),
    "method": (["SimHash", None, 1, ["simhash"]], "'simhash', 'minhash', 'supershingle'"),
    "features.slots": ([0, 63, 100, 4096, -64, "512", None], "64, 128, 256, 512, 1024, 2048"),
    "features.bits": ([0, 1, 3, 16, "2", None], "2, 4, 8"),
}


def refusal(name: str, value: object) -> str:
    build = Features if name.startswith("features.") else Detector
    with pytest.raises(SettingsError) as error:
        build(**{name.removeprefix("features."): value})
    return str(error.value)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_refused(name: str) -> None:
    values, allowed = WRONG[name]
    for value in values:
        text = refusal(name, value)
        assert text.startswith(f"{name} is {value!r}; allowed: ")
        assert text.endswith(allowed)
        assert "\n" not in text


@pytest.mark.parametrize("key", [None, 5, b"correct horse", ["correct horse"]])
def test_a_wrong_key_is_refused_without_telling_it(key: int | bytes | list[str] | None) -> None:
    text = refusal("hash_key", key)
    assert text.startswith("hash_key is not text; allowed: ")
    assert repr(key) not in text


@pytest.mark.parametrize(
    ("name", "value"), [("hash_key", "key\udcff"), *product(["features"], [None, {}, "log"])]
)
def test_what_is_no_key_and_no_features_is_refused(name: str, value: object) -> None:
    refusal(name, value)


# --- The key ------------------------------------------------------------------------------------------


def test_a_key_changes_fingerprints() -> None:
    usual, keyed, other = (Detector(hash_key=key).fingerprint(page(1)) for key in ("", SECRET, SECRET + "r"))
    assert len({usual.simhash, keyed.simhash, other.simhash}) == 3
    assert len({usual.sketch, keyed.sketch, other.sketch}) == 3


def test_a_key_leaves_verdicts_as_they_are() -> None:
    usual, keyed = (
        [detector.compare(*map(detector.fingerprint, pair)).duplicate for pair in product(PAGES, PAGES)]
        for detector in (Detector(), Detector(hash_key=SECRET))
    )
    assert usual == keyed


def test_a_key_is_never_shown() -> None:
    detector = Detector(hash_key=SECRET)
    shown = f"{detector!r} {detector} {detector.parameters} {detector.fingerprint(page(1))}"
    assert SECRET not in shown
    assert not any(word in shown for word in SECRET.split())


# --- Fingerprints -------------------------------------------------------------------------------------


FEATURES = Features(slots=512, bits=2)
STORY = """<title>Storm</title><h1>Why use Storm?</h1><p>It is simple, and can be used with any language.
<a href="/docs/">Read</a> <img src="flow.png"> 漢字 Straße &amp; more, more, more</p>"""


@pytest.mark.parametrize(
    ("key", "simhash", "sketch"),
    [
        ("", "c238008140e0cfeb", "93876cf52c9d67d151628563e6ecd098"),
        (SECRET, "769e2b97d997c783", "0eafbac7133b63a9dac31142fac44213"),
    ],
)
def test_golden_fingerprints_of_a_page(key: str, simhash: str, sketch: str) -> None:
    found = Detector(min_tokens=1, hash_key=key, shingle_size=6, features=FEATURES).fingerprint(
        STORY, "http://example.org/"
    )
    assert (found.hex, hashlib.sha256(found.sketch[:-8]).hexdigest()[:32]) == (simhash, sketch)
    assert (found.tokens, found.links, found.reason) == (23, 1, None)


def test_bytes_text_and_a_parsed_page_have_the_same_fingerprint() -> None:
    text, url = page(1) + "<p>Käse</p>", "http://example.org/"
    detector = Detector()
    found = detector.fingerprint(text, url)
    assert detector.fingerprint(text.encode(), url) == found
    assert detector.fingerprint(text.encode("latin-1"), url, "latin-1") == found
    assert detector.fingerprint_page(read(text, url, tree=html.parse)) == found
    assert detector.fingerprint_page(html.extract(html.parse(text), url)._replace(markup=text)) == found


def test_text_tokens_and_page_are_alike() -> None:
    words = [f"word{number}" for number in range(60)]
    detector, text = Detector(), " ".join(words)
    found = detector.fingerprint_tokens(words)
    assert detector.fingerprint_tokens(iter(words)) == found
    for other in (detector.fingerprint_text(text), detector.fingerprint(f"<p>{text}")):
        assert replace(other, markup=found.markup) == found
    assert found.tokens == 60


def test_tokens_are_taken_as_they_are() -> None:
    detector = Detector(min_tokens=1)
    assert detector.fingerprint_tokens(["One", "two words", "/url", "\udcff"]).tokens == 4
    assert detector.fingerprint_tokens([]).reason == "empty"
    assert detector.fingerprint_tokens(["/url"]).reason == "short"


@pytest.mark.parametrize(
    ("method", "value", "line"),
    [
        ("fingerprint", None, "html is None; allowed: bytes or str"),
        ("fingerprint_text", b"text", "text is b'text'; allowed: str"),
        ("fingerprint_tokens", "text", "tokens is 'text'; allowed: a list of str"),
        ("fingerprint_tokens", [1], "tokens is [1]; allowed: a list of str"),
    ],
)
def test_what_is_no_page_is_refused_in_a_line(method: str, value: object, line: str) -> None:
    with pytest.raises(TypeError) as error:
        getattr(Detector(), method)(value)
    assert str(error.value) == line


@pytest.mark.parametrize("method", ["simhash", "minhash", "supershingle"])
def test_bodies_that_are_no_text_are_near_only_if_they_are_equal(method: str) -> None:
    detector = Detector(method=method, min_tokens=1000)
    bodies = [read_body(b"%%PDF-1.7 page %d" % number) for number in range(40)]
    found = [detector.fingerprint_page(body) for body in bodies]
    assert all(one.reason is None and one.simhash is not None for one in found)
    assert len({one.digest for one in found}) == 40
    near = [(a, b) for a in range(40) for b in range(40) if detector.compare(found[a], found[b]).duplicate]
    assert near == [(a, a) for a in range(40)]


def test_without_urls_a_page_is_its_words() -> None:
    linked, plain = page(1), page(1).replace("<a href", "<a name")
    detector = Detector(keep_urls=False)
    a, b = detector.fingerprint(linked), detector.fingerprint(plain)
    assert (a.simhash, a.sketch, a.tokens) == (b.simhash, b.sketch, b.tokens)


def test_urls_are_features_of_the_sketch_and_not_of_the_simhash() -> None:
    text = "<p>" + "".join(f"<a href='LINK{number}'>{number}</a> " for number in range(99))
    a, b = (Detector().fingerprint(text.replace("LINK", name)) for name in ("x", "y"))
    assert (a.simhash == b.simhash, a.sketch == b.sketch) == (True, False)


def test_words_are_counted_towards_min_tokens_and_urls_are_not() -> None:
    text = "<p>" + "word " * 9 + "<a href=x></a>" * 9
    assert Detector(min_tokens=9).fingerprint(text).reason is None
    assert Detector(min_tokens=10).fingerprint(text).reason == "short"


def test_a_page_without_a_word_is_never_judged() -> None:
    detector = Detector(min_tokens=0)
    assert detector.fingerprint("<p>word").reason is None
    assert detector.fingerprint("").reason == "empty"
    assert detector.fingerprint("<a href=x></a>").reason == "short"


# --- Comparisons --------------------------------------------------------------------------------------

PAGES = [
    page(1), page(1, changed=1), page(1, changed=20), page(2), page(1, words=60), page(1, words=20), "",
    "<p>short", "<a href=x>", "<div>" * 9999 + page(1), "\0" * 99,
]  # fmt: skip


@pytest.mark.parametrize("text", ["", "<p>" + "word " * 49, "<div>" * 9999 + "word " * 99, "\0" * 99])
def test_an_unjudged_page_is_no_duplicate_of_itself(text: str) -> None:
    detector = Detector(max_distance=7, min_resemblance=0, min_tokens=50)
    found = detector.fingerprint(text)
    assert found.reason is not None
    assert not detector.compare(found, found).duplicate


def test_a_page_of_too_few_words_is_compared_all_the_same() -> None:
    detector = Detector()
    short = detector.fingerprint("<p>Page not found")
    assert detector.compare(short, short) == Comparison(0, 1.0, False)


@pytest.mark.parametrize("text", PAGES[:5])
def test_a_page_that_can_be_judged_is_a_duplicate_of_itself(text: str) -> None:
    detector = Detector(max_distance=0, min_resemblance=1, min_tokens=50)
    found = detector.fingerprint(text)
    assert detector.compare(found, found) == Comparison(0, 1.0, True)


@steady()
@given(st.sampled_from(PAGES), st.sampled_from(PAGES), st.integers(0, 7), st.floats(0, 1))
def test_comparison_is_symmetric(a: str, b: str, max_distance: int, min_resemblance: float) -> None:
    detector = Detector(max_distance=max_distance, min_resemblance=min_resemblance)
    a, b = detector.fingerprint(a), detector.fingerprint(b)
    assert detector.compare(a, b) == detector.compare(b, a)


def test_a_duplicate_is_within_max_distance() -> None:
    found = Detector().compare(*map(Detector().fingerprint, PAGES[:2]))
    assert 0 < found.distance <= 7
    for k in range(8):
        detector = Detector(max_distance=k, min_resemblance=0)
        assert detector.compare(*map(detector.fingerprint, PAGES[:2])).duplicate == (k >= found.distance)


def test_a_duplicate_has_min_resemblance() -> None:
    found = Detector().compare(*map(Detector().fingerprint, PAGES[:2]))
    assert 0.8 < found.resemblance < 1
    for least in (0, 0.5, found.resemblance, found.resemblance + 1e-9, 1):
        detector = Detector(max_distance=7, min_resemblance=least)
        assert detector.compare(*map(detector.fingerprint, PAGES[:2])).duplicate == (
            least <= found.resemblance
        )


def test_the_same_words_in_another_order_are_no_duplicate() -> None:
    words = [f"word{number}" for number in range(200)]
    detector = Detector()
    a, b = (detector.fingerprint("<p>" + " ".join(order)) for order in (words, words[::-1]))
    found = detector.compare(a, b)
    assert (found.distance, found.duplicate) == (0, False)
    assert found.resemblance < 0.1


@pytest.mark.parametrize(
    "banner",
    [
        "<!-- served by host 7 at 12:05 -->",
        "<script>track('12:05')</script>",
        "<p>12:05</p>",
        "<a href='?PHPSESSID=9f'>12</a>",
    ],
)
def test_a_page_with_another_banner_is_a_duplicate(banner: str) -> None:
    detector = Detector()
    a, b = (detector.fingerprint(text) for text in (page(1), page(1).replace("<body>", "<body>" + banner)))
    assert detector.compare(a, b).duplicate


def test_pages_of_equal_tokens_have_each_its_own_part_and_markup() -> None:
    menu, story = (" ".join(f"{name}{n}" for n in range(40)) for name in ("menu", "story"))
    markups = [
        f"<nav>{menu}</nav><p>{story}",
        f"<p>{menu}<nav>{story}</nav>",
        f"<p>{menu}<p>{story}",
    ]
    detector = Detector()
    found = [detector.fingerprint(markup) for markup in markups]
    alone = [Detector().fingerprint(markup) for markup in markups]
    assert [each.markup for each in found] == [each.markup for each in alone]
    assert len({each.markup for each in found}) == 3
    for each, other in zip(found, alone, strict=True):
        assert each.own is not None
        assert other.own is not None
        assert each.own.main.tolist() == other.own.main.tolist()


WORDS = " ".join(f"word{number}" for number in range(80))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<td>✓<td>✗", "<td>✗<td>✓"), ("★★★☆☆", "★★☆☆☆"), ("-5 degrees", "5 degrees"), ("€ 5", "$ 5"),
        ("♔ ♖ ♟", "♚ ♖ ♟"), ("<meter value=3>", "<meter value=4>"),
        ("<div aria-valuenow=3>x", "<div aria-valuenow=4>x"),
        ("<svg><rect height=3 /></svg>", "<svg><rect height=4 /></svg>"),
        ("<font color=red>x</font>", "<font color=green>x</font>"),
        ("<a href=tel:+491>call</a>", "<a href=tel:+492>call</a>"),
    ],
)  # fmt: skip
def test_pages_of_other_signs_are_unequal(one: str, other: str) -> None:
    detector = Detector()
    pages = [detector.read(f"{text}<p>{WORDS}") for text in (one, other)]
    assert pages[0].tokens == pages[1].tokens
    a, b = map(detector.fingerprint_page, pages)
    assert (a.digest == b.digest, a.simhash) == (False, b.simhash)


@pytest.mark.parametrize("other", ["a&nbsp;lamp, ", "<b>a</b>  lamp<i>,</i>", "a\n lamp ,"])
def test_pages_are_equal_whatever_spaces_and_markup_they_have(other: str) -> None:
    detector = Detector()
    a, b = (detector.fingerprint(f"{text}<p>{WORDS}") for text in ("a lamp, ", other))
    assert a.digest == b.digest
