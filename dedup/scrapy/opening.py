"""Opens the filter of a crawl: its index, its drop log and the history of the site."""

import logging
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from dedup.compiled import fast
from dedup.droplog.log import DropLog
from dedup.errors import DedupError, IndexUnavailableError
from dedup.filter import Filter
from dedup.printing import many
from dedup.scrapy.carried import Carried
from dedup.scrapy.engine import Engine
from dedup.scrapy.jobs import left_run, new_run
from dedup.scrapy.settings import (
    Options,
    check_for_crawl,
    in_memory,
    is_chosen,
    is_sharded,
    read_settings,
    spelled,
)

if TYPE_CHECKING:
    from dedup.history.file import History
    from dedup.scrapy.workers.shards import ShardMiddleware

logger = logging.getLogger(__name__)

_FATES = {"drop": "dropped", "nofollow": "kept, but their links not followed", "mark": "kept"}


async def open_filter(
    crawler: Crawler, spider: Spider, log: logging.LoggerAdapter[logging.Logger]
) -> tuple[Filter, Options]:
    """Returns the filter of a crawl, which is about to begin, and its settings.  Raises `DedupError`s."""
    settings: BaseSettings = crawler.settings
    shards = shards_of(crawler)
    crawl = await shards.crawl_name() if shards else ""
    run = left_run(settings) or new_run(crawl)
    options = read_settings(settings, spider.name, run)
    check_for_crawl(options)
    drops = _drop_log(crawler, options.crawl.log, log)
    try:
        return await _open(crawler, log, options, drops), options
    except IndexUnavailableError as error:
        other = in_memory(settings)
        if other is None:
            raise
        log.warning(
            "%s. Until then, this crawl judges its pages by an index in memory, and files nothing",
            spelled(error),
        )
        options = read_settings(other, spider.name)
        return await _open(crawler, log, options, drops), options


def _drop_log(crawler: Crawler, path: str, told: logging.LoggerAdapter[logging.Logger]) -> DropLog:
    """Returns the drop log.  If nobody has chosen it, it may be out of reach: nothing is dropped then."""
    assert crawler.spider is not None
    name = crawler.spider.name
    try:
        return DropLog(path, name)
    except DedupError as error:
        if is_chosen(crawler.settings, "log"):
            raise
        told.warning("%s. As long as it can't, this crawl drops nothing", spelled(error))
        return DropLog(path, name, tries=False)


def shards_of(crawler: Crawler) -> "ShardMiddleware | None":
    """Returns what makes a crawl one of several workers, if it is."""
    if not is_sharded(crawler.settings):
        return None
    from dedup.scrapy.workers.shards import ShardMiddleware  # not above: it brings Redis

    return crawler.get_downloader_middleware(ShardMiddleware)


async def _open(
    crawler: Crawler, told: logging.LoggerAdapter[logging.Logger], options: Options, log: DropLog
) -> Filter:
    index = options.index
    try:
        await index.open()
        filed = await index.count()
    except BaseException:
        log.close()
        with suppress(Exception):
            await index.close()
        raise
    how = "compiled" if fast else "in Python"
    facts = many(filed, "page"), index.where, _FATES[options.filter.action], log.path or "no file", how
    told.info(
        "Near-duplicate filter: %s known, in %s; near-duplicates are %s, and logged in %s; page reader %s",
        *facts,
    )
    carried = Carried(crawler.stats, options.crawl.ignore_carried)
    crawl = Engine(crawler, index.detector, options.crawl.types, carried, shards_of(crawler))
    history = _history(options, log, index.run)
    return Filter(index, log, stats=crawler.stats, crawl=crawl, history=history, **vars(options.filter))


def _history(options: Options, log: DropLog, run: str) -> "History | None":
    """Returns the history of the site; None if none is kept, or if it can't be opened."""
    if not (options.crawl.keep_text or options.filter.incremental is True):
        return None
    from dedup.history.file import History
    from dedup.history.texts import SUFFIX

    path = options.history or log.beside(SUFFIX)
    if path is None:
        return None
    try:
        history = History(path)
        history.begin(run)
    except (sqlite3.Error, OSError) as error:
        logger.warning("Texts of pages are not kept: %s can't be used: %s", path, error)
        return None
    return history
