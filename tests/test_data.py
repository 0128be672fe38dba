"""Data in scripts and attributes: which of it is read, what it does to fingerprints, and pages that are nothing without it."""

import asyncio
import base64
import json
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup import Detector, open_index
from dedup.page.data import MAX_DATA, MAX_DEPTH, MAX_SCRIPT, is_digest, read_data, read_json
from dedup.page.read import read
from tests.support import slow
from tests.support.crawls import words
from tests.support.pages.oracle import steady

DETECTOR = Detector()
URL = "http://example.org/shop/lamp"


def script(data: object, kind: str = "application/json") -> str:
    return f'<script type="{kind}">{json.dumps(data)}</script>'


def data_of(page: str) -> list[str]:
    """The tokens of a page's data but for the digest of what can't be read."""
    return [token for token in read("<p>word</p>" + page, URL).data if not is_digest(token)]


def differ(*pages: str) -> bool:
    """Whether no two of some pages are equal in words, data and signs."""
    prints = [DETECTOR.fingerprint(f"<p>{words(1, 60)}</p>{page}", URL) for page in pages]
    return len({found.digest for found in prints}) == len(pages)


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
        script(LAMP, "application/vnd.lamp+json"),
        script(LAMP, "importmap"),
        f"<noscript>{script(LAMP)}</noscript>",
        f"<template>{script(LAMP)}</template>",
        f"<script>let lamp = {json.dumps(LAMP)}</script>",
        f"<script>window.lamp={json.dumps(LAMP)};draw(lamp)</script>",
        f"<script type=module>draw({json.dumps(LAMP)})</script>",
        f"<script>draw('#shop', {json.dumps(LAMP)})</script>",
        f"<script>S = JSON.parse({json.dumps(json.dumps(LAMP))})</script>",
        f"<script>S = JSON.parse('{json.dumps(LAMP)}')</script>",
        "<script>shop = {name: 'Brass lamp', 'price': 12.5, stock: [3, 4,], /* it's */ sold: !0, next: null}</script>",
        f"<p data-lamp='{json.dumps(LAMP)}'>",
        "<p data-name='Brass lamp' data-price=12.5 data-stock='3, 4'>",
        "<script type=text/x-template>{{ Brass }} lamp 12.5 <b>3</b><i class=x>4</script>",
        "<script>document.write('<b class=\\'x\\'>Brass lamp<\\/b> 12.5 <p>3, 4')</script>",
        "<button onclick='brass(lamp, 12.5, [3, 4])'>",
        "<meta name=Description content='Brass lamp 12.5: 3, 4'>",
        "<input type=hidden value='brass lamp 12.5'><input type=radio value=3><input type=checkbox value=4>",
    ],
)
def test_data_in_scripts_and_attributes_is_read(page: str) -> None:
    assert data_of(page) == READ


def test_what_the_app_router_of_next_pushes_is_read() -> None:
    row = json.dumps('5:["$","p",null,{"children":"Brass lamp"}]\n')
    found = data_of(f"<script>self.__next_f.push([1,{row}])</script>")
    assert found[-3:] == ["children", "brass", "lamp"]


#: Texts that are longer than any nonce.
PACKED = [base64.b64encode(words(number, 20).encode()).decode() for number in (1, 2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<script>draw(a)</script>", "<script>draw(b)</script>"),
        ("<script>x = {a: f(1)}</script>", "<script>x = {a: f(2)}</script>"),
        ("<script>d = atob('QnJhc3MgbGFtcA')</script>", "<script>d = atob('QnJhc3MgbGFtcB')</script>"),
        (f"<script>d = '{PACKED[0]}'</script>", f"<script>d = '{PACKED[1]}'</script>"),
        (script({"image": PACKED[0]}), script({"image": PACKED[1]})),
        (f"<p data-x={PACKED[0]}>", f"<p data-x={PACKED[1]}>"),
        (
            "<script>document.write('<img src=/a>')</script>",
            "<script>document.write('<img src=/b>')</script>",
        ),
        ("<style>p::after { content: 'a' }</style>", "<style>p::after { content: 'b' }</style>"),
        ("<p style='background: url(/a.png)'>", "<p style='background: url(/b.png)'>"),
        ("<i style='width: 80%'></i>", "<i style='width: 60%'></i>"),  # stars of a rating
        ("<svg><polyline points='0,1 1,3'></svg>", "<svg><polyline points='0,1 1,4'></svg>"),
        ("<svg><path d='M0 1L1 3'></svg>", "<svg><path d='M0 1L1 4'></svg>"),
        ("<img src='data:image/png;base64,AAAA'>", "<img src='data:image/png;base64,AAAB'>"),
        ("<a href=x title=a>", "<a href=x title=b>"),
        ("<a href='javascript:show(1)'>", "<a href='javascript:show(2)'>"),
        (script({"sold": True}), script({"sold": False})),
        (script({"red": 1}), script({"green": 1})),
        (script([1, 2]).replace("]", ""), script([1, 3]).replace("]", "")),
        (script({"startDate": "2026-11-22T19:00"}), script({"startDate": "2026-11-23T19:00"})),
        (script({"date": "2026-11-22"}), script({"date": "2026-11-23"})),
        ("<script>__a__=" + "[" * 101 + "1" + "]" * 101, "<script>__a__=" + "[" * 101 + "2" + "]" * 101),
        (script([words(n, 100) for n in range(50)]), script([words(n or 1, 100) for n in range(50)])),
        (script([*[words(1, 100)] * 50, "a"]), script([*[words(1, 100)] * 50, "b"])),
        (script("a" * 30_000 + "b"), script("a" * 30_000 + "c")),
        (script("a " * MAX_SCRIPT + "b"), script("a " * MAX_SCRIPT + "c")),
    ],
)
def test_what_cannot_be_read_makes_pages_unequal(one: str, other: str) -> None:
    assert differ(one, other)


#: What a nonce looks like.
NONCES = [
    1763767000, "17", "9f86d081", "hX3kQ9", "aGVsbG8gd29ybGQ", "2026-11-21T10:00:00.123Z",
    "2026-11-21 10:00",
]  # fmt: skip


@pytest.mark.parametrize("nonce", NONCES)
@pytest.mark.parametrize(
    "key",
    [
        "nonce", "csrf_token", "XSRF", "accessToken", "sessionId", "buildId", "BUILD_ID", "startTime",
        "dateModified", "updated_at", "expires", "contentHash", "etag", "uuid", "traceId", "ts",
        "_wpnonce",
    ],
)  # fmt: skip
def test_nonces_are_left_out(key: str, nonce: object) -> None:
    kebab = re.sub("([a-z])([A-Z])", r"\1-\2", key)
    for one, none in (
        (script({key: nonce, "more": {key: [nonce]}}), script({key: "17", "more": {key: ["17"]}})),
        (f"<script>x.{key} = {json.dumps(nonce)}; go()</script>", f"<script>x.{key} = '17'; go()</script>"),
        (f"<script>go({{{key}: {json.dumps(nonce)}, f}})</script>", f"<script>go({{{key}: 17, f}})</script>"),
        (f"<p data-{kebab}='{nonce}'>", f"<p data-{kebab}=17>"),
        (f"<input type=hidden name={key} value='{nonce}'>", f"<input type=hidden name={key} value=17>"),
    ):
        assert data_of(one) == []
        assert nonce == "17" or not differ(one, none)


@pytest.mark.parametrize(
    "key", ["session", "token", "build", "date", "digest", "signature", "times", "cookie", "visitor"]
)
def test_other_values_under_such_a_key_are_read(key: str) -> None:
    sessions = {key: [{"name": "Brass lamp"}, "of 1884"], "one": {key: "brass"}}
    assert data_of(script(sessions)) == ["brass", "lamp", "of", "1884", "brass"]


@pytest.mark.parametrize(
    "key", ["name", "candidate", "hashtags", "sometimes", "update", "sidebar", "tsunami", "x" * 99]
)
def test_other_keys_only_look_like_it(key: str) -> None:
    assert data_of(script({key: "lamp 12b"})) == data_of(script({key: "lamp-12b"})) == ["lamp", "12b"]


@pytest.mark.parametrize(
    "value",
    [
        "9f86d081884c7d65",
        "9f86d081-884c-7d65-9a2f-eaa0c55ad015",
        "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        1763767000123,
        "1763767000",
    ],
)
def test_values_that_look_like_ids_are_left_out(value: object) -> None:
    pages = [
        (
            script({"a": each, "b": [each]}),
            f"<script>draw('{each}')</script>",
            f"<p data-a='{each}'>",
        )
        for each in (value, "0c5aad0159f86d08")
    ]
    for one, other in zip(*pages, strict=True):
        assert data_of(one) == []
        assert not differ(one, other)


@pytest.mark.parametrize(
    "make",
    [
        "window.__CF$cv$params={{r:'{id:016x}',t:'MTczMjI4NDE2MS4wMDAwM{n}A='}};",
        "window.NREUM={{'licenseKey':'a1b2','queueTime':{n},'applicationTime':{n}1,'traceId':'{id:032x}'}};",
        "var wpApiSettings = {{'root':'/wp-json/','nonce':'a1b2c3d{n}f5'}};",
        "window.dataLayer.push({{'timestamp': {n}, 'session_id': 'x1y2z3{n}'}});",
        "gtag('js', new Date(17637670001{n}));",
        "ga('set', 'time', '17637670{n}'); load(\"/x.js?v={id:020x}\");",
    ],
)
def test_snippets_that_count_visitors_leave_pages_equal(make: str) -> None:
    pages = [f"<script>{make.format(id=(n << 60) * 3 + 0xC5D2E9A1B3F4C6D, n=n)}</script>" for n in (23, 71)]
    assert pages[0] != pages[1]
    assert not differ(*pages)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"red": 1}', '{"green": 1}'),
        ('{"sold": true}', '{"sold": false}'),
        ('{"at": "2026-11-21T10:00:00Z"}', '{"at": "2026-11-22T10:00:00Z"}'),
        ('{"session": {"name": "a"}}', '{"session": {"name": "b"}}'),
    ],
)
def test_documents_of_json_that_differ_are_not_equal(one: str, other: str) -> None:
    prints = [
        DETECTOR.fingerprint_page(DETECTOR.read_text(f"[{json.dumps(words(1, 60))}, {text}]", is_json=True))
        for text in (one, other)
    ]
    assert prints[0].reason == prints[1].reason is None
    assert prints[0].digest != prints[1].digest


def test_urls_in_data_are_url_tokens_as_those_of_links() -> None:
    data = {
        "url": "http://example.org/shop/b?utm_source=x",
        "image": "https://cdn.example.com/a.png",
        "to": "/shop/c",
    }
    assert data_of(script(data)) == ["/b", "//cdn.example.com/a.png", "/c"]
    assert data_of('<p data-href="http://example.org/shop/b" style="background: url(/shop/i.png)">') == [
        "/b",
        "/i.png",
    ]
    assert all(map(is_digest, read("<p>word" + script(data), URL, keep_urls=False).data))


def test_microdata_and_open_graph_are_read() -> None:
    page = (
        "<meta property=og:title content='Brass lamp'><meta name=generator content=left><b itemprop=price content=12.5>cheap</b>"
        "<meta http-equiv=refresh content=60><time datetime='2026-11-20'>lately</time>"
    )
    assert data_of(page) == ["brass", "lamp", "12", "5", "2026", "11", "20"]


# --- It is bounded --------------------------------------------------------------------------------------

#: Made when they are asked for: they are large.
HOSTILE: dict[str, Callable[[], str]] = {
    "nested": lambda: "[" * 100_000,
    "nested objects": lambda: '{"a":' * 100_000,
    "nested to the end": lambda: "[" * 900 + "1" + "]" * 900,
    "a number of many digits": lambda: "1" * 500_000,
    "a float of many digits": lambda: "[1." + "1" * 500_000 + "e99999999]",
    "many keys": lambda: json.dumps({str(n): n for n in range(12_000)}),
    "many lists": lambda: "[" + ",".join(["[]"] * 12_000) + "]",
    "a long key": lambda: json.dumps({"k" * 900_000: "word"}),
    "lone surrogates": lambda: '["\\ud800 word \\udfff"]',
    "nothing a number": lambda: "[NaN, Infinity, -Infinity]",
    "control characters": lambda: '["a\tb\x01"]',
    "marks": lambda: json.dumps(["a" + "\u0301" * 150_000], ensure_ascii=False),
    "characters of many": lambda: json.dumps(["\ufdfa" * 60_000], ensure_ascii=False),
    "spaces": lambda: " " * 900_000 + "{",
    "half an escape": lambda: '["\\u12',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_never_raises(name: str) -> None:
    data = HOSTILE[name]()
    for page in (
        f'<script type="application/json">{data}</script>',
        f"<script>__a__={data}</script>",
        f"<script>__a__{data}</script>",
    ):
        text = f"<p>{words(1, 50)}</p>{page}"
        page = read(text)
        assert len(page.data) <= MAX_DATA + 1
        assert DETECTOR.fingerprint_page(page).reason is None


@steady()
@given(st.text(alphabet='{}[]":,\\ud8eaE1-. \n\ttruefalsn=;_windo', max_size=200))
def test_no_script_raises(text: str) -> None:
    read_data([("application/json", text), ("", "__a__=" + text)])
    read_json(text, 10)


def test_so_much_data_is_read() -> None:
    many = script([words(n, 100) for n in range(100)])
    assert len(data_of(many)) == len(data_of(many + many)) == MAX_DATA
    assert data_of(script("a " * (MAX_SCRIPT // 2 - 1))) != []
    assert data_of(script("a " * MAX_SCRIPT)) == []


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


def kept(pages: list[str], others: int = 0, at: str = "x/{}") -> int:
    """How many of some pages of a host are kept, of which ``others`` are known."""

    async def crawl() -> int:
        index = open_index("memory:", DETECTOR)
        for number in range(others):
            other = f"<title>Other {number}</title><p>{words(f'other {number}', 300)}"
            await index.claim(f"{number}", f"http://example.org/other/{number}", DETECTOR.fingerprint(other))
        found = 0
        for number, page in enumerate(pages):
            url = f"http://example.org/{at.format(number)}"
            found += (await index.claim(url, url, DETECTOR.fingerprint(page, url))).status == "new"
        await index.close()
        return found

    return asyncio.run(crawl())


def state(data: object) -> str:
    return f"<script>window.__INITIAL_STATE__ = {json.dumps(data)};</script>"


@pytest.mark.parametrize(("own", "visible"), [(20, 60), slow(200, 60), slow(200, 300), (20, 300)])
@pytest.mark.parametrize("write", [script, state])
def test_pages_that_differ_in_data_are_kept(visible: int, own: int, write: Callable[[object], str]) -> None:
    shell = f"<title>Shop</title><p>{words('shell', visible)}</p>"
    pages = [shell + write({"product": {"text": words(number, own), "id": number}}) for number in range(50)]
    assert kept(pages) == 50


@pytest.mark.parametrize("visible", [60, slow(300)])
@pytest.mark.parametrize("write", [script, state])
def test_passing_data_makes_no_new_page(visible: int, write: Callable[[object], str]) -> None:
    shell = f"<title>Shop</title><p>{words('shell', visible)}</p>"

    def passing(visit: int) -> dict[str, object]:
        rng = random.Random(visit)
        return {
            "csrfToken": words(visit, 1),
            "buildId": f"Zk3v9-{visit}qLw",
            "timestamp": 1763767000000 + visit,
            "props": {
                "text": words("text", 40),
                "requestId": f"{rng.getrandbits(128):032x}",
                "dateModified": f"2026-11-21T10:{visit:02}:00Z",
            },
        }

    pages = [shell + write(passing(visit)) for visit in range(50)]
    at = "x?sid={:032x}"
    assert kept(pages, at=at) == kept(pages, others=12, at=at) == 1
    assert kept(pages) == 50, "other addresses name other pages"


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
def test_a_shell_is_not_judged(page: str) -> None:
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
