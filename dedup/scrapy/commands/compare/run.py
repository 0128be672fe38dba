"""The work of `scrapy compare`: reads two pages, and prints why they are near-duplicates or are not, and what crawls made of them."""

import asyncio
import os
from collections.abc import Collection, Iterator, Mapping

from scrapy.settings import Settings

from dedup.batch.explanation import WIDTH, Side, compared
from dedup.batch.own import Tables
from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.index import Index
from dedup.index.hosts import Hosts
from dedup.page.charset import decode
from dedup.page.urls import host
from dedup.printing import inert
from dedup.scrapy.commands.fetch import fetch_pages, read_page
from dedup.scrapy.commands.index.access import spider_meant, surveyed
from dedup.scrapy.commands.index.why import fates
from dedup.scrapy.settings import Options, read_settings

#: The most seconds that fetching two pages may take.
SECONDS = 60.0


def run(a: str, b: str, settings: Settings, address: str = "", spider: str = "") -> int:
    """Compares two pages, given as a path or a URL each, and returns the exit status.

    The index at ``address``, that of a ``spider``, knows what is chrome of their host; "" asks none.
    """
    settings.set("DEDUP_INDEX", address or "memory:", "cmdline")
    options = read_settings(settings, spider_meant(settings, spider) if address else "")
    named = {"A": a, "B": b}
    for name, source in named.items():
        _check(name, source)
    fetched = fetch_pages({a, b}, settings, seconds=SECONDS, delay=0.0)
    pages = [_load(name, source, fetched.get(source), options.detector) for name, source in named.items()]
    plan = options.index.settings
    asked = address and plan.chrome
    known = asyncio.run(_ask(options.index, [side.url for side in pages])) if asked else None
    nothing = "nothing is known of the host: --index ADDRESS asks an index what many of its pages share"
    found = compared(options.detector, plan, pages, known, nothing)
    print(found)
    urls = {name: fetched[source][1] for name, source in named.items() if source in fetched}
    for line in crawled(options, urls):
        print(line)
    return 0 if found.duplicate else 1


def crawled(options: Options, urls: Mapping[str, str]) -> Iterator[str]:
    """Yields what the last crawl that met each page has made of it, by the logs of the project."""
    for name, url in urls.items():
        if found := fates(options, url, []):
            yield f"{f'crawl {name}':{WIDTH - 1}} {found[-1].told} {inert(found[-1].of)}".rstrip()


async def _ask(index: Index, urls: Collection[str]) -> Tables:
    """Reads what an index knows of the hosts of some pages, and closes it.  Raises `DedupError`s only."""
    names = set(map(host, urls))
    hosts = Hosts(index.detector.sketcher, index.settings)
    async with surveyed(index) as survey:
        async for found in survey.hosts():
            if found.table and found.name in names:
                hosts.merge({found.name: found.table})
    return Tables(hosts, index.where)


def _check(name: str, source: str) -> None:
    """Raises `SettingsError` for what is neither a file nor a URL."""
    if not source.startswith(("http://", "https://")) and not os.path.isfile(source):
        raise SettingsError(f"{name} is {source!r}, which is not a file; allowed: a path, or a http(s) URL")


def _load(name: str, source: str, fetched: tuple[str, str] | None, detector: Detector) -> Side:
    """Reads a page, unless it was fetched.  Raises `SettingsError` if it can't be had."""
    html, url = fetched or read_page(source)
    page = detector.read(decode(html), url)
    if not fetched:  # the name of a file says nothing of the address that the page had
        url, page = "", page._replace(names=(), place="")
    return Side(name, source, url, page, detector.fingerprint_page(page))
