"""`scrapy duplicates`: what a crawl's near-duplicate filter has dropped."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base


class Command(base.Command):
    """The exit status is 0, or 2 if there is no log or an option is wrong."""

    name = "duplicates"
    arguments = "[options] [LOG ...]"
    summary = "Show which near-duplicates were dropped"
    description = (
        "LOG is a drop log, which may be gzipped. Without one, every file that the project's DEDUP_LOG names "
        "is read. The command shows totals, hosts, distances, resemblances, and the kept pages that had the most "
        "near-duplicates. The options below choose records, and how they are shown."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The options."""
        super().add_options(parser)
        group = parser.add_argument_group("Conditions, all of which must hold")
        only = group.add_argument
        only("--host", default="", help="dropped pages of this host and its subdomains")
        only("--url", default="", metavar="URL", help="this dropped page")
        only("--of", default="", metavar="URL", help="near-duplicates of this kept page")
        only("--min-distance", type=int, default=0, metavar="BITS", help="pages at least this far apart")
        most = "pages at most this much alike, 0 to 1"
        only("--max-resemblance", type=float, default=1.0, metavar="SHARE", help=most)
        since = "from an ISO date (UTC) on, or from a time such as 2h, 3d or 1w ago"
        only("--since", default="", metavar="TIME", help=since)
        group = parser.add_argument_group("Output")
        shown, kind = group.add_argument, group.add_mutually_exclusive_group().add_argument
        best = (
            "of each kept page and its near-duplicates, the page to use: canonical, as the site says; https; shortest (URL); "
            "longest (own text); or MODULE:FUNCTION, whose number for a URL is the greatest"
        )
        shown("--prefer", default="", metavar="WHICH", help=best)
        shown("--clusters", action="store_true", help="each kept page with what was dropped for it")
        shown(
            "--follow",
            action="store_true",
            help="new records as they are written, until Ctrl-C; with --html: a report that grows with them",
        )
        kind("--json", action="store_true", help="JSON Lines: one object per record, or cluster")
        kind("--csv", action="store_true", help="one row per record, safe to open in a spreadsheet")
        kind(
            "--html",
            metavar="FILE",
            help="a report for the browser, in one file, with charts, sliders, and what differs between two pages if "
            "the crawl had DEDUP_KEEP_TEXT",
        )

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Shows the records of the logs."""
        if opts.clusters and (opts.follow or opts.csv):
            raise UsageError("--clusters can be combined with --json, but not with --follow or --csv")
        if opts.html is not None and opts.clusters:
            raise UsageError("--html can't be combined with --clusters")
        if opts.prefer and (opts.clusters or opts.follow or opts.csv or opts.html is not None):
            raise UsageError(
                "--prefer can be combined with --json, but not with --clusters, --follow, --csv or --html"
            )
        from dedup.scrapy.commands.duplicates.run import run

        return run(args, opts, settings)
