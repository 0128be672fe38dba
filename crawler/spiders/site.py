"""The spider `site`: every page of the start hosts, one item per kept page."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor

from crawler.checked import CheckedSpider
from crawler.items import PageItem
from dedup import SettingsError
from dedup.page.limits import UNPARSABLE, unreadable
from dedup.scrapy import judgement


class SiteSpider(CheckedSpider):
    """``scrapy crawl site -a start=URL[,URL...]|FILE [-a allow=REGEX] [-a deny=REGEX] [-a shard=I/N]``

    A file is a log of parked links: the crawl begins with those that it says are still parked.  The spider stays on
    the hosts of the start URLs and their subdomains.  It follows the links whose URL matches ``allow``, if that is
    given, and doesn't match ``deny``.  A page that would take too long to parse gives an item without a title, and
    its links are not followed.
    """

    name = "site"

    def __init__(self, start: str = "", allow: str = "", deny: str = "", **kwargs: Any) -> None:
        super().__init__()
        self.start_urls: list[str] = []
        try:
            if kwargs:
                raise SettingsError(
                    f"this spider has no argument {', '.join(kwargs)}; allowed: start, allow, deny, shard"
                )
            self._parked = _is_file(start)
            self.start_urls = _start_urls(start)
            self.allowed_domains = sorted({urlsplit(url).hostname or "" for url in self.start_urls})
            self._links = LinkExtractor(allow=_regex("allow", allow), deny=_regex("deny", deny))
        except SettingsError as error:
            self.wrong = error

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Is called by Scrapy.  ``shard`` is the setting DEDUP_SHARD."""
        if shard := kwargs.pop("shard", ""):
            crawler.settings.set("DEDUP_SHARD", shard, "cmdline")
        return super().from_crawler(crawler, *args, **kwargs)

    async def start(self) -> AsyncIterator[Request]:
        """Requests the start URLs.  Unlike with Scrapy's default, a link to one of them doesn't fetch it again."""
        # What was parked is no page to begin with, but like others.
        meta = {"dedup": "drop"} if self._parked else {}
        for url in self.start_urls:
            yield Request(url, errback=self.failed, meta=dict(meta))

    def parse(self, response: Response) -> Iterator[PageItem | Request]:
        """Yields an item for the page, and requests for its links."""
        if not isinstance(response, HtmlResponse):
            return
        judged = judgement(response)
        was_read = judged is not None and judged.fingerprint.reason is None
        reason = None if was_read else unreadable(response.text)  # else it is asked here
        parsable = reason not in UNPARSABLE
        title = response.xpath("normalize-space(//title)").get() if parsable else None
        yield PageItem(
            url=response.url,
            status=response.status,
            title=title or None,
            depth=response.meta.get("depth", 0),
            fingerprint=judged.fingerprint.hex if judged else None,
            fetched=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if not parsable:
            self.logger.warning("Not parsed, and its links not followed: %s is %s", response, reason)
            return
        for link in self._links.extract_links(response):
            yield Request(link.url, errback=self.failed)


def _is_file(start: str) -> bool:
    """Whether a start is no URL, but the path of a log of parked links."""
    return bool(start) and "://" not in start and Path(start).is_file()


def _start_urls(start: str) -> list[str]:
    if _is_file(start):
        from dedup.scrapy.links.parked import parked_urls  # not above: few crawls begin so

        urls = list(parked_urls(Path(start)))
        if not urls:
            raise SettingsError(
                f"start is {start!r}, which is a file without parked links; nothing is left to crawl"
            )
    else:
        urls = [url.strip() for url in re.split(r",(?=\s*\w+://)", start) if url.strip()]
    if not urls:
        raise SettingsError("start is missing; give one or more URLs: -a start=https://example.org/")
    safe = []
    for url in urls:
        try:
            safe.append(Request(url).url)  # escapes, and turns the host into ASCII
            parts = urlsplit(safe[-1])
            usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise SettingsError(
                f"start is {url!r}; allowed: http:// or https:// URLs, separated by commas, or a file of parked links"
            )
    return safe


def _regex(name: str, pattern: str) -> tuple[str, ...]:
    try:
        re.compile(pattern)
    except re.error as error:
        raise SettingsError(f"{name} is {pattern!r}, which is not a regular expression: {error}") from None
    return (pattern,) if pattern else ()
