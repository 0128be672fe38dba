"""The spider `warc`: the pages of archives, through the filter of a crawl, and without a network."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response, TextResponse
from scrapy.responsetypes import responsetypes

from crawler.checked import CheckedSpider
from crawler.items import PageItem
from dedup import SettingsError
from dedup.scrapy import judgement, refuse

if TYPE_CHECKING:  # every command of Scrapy loads all spiders
    from dedup.contrib.archives import Capture, Item

#: In the meta of a request: when its page was fetched.  The filter takes keys that begin so for no data of the spider.
FETCHED = "dedup_fetched"
#: In the meta of a request: the response that an archive has for it.
ARCHIVED = "archived"
#: What says how a body was packed, which it is no more.
PACKED = (b"content-encoding", b"content-length", b"transfer-encoding")


class ArchiveMiddleware:
    """Answers requests from archives, and no others; so nothing is asked of any server."""

    def process_request(self, request: Request) -> Response:
        """The response in the archive."""
        try:
            response: Response = request.meta.pop(ARCHIVED)
        except KeyError:
            raise IgnoreRequest("it is in no archive") from None
        return response


class WarcSpider(CheckedSpider):
    """``scrapy crawl warc -a path=FILE[,FILE...]``

    The files are what `scrapy dedup` reads.  Their pages come in the order of the files, as if they were fetched; no
    link is followed.
    """

    name = "warc"
    custom_settings = {  # noqa: RUF012 (as Scrapy declares it)
        "DOWNLOADER_MIDDLEWARES": {"crawler.spiders.warc.ArchiveMiddleware": 1},
        "DEDUP_KEEP_START": False,  # each page is one to begin with
        "DEDUP_PROBE": False,  # no page is there twice
        "CONCURRENT_REQUESTS": 1,  # in their order
        "REDIRECT_ENABLED": False,  # where to is in no archive, or is met anyway
        "METAREFRESH_ENABLED": False,
        "URLLENGTH_LIMIT": 0,  # what is long there was fetched all the same
        "DEDUP_INDEX": "memory:",
    }

    def __init__(self, path: str = "", **kwargs: Any) -> None:
        from dedup.contrib.archives import open_input

        super().__init__()
        try:
            if kwargs:
                raise SettingsError(f"this spider has no argument {', '.join(kwargs)}; allowed: path")
            if not path:
                raise SettingsError("path is missing; give one or more files: -a path=pages.warc.gz")
            self.readers = [open_input(Path(name)) for name in path.split(",")]
        except SettingsError as error:
            self.wrong = error

    async def start(self) -> AsyncIterator[Request]:
        """Requests the pages, each when the one before is on its way, so that few are in memory."""
        from dedup.contrib.archives.inputs import items

        assert self.crawler.engine is not None
        left_out = Counter[str]()
        try:
            for item in chain.from_iterable(map(items, self.readers)):
                request = _request(item, item.capture, self.failed) if item.capture else None
                if request is None:
                    left_out[item.why or "a URL that can't be requested"] += 1
                    continue
                while self.crawler.engine.needs_backout():
                    await self.crawler.signals.wait_for(signals.scheduler_empty)
                yield request
        except SettingsError as error:
            refuse(self.crawler, error)
        if left_out:
            why = ", ".join(f"{count:,} {name}" for name, count in sorted(left_out.items()))
            self.logger.warning("Not in this crawl: %s (docs/contrib/archives.md)", why)

    def parse(self, response: Response) -> Iterator[PageItem]:
        """Yields an item for the page."""
        from dedup.contrib.archives.capture import written

        judged = judgement(response)
        is_read = judged is not None and not judged.fingerprint.reason
        yield PageItem(
            url=response.url,
            status=response.status,
            title=(response.xpath("normalize-space(//title)").get() or None) if is_read else None,
            depth=0,
            fingerprint=judged.fingerprint.hex if judged else None,
            fetched=written(response.meta[FETCHED]),
        )


def _request(item: "Item", page: "Capture", errback: Any) -> Request | None:
    """The request for a page, with its response; None if its address can't be requested."""
    from dedup.contrib.archives.http import parse
    from dedup.contrib.archives.warc import Record

    try:
        request = Request(page.url, dont_filter=True, errback=errback, meta={FETCHED: page.fetched})
    except ValueError:
        return None
    headers = Headers({"Content-Type": "text/html" if page.kind == "html" else "text/plain"})
    if isinstance(item.raw, Record) and item.raw.block and (response := parse(item.raw.block)):
        headers = Headers({name: value for name, value in response.fields.items() if name not in PACKED})
        headers["Content-Type"] = response.type  # one, even if the server said several
    body = page.body if isinstance(page.body, bytes) else page.body.encode("utf-8", "replace")
    kind = responsetypes.from_args(headers=headers, url=page.url, body=body)
    whole = kind(
        page.url, headers=headers, body=body, flags=[] if page.whole else ["dataloss"], request=request
    )
    if isinstance(page.body, str) and isinstance(whole, TextResponse):
        whole = whole.replace(encoding="utf-8")
    request.meta[ARCHIVED] = whole
    return request
