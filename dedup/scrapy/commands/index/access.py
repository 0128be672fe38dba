"""How the verbs of `scrapy index` get at an index and its pages."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from scrapy import Request
from scrapy.utils.request import fingerprint

from dedup.errors import IndexUnavailableError, SettingsError
from dedup.index import Index
from dedup.index.survey import Survey
from dedup.printing import inert

__all__ = ["WIDTH", "page_id", "surveyed"]

#: At most this many characters of a URL are shown.
WIDTH = 200


@asynccontextmanager
async def surveyed(index: Index) -> AsyncIterator[Survey]:
    """Surveys an index, which is closed at the end.  Raises `IndexUnavailableError` if nothing is there."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(index.close)
        survey = await index.survey()
        if survey is None:
            raise IndexUnavailableError(f"no index at {index.where}: nothing has been filed there yet")
        stack.push_async_callback(survey.close)
        yield survey


def page_id(url: str) -> str:
    """The page id that a crawl gives to a page that it requests at a URL."""
    try:
        return fingerprint(Request(url)).hex()
    except ValueError:
        raise SettingsError(f"URL is '{inert(url, WIDTH)}'; allowed: an absolute URL") from None
