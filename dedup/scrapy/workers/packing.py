"""A request in bytes, for the worker of another shard.

No pickle: whoever can write to the Redis of a crawl should not be able to run programs on all of its machines.
"""

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
from scrapy import Request, Spider
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import request_from_dict

__all__ = ["leave_slot", "pack", "unpack"]

#: What a request has that nobody gave it.
_PLAIN = {name: value for name, value in Request("http://a.org").to_dict().items() if name != "url"}


def pack(request: Request, spider: Spider) -> bytes | None:
    """The request in bytes; None if it would not come back as it is.

    Its callback has to be a method of the spider, and its meta of plain types: text, bytes, numbers, lists, dicts.

    >>> spider = Spider("walker")
    >>> request = Request("http://example.org/a", meta={"depth": 2}, callback=spider.parse)
    >>> back = unpack(pack(request, spider), spider)
    >>> back.url, back.meta, back.callback == spider.parse, len(pack(request, spider))
    ('http://example.org/a', {'depth': 2}, True, 54)
    >>> pack(request.replace(callback=lambda response: None), spider), pack(request.replace(meta={"a": (1, 2)}), spider)
    (None, None)
    """
    try:
        values = request.to_dict(spider=spider)
        own = {name: value for name, value in values.items() if name not in _PLAIN or value != _PLAIN[name]}
        packed = msgspec.msgpack.encode(own, enc_hook=_text)
        return packed if msgspec.msgpack.decode(packed) == own else None
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None


def _text(value: Any) -> str:
    """A text of a kind of its own, such as lxml's, which the link extractors of Scrapy put into meta."""
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError


def unpack(packed: bytes, spider: Spider) -> Request:
    """The request, as it was.  Raises `ValueError` if it is none, or if the spider lacks its callback."""
    try:
        values: dict[str, Any] = msgspec.msgpack.decode(packed, type=dict)
        return request_from_dict(values, spider=spider)
    except Exception as error:  # noqa: BLE001 (strangers' values make anything raise)
        raise ValueError(f"what was handed over is no request of this spider: {error}") from None


def leave_slot(request: Request) -> None:
    """Takes the slot of the host that redirected a request, or linked to it, out of its meta.

    Scrapy would keep the delay of that host for it, and none for its own.

    >>> moved = {"download_slot": "a.example", "redirect_urls": ["http://a.example/"]}
    >>> request = Request("http://b.example/", meta=moved)
    >>> leave_slot(request)
    >>> "download_slot" in request.meta
    False
    """
    slot = request.meta.get("download_slot")
    froms = [
        *request.meta.get("redirect_urls", ())[-1:],
        (request.headers.get("Referer") or b"").decode("latin-1"),
    ]
    with suppress(ValueError):
        if (
            slot
            and slot != urlparse_cached(request).hostname
            and slot in {urlsplit(url).hostname for url in froms}
        ):
            del request.meta["download_slot"]
