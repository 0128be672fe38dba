"""The work of `scrapy index`: opens the index, and does what the verb says."""

import argparse
import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path

from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.scrapy.commands.index.access import spider_meant
from dedup.scrapy.commands.index.check import print_findings
from dedup.scrapy.commands.index.exchange import export_pages, import_pages
from dedup.scrapy.commands.index.forget import forget_pages
from dedup.scrapy.commands.index.info import print_info
from dedup.scrapy.commands.index.plan import print_plan
from dedup.scrapy.commands.index.why import print_places, print_reasons
from dedup.scrapy.settings import Options, read_settings


def run(verb: str, rest: list[str], opts: argparse.Namespace, settings: Settings) -> int:
    """Does what a verb says with the index that the settings name, and returns the exit status."""
    if verb == "plan":
        if opts.spider:
            spider_meant(settings, opts.spider)
        options = read_settings(settings)
        plan = options.index.settings
        return print_plan(options.detector, plan.tables, plan.scope, opts)
    signal.signal(signal.SIGINT, _interrupt)
    spider = spider_meant(settings, opts.spider)
    return asyncio.run(_work(verb, rest, opts, read_settings(settings, spider)))


def _interrupt(*_: object) -> None:
    """Ends the work at once; asyncio alone would wait for the next await."""
    raise KeyboardInterrupt


def _work(
    verb: str, rest: list[str], opts: argparse.Namespace, options: Options
) -> Coroutine[None, None, int]:
    index = options.index
    if not index.persistent and verb not in ("moved", "why"):
        raise SettingsError(
            "DEDUP_INDEX is 'memory:', which ends with its crawl; allowed here: file:PATH, redis://HOST:PORT/DB"
        )
    match verb:
        case "info":
            return print_info(index)
        case "check":
            return print_findings(index)
        case "forget":
            return forget_pages(index, rest, opts.run, opts.older_than, opts.dry_run)
        case "export":
            return export_pages(index, rest[0])
        case "import":
            return import_pages(index, rest[0])
    ask = print_places if verb == "moved" else print_reasons
    return ask(options, rest[0], list(map(Path, rest[1:])))
