"""The work of `scrapy index`: opens the index, and does what the verb says.

Only the module of the verb is imported.
"""

import argparse
import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path

from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.scrapy.compat import spider_loader
from dedup.scrapy.settings import Options, read_settings

__all__ = ["run", "spider_meant"]


def run(verb: str, rest: list[str], opts: argparse.Namespace, settings: Settings) -> int:
    """Does what a verb says with the index that the settings name, and returns the exit status."""
    if verb == "plan":
        if opts.spider:
            spider_meant(settings, opts.spider)
        from dedup.scrapy.commands.index.plan import print_plan

        options = read_settings(settings)
        return print_plan(options.detector, options.index.settings.tables, opts)
    signal.signal(signal.SIGINT, _interrupt)
    spider = spider_meant(settings, opts.spider)
    return asyncio.run(_work(verb, rest, opts, read_settings(settings, spider)))


def spider_meant(settings: Settings, name: str) -> str:
    """The spider whose index is meant, of which the settings now are; "" if they name an index without it."""
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
    if verb == "info":
        from dedup.scrapy.commands.index.info import print_info

        return print_info(index)
    if verb == "check":
        from dedup.scrapy.commands.index.check import print_findings

        return print_findings(index)
    if verb == "forget":
        from dedup.scrapy.commands.index.forget import forget_pages

        return forget_pages(index, rest, opts.run, opts.older_than, opts.dry_run)
    if verb == "moved":
        from dedup.scrapy.commands.index.moved import print_places

        return print_places(options, rest[0], list(map(Path, rest[1:])))
    if verb == "why":
        from dedup.scrapy.commands.index.why import print_reasons

        return print_reasons(options, rest[0], list(map(Path, rest[1:])))
    from dedup.scrapy.commands.index.exchange import export_pages, import_pages

    return export_pages(index, rest[0]) if verb == "export" else import_pages(index, rest[0])
