"""`scrapy crawl` and `scrapy runspider`: Scrapy's own commands, with the exit status of the filter.

A crawl that the filter refused or stopped ends with 2 (settings) or 3 to 5 (index), see `dedup.errors`.
"""

import argparse
from typing import Self

from pydispatch import dispatcher
from scrapy.commands import ScrapyCommand, crawl, runspider

from dedup.scrapy.signals import filter_failed


class ExitStatus:
    """While it is entered, it takes note of the exit status that the filter asks for."""

    def __init__(self) -> None:
        self.status = 0

    def _note(self, error: Exception) -> None:
        self.status = self.status or getattr(error, "exit_status", 1)

    def __enter__(self) -> Self:
        dispatcher.connect(self._note, filter_failed)
        return self

    def __exit__(self, *_: object) -> None:
        dispatcher.disconnect(self._note, filter_failed)


class _CrawlCommand(ScrapyCommand):
    """A command that crawls."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Runs the spider."""
        with ExitStatus() as wanted:
            super().run(args, opts)  # type: ignore[safe-super]
        self.exitcode = wanted.status or self.exitcode


class Command(_CrawlCommand, crawl.Command):
    """Scrapy's `crawl` with the exit status of the filter."""


class RunSpider(_CrawlCommand, runspider.Command):
    """Scrapy's `runspider` with the exit status of the filter."""
