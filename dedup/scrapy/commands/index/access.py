"""How the verbs of `scrapy index` get at an index, its pages and the drop logs beside it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.request import fingerprint

from dedup.droplog.reader import find_logs
from dedup.errors import IndexUnavailableError, SettingsError
from dedup.index import Index
from dedup.index.survey import Survey
from dedup.printing import inert
from dedup.scrapy.compat import spider_loader
from dedup.scrapy.settings import Options

#: At most this many characters of a URL are shown.
WIDTH = 200


@asynccontextmanager
async def surveyed(index: Index) -> AsyncIterator[Survey]:
    """Yields a survey of an index, and closes both at the end.  Raises `IndexUnavailableError` if nothing is there."""
    try:
        survey = await index.survey()
        if survey is None:
            raise IndexUnavailableError(f"no index at {index.where}: nothing has been filed there yet")
        async with survey:
            yield survey
    finally:
        await index.close()


def page_id(url: str) -> str:
    """Returns the page id that a crawl gives to a page at this URL."""
    try:
        return fingerprint(Request(url)).hex()
    except ValueError:
        raise SettingsError(f"URL is '{inert(url, WIDTH)}'; allowed: an absolute URL") from None


def drop_logs(options: Options, named: list[Path]) -> list[Path]:
    """Returns the drop logs that are named, or else those of the project.  Raises `SettingsError`."""
    for log in named:
        if not log.is_file():
            raise SettingsError(f"LOG is '{log}', and no such file is here")
    return named or (find_logs(options.crawl.log) if options.crawl.log else [])


def spider_meant(settings: Settings, name: str) -> str:
    """Returns the spider whose index is meant, and puts its settings in force; "" if they name an index without it."""
    spiders = spider_loader(settings)
    own = {name: spiders.load(name).custom_settings or {} for name in spiders.list()}
    names = sorted(name for name in own if own[name].get("DEDUP_INDEX") != "memory:")  # others have no index
    named = settings.get("DEDUP_NAMESPACE") or str(settings.get("DEDUP_INDEX")).startswith("file:")
    if not name and (named or len(names) < 2):
        name = names[0] if len(names) == 1 else ""
    elif name not in names:
        raise SettingsError(
            f"--spider is {name!r}; allowed: one of {', '.join(names) or 'none, as there is no project here'}"
            if name
            else "each spider has an index of its own; say which is meant by --spider: " + ", ".join(names)
        )
    if name:
        spiders.load(name).update_settings(settings)
    return name
