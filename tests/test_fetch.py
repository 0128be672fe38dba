"""What strangers answer a command with makes it ask no other host, nor wait for ever."""

import gzip
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import ROOT, warm
from tests.support.crawls import Site, html, words
from tests.support.processes import scrapy
from tests.support.waiting import LIMIT


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


SLOW = """
import sys
from scrapy.settings import Settings
from dedup.scrapy.commands.fetch import fetch

missed = {}
settings = Settings({"CONCURRENT_REQUESTS": 1, "DOWNLOAD_TIMEOUT": 2})
urls = [sys.argv[1] + str(number) for number in range(20)]
fetch(urls, settings, print, missed.__setitem__, seconds=1, delay=0)
print(len(missed), [missed[urls[at]] for at in (0, 19)])
"""


def test_all_pages_together_take_a_bounded_time() -> None:
    with talking(drip) as url:
        said = python(SLOW, url)
    whys = ["it takes longer than 2 seconds", "it was not reached within 1 seconds"]
    assert said == f"20 {whys}\n"
