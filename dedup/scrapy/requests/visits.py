"""Responses of Scrapy as visits of the filter: which are judged at all, and what is read of them."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import cast, get_args

from lxml import etree
from lxml.html import HTMLParser
from parsel.selector import create_root_node
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.linkextractors import IGNORED_EXTENSIONS
from scrapy.selector import Selector
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.utils.response import get_base_url

from dedup.filter import Body, Visit
from dedup.fingerprint.detector import Detector
from dedup.page.html import Page, parse_whole
from dedup.page.links import addresses
from dedup.page.read import read_body
from dedup.scrapy.judgement import META, Seen
from dedup.scrapy.requests.callbacks import callback_of
from dedup.settings import Action, Types

logger = logging.getLogger(__name__)

#: In the meta of a seed that its callback has sent again: its page id.
SEED = "dedup_seed"
#: In the meta of a request whose page was dropped, and of its copies: the page id.
DROPPED = "dedup_dropped"
#: In the meta of a request that the filter makes for itself.
OWN = "dedup_own"
#: In the meta of a request that scrapy-playwright has answered: the page in the browser, if the spider wants it.
TAB = "playwright_page"

#: Ends of addresses that lead to no page.
_NO_PAGES = frozenset(IGNORED_EXTENSIONS)
#: Media types of text without markup.
TEXTS = frozenset({"text/plain", "text/markdown", "text/x-markdown"})


def reason_to_skip(request: Request, response: Response, types: Types) -> str | None:
    """Returns why a response is not judged at all: it is not a page that a spider is to parse.  None if it is one."""
    if request.meta.get(META) is False:
        return "by_the_filter" if OWN in request.meta else "opted_out"
    if request.callback is NO_CALLBACK:
        return "no_callback"
    if request.method != "GET":
        return "method"
    if response.status != 200:
        return "status"
    return None if is_judged(response, types) else "type"


def is_judged(response: Response, types: Types) -> bool:
    """Returns whether a response is of the types that are judged."""
    return types == "all" or _kind(response) in {"html": {"html"}, "text": {"html", "json", "text"}}[types]


def _kind(response: Response) -> str | None:
    """Returns how a response is read; None if only its bytes can be compared."""
    if isinstance(response, HtmlResponse):
        return "html"
    if not isinstance(response, TextResponse):
        return None
    media = response.headers.get("Content-Type") or b""
    kind = media.partition(b";")[0].decode("ascii", "replace").strip().lower()
    if isinstance(response, JsonResponse) or kind.endswith("+json"):
        return "json"
    return "text" if kind in TEXTS else None


def visit(
    crawler: Crawler,
    request: Request,
    response: Response,
    *,
    detector: Detector,
    keep_start: bool,
    keep_text: bool = False,
    carried: int = 0,
) -> Visit:
    """Returns a page as the filter takes it; the keywords are the settings of these names, and what its request carries."""
    depth = request.meta.get("depth")
    return Visit(
        page_id(crawler, request),
        response.url,
        lambda: read_response(response, detector),
        referer=found_on(request),
        depth=depth if type(depth) is int and depth > 0 else 0,  # a spider may put anything there
        size=len(response.body),
        is_seed=keep_start and is_seed(crawler, request),
        action=asked(request),
        asked=request.meta.get("redirect_urls", [""])[0],
        links=lambda: linked(response),
        origin=request,
        carried=carried,
        kind=callback_of(request)[0],
        body=lambda: None if keep_text else _body(response),  # texts are kept of all pages, so all are read
    )


#: Responses that are nothing but their body and the encoding of that: subclasses may make something else of it.
_PLAIN = frozenset({HtmlResponse, JsonResponse, TextResponse})


def _body(response: Response) -> Body | None:
    """Returns the bytes of a page, if all that `read_response` makes of it depends on them, its encoding and its address."""
    if type(response) not in _PLAIN or _is_cut_off(response) or (kind := _kind(response)) is None:
        return None
    assert isinstance(response, TextResponse)
    if getattr(response, "_cached_selector", None) is not None:
        return None  # what another middleware has parsed it may have changed
    return Body(response.body, response.encoding, kind)


def linked(response: Response) -> Sequence[str]:
    """Returns the URLs that a page links to, but for those that Scrapy's link extractors leave out as no pages."""
    if not isinstance(response, HtmlResponse):
        return ()
    found = addresses(response.selector.root, response.url)
    return [url for url in found if url.rpartition(".")[2].lower() not in _NO_PAGES]


def asked(request: Request) -> Action | None:
    """Returns what a request wants to be done with its page if it is a near-duplicate; None if it doesn't say."""
    wanted = request.meta.get(META)
    if wanted is None or wanted is True or isinstance(wanted, Seen):
        return None
    if wanted in get_args(Action):
        return cast(Action, wanted)
    _warn(repr(wanted)[:100])
    return None


@lru_cache(maxsize=100)  # so it is said once
def _warn(wanted: str) -> None:
    allowed = ", ".join(map(repr, (False, *get_args(Action))))
    logger.warning("meta['dedup'] is %s, which is ignored; allowed: %s", wanted, allowed)


def read_response(response: Response, detector: Detector) -> Page:
    """Returns the tokens of a page, or the reason why there are none."""
    if _is_cut_off(response):
        return Page([], 0, "partial")
    if (kind := _kind(response)) is None:
        return read_body(response.body)
    assert isinstance(response, TextResponse)
    try:
        text = response.text
    except (LookupError, ValueError):  # a charset label that is no character set
        return Page([], 0, "undecodable")
    if kind == "html":
        return detector.read(text, response.url, lambda text: _tree(response, text))
    return detector.read_text(text, response.url, is_json=kind == "json")


def _tree(response: TextResponse, text: str) -> etree._Element:
    """Returns the tree of a page that its callback gets, too, as Scrapy makes it; it tells if the parser has stopped too early."""
    if response._cached_selector is None:
        base = get_base_url(response)
        root = parse_whole(text, lambda text: create_root_node(text, HTMLParser, base_url=base))
        response._cached_selector = Selector(root=root, type="html")
        response._cached_selector.response = response
    root = response.selector.root
    assert isinstance(root, etree._Element)
    return root


def _is_cut_off(response: Response) -> bool:
    # The flag "partial" only says that the server gave no length.
    return bool(response.flags) and not {"dataloss", "download_stopped"}.isdisjoint(response.flags)


def found_on(request: Request) -> str | None:
    """Returns the URL of the page on which a request was found; None if that is not known."""
    referer = request.headers.get("Referer")
    return referer.decode("ascii", "replace") if referer else None


def page_id(crawler: Crawler, request: Request) -> str:
    """Returns what the index knows a page by."""
    assert crawler.request_fingerprinter is not None
    return crawler.request_fingerprinter.fingerprint(request).hex()


def is_seed(crawler: Crawler, request: Request) -> bool:
    """Returns whether a crawl begins with a request, on its way to the spider, so that no other page leads to it.

    Start requests have a mark, which others may have copied.  Requests that a queue or an API feeds to the engine
    have none; but they have no depth either, which Scrapy gives to all that a callback yields.
    """
    meta = request.meta
    if SEED in meta and meta[SEED] == page_id(crawler, request):
        return True
    if "is_start_request" in meta:
        return bool(meta["is_start_request"]) and not meta.get("depth")
    return "depth" not in meta and crawler.get_spider_middleware(DepthMiddleware) is not None
