"""Crawls a site of five pages with the code that is imported, and leaves what that writes in a folder.

A format that is changed gets a folder of its own: ``python -m tests.golden.make tests/golden/NAME`` with the code that
writes the new one.  What was there before stays, and `tests/test_golden.py` says whether it is still read.  The files:
an index (``index.sqlite.gz``, and ``redis.json`` with the keys of one in Redis), its ``export.jsonl``, and the drop log
with what lies beside it.
"""

import gzip
import http.server
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess

from tests.support.redis import running_server

PORT = 8321
URL = f"http://127.0.0.1:{PORT}"


def words(seed: str, count: int = 150) -> str:
    rng = random.Random(1)
    known = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 7))) for _ in range(400)]
    return " ".join(random.Random(seed).choices(known, k=count))


def pages() -> dict[str, str]:
    """The pages by their paths: ``/tale`` and ``/copy`` are equal, ``/story`` and ``/print`` but for their menus."""
    links = "".join(f'<a href="{path}">{path}</a>' for path in ("/story", "/print", "/tale", "/copy"))
    bodies = {
        "/": f"<p>{words('home')}{links}",
        "/story": f"<nav>{words('menu', 12)}</nav><h1>Story</h1><p>{words('story')}",
        "/print": f"<nav>{words('other menu', 9)}</nav><h1>Story</h1><p>{words('story')}",
        "/tale": f"<h1>Tale</h1><p>{words('tale')}",
        "/copy": f"<h1>Tale</h1><p>{words('tale')}",
    }
    return {path: f"<!doctype html><title>t</title>{body}" for path, body in bodies.items()}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(pages()[self.path].encode())


class Golden(scrapy.Spider):
    name = "golden"
    start_urls = [f"{URL}/"]  # noqa: RUF012

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield from response.follow_all(css="a")


def crawl(index: str) -> None:
    site = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    own = {"INDEX": index, "NAMESPACE": "golden", "LOG": "duplicates.jsonl"}
    process = CrawlerProcess(
        {
            "ADDONS": {"dedup.scrapy.Addon": 500},
            "CONCURRENT_REQUESTS": 1,
            **{f"DEDUP_{name}": value for name, value in own.items()},
        }
    )
    process.crawl(Golden)
    process.start()
    site.shutdown()


def keys(client: Any) -> dict[str, list[Any]]:
    """Each key with its kind and what it holds; octets are characters of the same numbers."""
    read = {
        b"string": client.get,
        b"hash": lambda key: list(client.hgetall(key).items()),
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
    }
    kinds = {key: client.type(key) for key in sorted(client.scan_iter())}
    return {_text(key): [_text(kind), _text(read[kind](key))] for key, kind in kinds.items()}


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [_text(each) for each in value] if isinstance(value, list | tuple) else value


def fill(client: Any, found: dict[str, list[Any]]) -> None:
    """Writes keys again."""
    for name, (kind, value) in found.items():
        key = name.encode("latin-1")
        if kind == "string":
            client.set(key, value.encode("latin-1"))
        elif kind == "hash":
            client.hset(key, mapping={a.encode("latin-1"): b.encode("latin-1") for a, b in value})
        else:
            client.zadd(key, {member.encode("latin-1"): score for member, score in value})


def main(folder: Path) -> None:
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="shingleback-") as name, running_server() as server:
        work = Path(name)

        def run(*command: str) -> None:
            subprocess.run([sys.executable, "-m", *command], cwd=work, check=True)

        run("tests.golden.make", "crawl", server.address)
        (folder / "redis.json").write_text(json.dumps(keys(server.client), indent=0))
        for path in work.glob("*.jsonl*"):
            path.unlink()
        run("tests.golden.make", "crawl", "file:index.sqlite")
        options = ("-s", "DEDUP_INDEX=file:index.sqlite", "-s", "DEDUP_NAMESPACE=golden")
        run("scrapy", "index", "export", *options, str(folder.absolute() / "export.jsonl"))
        (folder / "index.sqlite.gz").write_bytes(gzip.compress((work / "index.sqlite").read_bytes(), mtime=0))
        for path in work.glob("duplicates.jsonl*"):
            shutil.copy(path, folder)


if __name__ == "__main__":
    if sys.argv[1] == "crawl":
        crawl(sys.argv[2])
    else:
        main(Path(sys.argv[1]))
