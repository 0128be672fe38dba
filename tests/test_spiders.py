"""Whatever a spider does, it gets with the filter every content that it got without.

Each test crawls over HTTP on loopback, mostly twice, first with the filter switched off.  The spiders of
docs/spiders.md are among those that crawl here.
"""

import re
from typing import Any

from scrapy import Request, Spider

from tests.support import ROOT
from tests.support.crawls import Run, Site, Walker, html, page, words


def documented(heading: str, site: Site) -> type[Spider]:
    """The spider that docs/spiders.md shows under a heading, let loose on the site of the test."""
    text = (ROOT / "docs" / "spiders.md").read_text()
    [section] = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    [block] = re.findall(r"^```python\n(import scrapy\n.*?)^```", section, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "documented"}
    exec(block.replace("https://example.org", site.url), names)  # noqa: S102
    [spider] = [each for each in names.values() if isinstance(each, type) and issubclass(each, Spider)]
    return spider


# --- Inline requests --------------------------------------------------------------------------------


def test_pages_that_a_callback_fetches_inline_are_not_judged(crawl: Run) -> None:
    class FetchesInline(Walker):
        async def parse(self, response: Any) -> Any:
            for path in ("/a", "/b", "/moved"):
                yield self.note(await self.crawler.engine.download_async(Request(self.url + path)))
            yield self.request("/c", callback=self.note)

    pages = {"/": page("home"), "/moved": (302, {"Location": "/d"}, b"")}
    pages |= {path: page("story", more=path) for path in ("/a", "/b", "/c", "/d")}
    done = crawl(pages, FetchesInline)
    assert done.verdicts == {"/a": None, "/b": None, "/d": None, "/c": "new"}
    assert done.figures == {"pages": 2, "new": 2, "skipped": 3, "skipped/inline": 3}
    assert done.mishaps == []


def test_the_documented_spider_gets_what_it_fetches_inline(crawl: Run, site: Site) -> None:
    pages = {"/": page("home", "/a", "/b")}
    for path in ("/a", "/b"):
        pages |= {path: page(path), path + "/price": html(f"<p>{words('menu')}</p><b>{path}</b>")}
    done = crawl(pages, documented("Inline requests", site))
    assert [item["price"] for item in done.items] == ["/a", "/b"]
    assert done.figures["skipped/inline"] == 2
