"""`scrapy duplicates`: what a crawl's near-duplicate filter has dropped."""

import argparse

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

__all__ = ["Command"]


class Command(ScrapyCommand):
    """The exit status is 0, or 2 if there is no log or an option is wrong."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def syntax(self) -> str:
        """The arguments."""
        return "[options] [LOG ...]"

    def short_desc(self) -> str:
        """For the list of commands."""
        return "Show which near-duplicates were dropped"

    def long_desc(self) -> str:
        """For --help."""
        return (
            "LOG is a drop log, which may be gzipped. Without one, every file that the project's DEDUP_LOG names "
            "is read. The command shows totals, hosts, distances, resemblances, and the kept pages that had the most "
            "near-duplicates. The options below choose records, and how they are shown."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The options."""
        super().add_options(parser)
        only = parser.add_argument_group("Which records are shown: those that meet all of these")
        only.add_argument("--host", default="", help="dropped pages of this host and its subdomains")
        only.add_argument("--of", default="", metavar="URL", help="near-duplicates of this kept page")
        only.add_argument(
            "--min-distance", type=int, default=0, metavar="BITS", help="pages at least this far apart"
        )
        only.add_argument(
            "--max-resemblance",
            type=float,
            default=1.0,
            metavar="SHARE",
            help="pages at most this much alike, 0 to 1",
        )
        only.add_argument(
            "--since",
            default="",
            metavar="TIME",
            help="from an ISO date (UTC) on, or from a time such as 2h, 3d or 1w ago",
        )
        shown = parser.add_argument_group("How they are shown")
        shown.add_argument(
            "--clusters", action="store_true", help="each kept page with what was dropped for it"
        )
        shown.add_argument(
            "--follow", action="store_true", help="new records as they are written, until Ctrl-C"
        )
        kind = shown.add_mutually_exclusive_group()
        kind.add_argument("--json", action="store_true", help="JSON Lines: one object per record, or cluster")
        kind.add_argument(
            "--csv", action="store_true", help="one row per record, safe to open in a spreadsheet"
        )
        kind.add_argument(
            "--html",
            metavar="FILE",
            help="a report for the browser, in one file, with charts, sliders, and what differs between two pages if "
            "the crawl had DEDUP_KEEP_TEXT",
        )
        shown.add_argument(
            "--fetch",
            action="store_true",
            help="with --html: fetch the 100 least alike pairs again, to see what differs; one request a second",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Shows the records of the logs."""
        if opts.clusters and (opts.follow or opts.csv):
            raise UsageError("--clusters can be combined with --json, but not with --follow or --csv")
        if opts.html is not None and (opts.clusters or opts.follow):
            raise UsageError("--html can't be combined with --clusters or --follow")
        if opts.fetch and opts.html is None:
            raise UsageError("--fetch needs --html FILE")
        from dedup.scrapy.commands.duplicates.run import run

        assert self.settings is not None
        self.exitcode = run(args, opts, self.settings)
