"""What users may ask for page by page: what is done with one, how deep, and what of it doesn't count."""

import asyncio
import time
from pathlib import Path

import pytest

from dedup import Detector, IndexMismatchError, open_index
from dedup.page.read import read
from tests.support.crawls import Answer, Run, Site, asking, hold, html, page, words
from tests.support.processes import scrapy

#: /a and /b are near-duplicates, and so are /deep-a and /deep-b below them.
TREE = {
    "/": page("home", "/a", "/b"),
    "/a": page("story", "/deep-a", "/deep-b"),
    "/b": page("story", "/behind-b", more="changed"),
    "/deep-a": page("deep"),
    "/deep-b": page("deep", "/behind", more="changed"),
    "/behind": page("behind"),
    "/behind-b": page("behind b"),
}


@pytest.mark.parametrize("action", ["drop", "nofollow", "mark"])
def test_a_request_says_what_is_done_with_its_page(crawl: Run, action: str) -> None:
    own = crawl(TREE, asking(meta={"dedup": action}), DEDUP_ACTION="mark" if action == "drop" else "drop")
    settings = crawl(TREE, DEDUP_ACTION=action)
    asked = [[path for path in done.requests if path in TREE] for done in (own, settings)]
    assert asked[0] == asked[1]
    assert [record["action"] for record in own.records[:2]] == [action, action]


def test_a_start_page_is_dropped_if_its_request_says_so(crawl: Run) -> None:
    spider = type("Twice", (asking(meta={"dedup": "drop"}),), {"starts": ("/a", "/b")})
    assert crawl(TREE, spider).dropped == ["/b", "/deep-b"]


def test_a_wrong_wish_is_told_once(crawl: Run) -> None:
    done = crawl(TREE, asking(meta={"dedup": "Mark"}))
    assert done.dropped == ["/b", "/deep-b"]
    told = [m.getMessage() for m in done.messages if "meta['dedup']" in m.getMessage()]
    assert told == ["meta['dedup'] is 'Mark', which is ignored; allowed: False, 'drop', 'nofollow', 'mark'"]


def test_nothing_is_dropped_that_is_not_deep_enough(crawl: Run) -> None:
    done = crawl(TREE, DEDUP_MIN_DEPTH=2)
    assert done.dropped == ["/deep-b"]
    assert [record["action"] for record in done.records] == ["mark", "drop"]
    assert "/behind-b" in done.requests


@pytest.mark.parametrize("follow", ["never", "yield"])
def test_a_copy_leads_on_if_it_is_less_deep(crawl: Run, site: Site, tmp_path: Path, follow: str) -> None:
    """/deep is kept first, at the limit; what is behind it and its copy /near can only be reached from there."""
    pages = {"/": page("home", "/way", "/near"), "/way": page("way", "/deep"), "/behind": page("behind")}
    pages |= {path: page("list", "/behind") for path in ("/deep", "/near")}

    hold(site, "/near", 3)
    settings = {"CONCURRENT_REQUESTS": 2, "DEDUP_FOLLOW": follow, "DEDUP_INDEX": f"file:{tmp_path / 'index'}"}
    for _ in range(2):
        done = crawl(pages, DEPTH_LIMIT=2, **settings)
        assert {item["path"] for item in done.items} == {"/", "/way", "/deep", "/behind"}
        assert done.figures["depth/led_on"] == 1
    assert "depth/led_on" not in crawl(pages, **settings).figures


# --- The site's own word: canonical URLs -------------------------------------------------------------


def named(seed: str, canonical: str, *links: str, more: str = "") -> Answer:
    """A page that names a canonical URL."""
    status, headers, body = page(seed, *links, more=more)
    return status, headers, b'<link rel="Alternate Canonical" href="%s">' % canonical.encode() + body


def test_canonical_urls_are_told(crawl: Run, site: Site, tmp_path: Path) -> None:
    pages = {
        "/": page("home", "/lamp?sort=1", "/lamp?sort=2", "/print/lamp", "/copy", "/third", "/plain"),
        "/lamp?sort=1": named("lamp", "/lamp"),
        "/lamp?sort=2": named("lamp", "lamp#top", more="two"),
        "/print/lamp": named("lamp", "../lamp?sort=1", more="print"),
        "/copy": named("lamp", "/copy", more="copy"),
        "/third": named("lamp", "http://elsewhere.example/", more="third"),
        "/plain": page("lamp", more="plain"),
    }
    done = crawl(pages)
    told = {record["url"].removeprefix(site.url): record for record in done.records}
    assert {path: record["agrees"] for path, record in told.items()} == {
        "/lamp?sort=2": True,
        "/print/lamp": True,
        "/copy": False,
        "/third": None,
        "/plain": None,
    }
    assert told["/print/lamp"]["canonical"] == site.url + "/lamp?sort=1"
    assert told["/plain"]["canonical"] is None
    figures = {name: n for name, n in done.figures.items() if name.startswith("canonical")}
    assert figures == {"canonical": 4, "canonical/agrees": 2, "canonical/own": 1, "canonical/other": 1}
    [text] = [text for m in done.messages if "pages fetched" in (text := m.getMessage())]
    assert (
        "  site      4 of the near-duplicates name a canonical URL: on 2 that of the kept page, on 1 their own, "
        "on 1 that of a third page\n"
    ) in text
    shown = scrapy("duplicates", tmp_path / "duplicates.jsonl").stdout
    assert "2 of 3 whose canonical URL is the kept page's or their own name the kept page's" in shown


@pytest.mark.parametrize("href", ["", "javascript:alert(1)", "/" + "x" * 3_000, "ftp://a/b"])
def test_a_canonical_url_that_is_none_is_not_noted(href: str) -> None:
    assert read(f'<link rel=canonical href="{href}"><p>A page', "http://a.org/").canonical in {
        "",
        "http://a.org/",
    }


# --- What doesn't count: elements and text ------------------------------------------------------------


def tokens(html: str, *selectors: str, text: tuple[str, ...] = ()) -> str:
    return " ".join(Detector(ignore=selectors, ignore_text=text).read(html, "http://a.org/").tokens)


PAGE = """<body><div id=banner class="Cookies big"><p>We <b>like</b></p> cookies</div>one
<section><aside data-kind=ad><a href=/ad>Buy</a></aside> two <p><span class=ad>now</span> three</section> four"""


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        ("#banner", "one /ad buy two now three four"),
        (".Cookies, [data-kind=ad]", "one two now three four"),
        (".cookies", "we like cookies one /ad buy two now three four"),
        ("div > p", "cookies one /ad buy two now three four"),
        ("section .ad", "we like cookies one /ad buy two three four"),
        ("body section > aside a", "we like cookies one two now three four"),
        ("section *:not(p):not(.ad)", "we like cookies one two now three four"),
        ("body", ""),
    ],
)
def test_elements_that_a_selector_finds_do_not_count(selector: str, left: str) -> None:
    assert tokens(PAGE, selector) == left


def test_text_that_an_expression_finds_does_not_count() -> None:
    html = "<h1>12/05/2026 News</h1><p>Read 1,024 times<a href=/2026/05>May 2026</a>"
    assert tokens(html, text=(r"\d+/\d+/20\d\d", r"(?i)read [\d,]+ times")) == "news /2026/05 may 2026"
    plain = Detector(ignore_text=(r"\d+",)).read_text("in 2026 or\nin 2027")
    assert plain.tokens == ["in", "or", "in"]


@pytest.mark.parametrize(
    "html",
    [
        "<div class=a>" * 1_900 + "<div class=a>x</div>" * 38_000,
        ("<div class=a>" * 250 + "x" + "</div>" * 250) * 150,
        "<p>" + "ab " * 1_000_000,
        "<p>" + "a" * 3_000_000,
    ],
)
def test_no_page_makes_what_is_ignored_take_long(html: str) -> None:
    started = time.process_time()
    tokens(html, ".a .a .b", "div > div div > p", "div:not(.b) .c", text=(r"\s+$", r"a*b"))
    assert time.process_time() - started < 20


def test_a_banner_can_be_ignored(crawl: Run, tmp_path: Path) -> None:
    pages = {"/": page("home", "/a", "/b")} | {
        path: html(f"<p>{words('story', 60)}<div class=banner>{words(path, 300)}</div> seen {n} times")
        for n, path in enumerate(("/a", "/b"))
    }
    index = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite"}
    assert crawl(pages).dropped == []
    ignoring = {"DEDUP_IGNORE": [".banner"], "DEDUP_IGNORE_TEXT": [r"seen \d+ times"]}
    done = crawl(pages, **index, **ignoring)
    assert [(record["url"], record["rule"]) for record in done.records] == [(f"{done.spider.url}/b", "exact")]
    other = open_index(index["DEDUP_INDEX"], Detector(ignore=(".banner",)), chrome=False)
    with pytest.raises(IndexMismatchError, match=r"ignore_text is '\[\"seen .* there and '\[\]' here"):
        asyncio.run(other.open())
