"""The policy of a crawl: what becomes of each page, whoever fetched it.

Nothing here knows Scrapy, and all that a crawler of one's own needs is here (docs/filter.md has one).  An archive that is
replayed goes through the very same filter as a crawl:

>>> import asyncio
>>> from dedup import Detector, open_index
>>> from dedup.filter import DropLog, Filter, Visit
>>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
>>> archive = {"http://a.org/lamp": story, "http://b.org/lamp": story, "http://a.org/404": "not found"}
>>> async def replay():
...     detector = Detector()
...     filter = Filter(open_index("memory:", detector), DropLog("/dev/null"))
...     for url, html in archive.items():
...         outcome = await filter.judge(Visit.of_html(html, url, detector))
...         print(url, outcome.action, outcome.verdict.of or outcome.verdict.reason)
...         await filter.handed_over(url)
...     await filter.close()
>>> asyncio.run(replay())
http://a.org/lamp keep None
http://b.org/lamp drop http://a.org/lamp
http://a.org/404 keep short
"""

from dedup.droplog.log import DropLog
from dedup.filter.bodies import Body
from dedup.filter.filter import Filter
from dedup.filter.stats import Counts, Stats
from dedup.filter.visit import Crawl, Outcome, Visit

__all__ = ["Body", "Counts", "Crawl", "DropLog", "Filter", "Outcome", "Stats", "Visit"]
