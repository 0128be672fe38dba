"""The links of a page as URLs, to see whether its callback could find any that were not met before."""

from collections.abc import Iterator

from lxml import etree
from scrapy.http import HtmlResponse, Response

from dedup.page.ids import MAX_URL
from dedup.page.urls import join

__all__ = ["hrefs"]

#: More links are not looked at: a page of so many has new ones.
MAX_HREFS = 2_000


def hrefs(response: Response) -> list[str] | None:
    """The URLs, each once, to which a page links by HTTP; None if they can't be told.

    A link of another kind, which only a script follows, is not among them.
    """
    if not isinstance(response, HtmlResponse):
        return None
    found = dict.fromkeys(_urls(response.selector.root, response.url))
    return list(found) if len(found) <= MAX_HREFS else None


def _urls(root: etree._Element, url: str) -> Iterator[str]:
    base = next((each.get("href") for each in root.iter("base") if each.get("href")), None)
    start = join(url, base.strip()) if base else url
    for node in root.iter("a", "area", "link", "iframe", "frame", "form"):
        href = (node.get("href") or node.get("src") or node.get("action") or "").strip()
        if not href or href[0] == "#" or len(href) > MAX_URL:
            continue
        found = join(start, href).partition("#")[0]
        if found.startswith(("http://", "https://")):
            yield found
