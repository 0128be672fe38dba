"""A long crawl without a network: CPU and memory by the number of kept pages, and the bytes of index and log.

    python -m benchmarks.long_crawl plain|file|redis [--pages 100000] [--words 120] [--figures FILE]

A spider follows two links of each page; pages are made on the spot, those of `benchmarks.memory`, none like another, of six hosts.
Each tenth is told when it is done: ms of CPU a page in it, MB of the process, of the index (file, or memory of the private
server) and of the log.
"""

import argparse
import os
import random
import resource
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import HtmlResponse, Request, Response

from benchmarks import figures
from benchmarks.memory import page, resident
from tests.support.redis import running_server

HOSTS = 6
ROW: dict[str, object] = {}


class Maker:
    """Answers every request itself: a downloader middleware."""

    def process_request(self, request: Request) -> Response:
        number = int(request.url.rpartition("/")[2])
        _, html = page(random.Random(number), WORDS)
        links = "".join(
            f"<a href=http://host{next % HOSTS}.example/a/{next}>on</a>"
            for next in (2 * number + 1, 2 * number + 2)
        )
        return HtmlResponse(request.url, body=(html + links).encode(), encoding="utf-8")


class Long(scrapy.Spider):
    name = "long"

    async def start(self) -> AsyncIterator[Request]:
        self.done, self.cpu = 0, cpu()
        yield Request("http://host0.example/a/0")

    def parse(self, response: Response) -> Iterator[object]:
        self.done += 1
        yield {"url": response.url}
        for link in response.css("a[href*='/a/']::attr(href)").getall():
            if int(link.rpartition("/")[2]) < PAGES:
                yield response.follow(link)
        if self.done % (PAGES // 10) == 0:
            ms, self.cpu = (cpu() - self.cpu) / (PAGES // 10) * 1e3, cpu()
            sizes = f"{resident() / 1e6:6.1f} MB, index {stored() / 1e6:6.1f} MB, log {size('*.jsonl') / 1e6:.2f} MB"
            print(f"{self.done:>8,} pages {ms:6.2f} ms of CPU a page, {sizes}", flush=True)
            ROW[f"MB at {self.done:,}"], ROW["ms a page"] = round(resident() / 1e6), round(ms, 1)
            ROW["bytes a page"] = round(stored() / self.done)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def size(pattern: str) -> int:
    return sum(os.path.getsize(path) for path in FOLDER.glob(pattern))


def stored() -> int:
    return SERVER.client.info("memory")["used_memory"] if SERVER else size("index.sqlite*")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", choices=("plain", "file", "redis"))
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=120)
    figures.add_option(parser)
    options = parser.parse_args()
    PAGES, WORDS = options.pages, options.words
    ROW["index"] = options.store
    with ExitStack() as stack:
        FOLDER = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        SERVER = (
            stack.enter_context(running_server("--appendonly", "no")) if options.store == "redis" else None
        )
        settings = {
            "LOG_LEVEL": "ERROR",
            "ROBOTSTXT_OBEY": False,
            "DOWNLOADER_MIDDLEWARES": {Maker: 900},
            "TELNETCONSOLE_ENABLED": False,
        }
        if options.store != "plain":
            settings |= {
                "ADDONS": {"dedup.scrapy.Addon": 500},
                "DEDUP_INDEX": SERVER.address if SERVER else f"file:{FOLDER}/index.sqlite",
                "DEDUP_LOG": f"{FOLDER}/duplicates.jsonl",
            }
        process = AsyncCrawlerProcess(settings)
        process.crawl(Long)
        process.start()
        print(f"log {size('*.jsonl'):,} bytes, index {stored():,} bytes")
        figures.write(options.figures, [ROW])
