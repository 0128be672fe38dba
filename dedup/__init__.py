"""Near-duplicate pages, found while they are still in the downloader.

The pipeline, page -> tokens -> fingerprint -> verdict:

>>> import asyncio
>>> from dedup import Detector, open_index
>>> detector = Detector(min_tokens=10)
>>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time "
>>> pages = {
...     "http://example.org/lamp": f"<h1>The lamp</h1><p>{story * 4}</p><p>Visitor 1,203</p>",
...     "http://example.org/print/lamp": f"<p>THE LAMP<p>{story * 4}<!-- 12:05 --><p>Visitor 1,204",
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
http://example.org/print/lamp duplicate http://example.org/lamp
http://example.org/404 unjudged short

`html`, `shingles`, `sampling`, `simhash`, `minhash`, `signatures`, `bbit`, `bands` and `tables` are the papers'
algorithms, `limits` bounds what a page can cost; `detector` joins them; `index` files what is kept; `scrapy`
puts it all into a crawl.
"""

from dedup.errors import (
    DedupError,
    IndexCorruptError,
    IndexMismatchError,
    IndexUnavailableError,
    SettingsError,
)
from dedup.fingerprint.detector import Comparison, Detector, Features, Fingerprint
from dedup.index import Index, Verdict, open_index

__all__ = [
    "Comparison",
    "DedupError",
    "Detector",
    "Features",
    "Fingerprint",
    "Index",
    "IndexCorruptError",
    "IndexMismatchError",
    "IndexUnavailableError",
    "SettingsError",
    "Verdict",
    "open_index",
]
