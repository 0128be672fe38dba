"""`scrapy dedup`: what the filter makes of pages that are there already, in files."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base

__all__ = ["Command"]


class Command(base.Command):
    """The filter is that of the project's crawls: its settings can be varied by ``-s``."""

    name = "dedup"
    arguments = "[options] INPUT ..."
    summary = "Drop the near-duplicates of archives: WARC, JSON Lines, Parquet, folders of HTML"
    description = (
        "INPUT is a WARC file, JSON Lines (either may be compressed by gzip) or Parquet with the fields html or text, "
        "and url and fetched if there are any, a folder of HTML files, or - for the standard input. Of pages alike, "
        "the one that was fetched first is kept, then the one of the least URL. Whatever ends a run that writes to a "
        "file, the same command goes on from there."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        add = parser.add_argument
        kept = "write what is kept to FILE: WARC if its name ends with .warc or .warc.gz, else JSON Lines; - is the output"
        add("-o", dest="kept", default="", metavar="FILE", help=kept)
        add("--duplicates", default="", metavar="FILE", help="write the drop log, as a crawl does")
        add(
            "--workers",
            type=int,
            default=0,
            metavar="N",
            help="processes that read pages (default: one a core)",
        )

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Cleans the inputs."""
        if not args:
            raise UsageError("dedup takes at least one INPUT")
        if opts.workers < 0:
            raise UsageError(f"--workers is {opts.workers}; allowed: a whole number from 0")
        from dedup.scrapy.commands.dedup.run import run

        return run(args, opts, settings)
