"""How servers pack the bodies of their answers."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module

from dedup.page.codings import ZSTD

#: What packs a body, by its Content-Encoding: of the newer ones, those that the installed Scrapy reads.
PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
with suppress(ImportError):
    # At 11, its default, it takes nine seconds for a bomb.
    PACK["br"] = partial(import_module("brotli").compress, quality=5)
with suppress(ImportError):
    PACK["zstd"] = import_module(ZSTD).compress
