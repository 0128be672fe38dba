"""Imports what the commands of Scrapy need, for processes that are forked: as much as can be imported before a crawl.

Nothing of it reads the environment, begins a thread or installs a reactor.  What is not installed is left out.  Which commands
and versions the installed packages have is looked up once.  A crawl takes a busy machine for no outage of Redis: it gives up as
late as a test does.
"""

import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module, metadata
from pkgutil import iter_modules

from tests.support.waiting import LIMIT

#: Packages, with all that is in them.
PACKAGES = (
    "scrapy.commands",
    "scrapy.downloadermiddlewares",
    "scrapy.extensions",
    "scrapy.spidermiddlewares",
    "dedup.links",
    "dedup.scrapy",
    "dedup.scrapy.commands",
    "dedup.scrapy.commands.index",
    "dedup.scrapy.crawl",
    "dedup.scrapy.log",
    "dedup.scrapy.requests",
    "dedup.contrib.changes",
    "dedup.contrib.workers",
)
#: What else most crawls import, and what else is run in forks.
MODULES = (
    "pytest",
    "tests.support.light",
    "tests.support.processes",
    "tests.support.serving",
    "tests.support.stores",
    "aiohttp.web",
    "certifi",
    "rich.console",
    "rich.progress",
    "rich.table",
    "scrapy.cmdline",
    "scrapy.core.downloader.handlers.http11",
    "scrapy.dupefilters",
    "scrapy.exporters",
    "scrapy.logformatter",
    "scrapy.pqueues",
    "scrapy.robotstxt",
    "scrapy.shell",
    "scrapy.squeues",
    "scrapy.statscollectors",
    "scrapy.utils.engine",
    "scrapy.utils.test",
    "tldextract",
    "dedup.batch.rows",
    "dedup.droplog.course",
    "dedup.droplog.reader",
    "dedup.texts.texts",
    "dedup.index.local.index",
    "dedup.index.redis.clustered",
    "dedup.index.redis.index",
    "dedup.contrib.changes.commands.run",
    "dedup.scrapy.commands.compare.run",
    "dedup.contrib.archives.commands.run",
    "dedup.scrapy.commands.duplicates.run",
    "dedup.scrapy.commands.evaluate.run",
    "dedup.scrapy.commands.links.run",
    "crawler.items",
    "crawler.spiders.site",
    "crawler.spiders.warc",
)


def modules(package: str) -> list[str]:
    """The names of a package and of its modules."""
    found = iter_modules(import_module(package).__path__, f"{package}.")
    return [package, *(module.name for module in found)]


metadata.version = cache(metadata.version)  # each crawl tells a dozen of them

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some of them are deprecated
    for package in PACKAGES:
        MODULES += (*modules(package),)
    for name in MODULES:
        with suppress(ImportError):
            import_module(name)

redis = import_module("dedup.index.redis.client")
redis.TIMEOUT = redis.DEADLINE = LIMIT

cmdline = import_module("scrapy.cmdline")
cmdline.entry_points = cache(cmdline.entry_points)
cmdline.entry_points(group="scrapy.commands")
with suppress(ImportError, AttributeError):
    import_module("scrapy.utils.versions").get_versions()
