"""A request in bytes, for the worker of another shard.

No pickle: whoever can write to the Redis of a crawl should not be able to run programs on all of its machines.  Where
a key is given, requests are signed with it.  Where none is, they are limited to what can do no harm: their class is one
of Scrapy's, and their callback one that the spider's own requests have.  A request that may not be handed over is
crawled where it was found.
"""

import hmac
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import request_from_dict

from dedup.scrapy.workers.callbacks import callbacks

__all__ = ["Packing", "leave_slot"]

#: What a request has that nobody gave it.
_PLAIN = {name: value for name, value in Request("http://a.org").to_dict().items() if name != "url"}
_CLASSES = {f"{each.__module__}.{each.__name__}" for each in (FormRequest, JsonRequest, XmlRpcRequest)}
#: Bytes of a signature.
SIGNATURE = 32


class Packing:
    """Packs and unpacks the requests of a spider.

    >>> spider = Spider("walker")
    >>> packing = Packing(spider)
    >>> request = Request("http://example.org/a", meta={"depth": 2}, callback=spider.parse)
    >>> back = packing.unpack(packing.pack(request))
    >>> back.url, back.meta, back.callback == spider.parse, len(packing.pack(request))
    ('http://example.org/a', {'depth': 2}, True, 54)
    >>> packing.pack(request.replace(callback=print)), packing.pack(request.replace(meta={"a": (1, 2)}))
    (None, None)
    """

    def __init__(self, spider: Spider, key: str = "") -> None:
        self._spider = spider
        self._key = key.encode()
        self._callbacks = callbacks(spider)

    def pack(self, request: Request) -> bytes | None:
        """The request in bytes; None if it would not come back as it is, or could be anybody's.

        Its callback has to be a method of the spider, and its meta of plain types: text, bytes, numbers, lists, dicts.
        """
        try:
            values = request.to_dict(spider=self._spider)
            own = {
                name: value for name, value in values.items() if name not in _PLAIN or value != _PLAIN[name]
            }
            self._check(own)
            packed = msgspec.msgpack.encode(own, enc_hook=_text)
            return self._sign(packed) + packed if msgspec.msgpack.decode(packed) == own else None
        except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
            return None

    def unpack(self, signed: bytes) -> Request:
        """The request, as it was.  Raises `ValueError` if it is none of this spider's."""
        try:
            packed = signed[SIGNATURE:] if self._key else signed
            if not hmac.compare_digest(signed[: len(signed) - len(packed)], self._sign(packed)):
                raise ValueError("it is not signed with DEDUP_HASH_KEY")
            values: dict[str, Any] = msgspec.msgpack.decode(packed, type=dict)
            self._check(values)
            return request_from_dict(values, spider=self._spider)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (strangers' values make anything raise)
            raise ValueError(f"what was handed over is no request of this spider: {error}") from None

    def _sign(self, packed: bytes) -> bytes:
        return hmac.digest(self._key, packed, "sha256") if self._key else b""

    def _check(self, values: dict[str, Any]) -> None:
        if urlsplit(values["url"]).scheme not in ("http", "https"):
            raise ValueError(f"it asks for {values['url']!r:.100}")
        if self._key:
            return
        for name in ("callback", "errback"):
            if values.get(name) is not None and values[name] not in self._callbacks:
                raise ValueError(f"no request of its has the {name} {values[name]!r:.100}")
        if "_class" in values and values["_class"] not in _CLASSES:
            raise ValueError(f"it is of the class {values['_class']!r:.100}")


def _text(value: Any) -> str:
    """A text of a kind of its own, such as lxml's, which the link extractors of Scrapy put into meta."""
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError


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
    referer = (request.headers.get("Referer") or b"").decode("latin-1")
    froms = [*request.meta.get("redirect_urls", ())[-1:], referer]
    with suppress(ValueError):
        is_other = slot and slot != urlparse_cached(request).hostname
        if is_other and slot in {urlsplit(url).hostname for url in froms}:
            del request.meta["download_slot"]
