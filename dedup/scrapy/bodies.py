"""Two faults of a body that Scrapy doesn't notice: its end is missing, or its label is no character set."""

import zlib

from scrapy import Request
from scrapy.http import Response, TextResponse

from dedup.page.html import charset
from dedup.page.limits import MAX_CHARACTERS
from dedup.scrapy.component import Component

__all__ = ["CharsetMiddleware", "WholenessMiddleware"]


class WholenessMiddleware(Component):
    """Gives compressed bodies that were cut off the flag "dataloss"; stands before decompression.

    Scrapy would take the part that arrived for the whole page.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        """Passes the response on, with the flag if it needs it."""
        encoding = (response.headers.get("Content-Encoding") or b"").strip().lower()
        if not encoding or not response.body:
            return response
        if encoding in {b"gzip", b"x-gzip", b"deflate"}:
            whole = _is_whole(response.body)
        else:  # "partial" says that the server gave no length, so this may not be all
            whole = "partial" not in response.flags
        return response if whole else response.replace(flags=[*response.flags, "dataloss"])


class CharsetMiddleware(Component):
    """Replaces a label that is no character set (zlib, idna, punycode ...); stands after decompression.

    Scrapy hands any label to Python, which raises, so that the page is lost, or takes quadratic time.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        """Passes the response on, labelled UTF-8 if its own label is no character set."""
        if isinstance(response, TextResponse) and charset(response.encoding) is None:
            return response.replace(encoding="utf-8")
        return response


def _is_whole(body: bytes) -> bool:
    """Whether a gzip or zlib stream comes to its end, or is longer than any page that is judged.

    >>> import gzip
    >>> body = gzip.compress(b"a page " * 1000)
    >>> _is_whole(body), _is_whole(body[:-1])
    (True, False)
    """
    stream, size = zlib.decompressobj(wbits=47), 0
    try:
        for start in range(0, len(body), 1024):  # a step becomes 1 MB at most
            size += len(stream.decompress(body[start : start + 1024]))
            if stream.eof or size > 4 * MAX_CHARACTERS:
                return True
    except zlib.error:  # at once: it is another format, which Scrapy may know; later: it is damaged
        return size == 0
    return False
