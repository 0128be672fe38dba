"""Data in scripts: which of it is read, what it does to fingerprints, and pages that are nothing without it."""

import asyncio
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup import Detector, open_index
from dedup.page.data import MAX_DATA, MAX_DEPTH, MAX_SCRIPT, read_data, read_json
from dedup.page.read import read
from tests.support.pages.oracle import steady

DETECTOR = Detector()
URL = "http://example.org/shop/lamp"


def words(seed: object, count: int) -> str:
    rng = random.Random(str(seed))
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(count))


def script(data: object, kind: str = "application/json") -> str:
    return f'<script type="{kind}">{json.dumps(data)}</script>'


def data_of(page: str) -> list[str]:
    return list(read("<p>word</p>" + page, URL).data)


# --- What is read ---------------------------------------------------------------------------------------

LAMP = {"name": "Brass lamp", "price": 12.5, "stock": [3, 4], "sold": True, "next": None}
READ = ["brass", "lamp", "12", "5", "3", "4"]


@pytest.mark.parametrize(
    "page",
    [
        script(LAMP),
        script(LAMP, "application/ld+json"),
        script(LAMP, "Application/JSON; charset=utf-8"),
        script(LAMP).replace("<script", '<script id="__NEXT_DATA__"'),
        f"<script>window.__INITIAL_STATE__ = {json.dumps(LAMP)};</script>",
        f"<script>\n  window['__STATE__']={json.dumps(LAMP)}</script>",
        f"<script>var __data = {json.dumps(LAMP)}; boot(__data)</script>",
        f"<script>__NUXT__={json.dumps(LAMP)}</script>",
        f"<script>self.__A__ = {{}};window.__B__ = {json.dumps(LAMP)};</script>",
        "<head>" + script(LAMP) + "</head>",
    ],
)
def test_data_in_scripts_is_read(page: str) -> None:
    assert data_of(page) == READ


@pytest.mark.parametrize(
    "page",
    [
        script(LAMP, "text/javascript"),
        script(LAMP, "importmap"),
        f"<script>let lamp = {json.dumps(LAMP)}</script>",
        "<script>window.__STATE__ = {name: 'Brass lamp'}</script>",
        f"<noscript>{script(LAMP)}</noscript>",
        f"<template>{script(LAMP)}</template>",
        script(LAMP)[:-20] + "</script>",
        '<script type="application/json"></script>',
    ],
)
def test_other_scripts_are_not(page: str) -> None:
    assert data_of(page) == []


@pytest.mark.parametrize(
    "key",
    [
        "nonce",
        "csrf_token",
        "XSRF",
        "accessToken",
        "sessionId",
        "buildId",
        "BUILD_ID",
        "startTime",
        "datePublished",
        "dateModified",
        "updated_at",
        "createdAt",
        "expires",
        "contentHash",
        "etag",
        "uuid",
        "traceId",
        "ts",
    ],
)
def test_what_passes_is_left_out(key: str) -> None:
    assert data_of(script({key: "brass lamp", "more": {key: ["brass"]}})) == []


@pytest.mark.parametrize(
    "key", ["name", "candidate", "hashtags", "sometimes", "update", "sidebar", "tsunami", "x" * 99]
)
def test_other_keys_only_look_like_it(key: str) -> None:
    assert data_of(script({key: "brass lamp"})) == ["brass", "lamp"]


@pytest.mark.parametrize(
    "value",
    [
        "9f86d081884c7d65",
        "9f86d081-884c-7d65-9a2f-eaa0c55ad015",
        "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        1763767000123,
        "1763767000",
        "2026-11-21T10:00:00.123Z",
        "2026-11-21 10:00",
        "Sat, 21 Nov 2026 10:00:00 GMT",
        True,
        None,
    ],
)
def test_values_that_look_like_ids_or_times_are_left_out(value: object) -> None:
    assert data_of(script({"a": value, "b": [value]})) == []


def test_urls_in_data_are_url_tokens_as_those_of_links() -> None:
    data = {
        "url": "http://example.org/shop/b?utm_source=x",
        "image": "https://cdn.example.com/a.png",
        "to": "/shop/c",
    }
    assert data_of(script(data)) == ["/b", "//cdn.example.com/a.png", "/c"]
    assert read("<p>word" + script(data), URL, keep_urls=False).data == ()


def test_mirrors_have_the_same_data() -> None:
    for at in ("http://example.org/a/", "https://mirror.example.com/"):
        assert read("<p>word" + script({"@id": f"{at}x"}), at + "page").data == ("/x",)


# --- It is bounded --------------------------------------------------------------------------------------

HOSTILE: dict[str, str] = {
    "nested": "[" * 100_000,
    "nested objects": '{"a":' * 100_000,
    "nested to the end": "[" * 900 + "1" + "]" * 900,
    "a number of many digits": "1" * 500_000,
    "a float of many digits": "[1." + "1" * 500_000 + "e99999999]",
    "many keys": json.dumps({str(n): n for n in range(30_000)}),
    "many lists": "[" + ",".join(["[]"] * 100_000) + "]",
    "a long key": json.dumps({"k" * 900_000: "word"}),
    "lone surrogates": '["\\ud800 word \\udfff"]',
    "nothing a number": "[NaN, Infinity, -Infinity]",
    "control characters": '["a\tb\x01"]',
    "marks": json.dumps(["a" + "\u0301" * 150_000], ensure_ascii=False),
    "characters of many": json.dumps(["\ufdfa" * 300_000], ensure_ascii=False),
    "spaces": " " * 900_000 + "{",
    "half an escape": '["\\u12',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_never_raises(name: str) -> None:
    for page in (
        f'<script type="application/json">{HOSTILE[name]}</script>',
        f"<script>__a__={HOSTILE[name]}</script>",
        f"<script>__a__{HOSTILE[name]}</script>",
    ):
        text = f"<p>{words(1, 50)}</p>{page}"
        assert len(read(text).data) <= MAX_DATA
        assert DETECTOR.fingerprint(text).reason is None


@steady(2)
@given(st.text(alphabet='{}[]":,\\ud8eaE1-. \n\ttruefalsn=;_windo', max_size=200))
def test_no_script_raises(text: str) -> None:
    read_data([("application/json", text), ("", "__a__=" + text)])
    read_json(text, 10)


def test_data_is_read_up_to_a_number_of_tokens_of_scripts_up_to_a_size() -> None:
    many = script([words(n, 100) for n in range(100)])
    assert len(data_of(many)) == len(data_of(many + many)) == MAX_DATA
    assert data_of(script("a" * (MAX_SCRIPT - 2))) != []
    assert data_of(script("a" * MAX_SCRIPT)) == []


def test_data_nested_too_deeply_is_not_read() -> None:
    assert data_of("<script>__a__=" + "[" * MAX_DEPTH + '"word"' + "]" * MAX_DEPTH + "</script>") == ["word"]
    assert data_of("<script>__a__=" + "[" * 101 + '"word"' + "]" * 101 + "</script>") == []


# --- What it does to fingerprints -----------------------------------------------------------------------


def test_data_is_part_of_digest_and_sketch_and_of_nothing_else() -> None:
    text = f"<p>{words(1, 60)}</p>"
    plain = DETECTOR.fingerprint(text, URL)
    a, b = (DETECTOR.fingerprint(text + script({"text": words(n, 60)}), URL) for n in (2, 3))
    assert len({plain.digest, a.digest, b.digest}) == len({plain.sketch, a.sketch, b.sketch}) == 3
    assert plain.simhash == a.simhash == b.simhash
    assert plain.tokens == a.tokens == b.tokens == 60
    assert DETECTOR.compare(a, b).resemblance < 0.5  # type: ignore[operator]


def test_data_does_not_make_a_page_long_enough() -> None:
    assert DETECTOR.fingerprint("<p>Lamp" + script({"text": words(1, 600)})).reason == "short"


def test_the_shingles_of_a_page_are_those_that_are_sketched() -> None:
    page = read(f"<p>{words(1, 60)}</p>" + script({"text": words(2, 60)}))
    assert DETECTOR.sketcher.make(DETECTOR.shingles(page)) == DETECTOR.fingerprint_page(page).sketch


def kept(pages: list[str], others: int = 0) -> int:
    """How many of some pages of a host are kept, of which ``others`` are known."""

    async def crawl() -> int:
        index = open_index("memory:", DETECTOR)
        for number in range(others):
            other = f"<title>Other {number}</title><p>{words(f'other {number}', 300)}"
            await index.claim(f"{number}", f"http://example.org/other/{number}", DETECTOR.fingerprint(other))
        found = 0
        for number, page in enumerate(pages):
            url = f"http://example.org/x/{number}"
            found += (await index.claim(url, url, DETECTOR.fingerprint(page, url))).status == "new"
        await index.close()
        return found

    return asyncio.run(crawl())


def state(data: object) -> str:
    return f"<script>window.__INITIAL_STATE__ = {json.dumps(data)};</script>"


@pytest.mark.parametrize(("own", "visible"), [(20, 60), (200, 60), (200, 300), (20, 300)])
@pytest.mark.parametrize("write", [script, state])
def test_pages_that_differ_in_their_data_are_all_kept(
    visible: int, own: int, write: Callable[[object], str]
) -> None:
    shell = f"<title>Shop</title><p>{words('shell', visible)}</p>"
    pages = [shell + write({"product": {"text": words(number, own), "id": number}}) for number in range(50)]
    assert kept(pages) == 50


@pytest.mark.parametrize("visible", [60, 300])
@pytest.mark.parametrize("write", [script, state])
def test_a_page_whose_tokens_and_times_change_is_kept_once(
    visible: int, write: Callable[[object], str]
) -> None:
    shell = f"<title>Shop</title><p>{words('shell', visible)}</p>"

    def passing(visit: int) -> dict[str, object]:
        rng = random.Random(visit)
        return {
            "csrfToken": words(visit, 1),
            "buildId": f"b{visit}",
            "timestamp": 1763767000000 + visit,
            "props": {
                "text": words("text", 40),
                "requestId": f"{rng.getrandbits(128):032x}",
                "dateModified": f"day {visit}",
            },
        }

    pages = [shell + write(passing(visit)) for visit in range(50)]
    assert kept(pages) == kept(pages, others=12) == 1


# --- Pages drawn by scripts -----------------------------------------------------------------------------

BUNDLE = '<script src="/bundle.js"></script>'
FOOTER = f"<footer>{words('footer', 300)}</footer>"


@pytest.mark.parametrize(
    "page",
    [
        f'<title>Shop</title><div id="root"></div>{BUNDLE}',
        f'<title>Shop</title>{FOOTER}<div id="app"></div>{BUNDLE}',
        f'<title>Shop</title>{FOOTER}<div id="__next"><p>Loading ...<img src="wait.gif"></div>{BUNDLE}',
        f"<title>Shop</title>{FOOTER}<app-root>Please wait</app-root>{BUNDLE}",
        f"<p>{words('shell', 60)}</p><main id='root'><!-- here --><style>p {{}}</style></main><script>draw()</script>",
        f"<p>{words('shell', 20)}</p>{FOOTER}<noscript>You need to enable JavaScript to run this app.</noscript>{BUNDLE}",
        f"<p>{words('shell', 60)}</p><div id='root'></div>{script({'csrf': 'x', 'at': 1763767000123})}",
    ],
)
def test_a_page_that_shows_only_the_shell_that_scripts_fill_is_not_judged(page: str) -> None:
    found = DETECTOR.fingerprint(page)
    assert (found.reason, found.simhash) == ("scripted", None)


@pytest.mark.parametrize(
    "page",
    [
        f"<p>{words('text', 60)}</p>{BUNDLE}",
        f"<p>{words('text', 60)}</p><div id='root'></div>",
        f"<div id='root'><p>{words('text', 60)}</div>{BUNDLE}",
        f"<p>{words('text', 60)}</p><div id='root'></div>{script(LAMP)}",
        f"<p>{words('text', 120)}</p><div id='app'></div>{BUNDLE}",
        f"<p>{words('text', 60)}</p><noscript>Please enable JavaScript</noscript>{BUNDLE}",
        f"<p>{words('text', 60)}</p><div id='chat'></div>{BUNDLE}",
    ],
)
def test_other_pages_with_scripts_are(page: str) -> None:
    assert DETECTOR.fingerprint(page).reason is None
