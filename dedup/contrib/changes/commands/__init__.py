"""`scrapy changes`: what has become of a site since an earlier crawl."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base

EXIT_STATUS = "0: nothing has changed. 1: something has. 2: the usage or a setting is wrong. 3: no crawl has kept texts here."


class Command(base.Command):
    """The exit status is one of `EXIT_STATUS`."""

    name = "changes"
    arguments = "[options]"
    summary = "Show what is new, changed, moved, hidden or gone since an earlier crawl"
    description = (
        "Crawls with DEDUP_KEEP_TEXT or DEDUP_INCREMENTAL keep what each page says. This shows what has become of the site "
        "since the crawl before the last one, or since another."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        add = parser.add_argument
        since = "compare with the last crawl that had begun by an ISO date (UTC), or 2h, 3d, 1w ago; or with a run, by its name"
        add("--since", default="", metavar="RUN|DATE", help=since)
        add(
            "-o",
            "--output",
            default="",
            metavar="FILE",
            help="add the changes to a file, in JSON Lines; - prints them",
        )
        add("--html", default="", metavar="FILE", help="a report for the browser, in one file")
        keep = (
            "delete what all versions of a page but the last N have said; it stays known when they were there"
        )
        add("--keep", type=int, default=0, metavar="N", help=keep)
        whose = "the spider whose site is meant; only needed where the project has several"
        add("--spider", default="", metavar="NAME", help=whose)
        parser.add_argument_group("exit status", EXIT_STATUS)

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Shows the changes."""
        if args or opts.keep < 0:
            raise UsageError("usage: scrapy changes [options]; N is a number from 1 on")
        from dedup.contrib.changes.commands.run import run

        return run(opts, settings)
