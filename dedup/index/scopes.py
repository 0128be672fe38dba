"""Which pages are compared with each other: all, those of one host, those of one site."""

import hashlib
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tldextract import TLDExtract

__all__ = ["SCOPES", "scope_mask"]

SCOPES = ("all", "host", "site")


@cache
def _splitter() -> "TLDExtract":
    """The snapshot that tldextract ships: it looks nothing up, and every crawler gets the same answer."""
    import tldextract  # brings `requests` with it, and only the scope "site" needs it

    return tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())


@lru_cache(maxsize=1 << 12)
def _mask_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def scope_mask(scope: str, url: str) -> int:
    """A 64-bit number that pages share exactly when they are compared with each other.

    >>> scope_mask("all", "http://a.example.org/")
    0
    >>> a, b = "http://a.example.org:8080/x", "http://b.example.org/y"
    >>> scope_mask("site", a) == scope_mask("site", b), scope_mask("host", a) == scope_mask("host", b)
    (True, False)
    """
    if scope == "all":
        return 0
    try:
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        host = url
    if scope == "site":
        host = _splitter()(host).top_domain_under_public_suffix or host
    return _mask_of(host)
