"""A site of several hosts, the workers that crawl it, and what came of them."""

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy.cmdline import execute

from dedup.contrib.workers import shards
from dedup.index.redis import client
from tests.support import ROOT
from tests.support.processes import Forked
from tests.support.redis import Server
from tests.support.serving import Answer, served
from tests.support.waiting import wait_until


class Asked(NamedTuple):
    """A request that a site was sent."""

    when: float  #: by time.monotonic
    host: str
    path: str
    by: str  #: the number of the worker


class Hosts:
    """Contents, each at one host and as a near-duplicate at the next; they link to each other, whatever their host.

    Hosts are addresses of this machine: of two shards, these are of the first, the second, the first and the second.
    """

    def __init__(self, hosts: int = 4, contents: int = 40, wait: float = 0.0) -> None:
        self.names = ["127.0.0.1", "127.0.0.3", "127.0.0.2", "127.0.0.4"][:hosts]
        self.contents = contents
        self.asked: list[Asked] = []
        self.held: list[str] = []  #: the number of the worker of each request that is not answered yet
        self.port = 0
        self.headers = {"Content-Type": "text/html; charset=utf-8"}
        #: So many requests of a worker, by its number, are answered, and the next ones when this is raised.
        self.most: dict[int, int] = {}
        self._turns: dict[int, Iterator[int]] = {}
        self._wait = wait

    @property
    def starts(self) -> list[str]:
        """The URLs with which a crawl begins: one of each host."""
        return [self.url(content) for content in range(len(self.names))]

    def url(self, content: int, copy: int = 0) -> str:
        """A page with a content."""
        return (
            f"http://{self.names[(content + copy) % len(self.names)]}:{self.port}/{content}{'/copy' * copy}"
        )

    def page(self, host: str, path: str) -> str | None:
        """What a host has at a path."""
        found = re.fullmatch(r"/(\d+)(/copy)?", path)
        if found is None or int(found[1]) >= self.contents:
            return None
        content = int(found[1])
        if urlsplit(self.url(content, 1 if found[2] else 0)).hostname != host:
            return None
        rng = random.Random(content)
        # So long that by whichever hash key a deployment has drawn, the simhash of the copy is near.
        text = " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(800))
        near = {2 * content + 1, 2 * content + 2, self.contents - 1 - content}
        near.add(content + len(self.names))  # of the same host, so that no worker needs another one to go on
        starts = set(
            range(len(self.names))
        )  # have no copies that are found, so that each worker keeps a content
        links = [
            self.url(other, copy)
            for other in sorted(near - starts)
            if other < self.contents
            for copy in (0, 1)
        ]
        anchors = " ".join(f'<a href="{link}">more</a>' for link in links)
        return f"<title>{content}</title><p>{text}{' once more' if found[2] else ''}</p>{anchors}"

    def turn(self, worker: int) -> None:
        """Waits until one more request of a worker may be answered."""
        turn = next(self._turns.setdefault(worker, count(1)))
        wait_until(lambda: turn <= self.most.get(worker, turn))

    def gaps(self) -> dict[str, list[float]]:
        """The seconds between the requests to each host."""
        times: dict[str, list[float]] = {name: [] for name in self.names}
        for asked in sorted(self.asked):
            times[asked.host].append(asked.when)
        return {name: [b - a for a, b in pairwise(whens)] for name, whens in times.items()}


class Single(Hosts):
    """Each content is at one host only, so that all are kept."""

    def page(self, host: str, path: str) -> str | None:
        """Without the copies, and the links to them."""
        page = super().page(host, path)
        if page is None or path.endswith("/copy"):
            return None
        return "</a>".join(part for part in page.split("</a>") if '/copy"' not in part)


@contextmanager
def serve(site: Hosts) -> Iterator[Hosts]:
    """Serves a site on all of its hosts."""

    def answer(asked: BaseHTTPRequestHandler) -> Answer:
        host = asked.headers["Host"].partition(":")[0]
        by = asked.headers["User-Agent"]
        if by.isdecimal():
            site.held.append(by)
            site.turn(int(by))
        site.asked.append(Asked(time.monotonic(), host, asked.path, by))
        if by.isdecimal():
            site.held.remove(by)  # who sees that nothing is held has to see all that was asked
        time.sleep(site._wait)
        page = site.page(host, asked.path)
        return 404 if page is None else 200, site.headers.items(), (page or "").encode()

    with served(answer, "0.0.0.0") as site.port:
        try:
            yield site
        finally:
            site.most.clear()


def _work(arguments: list[str], lease: float) -> None:
    os.chdir(ROOT)
    shards.LEASE, shards.BEAT = lease, 0.1
    client.TIMEOUT = client.DEADLINE = lease  # who hears nothing of Redis for longer has lost it
    execute(["scrapy", *arguments])


class Files:
    """The command of a worker, and its files in a folder of all workers: its items, its drops and its log."""

    def __init__(self, site: Hosts, folder: Path, shard: str | None, **settings: object) -> None:
        number = len(list(folder.glob("log-*")))
        self.log, self.items = folder / f"log-{number}", folder / f"items-{number}-%(time)s.jsonl"
        self.log.touch()
        starts = ",".join(settings.pop("starts", site.starts))  # type: ignore[arg-type]
        values: dict[str, object] = {
            "USER_AGENT": number, "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 4, "DEDUP_LOG": folder / f"drops-{number}.jsonl",
            "DEDUP_EXPECTED_PAGES": 1000, "DEDUP_HEIR": "all", "DEDUP_CHROME": False,
            "DEDUP_KEEP_START": False, "LOG_FILE": self.log,
        } | settings  # fmt: skip
        self.command = ["crawl", "site", "-a", f"start={starts}", "-o", str(self.items)]
        if shard:
            self.command += ["-a", f"shard={shard}"]
        for name, value in values.items():
            self.command += ["-s", f"{name}={value}"] if value is not None else []

    def stats(self) -> Counter[str]:
        """The whole numbers among its stats."""
        found = re.findall(r"^ ?\{?'([\w/]+)': (\d+)[,}]", self.log.read_text(), re.MULTILINE)
        return Counter({name: int(value) for name, value in found})


class Worker(Files, Forked):
    """A running ``scrapy crawl site``, with ``-a shard=...`` if it has one."""

    def __init__(
        self, site: Hosts, folder: Path, shard: str | None, *, lease: float = 60.0, **settings: object
    ) -> None:
        Files.__init__(self, site, folder, shard, **settings)
        Forked.__init__(self, _work, self.command, lease)


def a_minute_later(server: Server, *shards: int, namespace: str = "shingleback/site") -> None:
    """The leases of workers that are silent are over, and that of the crawl's beginning."""
    state = f"shingleback:shards:{{{namespace}}}:state"
    server.client.hset(state, "began", 1)
    for number in shards:
        server.client.hdel(state, f"lease:{number}")


def kept_urls(folder: Path) -> list[str]:
    """The URLs that were kept, by all workers."""
    lines = [line for file in folder.glob("items-*.jsonl") for line in file.read_text().splitlines()]
    return [json.loads(line)["url"] for line in lines if line.endswith("}")]


def kept(folder: Path) -> Counter[int]:
    """How often each content was kept, by all workers."""
    return Counter(int(urlsplit(url).path.split("/")[1]) for url in kept_urls(folder))
