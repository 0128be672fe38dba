"""A request in bytes, for the worker of another shard.

No pickle: whoever can write to the Redis of a crawl should not be able to run programs on all of its machines.  Where
a key is given, requests are signed with it.  Where none is, they are limited to what can do no harm: their class is one
of Scrapy's, their callback one that the spider's own requests have, and nothing in their meta has them sent elsewhere than
to their host, or names code that is to run.  A request that may not be handed over is crawled where it was found.
"""

import hmac
from collections.abc import Set as AbstractSet
from contextlib import suppress
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import msgspec
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import request_from_dict
from scrapy.utils.url import url_is_from_any_domain

from dedup.page.urls import strip_user
from dedup.printing import inert
from dedup.scrapy.requests.methods import callbacks

#: What a request has that nobody gave it.
_PLAIN = {name: value for name, value in Request("http://a.org").to_dict().items() if name != "url"}
_BARE = Request("http://a.org")
# Newer Scrapy makes headers, cookies and the like when they are asked for, which takes longer than a look at what is set.
_look = attrgetter(*(f"_{name}" if hasattr(_BARE, f"_{name}") else name for name in _PLAIN))
_NOTHING = _look(_BARE)
_CLASSES = {f"{each.__module__}.{each.__name__}" for each in (FormRequest, JsonRequest, XmlRpcRequest)}
#: Keys of meta by which Scrapy, or a plug-in, sends a request elsewhere than to its host, or imports or calls what they name.
_ELSEWHERE = ("proxy", "splash", "impersonate_args", "playwright_context_kwargs")
_CALLED = ("playwright_page_init_callback", "playwright_page_event_handlers")
#: Keys of meta that Scrapy sets to what a proxy of this machine's environment is.
_OF_THIS_MACHINE = ("_scheme_proxy", "_auth_proxy", "proxy")
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
    >>> packing.pack(request.replace(cb_kwargs={"a": object()}))
    """

    def __init__(self, spider: Spider, key: str = "") -> None:
        self._spider = spider
        self._key = key.encode()
        self._callbacks = callbacks(spider)
        self._names: dict[Any, str] = {}  # of methods of the spider, by their functions

    def pack(
        self,
        request: Request,
        without: AbstractSet[str] = frozenset(),
        without_meta: AbstractSet[str] = frozenset(),
    ) -> bytes | None:
        """Returns the request in bytes; None if it would not come back unchanged, or could be anybody's.

        Its callback has to be a method of the spider, and its meta of plain types: text, bytes, numbers, lists, dicts.
        None, too, if it has one of the fields ``without``, or one of these keys in its meta.
        """
        try:
            values = self._values(request)
            if not (without.isdisjoint(values) and without_meta.isdisjoint(values.get("meta", ()))):
                return None
            own = _everywhere(values)
            self._check(own)
            packed = msgspec.msgpack.encode(own, enc_hook=_text)
            return self._sign(packed) + packed if msgspec.msgpack.decode(packed) == own else None
        except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
            return None

    def _values(self, request: Request) -> dict[str, Any]:
        """Returns what `Request.to_dict` does, without what every request has.  May raise ValueError."""
        if type(request) is not Request:
            values = request.to_dict(spider=self._spider)
            return {
                name: value for name, value in values.items() if name not in _PLAIN or value != _PLAIN[name]
            }
        values = {"url": request.url}
        for name, held, nothing in zip(_PLAIN, _look(request), _NOTHING, strict=True):
            if held is not nothing and (value := getattr(request, name)) != _PLAIN[name]:
                values[name] = self._name(value) if name in ("callback", "errback") else value
        if "headers" in values:
            values["headers"] = dict(values["headers"])
        return values

    def _name(self, method: Any) -> str:
        """Returns the name of a method of the spider, for which Scrapy looks through all of them each time.  May raise ValueError."""
        function = getattr(method, "__func__", None)
        if function not in self._names:
            found = Request("http://a.org", callback=method).to_dict(spider=self._spider)
            self._names[function] = found["callback"]
        return self._names[function]

    def unpack(self, signed: bytes) -> Request:
        """Returns the request that was packed.  Raises `ValueError` if it is not one of this spider's."""
        try:
            packed = signed[SIGNATURE:] if self._key else signed
            if not hmac.compare_digest(signed[: len(signed) - len(packed)], self._sign(packed)):
                raise ValueError("it is not signed with DEDUP_HASH_KEY")
            values: dict[str, Any] = msgspec.msgpack.decode(packed, type=dict)
            self._check(values)
            return request_from_dict(values, spider=self._spider)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (strangers' values make anything raise)
            raise ValueError(
                f"what was handed over is no request of this spider: {inert(str(error))}"
            ) from None

    def _sign(self, packed: bytes) -> bytes:
        return hmac.digest(self._key, packed, "sha256") if self._key else b""

    def _check(self, values: dict[str, Any]) -> None:
        url = strip_user(values["url"])
        if url[:8].lower().partition("://")[0] not in ("http", "https"):
            raise ValueError(f"it asks for {url:.100}")
        if self._key:
            return
        for name in ("callback", "errback"):
            if values.get(name) is not None and values[name] not in self._callbacks:
                raise ValueError(f"no request of this spider has the {name} {values[name]!r:.100}")
        if "_class" in values and values["_class"] not in _CLASSES:
            raise ValueError(f"it is of the class {values['_class']!r:.100}")
        meta = values.get("meta") or {}
        if (values.get("dont_filter") or meta.get("allow_offsite")) and self._is_offsite(values["url"]):
            raise ValueError(f"it asks for {url:.100}, which is outside of the spider's sites")
        if not meta:
            return
        is_path = "." in str(meta.get("referrer_policy"))  # of a class, and no name of a policy
        for name in (*_ELSEWHERE, *_CALLED, *(["referrer_policy"] if is_path else [])):
            if meta.get(name) is not None:
                raise ValueError(f"its meta has a {name}, which is taken only with DEDUP_HASH_KEY")

    def _is_offsite(self, url: str) -> bool:
        """Whether Scrapy would not fetch it without its saying so: it is neither of the allowed domains nor a start."""
        if not (allowed := getattr(self._spider, "allowed_domains", None)):
            return False
        starts = (urlsplit(start).hostname for start in getattr(self._spider, "start_urls", ()))
        return not url_is_from_any_domain(url, [host for host in (*allowed, *starts) if host])


def _everywhere(values: dict[str, Any]) -> dict[str, Any]:
    """Leaves out of a request what each machine sets by its own environment: the proxy, and its password."""
    if "_scheme_proxy" not in values.get("meta", ()):
        return values
    meta = {name: value for name, value in values["meta"].items() if name not in _OF_THIS_MACHINE}
    headers = values.get("headers", {}).items()
    return values | {
        "meta": meta,
        "headers": {name: value for name, value in headers if name != b"Proxy-Authorization"},
    }


def _text(value: Any) -> str:
    """Returns a text of a kind of its own, such as lxml's, which the link extractors of Scrapy put into meta."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"no text: {type(value)}")


def named(request: Request) -> str:
    """Returns what a request is called in messages.

    >>> named(Request("http://me:secret@example.org/a"))
    '<GET http://example.org/a>'
    """
    return f"<{inert(request.method, 20)} {inert(request.url)}>"


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
