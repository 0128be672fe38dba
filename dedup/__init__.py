"""Near-duplicate pages, found while they are still in the downloader.

The distribution is called ``shingleback``; one imports ``dedup``; its settings start with ``DEDUP_``, its keys
in Redis with ``shingleback:``.

The pipeline leads from a page to its tokens, its fingerprint and a verdict:

>>> import asyncio
>>> from dedup import Detector, open_index
>>> detector = Detector(min_tokens=10)
>>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time "
>>> pages = {
...     "http://example.org/lamp": f"<h1>The lamp</h1><p>{story * 4}</p><p>Visitor 1,203</p>",
...     "http://mirror.example.net/lamp": f"<h1>THE LAMP</h1><p>{story * 4}<!-- 12:05 --><p>Visitor 1,203",
...     "http://example.org/404": "<p>Not found",
... }
>>> async def crawl():
...     index = open_index("memory:", detector)
...     for url, html in pages.items():
...         verdict = await index.claim(url, url, detector.fingerprint(html, url))
...         print(url, verdict.status, verdict.of or verdict.reason)
...         await index.confirm(url)
...     await index.close()
>>> asyncio.run(crawl())
http://example.org/lamp new None
http://mirror.example.net/lamp duplicate http://example.org/lamp
http://example.org/404 unjudged short

`page` turns bytes into tokens, `fingerprint` tokens into fingerprints that can be compared, and `index` files the
pages that are kept.  `filter` is the policy of a crawl, `droplog` the log of what was dropped, `report` shows it;
`lab` measures how often the verdict is right.  `scrapy` puts all of it into a crawl.

The public names are loaded when they are first used, because Scrapy imports this package at every command.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from dedup.errors import (
    DedupError,
    IndexCorruptError,
    IndexMismatchError,
    IndexUnavailableError,
    SettingsError,
)

if TYPE_CHECKING:
    from dedup.batch.columns import clusters, duplicated, duplicates, originals
    from dedup.batch.explanation import Explanation, explain
    from dedup.batch.hamming import near_pairs
    from dedup.batch.own_text import own_text
    from dedup.batch.pages import Pages
    from dedup.batch.pages import open as open
    from dedup.batch.rows import unique
    from dedup.fingerprint.detector import Detector
    from dedup.fingerprint.features import Features
    from dedup.fingerprint.fingerprint import Comparison, Fingerprint
    from dedup.index import Index, Verdict, open_index

__version__ = "1.0.0.dev0"

__all__ = [
    "Comparison",
    "DedupError",
    "Detector",
    "Explanation",
    "Features",
    "Fingerprint",
    "Index",
    "IndexCorruptError",
    "IndexMismatchError",
    "IndexUnavailableError",
    "Pages",
    "SettingsError",
    "Verdict",
    "clusters",
    "duplicated",
    "duplicates",
    "explain",
    "near_pairs",
    "open_index",
    "originals",
    "own_text",
    "unique",
]  # not `open`, so that a star import leaves Python's own

# The threads that numpy starts for linear algebra, of which we do none, would first spin for 60 ms each, at every command.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # the least: 2 to this power processor cycles

#: The module that each name is loaded from.
_HOMES = {
    "Detector": "dedup.fingerprint.detector",
    "Features": "dedup.fingerprint.features",
    **dict.fromkeys(("Comparison", "Fingerprint"), "dedup.fingerprint.fingerprint"),
    **dict.fromkeys(("Index", "Verdict", "open_index"), "dedup.index"),
    **dict.fromkeys(("Explanation", "explain"), "dedup.batch.explanation"),
    "near_pairs": "dedup.batch.hamming",
    "own_text": "dedup.batch.own_text",
    **dict.fromkeys(("Pages", "open"), "dedup.batch.pages"),
    "unique": "dedup.batch.rows",
    **dict.fromkeys(("clusters", "duplicated", "duplicates", "originals"), "dedup.batch.columns"),
}


def __getattr__(name: str) -> object:
    """Loads a public name at its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *__all__})
