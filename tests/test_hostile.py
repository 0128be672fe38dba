"""Pages made to hurt: each is kept, judged or not, in bounded time and memory, and no crawl hangs on one.

The bounds are four times those of dedup/page/limits.py, since tests run on busy machines; what they are to catch,
quadratic time, is beyond them by far.
"""

import asyncio
import gzip
import json
import random
import re
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from scrapy.utils.test import get_crawler

from crawler.demo import Site
from crawler.spiders.site import SiteSpider
from dedup import Detector
from dedup.page.limits import MAX_ATTRIBUTES, MAX_CHARACTERS, MAX_TAGS
from tests.support import slow
from tests.support.crawls import words
from tests.support.packing import PACK
from tests.support.pages.lookalikes import NEGATIVES
from tests.support.pages.mutations import MUTATIONS
from tests.support.pages.tagsoup import SOUP, SURE, numbered, until
from tests.support.processes import scrapy
from tests.support.serving import served

SECONDS = 4 * 2
MEGABYTES = 4 * 200

# --- Bombs ------------------------------------------------------------------------------------------


FULL = MAX_CHARACTERS
TAGS = MAX_TAGS
CROWD = MAX_ATTRIBUTES // FULL

#: Name -> why it is not judged (None: it is), and the page.
BOMBS: dict[str, tuple[str | None, Callable[[], str]]] = {
    # One tag of many attributes, and what might hide it.
    "attributes": ("hostile", lambda: SURE + "<p" + numbered(" a#=1", 75_000) + ">"),
    "attributes without spaces": ("hostile", lambda: "<p " + numbered('a#=""', 75_000) + ">"),
    "attributes after NULs": ("hostile", lambda: "<\0p" + numbered("\0 \0a#", 75_000) + ">"),
    "attributes with quoted >": ("hostile", lambda: "<p" + numbered(' a#=">"', 75_000) + ">"),
    "attributes after one quoted >": ("hostile", lambda: '<p a=">"' + numbered(" a#", 75_000) + ">"),
    "attributes after a quote in a script": (
        "hostile",
        lambda: "<script>a='<p b=\"'</script><p" + numbered(' a#=">"', 75_000) + ">",
    ),
    "attributes of every tag": ("hostile", lambda: until(FULL, "<p" + numbered(" a#", 2_000) + ">")),
    "as many attributes as may be": (None, lambda: until(FULL, "<p" + numbered(" a#", CROWD) + ">", SURE)),
    "attributes of a tag without end": ("hostile", lambda: SURE + "<p" + numbered(" a#=1", 75_000)),
    "a long attribute": (None, lambda: SURE + "<p a='" + "x" * 3_900_000 + "'>"),
    # More than is judged.
    "a million comments": ("large", lambda: SURE + "<!--->" * 1_000_000),
    "a million nested elements": ("large", lambda: SURE + "<div>" * 1_000_000),
    "a text of 10 MB": ("large", lambda: SURE + "word " * 2_000_000),
    "16 MB of attributes": ("large", lambda: until(16_000_000, "<p" + numbered(" a#", 100_000) + ">")),
    # As much as is judged.
    "comments": (None, lambda: SURE + "<!--->" * (TAGS - 1)),
    "open elements": ("truncated", lambda: SURE + "<div>" * (TAGS - 1)),
    "table cells": (None, lambda: SURE + "<table>" + "<td>x" * (TAGS - 2)),
    "roles": (None, lambda: SURE + "<p role=navigation>x" * (TAGS - 2)),
    "parts within parts": ("truncated", lambda: SURE + "<nav><section><h1>" * (TAGS // 3 - 1)),
    "formatting": ("truncated", lambda: SURE + "<b><i><font>" * (TAGS // 3 - 1)),
    "links": (None, lambda: SURE + numbered("<a href=../#>", TAGS - 1)),
    "links under a deep base": (
        None,
        lambda: f"{SURE}<base href=http://e.org/{'a/' * 900}>" + numbered("<a href=#>", TAGS - 2),
    ),
    "links of many folders": (None, lambda: SURE + numbered(f"<a href={'../' * 600}#>", 2_000)),
    "words": ("truncated", lambda: until(FULL, "x ", "<p>")),
    "Han": ("truncated", lambda: until(FULL, "漢", "<p>")),
    "U+FDFA": ("truncated", lambda: until(FULL, "\ufdfa", "<p>")),
    "combining marks": (None, lambda: until(FULL, "\u0301\u0323", SURE)),
    "one long word": (None, lambda: until(FULL, "x", SURE)),
    "character references": (None, lambda: until(FULL, "&#x61;&amp;&zwj;", SURE)),
    "ampersands": ("truncated", lambda: until(FULL, "&am", SURE)),
    "less-than signs": (None, lambda: SURE + "<" * (TAGS - 1)),
    "a script without end": (None, lambda: until(FULL, "var x = 1; ", SURE + "<script>")),
    "a comment without end": (None, lambda: until(FULL, "--! -- ", SURE + "<!--")),
    "a doctype of entities": (
        None,
        lambda: "<!DOCTYPE a [" + "<!ENTITY a '&a;&a;'>" * 75_000 + f"]>{SURE}&a;",
    ),
    "a PNG of 3 MB": ("binary", lambda: "\x89PNG\r\n\x1a\n\0\0\0" * 250_000),
}
#: The longest, which the default run leaves out.
LONG = {
    "links under a deep base", "links of many folders", "Han", "ampersands", "attributes of every tag", "U+FDFA", "words",
    "as many attributes as may be", "combining marks", "character references", "roles", "table cells", "formatting",
    "attributes after NULs", "attributes after one quoted >", "16 MB of attributes", "a text of 10 MB", "links",
}  # fmt: skip
#: One for each reason, in a crawl.
CRAWLED = ("attributes", "a long attribute", "a million comments", "open elements", "a PNG of 3 MB")

#: Judges the pages of some files, each in a fork: reason, seconds, megabytes; null if that takes a minute.
JUDGE = """
import json, os, resource, sys, time
if sys.argv[1:]:
    sys.modules["dedup.fast"] = None
from dedup import Detector
detector = Detector()
for line in sys.stdin:
    child = os.fork()
    if not child:
        with open(line.strip(), "rb") as file:
            page = file.read()
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        reason = detector.fingerprint(page, "http://example.org/docs/", "utf-8").reason
        seconds = time.process_time() - started
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps([reason, seconds, memory / 1024]), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("null", flush=True)
"""
Judge = Callable[[str], tuple[str | None, float, float]]


@pytest.fixture(scope="module", params=["", pytest.param("in Python", marks=pytest.mark.slow)])
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Judges a page as it is judged here, or without what is compiled."""
    path = tmp_path_factory.mktemp("pages") / "page.html"
    command = [sys.executable, "-c", JUDGE, *filter(None, [request.param])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:
        stdin, stdout = runner.stdin, runner.stdout
        assert stdin
        assert stdout

        def judge(page: str) -> tuple[str | None, float, float]:
            path.write_bytes(page.encode("utf-8", "surrogatepass"))
            print(path, file=stdin, flush=True)
            judged = json.loads(stdout.readline())
            assert judged is not None, "it takes more than a minute"
            return judged[0], judged[1], judged[2]

        yield judge


@pytest.mark.parametrize("name", [slow(name) if name in LONG else name for name in BOMBS])
def test_a_bomb_is_dealt_with_in_bounded_time_and_memory(judge: Judge, name: str) -> None:
    expected, make = BOMBS[name]
    reason, seconds, megabytes = judge(make())
    assert reason == expected
    assert seconds < SECONDS
    assert megabytes < MEGABYTES


# --- Mutated pages ----------------------------------------------------------------------------------

SPLINTERS = [
    *(piece.encode() for piece in SOUP),
    b"\xff", b"\0", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1b$B", b"\xcc\x81", b"\xef\xb7\xba", b"&#x110000;",
    b"<base href=http://[>", b"<a href='//", b"<img src=", b"<frameset>", b"<svg>", b"<table>", b"<select>",
]  # fmt: skip
LABELS = [
    None, "utf-8", "utf-8", "latin-1", "utf-16", "shift_jis", "gb18030", "utf-7", "zlib", "punycode", "x" * 99,
]  # fmt: skip


def real_pages() -> list[bytes]:
    """Pages of the demo site and look-alikes, some of them changed as sites change."""
    site, chance = Site(), random.Random(1)
    pages = [site.render(path, visit=1)[2].decode() for path in list(site.pages)[:40]]
    pages += [page for pair in NEGATIVES.values() for page in pair(chance)]
    pages += [mutation(chance.choice(pages), chance, share=0.5) for mutation in MUTATIONS.values()]
    return [page.encode() for page in pages]


def damage(page: bytes, pages: list[bytes], chance: random.Random) -> bytes:
    """One page made of another: bytes flipped, parts lost, repeated, swapped, or taken from elsewhere."""
    data = bytearray(page)
    for _ in range(chance.choice((1, 3, 10, 100))):
        at, size = chance.randrange(len(data) + 1), int(1.5 ** chance.uniform(0, 20))
        match chance.randrange(6):
            case 0 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = chance.choice(SPLINTERS) * chance.choice((1, 1, 1, 2, 50))
            case 3:
                data[at:at] = (
                    data[at : at + size] * chance.choice((1, 1, 2, 20)) if len(data) < 10**5 else b""
                )
            case 4:
                other = chance.choice(pages)
                start = chance.randrange(len(other))
                data[at : at + size] = other[start : start + size]
            case 5:
                data[at:], data[:at] = data[:at], data[at:]
    return bytes(data)


REASONS = {None, "empty", "short", "truncated", "binary", "undecodable", "large", "hostile", "scripted"}


@pytest.mark.parametrize("number", [200, slow(100_000)])
def test_no_damaged_page_takes_long_or_raises(number: int) -> None:
    pages, chance, detector = real_pages(), random.Random(1), Detector()
    longest, reasons = 0.0, set()
    for _ in range(number):
        page, label = damage(chance.choice(pages), pages, chance), chance.choice(LABELS)
        started = time.process_time()
        fingerprint = detector.fingerprint(page, "http://example.org/docs/", label)
        longest = max(longest, time.process_time() - started)
        assert (fingerprint.simhash is None) <= (fingerprint.reason is not None)
        reasons.add(fingerprint.reason)
    assert reasons <= REASONS
    assert reasons > {None, "short"}  # pages of several kinds have come up
    assert longest < 2


# --- A crawl ----------------------------------------------------------------------------------------

Answer = tuple[dict[str, str], bytes]
HTML = {"Content-Type": "text/html; charset=utf-8"}
GZIP, DEFLATE, BROTLI, ZSTD = (
    HTML | {"Content-Encoding": name} for name in ("gzip", "deflate", "br", "zstd")
)


@contextmanager
def serve(answers: dict[str, Answer]) -> Iterator[str]:
    """Serves pages with headers of their own on loopback, and gives its address."""

    def answer(asked: BaseHTTPRequestHandler) -> tuple[int, Collection[tuple[str, str]], bytes]:
        headers, body = answers.get(asked.path, ({}, b""))
        return 200 if asked.path in answers else 404, headers.items(), body

    with served(answer) as port:
        yield f"http://127.0.0.1:{port}"


def text(path: str) -> bytes:
    """A page unlike that of any other path."""
    return f"<title>{path}</title><p>{words(path)} é".encode()


def test_a_crawl_keeps_every_bomb_and_hangs_on_none(tmp_path: Path) -> None:
    assert {BOMBS[name][0] for name in CRAWLED} == {reason for reason, _ in BOMBS.values()}
    bombs = {f"/bomb-{number}": (name, BOMBS[name][0]) for number, name in enumerate(CRAWLED)}
    labels = {f"/charset-{label}": label for label in ("zlib", "rot13", "idna", "undefined", "punycode")}
    how = {
        name: headers
        for headers in (GZIP, DEFLATE, BROTLI, ZSTD)
        if (name := headers["Content-Encoding"]) in PACK
    }
    cut = {f"/cut-{name}": name for name in how}
    kept_out = {"/gzip-bomb": GZIP, "/deflate-bomb": DEFLATE, "/17-mb": HTML}
    answers: dict[str, Answer] = {
        **{path: (HTML, BOMBS[name][1]().encode("utf-8")) for path, (name, _) in bombs.items()},
        **{
            path: ({"Content-Type": f"text/html; charset={label}"}, text(path))
            for path, label in labels.items()
        },
        **{path: (how[name], PACK[name](text(path) * 9)[:-300]) for path, name in cut.items()},
        "/gzip-bomb": (GZIP, gzip.compress(bytes(17 << 20), 1)),
        "/deflate-bomb": (DEFLATE, zlib.compress(bytes(17 << 20), 1)),
        "/17-mb": (HTML, bytes(17 << 20)),
        "/page": (HTML, text("/page")),
        **{f"/whole-{name}": (how[name], PACK[name](text(f"/whole-{name}"))) for name in how},
    }
    answers["/"] = (HTML, text("/") + "".join(f"<a href='{path}'>x</a>" for path in answers).encode())
    pages = tmp_path / "pages.jsonl"
    settings = {
        "DEDUP_INDEX": "memory:",
        "DEDUP_LOG": tmp_path / "log",
        "DOWNLOAD_DELAY": 0,
        "RETRY_ENABLED": 0,
    }
    with serve(answers) as url:
        options = [option for name, value in settings.items() for option in ("-s", f"{name}={value}")]
        done = scrapy("crawl", "site", "-a", f"start={url}/", "-O", pages, *options)
    output = done.stdout + done.stderr
    assert done.returncode == 0
    assert "Traceback" not in output
    items = {item["url"].removeprefix(url): item for item in map(json.loads, pages.read_text().splitlines())}
    assert set(items) == set(answers) - set(kept_out)
    for path in labels.keys() | {"/", "/page"}:
        fingerprint = Detector().fingerprint(answers[path][1].decode(), url + path)
        assert (items[path]["title"], items[path]["fingerprint"]) == (path, fingerprint.hex)
    for path in (f"/whole-{name}" for name in how):
        assert items[path]["title"] == path
        assert items[path]["fingerprint"]
    for path, (_, reason) in {**bombs, **dict.fromkeys(cut, ("", "partial"))}.items():
        assert (items[path]["fingerprint"] is None) == (reason is not None), path
    stats = dict(re.findall(r"^[ {]'(.*?)': '?([\w.]+)", output, re.MULTILINE))
    reasons = Counter(reason for _, reason in bombs.values() if reason) + Counter(partial=len(cut))
    assert {reason: int(stats[f"dedup/unjudged/{reason}"]) for reason in reasons} == reasons
    assert output.count("Not parsed, and its links not followed") == reasons["hostile"] + reasons["large"]
    assert output.count("exceeded DOWNLOAD_MAXSIZE") == 2
    assert "received more bytes than download max size" in output or "larger than download max size" in output
    assert stats["finish_reason"] == "finished"
    assert float(stats["elapsed_time_seconds"]) < 60


def test_the_audit_does_not_parse_a_kept_page_that_has_become_a_bomb(tmp_path: Path) -> None:
    class Fickle(dict[str, Answer]):
        def get(self, path: str, default: Answer) -> Answer:  # type: ignore[override]
            answer = super().get(path, default)
            if path != "/":
                self[path] = (HTML, BOMBS["attributes"][1]().encode())
            return answer

    answers = Fickle(dict.fromkeys(("/a", "/b"), (HTML, text("/a"))))
    answers["/"] = (HTML, text("/") + b"<a href=/a>a</a> <a href=/b>b</a>")
    settings = {"ADDONS": {"dedup.scrapy.Addon": 500}, "DEDUP_INDEX": "memory:", "DEDUP_AUDIT": 1.0}
    crawler = get_crawler(SiteSpider, settings | {"DEDUP_LOG": str(tmp_path / "log")})
    with serve(answers) as url:
        asyncio.run(crawler.crawl_async(start=f"{url}/"))
    stats = crawler.stats.get_stats()
    assert (stats["dedup/dropped"], stats["dedup/audit/failed"]) == (1, 1)
    assert stats["elapsed_time_seconds"] < 20
