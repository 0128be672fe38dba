"""Fetches pages for a command, as the project fetches pages, but in bounded time, and from no other host; reads others."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.settings import Settings
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.httpobj import urlparse_cached
from twisted.python.failure import Failure

from dedup.errors import SettingsError
from dedup.page.charset import decode
from dedup.printing import inert, printable
from dedup.scrapy.addon import CHARSET_ORDER
from dedup.scrapy.bodies import CharsetMiddleware
from dedup.scrapy.compat import accept_spider, crawler_process
from dedup.scrapy.robots import replace as replace_robots

#: Settings in place of the project's, so that the crawl neither judges pages nor writes anything.
_SETTINGS: dict[str, Any] = {
    "ADDONS": {},
    "CLOSESPIDER_ERRORCOUNT": 0,
    "CLOSESPIDER_ITEMCOUNT": 0,
    "CLOSESPIDER_PAGECOUNT": 0,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
    "DEDUP_ENABLED": True,  # the one component that is left mends labels
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "LOG_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "TWISTED_REACTOR_ENABLED": True,  # the process starts it
}
#: The most seconds of a page, body and all, and the most bytes.
TIMEOUT, MAX_PAGE = 30.0, 16 * 1024 * 1024
#: How many characters of a URL, and of a reason, are shown.
WIDTH = 200


#: The field of a request's meta with the URL that the command asks for, from which a redirect may have led away.
ASKED = "dedup_asked"


@accept_spider
class SameHost:
    """A downloader middleware that lets no redirect lead to another host; its crawler's spider has the ``urls`` that are asked for."""

    #: Its place: before robots.txt, so that of a refused host not even that is asked.
    ORDER = 50

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Is called by Scrapy."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Raises `IgnoreRequest` unless the host is that of the page that was asked for, or a subdomain of it."""
        spider: Any = self._crawler.spider
        asked = request.meta.get(ASKED)
        name = urlparse_cached(request).hostname or ""
        urls = [asked] if asked else spider.urls  # robots.txt is for any of them
        if not any(f".{name}".endswith(f".{urlparse_cached(Request(url)).hostname}") for url in urls):
            raise IgnoreRequest(f"it redirects to another host, {printable(name)}")


class _Fetcher(Spider):
    """Its attributes are the arguments that `fetch` gives it."""

    name = "fetch"
    urls: Collection[str]
    received: Callable[[str, Response], None]
    failed: Callable[[str, str], None]
    left: dict[str, None]  #: URLs that were neither received nor refused yet

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, errback=self._failed, meta={ASKED: url})

    def parse(self, response: Response) -> None:
        """Hands a page over."""
        url = response.meta[ASKED]
        self.left.pop(url, None)
        self.received(url, response)

    def _failed(self, failure: Failure) -> None:
        url = failure.request.meta[ASKED]  # type: ignore[attr-defined]
        self.left.pop(url, None)
        self.failed(url, self._why(failure.value))

    def _why(self, error: BaseException | None) -> str:
        kind = type(error).__name__
        if isinstance(error, HttpError):
            return f"it has status {error.response.status}"
        if "Timeout" in kind:
            return f"it takes longer than {self.settings.getfloat('DOWNLOAD_TIMEOUT'):g} seconds"
        if "Cancelled" in kind:
            return f"it has more than {self.settings.getint('DOWNLOAD_MAXSIZE'):,} bytes"
        if isinstance(error, IgnoreRequest) and str(error).startswith("Forbidden by robots.txt"):
            return "robots.txt forbids it"
        return printable(str(error).splitlines()[0] if str(error) else kind)


def fetch(
    urls: Collection[str],
    settings: Settings,
    received: Callable[[str, Response], None],
    failed: Callable[[str, str], None],
    *,
    seconds: float,
    delay: float,
) -> None:
    """Fetches pages, and calls ``received`` with the URL and the response, or ``failed`` with the URL and why.

    A page takes `TIMEOUT` seconds and has `MAX_PAGE` bytes at most, or less if the project says so; all take
    ``seconds`` at most, and as long as it takes to end what is under way then.  ``delay`` is in seconds,
    between two requests to a host.  robots.txt is obeyed if the project obeys it.
    It can be called once in a process.
    """
    own = settings.copy()
    own.setdict(
        _SETTINGS
        | {
            "CLOSESPIDER_TIMEOUT": seconds,
            "DOWNLOAD_DELAY": delay,
            "DOWNLOAD_TIMEOUT": min(TIMEOUT, settings.getfloat("DOWNLOAD_TIMEOUT") or TIMEOUT),
            "DOWNLOAD_MAXSIZE": min(MAX_PAGE, settings.getint("DOWNLOAD_MAXSIZE") or MAX_PAGE),
        },
        priority="cmdline",
    )
    replace_robots(own)
    own.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", CharsetMiddleware, CHARSET_ORDER)
    own.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", SameHost, SameHost.ORDER)
    left = dict.fromkeys(url for url in urls if _is_url(url))
    for url in set(urls) - left.keys():
        failed(url, "it is no URL")
    process = crawler_process(own)
    process.crawl(_Fetcher, urls=[*left], received=received, failed=failed, left=left)
    process.start()
    for url in left:
        failed(url, f"it was not reached within {seconds:g} seconds")


def fetch_pages(
    sources: Collection[str], settings: Settings, *, seconds: float, delay: float
) -> dict[str, tuple[str, str]]:
    """Returns the HTML and the final URL of those sources that are URLs, by source.

    Raises `SettingsError` if one of them can't be had.
    """
    urls = [source for source in sources if source.startswith(("http://", "https://"))]
    pages: dict[str, tuple[str, str]] = {}
    missed: dict[str, str] = {}

    def received(url: str, response: Response) -> None:
        html = response.text if isinstance(response, TextResponse) else decode(response.body)
        pages[url] = html, response.url

    if urls:
        fetch(urls, settings, received, missed.__setitem__, seconds=seconds, delay=delay)
    for url, why in missed.items():
        raise SettingsError(f"{inert(url, WIDTH)} can't be fetched: {inert(why, WIDTH)}")
    return pages


def read_page(source: str) -> tuple[bytes | str, str]:
    """Returns the HTML and the URL of a page that is given by HTML, by path, or by its text.

    Raises `SettingsError` for a file of more than `MAX_PAGE` bytes.

    >>> read_page("one < two")
    ('one &lt; two', '')
    """
    if len(source) < 4096 and "\n" not in source and "\0" not in source:
        with suppress(OSError):  # of a text that can't be a path
            if (path := Path(source)).is_file():
                with path.open("rb") as file:
                    html = file.read(MAX_PAGE + 1)
                if len(html) > MAX_PAGE:
                    size = path.stat().st_size
                    raise SettingsError(f"{source} has {size:,} bytes; a page may have {MAX_PAGE:,}")
                return html, f"http://localhost/{source}"
    return source if "<" in source and ">" in source else escape(source), ""


def _is_url(text: str) -> bool:
    try:
        return urlparse_cached(Request(text)).scheme in {"http", "https"}
    except ValueError:
        return False
