"""`scrapy crawl`, which ends with the exit status that the filter asks for (2 settings, 3 ... 5 index)."""

import argparse

from scrapy.commands import crawl

from dedup.scrapy.commands.exit_status import ExitStatus


class Command(crawl.Command):
    """Scrapy's own command, but for the exit status."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Runs the spider."""
        with ExitStatus() as wanted:
            super().run(args, opts)
        self.exitcode = wanted.status or self.exitcode
