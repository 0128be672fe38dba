"""`scrapy duplicates`: what a crawl's near-duplicate filter has dropped."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from dedup.droplog.records import Reader

__all__ = ["Command"]


class Command(ScrapyCommand):
    """Exit status 0; 2: no log, or a wrong option."""

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
            "LOG is a drop log, .gz too; without one: every file that the project's DEDUP_LOG names. Shows totals, "
            "hosts, distances, resemblances and the kept pages that most were duplicates of. The options below "
            "choose records, and how they are shown."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The options."""
        super().add_options(parser)
        only = parser.add_argument_group("Records, by any of these together")
        only.add_argument("--host", default="", help="dropped pages of this host and its subdomains")
        only.add_argument("--of", default="", metavar="URL", help="near-duplicates of this kept page")
        only.add_argument("--min-distance", type=int, default=0, metavar="BITS", help="at least so far apart")
        only.add_argument(
            "--max-resemblance", type=float, default=1.0, metavar="SHARE", help="at most so alike, 0 to 1"
        )
        only.add_argument(
            "--since", default="", metavar="TIME", help="from an ISO date (UTC) on, or from 2h, 3d, 1w ago"
        )
        shown = parser.add_argument_group("What is shown")
        shown.add_argument(
            "--clusters", action="store_true", help="each kept page with what was dropped for it"
        )
        shown.add_argument(
            "--follow", action="store_true", help="new records as they are written; ends by Ctrl-C"
        )
        kind = shown.add_mutually_exclusive_group()
        kind.add_argument("--json", action="store_true", help="JSON Lines: one object per record, or cluster")
        kind.add_argument(
            "--csv", action="store_true", help="one row per record, safe to open in a spreadsheet"
        )
        kind.add_argument(
            "--html",
            metavar="FILE",
            help="a report for the browser, in one file: charts, sliders, and what differs between two pages if "
            "the crawl had DEDUP_KEEP_TEXT",
        )
        shown.add_argument(
            "--fetch",
            action="store_true",
            help="with --html: fetch the 100 least alike pairs again, to see what differs; one request a second",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Reads, filters, prints."""
        from dedup.droplog.records import Reader
        from dedup.errors import DedupError
        from dedup.scrapy.commands.duplicates.text import left_out

        if opts.clusters and (opts.follow or opts.csv):
            raise UsageError("--clusters goes alone or with --json, not with --follow or --csv")
        if opts.html is not None and (opts.clusters or opts.follow):
            raise UsageError("--html goes alone, not with --clusters or --follow")
        if opts.fetch and opts.html is None:
            raise UsageError("--fetch goes with --html FILE")
        reader = Reader()
        try:
            try:
                self._show(args, opts, reader)
            finally:
                sys.stdout.flush()
                for line in left_out(reader):
                    print(f"duplicates: {line}", file=sys.stderr)
        except DedupError as error:
            print(f"duplicates: {error}", file=sys.stderr)
            self.exitcode = error.exit_status
        except KeyboardInterrupt:
            self.exitcode = 0 if opts.follow else 130
        except BrokenPipeError:  # who reads has seen enough, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _show(self, args: list[str], opts: argparse.Namespace, reader: "Reader") -> None:
        from dedup.droplog.drops import Drops
        from dedup.droplog.records import Filter, moment
        from dedup.errors import SettingsError
        from dedup.report.document import check_target
        from dedup.scrapy.commands import terminal
        from dedup.scrapy.commands.duplicates import html, text

        since = moment(opts.since) if opts.since else ""
        wanted = Filter(opts.host, opts.of, opts.min_distance, opts.max_resemblance, since)
        find, missing = self._logs(args)
        if missing and not opts.follow:
            raise SettingsError(
                f"no drop log: {missing}, and no such file is here; crawl, or name another LOG"
            )
        if opts.csv:
            print(text.CSV_HEADING)
        form = text.as_json if opts.json else text.as_csv if opts.csv else text.as_line
        if opts.follow:
            written = reader.follow(find)  # from this moment on
            if missing:
                print(f"duplicates: waiting: {missing}, and no such file is here yet", file=sys.stderr)
            for record in filter(wanted.passes, written):
                print(form(record), flush=True)
            return
        paths = find()
        if opts.html is not None:
            check_target(Path(opts.html))  # before a long log is read
        with terminal.reading(paths) as watch:
            records = filter(wanted.passes, reader.read(paths, watch))
            if not opts.clusters and (opts.json or opts.csv):
                for record in records:
                    print(form(record))
                return
            drops = Drops(records)
        with drops:
            if opts.html is not None:
                settings = self.settings if opts.fetch else None
                html.make_report(Path(opts.html), drops, paths, reader.records, wanted, settings)
                print(f"{opts.html}: open it in a browser")
            elif opts.clusters:
                text.print_clusters(drops, opts.json)
            else:
                text.print_summary(drops, paths, reader.records)

    def _logs(self, args: list[str]) -> tuple[Callable[[], list[Path]], str]:
        """What finds the logs, now and later, and whose word for one there is no file for, if any."""
        from dedup.droplog.records import find_logs
        from dedup.scrapy.settings import read_settings

        if args:
            missing = [f"LOG is {name!r}" for name in args if not os.path.exists(name)]
            return lambda: [Path(name) for name in args], "".join(missing[:1])
        assert self.settings is not None
        log = read_settings(self.settings).log
        return lambda: find_logs(log), "" if find_logs(log) else f"DEDUP_LOG is {log!r}"
