"""A body that was met before gives what reading it again would give, or it is read again."""

from functools import partial
from itertools import permutations, product
from pathlib import Path

import pytest
from lxml import etree
from scrapy.http import HtmlResponse

from dedup import Detector
from dedup.filter import Body
from dedup.filter import bodies as module
from dedup.filter.bodies import Bodies
from dedup.page.html import parse
from dedup.page.links import addresses
from dedup.page.read import read, read_text
from dedup.scrapy.requests.visits import read_response
from tests.support.coroutines import driven
from tests.support.crawls import Run, Site, html, page, words
from tests.support.filters import filtering, text, visit

STORY = words("story", 60)
#: What may be resolved against the whole address of a page, or look like it, in some of the ways to write it.
PARTS = {
    "nothing": "",
    "plain": "<a href=b.html>b</a> <a href='../c?x=1'>c</a> <img src=//other.org/d.png>",
    "query": "<a href='?page=2'>next</a>",
    "bare query": "<a href=?page=2>next</a>",
    "session": "<a href='?sid=9f86d08188'>again</a>",
    "spaces": "<a href = '\n\u3000?page=2'>next</a>",
    "reference": "<a href='&#63;page=2'>next</a>",
    "stripped reference": "<a href='&nbsp;?page=2'>next</a>",
    "fragment": "<a href='#top'>top</a> <a href=''>here</a>",
    "parameters": "<a href=';v=1'>v</a>",
    "base": "<base href='?a/b'><a href=c>c</a>",
    "base of a fragment": "<BaSe href='#a/b'><a href=c>c</a>",
    "NUL": "<ba\0se href='?a/b'><a href=c>c</a>",
    "canonical": "<link rel=canonical href=/story>",
    "canonical is itself": "<link rel=canonical href=''>",
    "canonical is its top": "<link rel=canonical href='#'>",
    "canonical with query": "<link rel=canonical href='?a'>",
    "data": '<script type="application/ld+json">{"name": "Brass lamp", "url": "?x=1"}</script>',
    "style": "<p style='background: url(?page=2)'>x</p><p style='background: url(&#63;page=2), url(a.png)'>x</p>",
    "sources": "<iframe src='?page=2'></iframe><img srcset='?page=2 2x, b 3x' data-src=' ?page=3'>",
    "attributes": "<p data-x='?page=2' data-y='/a?b' data-z='{\"url\": \"?page=2\"}'>x</p><a href='javascript:go(1)'>x</a>",
    "heading": "<title>Brass lamp 17</title><h1>lamp story</h1>",
}
URLS = [
    "http://a.org/shop/lamp.html", "http://a.org/shop/story", "http://a.org/shop/",
    "http://a.org/shop/lamp.html?page=2", "http://a.org/shop/2.7.1?of=/shop/x/lamp",
    "http://a.org/2.7.1/lamp.html", "http://b.org/shop/lamp.html", "http://a.org",
    "http://a.org/shop/" + "x" * 2_000,
]  # fmt: skip


def met(html: str, url: str) -> tuple[Bodies, Body]:
    """What is known once a page was met at a URL."""
    detector, body = Detector(), Body(html.encode(), "utf-8", "html")
    bodies, page = Bodies(detector), detector.read(html, url)
    bodies.add(bodies.key(body, url) or 0, url, page, detector.fingerprint_page(page))
    return bodies, body


@pytest.mark.parametrize("more", PARTS.values(), ids=PARTS.keys())
def test_a_known_body_gives_what_reading_it_gives(more: str) -> None:
    html = f"<title>Story</title>{more}<p>{STORY}</p>"
    for first, second in permutations(URLS, 2):
        bodies, body = met(html, first)
        if (known := bodies.find(bodies.key(body, second) or 0, body, second)) is None:
            continue
        fresh = Detector()
        page = fresh.read(html, second)
        found, wanted = known.fingerprint, fresh.fingerprint_page(page)
        assert found == wanted
        assert found.own is not None
        assert wanted.own is not None
        assert found.own.main.tolist() == wanted.own.main.tolist()
        assert known.page.canonical == page.canonical
        root = parse(html)
        assert addresses(root, first) == addresses(root, second)


def test_in_one_folder_pages_of_ordinary_links_are_known() -> None:
    html = f"<title>Story</title>{PARTS['plain']}{PARTS['canonical']}{PARTS['fragment']}<p>{STORY}</p>"
    bodies, body = met(html, URLS[0])
    key = bodies.key(body, URLS[0])
    assert key is not None
    assert [bodies.key(body, url) == key for url in URLS] == [True] * 4 + [False] * 5
    assert all(bodies.find(key, body, url) for url in URLS[:4])


def test_what_is_read_otherwise_is_another_body() -> None:
    bodies = Bodies(Detector())
    ways = product((b"a story", b"a storx"), ("utf-8", "cp1252"), ("html", "text"))
    keys = [bodies.key(Body(*way), URLS[0]) for way in ways]
    assert len(set(keys)) == len(keys)
    assert bodies.key(Body(b"a story", "utf-16-le", "html"), URLS[0]) is None


def test_few_bodies_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    detector = Detector()
    bodies, fingerprint = Bodies(detector), detector.fingerprint(STORY)
    page = read_text(STORY, URLS[0])
    for key in (1, 2, 1, 3):
        bodies.add(key, URLS[0], page, fingerprint)
    body = Body(STORY.encode(), "utf-8", "text")
    assert [bodies.find(key, body, URLS[0]) is not None for key in (1, 2, 3)] == [True, False, True]
    long = page._replace(heading=("word",) * 1_000)
    assert bodies.add(4, URLS[0], long, fingerprint) is None


@driven
async def test_a_body_that_cant_be_looked_at_costs_no_page(tmp_path: Path) -> None:
    def fails() -> Body:
        raise ValueError

    async with filtering(tmp_path / "drops.jsonl") as it:
        assert await it.judge("a", "story", body=fails) == "keep: internal_error"


@driven
async def test_of_equal_bodies_the_first_is_read(tmp_path: Path) -> None:
    told: list[str] = []
    octets = Body(text("story").encode(), "utf-8", "html")

    def note(what: str, gives: object) -> object:
        told.append(what)
        return gives

    async with filtering(tmp_path / "drops.jsonl") as it:
        for path in "abcd":
            url = f"http://example.org/{path}"
            given = {
                "read": lambda path=path, url=url: note(f"read {path}", read(text("story"), url)),
                "links": lambda path=path: note(f"links of {path}", ["http://example.org/next"]),
            }
            outcome = await it.filter.judge(visit(path, "story", body=lambda: octets, **given))
            assert (outcome.page is None) == (path != "a")
            assert outcome.action == ("keep" if path == "a" else "drop")
        assert it.figures["equal_bodies"] == 3
    assert told == ["read a", "links of a", "links of b"]


@driven
async def test_a_drop_that_is_audited_is_read_for_that(tmp_path: Path) -> None:
    octets = Body(text("story").encode(), "utf-8", "html")
    async with filtering(tmp_path / "drops.jsonl", audit=1.0) as it:
        for path in "ab":
            url = f"http://example.org/{path}"
            it.crawl.pages[url] = text("story")
            await it.filter.judge(visit(path, body=lambda: octets, read=partial(read, text("story"), url)))
        await it.filter._copies._checks.copy().pop()
        assert (it.figures["audit/checked"], it.figures["equal_bodies"]) == (1, 1)


def test_known_bodies_change_no_crawl(crawl: Run, site: Site) -> None:
    story, short, asks = page("story", "/behind"), html("<p>Not found"), page("asks", "?page=2")
    paths = [f"/{name}{number}" for name in ("story", "short", "asks") for number in range(4)]
    pages = {"/": page("home", *paths), "/behind": page("behind")}
    pages |= {path: {"st": story, "sh": short, "as": asks}[path[1:3]] for path in paths}
    with_texts, without = crawl(pages, DEDUP_KEEP_TEXT=True), crawl(pages)
    figures = {**without.figures}
    assert figures.pop("equal_bodies") == 3
    assert figures == {name: n for name, n in with_texts.figures.items() if not name.startswith("changes/")}
    records = [record | {"time": ""} for record in without.records]  # of both crawls
    assert records[:6] == records[6:]
    assert len(with_texts.records) == 6
    assert with_texts.verdicts == without.verdicts
    # Each crawl asks once for an address of its own that can't exist.
    asked, again = ([path for path in done.requests if len(path) < 20] for done in (with_texts, without))
    assert asked == again
    assert len(with_texts.requests) == len(without.requests)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<base href=/x/><p>Some <a href=b>words</a> \n", None),
        (b"<html><body><p>Some words</body></html> <!-- x -->\n", None),
        (b"<p>Some words<!-- never closed", None),
        (b"", "empty"),
        (b"<p>Some words<a href='x", "truncated"),
    ],
)
def test_a_callback_gets_the_tree_that_scrapy_would_have_made(body: bytes, reason: str | None) -> None:
    response, other = (HtmlResponse("http://e.org/a/", body=body, encoding="utf-8") for _ in range(2))
    assert read_response(response, Detector()).reason == reason
    assert response.selector.response is response
    assert response.selector.type == other.selector.type
    assert response.selector.root.base_url == other.selector.root.base_url
    assert type(response.selector.root) is type(other.selector.root)
    if reason != "truncated":
        roots = (each.selector.root.getroottree() for each in (response, other))
        assert len({etree.tostring(root) for root in roots}) == 1
