"""What strangers write into a log, or answer a command with, makes it ask no host that it should not, nor wait for ever.

The sites are on loopback, so their addresses are internal ones.
"""

import asyncio
import gzip
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from dedup.scrapy.commands import doorkeeper
from dedup.scrapy.commands.doorkeeper import ASKED, Doorkeeper, RefusedError
from tests.support import ROOT, warm
from tests.support.crawls import Site, html, page, words
from tests.support.logs import record
from tests.support.processes import scrapy
from tests.support.waiting import LIMIT

#: Instead of DNS.
ADDRESSES = {
    "a.example": ["93.184.215.14"],
    "www.a.example": ["93.184.215.15"],
    "in.a.example": ["10.0.0.7"],
    "mixed.a.example": ["93.184.215.14", "127.0.0.1"],
    "gone.a.example": [],
    "b.example": ["93.184.215.16"],
    "127.0.0.1": ["127.0.0.1"],
}


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Asks the doorkeeper for a URL that another has led to; gives "", or why not."""

    async def resolve(name: str) -> list[str]:
        return ADDRESSES[name]

    monkeypatch.setattr(doorkeeper, "_resolve", resolve)

    def ask(url: str, asked: str = "", *, internal: bool = False, urls: tuple[str, ...] = ()) -> str:
        spider = SimpleNamespace(urls=urls or (asked or url,), internal=internal)
        crawler: Any = SimpleNamespace(spider=spider)
        request = Request(url, meta={ASKED: asked} if asked else {})
        try:
            asyncio.run(Doorkeeper(crawler).process_request(request))
        except RefusedError as refused:
            return str(refused)
        return ""

    return ask


@pytest.mark.parametrize(
    ("url", "asked", "said"),
    [
        ("http://a.example/", "http://a.example/x", ""),
        ("https://www.a.example:8443/", "http://a.example/", ""),
        ("http://a.example/", "http://www.a.example/", "it redirects to another host, a.example"),
        ("http://b.example/", "http://a.example/", "it redirects to another host, b.example"),
        ("http://ba.example/", "http://a.example/", "it redirects to another host, ba.example"),
        ("http://in.a.example/", "http://a.example/", "in.a.example has an internal address, 10.0.0.7"),
        (
            "http://mixed.a.example/",
            "http://a.example/",
            "mixed.a.example has an internal address, 127.0.0.1",
        ),
        ("http://gone.a.example/", "http://a.example/", "gone.a.example has no known address"),
        ("http://127.0.0.1/", "http://127.0.0.1/", "127.0.0.1 has an internal address, 127.0.0.1"),
    ],
)
def test_only_named_hosts_are_asked(ask: Callable[..., str], url: str, asked: str, said: str) -> None:
    assert ask(url, asked) == said


def test_a_host_that_was_meant_may_be_internal(ask: Callable[..., str]) -> None:
    assert ask("http://127.0.0.1:80/x", "http://127.0.0.1/", internal=True) == ""
    assert "internal" in ask("http://127.0.0.1:6379/", "http://127.0.0.1/", internal=True)
    assert "internal" in ask("http://in.a.example/", "http://a.example/", internal=True)


def test_the_robots_txt_of_any_host_that_was_named_is_asked_for(ask: Callable[..., str]) -> None:
    urls = ("http://a.example/1", "http://b.example/2", "http://127.0.0.1/3")
    assert ask("http://b.example/robots.txt", urls=urls) == ""
    assert "internal" in ask("http://127.0.0.1/robots.txt", urls=urls)
    assert ask("http://127.0.0.1/robots.txt", urls=urls, internal=True) == ""


# --- scrapy duplicates --fetch ------------------------------------------------------------------------


def drops(path: Path, *urls: str) -> Path:
    """Writes a log of drops for the page /kept."""
    lines = [json.dumps(record(url, urls[0].rpartition("/")[0] + "/kept")) for url in urls]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_a_strangers_log_asks_no_internal_address(site: Site, tmp_path: Path) -> None:
    log = drops(tmp_path / "log.jsonl", f"{site.url}/secret", "http://[", "http://127.0.0.1:1/")
    done = scrapy("duplicates", log, "--html", tmp_path / "report.html", "--fetch")
    assert (done.returncode, site.requests) == (0, [])
    assert f"fetching 4 pages again, of {site.url.removeprefix('http://')}, " in done.stdout
    said = sorted(done.stderr.splitlines())
    assert said == [
        "duplicates: 1 page not fetched: it is no URL",
        "duplicates: 3 pages not fetched: 127.0.0.1 has an internal address, 127.0.0.1 (see --anywhere)",
    ]


@pytest.mark.parametrize("anywhere", [False, True])
def test_no_redirect_leads_elsewhere(site: Site, tmp_path: Path, anywhere: bool) -> None:
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.pages = {
        "/kept": page("kept"),
        "/redirected": (302, {"Location": f"{elsewhere}/admin"}, b""),
        "/admin": html(f"<p>{words('secret')}"),
    }
    log = drops(tmp_path / "log.jsonl", f"{site.url}/redirected")
    report = tmp_path / "report.html"
    options = ["--anywhere"] if anywhere else ["-s", f"DEDUP_LOG={log}"]
    done = scrapy("duplicates", log, "--html", report, "--fetch", "-s", "ROBOTSTXT_OBEY=0", *options)
    assert done.returncode == 0
    expected = (
        "" if anywhere else "1 page not fetched: it redirects to another host, localhost (see --anywhere)"
    )
    assert done.stderr.removeprefix("duplicates: ").strip() == expected
    assert set(site.requests) == {"/kept", "/redirected"} | ({"/admin"} if anywhere else set())


# --- scrapy compare URL -------------------------------------------------------------------------------


@contextmanager
def talking(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says what a function sends; gives its address."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def drip(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.1)


def pour(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"word " * 20_000)


def bomb(connection: socket.socket) -> None:
    body = gzip.compress(bytes(20_000_000))
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


@pytest.mark.parametrize(
    ("answer", "timeout", "why"),
    [
        (drip, 1, "it takes longer than 1 seconds"),
        (pour, 60, "it has more than 16,777,216 bytes"),
        (bomb, 60, "exceeded DOWNLOAD_MAXSIZE"),
    ],
)
def test_endless_pages(
    tmp_path: Path, answer: Callable[[socket.socket], None], timeout: int, why: str
) -> None:
    (tmp_path / "page.html").write_text("<p>a page")
    with talking(answer) as url:
        options = ("-s", f"DOWNLOAD_TIMEOUT={timeout}", "-s", "ROBOTSTXT_OBEY=0")
        done = scrapy("compare", url, tmp_path / "page.html", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"compare: {url} can't be fetched: ")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_page_is_compared_as_a_crawl_gets_it(site: Site) -> None:
    text = f"<p>{words('story')} Käse"
    zipped = gzip.compress(text.encode("latin-1"))
    site.pages = {
        "/plain": html(text),
        "/zipped": (200, {"Content-Type": "text/html; charset=latin-1", "Content-Encoding": "gzip"}, zipped),
        "/moved": (301, {"Location": "/plain"}, b""),
        "/mislabelled": (200, {"Content-Type": "text/html; charset=zlib"}, text.encode()),
        "/gone": (404, {}, b"gone"),
        "/elsewhere": (302, {"Location": site.url.replace("127.0.0.1", "localhost")}, b""),
    }
    done = scrapy("compare", f"{site.url}/moved", f"{site.url}/zipped")
    assert (done.returncode, "verdict      near-duplicates" in done.stdout) == (0, True), done.stderr
    assert scrapy("compare", f"{site.url}/plain", f"{site.url}/mislabelled").returncode == 0
    for path, why in (
        ("/gone", "it has status 404"),
        ("/elsewhere", "it redirects to another host, localhost"),
    ):
        done = scrapy("compare", f"{site.url}/plain", site.url + path)
        assert done.stderr == f"compare: {site.url}{path} can't be fetched: {why}\n"


def test_a_file_of_any_size_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(3 << 30)
    (tmp_path / "page.html").write_text("<p>a page")
    done = scrapy("compare", tmp_path / "huge", tmp_path / "page.html")
    said = f"compare: {tmp_path}/huge has 3,221,225,472 bytes; a page may have 16,777,216\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


REBOUND = """
import socket, sys, time
from scrapy.settings import Settings
from dedup.scrapy.commands import doorkeeper
from dedup.scrapy.commands.fetch import Door, fetch

def resolve(name):
    answer = answers.pop(0)
    time.sleep(0.5)  # whoever else asks has asked by then
    return answer

doorkeeper.is_internal = lambda address: address == "127.0.0.1"  # 127.0.0.2 stands for what is not
answers = ["127.0.0.2", "127.0.0.1", "127.0.0.1"]
socket.gethostbyname = resolve
settings = Settings({"DOWNLOAD_TIMEOUT": 1, "DNSCACHE_ENABLED": False, "DNSCACHE_SIZE": 0})
fetch([sys.argv[1] + "/a", sys.argv[1] + "/b"], settings, print, print, door=Door(False), seconds=5, delay=0)
print(answers)
"""


def python(script: str, url: str) -> str:
    done = subprocess.run(
        [warm.python(), "-c", script, url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dns_is_asked_once(site: Site) -> None:
    said = python(REBOUND, site.url.replace("127.0.0.1", "a.example"))
    assert said.count("refused=False") == 2  # nobody answers at 127.0.0.2
    assert (said.splitlines()[-1], site.requests) == ("['127.0.0.1', '127.0.0.1']", [])


SLOW = """
import sys
from scrapy.settings import Settings
from dedup.scrapy.commands.fetch import Door, fetch

missed = {}
settings = Settings({"CONCURRENT_REQUESTS": 1, "DOWNLOAD_TIMEOUT": 2})
urls = [sys.argv[1] + str(number) for number in range(20)]
fetch(urls, settings, print, missed.__setitem__, door=Door(True), seconds=1, delay=0)
print(len(missed), [missed[urls[at]].why for at in (0, 19)])
"""


def test_all_pages_together_take_a_bounded_time() -> None:
    with talking(drip) as url:
        said = python(SLOW, url)
    whys = ["it takes longer than 2 seconds", "it was not reached within 1 seconds"]
    assert said == f"20 {whys}\n"
