"""How servers pack the bodies of their answers."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

__all__ = ["PACK"]

#: What packs a body, by its Content-Encoding: of the newer ones, those that the installed Scrapy reads.
PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
with suppress(ImportError):
    PACK["br"] = import_module("brotli").compress
with suppress(ImportError):
    PACK["zstd"] = import_module("backports.zstd").compress
