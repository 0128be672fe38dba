"""The work of `scrapy duplicates`: finds the logs, reads them, and shows what was asked for."""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

from scrapy.settings import Settings

from dedup.droplog.drops import Drops
from dedup.droplog.reader import Reader, find_logs
from dedup.droplog.record import Filter, moment
from dedup.errors import SettingsError
from dedup.page.preference import preference
from dedup.report.file import check_target
from dedup.scrapy.commands.duplicates import html, text
from dedup.scrapy.commands.terminal import complain, reading
from dedup.scrapy.settings import read_settings

#: Seconds between two reports of a crawl that runs, and how many times as long as one has taken, at least.
PAUSE, BREAK = 5.0, 10.0


def run(args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
    """Runs the command, and returns the exit status.  What could not be read is said on the error output."""
    reader = Reader()
    try:
        _show(args, opts, settings, reader)
    except KeyboardInterrupt:
        if not opts.follow:  # which has no other end
            raise
    finally:
        for line in text.left_out(reader):
            complain("duplicates", line)
    return 0


def _show(args: list[str], opts: argparse.Namespace, settings: Settings, reader: Reader) -> None:
    try:
        since = moment(opts.since) if opts.since else ""
        wanted = Filter(opts.host, opts.of, opts.min_distance, opts.max_resemblance, since, opts.url)
        if opts.prefer:
            preference(opts.prefer)
    except SettingsError as error:
        raise error.renamed(lambda name: "--" + name.replace("_", "-")) from None
    find, missing = _logs(args, settings)
    if missing and not opts.follow:
        raise SettingsError(
            f"no drop log: {missing}, and no such file is here; a crawl without near-duplicates writes none; crawl, or name another LOG"
        )
    if opts.csv:
        print(text.CSV_HEADING)
    form = text.as_json if opts.json else text.as_csv if opts.csv else text.as_line
    if opts.follow and opts.html is not None:
        _follow_report(Path(opts.html), find, wanted, settings, reader)
        return
    if opts.follow:
        written = reader.follow(find)  # from this moment on
        if missing:
            complain("duplicates", f"waiting: {missing}, and no such file is here yet")
        for record in filter(wanted.passes, written):
            print(form(record), flush=True)
        return
    paths = find()
    if opts.html is not None:
        check_target(Path(opts.html))  # before a long log is read
    with reading(paths) as watch:
        records = filter(wanted.passes, reader.read(paths, watch))
        if not (opts.clusters or opts.prefer) and (opts.json or opts.csv):
            for record in records:
                print(form(record))
            return
        drops = Drops(records)
    with drops:
        if opts.html is not None:
            html.make_report(Path(opts.html), drops, paths, reader.records, wanted, settings)
            print(f"{opts.html}: open it in a browser")
        elif opts.prefer:
            text.print_representatives(drops, opts.prefer, opts.json)
        elif opts.clusters:
            text.print_clusters(drops, opts.json)
        else:
            text.print_summary(drops, paths, reader.records)


def _follow_report(
    path: Path, find: Callable[[], list[Path]], wanted: Filter, settings: Settings, reader: Reader
) -> None:
    """Writes a report anew as its logs grow, and a last time at Ctrl-C."""

    def write(reader: Reader, renewed: float = 0) -> None:
        paths = [log for log in find() if log.exists()]
        with Drops(filter(wanted.passes, reader.read(paths))) as drops:
            html.make_report(path, drops, paths, reader.records, wanted, settings, renewed)

    check_target(path)
    pause, said = PAUSE, f"{path}: open it in a browser; it grows until Ctrl-C"
    try:
        while True:
            started = time.monotonic()
            write(Reader(), pause)
            if said:
                print(said, flush=True)
            pause, said = max(PAUSE, BREAK * (time.monotonic() - started)), ""
            time.sleep(pause)
    except KeyboardInterrupt:
        write(reader)


def _logs(args: list[str], settings: Settings) -> tuple[Callable[[], list[Path]], str]:
    """Returns a function that finds the logs, now and later; and where a log was looked for that is missing, or ""."""
    if args:
        missing = [f"LOG is {name!r}" for name in args if not os.path.exists(name)]
        return lambda: [Path(name) for name in args], "".join(missing[:1])
    log = read_settings(settings).crawl.log
    if not log:
        raise SettingsError("no drop log: DEDUP_LOG is '', so that crawls write none; name a LOG")
    return lambda: find_logs(log), "" if find_logs(log) else f"DEDUP_LOG is {log!r}"
