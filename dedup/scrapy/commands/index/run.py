"""The work of `scrapy index`: opens the index, and does what the verb says."""

import argparse
import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path

from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.scrapy.commands.index.check import print_findings
from dedup.scrapy.commands.index.exchange import export_pages, import_pages
from dedup.scrapy.commands.index.forget import forget_pages
from dedup.scrapy.commands.index.info import print_info
from dedup.scrapy.commands.index.moved import print_places
from dedup.scrapy.settings import Options, read_settings

__all__ = ["run"]


def run(verb: str, rest: list[str], opts: argparse.Namespace, settings: Settings) -> int:
    """Does what a verb says with the index that the settings name, and returns the exit status."""
    signal.signal(signal.SIGINT, _interrupt)
    return asyncio.run(_work(verb, rest, opts, read_settings(settings)))


def _interrupt(*_: object) -> None:
    """Ends the work at once; asyncio alone would wait for the next await."""
    raise KeyboardInterrupt


def _work(
    verb: str, rest: list[str], opts: argparse.Namespace, options: Options
) -> Coroutine[None, None, int]:
    index = options.index
    if not index.persistent and verb != "moved":
        raise SettingsError(
            "DEDUP_INDEX is 'memory:', which ends with its crawl; allowed here: file:PATH, redis://HOST:PORT/DB"
        )
    works: dict[str, Callable[[], Coroutine[None, None, int]]] = {
        "info": lambda: print_info(index, opts.plot),
        "check": lambda: print_findings(index),
        "forget": lambda: forget_pages(index, rest, opts.run, opts.older_than, opts.dry_run),
        "export": lambda: export_pages(index, rest[0]),
        "import": lambda: import_pages(index, rest[0]),
        "moved": lambda: print_places(options, rest[0], list(map(Path, rest[1:]))),
    }
    return works[verb]()
