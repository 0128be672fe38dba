"""Two faults of a body that Scrapy doesn't notice: its end is missing, or its label is no character set."""

from functools import lru_cache

from scrapy import Request
from scrapy.http import Response, TextResponse

from dedup.page.charset import charset
from dedup.page.codings import is_whole
from dedup.scrapy.component import Component


class WholenessMiddleware(Component):
    """Gives compressed bodies that were cut off the flag "dataloss"; stands before decompression.

    Scrapy would take the part that arrived for the whole page.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        """Passes the response on, with the flag if it needs it."""
        coding = (response.headers.get("Content-Encoding") or b"").decode("latin-1").strip().lower()
        if not coding or not response.body:
            return response
        whole = is_whole(coding, response.body)
        if whole is None:  # "partial" says that the server gave no length, so this may not be all
            whole = "partial" not in response.flags
        return response if whole else response.replace(flags=[*response.flags, "dataloss"])


class CharsetMiddleware(Component):
    """Replaces a label that is no character set (zlib, idna, punycode ...); stands after decompression.

    Scrapy hands any label to Python, which raises, so that the page is lost, or takes quadratic time.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        """Passes the response on, labelled UTF-8 if its own label is no character set."""
        if isinstance(response, TextResponse) and not _is_charset(response.encoding):
            return response.replace(encoding="utf-8")
        return response


@lru_cache(maxsize=64)  # a crawl meets few
def _is_charset(label: str) -> bool:
    return charset(label) is not None
