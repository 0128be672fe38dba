"""Opens the filter of a crawl: its index, its drop log, and what tells how the site has changed."""

import gc
import logging
from contextlib import suppress
from itertools import count

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.signals import spider_closed
from scrapy.utils.misc import load_object

from dedup.compiled import fast
from dedup.droplog.log import DropLog
from dedup.errors import DedupError, IndexUnavailableError
from dedup.filter import Filter
from dedup.filter.listener import Listener
from dedup.printing import many
from dedup.scrapy.crawl.crew import crew_of
from dedup.scrapy.crawl.engine import Engine
from dedup.scrapy.crawl.jobs import left_run, new_run
from dedup.scrapy.requests.carried import Carried
from dedup.scrapy.settings import (
    Options,
    check_for_crawl,
    in_memory,
    is_chosen,
    read_settings,
    spelled,
)
from dedup.texts.texts import SUFFIX

#: What makes the listener of a crawl that keeps texts; it is loaded by its name, since few crawls do.
CHANGES = "dedup.contrib.changes.listener.open_changes"
_CRAWLS = count()  # of this process
_FATES = {"drop": "dropped", "nofollow": "kept, but their links not followed", "mark": "kept"}


async def open_filter(
    crawler: Crawler, spider: Spider, log: logging.LoggerAdapter[logging.Logger]
) -> tuple[Filter, Options]:
    """Returns the filter of a crawl, which is about to begin, and its settings.  Raises `DedupError`s."""
    settings: BaseSettings = crawler.settings
    run = left_run(settings) or new_run(await crew_of(crawler).crawl_name())
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
    crawl = Engine(crawler, index.detector, options.crawl.types, carried, crew_of(crawler))
    listener = _listener(options, log, index.run)
    _leave_out(crawler)
    return Filter(index, log, stats=crawler.stats, crawl=crawl, listener=listener, **vars(options.filter))


def _listener(options: Options, log: DropLog, run: str) -> Listener | None:
    """Returns what tells how the site has changed, if that is asked for."""
    path = options.history or log.beside(SUFFIX)
    if path is None or not (options.crawl.keep_text or options.filter.incremental is True):
        return None
    listener: Listener | None = load_object(CHANGES)(path, run, keeps_pairs=options.crawl.keep_text)
    return listener


def _leave_out(crawler: Crawler) -> None:
    """Has the garbage collector leave out, until the crawl ends, what is there before its first page, but for what earlier crawls left."""
    if not gc.get_freeze_count():
        if next(_CRAWLS):
            gc.collect()
        gc.freeze()
        crawler.signals.connect(_leave_nothing_out, spider_closed)


def _leave_nothing_out() -> None:
    gc.unfreeze()
