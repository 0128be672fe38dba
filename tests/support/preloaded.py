"""Imports what the commands of Scrapy need, for processes that are forked: as much as can be imported before a crawl.

Nothing of it reads the environment, begins a thread or installs a reactor.  What is not installed is left out.  Which commands
and versions the installed packages have is looked up once.  A crawl takes a busy machine for no outage of Redis: it gives up as
late as a test does.
"""

import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module, metadata
from pkgutil import iter_modules, walk_packages

from tests.support.waiting import LIMIT

#: Packages, with all that is in them and, of ours, below them.
PACKAGES = (
    "scrapy.commands",
    "scrapy.downloadermiddlewares",
    "scrapy.extensions",
    "scrapy.spidermiddlewares",
    "dedup",
)
#: What else most crawls import, and what else is run in forks.
MODULES = (
    "pytest", "tests.support.light", "tests.support.processes", "tests.support.serving",
    "tests.support.stores", "aiohttp.web", "certifi", "rich.console", "rich.progress", "rich.table",
    "scrapy.cmdline", "scrapy.core.downloader.handlers.http11", "scrapy.dupefilters", "scrapy.exporters",
    "scrapy.logformatter", "scrapy.pqueues", "scrapy.robotstxt", "scrapy.shell", "scrapy.squeues",
    "scrapy.statscollectors", "scrapy.utils.engine", "scrapy.utils.test", "tldextract", "crawler.items",
    "crawler.spiders.site", "crawler.spiders.warc",
)  # fmt: skip


def modules(package: str) -> list[str]:
    """The names of a package and of its modules."""
    below = walk_packages if package == "dedup" else iter_modules
    return [package, *(found.name for found in below(import_module(package).__path__, f"{package}."))]


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
