"""The work of `scrapy changes`: reads the history of a site, and shows it."""

import argparse
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from dedup.contrib.changes.changes import changes, unseen
from dedup.contrib.changes.file import Crawl, History
from dedup.contrib.changes.report import changes_report
from dedup.droplog.record import moment
from dedup.errors import IndexCorruptError, IndexUnavailableError, SettingsError
from dedup.filter.change import WORDS, Change
from dedup.printing import clock, inert, many, printable
from dedup.report.file import write_report
from dedup.scrapy.commands.index.access import spider_meant
from dedup.scrapy.settings import read_settings

#: How many changes of a kind are printed, how many characters of the words that differ, and words around them.
SHOWN, WIDTH, AROUND = 10, 60, 2


def run(opts: argparse.Namespace, settings: Settings) -> int:
    """Shows what has changed; the exit status says whether anything has.  Raises `DedupError`s."""
    path = read_settings(settings, spider_meant(settings, opts.spider)).history
    if path is None or not path.is_file():
        nothing = "no crawl with DEDUP_KEEP_TEXT or DEDUP_INCREMENTAL has begun yet"
        raise IndexUnavailableError(f"nothing at {printable(str(path or 'memory:'))}: {nothing}")
    try:
        with History(path) as history:
            return _show(opts, history)
    except sqlite3.DatabaseError as error:
        raise IndexCorruptError(f"the history {printable(str(path))} can't be read: {error}") from None


def _show(opts: argparse.Namespace, history: History) -> int:
    crawls = history.crawls()
    if not crawls:
        raise IndexUnavailableError("no crawl has begun there yet")
    since, latest = _baseline(crawls, opts.since), crawls[-1]
    found = sorted(changes(history, since), key=lambda change: (WORDS.index(change.word), change.url))
    missed = sorted(unseen(history, latest))
    if opts.output:
        _write(opts.output, found, missed, crawls)
    if opts.html:
        write_report(Path(opts.html), changes_report(found, missed, crawls, since))
    if opts.output != "-":
        _print(found, missed, crawls, since)
    if opts.keep:
        print(f"{many(history.prune(opts.keep), 'older version')} deleted")
    return 1 if found else 0


def _baseline(crawls: Sequence[Crawl], since: str) -> int:
    """Returns the number of the crawl that is compared with; 0 is that before the first."""
    if not since:
        return crawls[-2].number if len(crawls) > 1 else 0
    named = [crawl.number for crawl in crawls if len(since) >= 4 and crawl.run.startswith(since)]
    if len(named) == 1:
        return named[0]
    try:
        then = datetime.fromisoformat(moment(since)).timestamp()
    except SettingsError:
        runs = ", ".join(f"{crawl.run[:8]} ({_when(crawl)})" for crawl in crawls[-5:])
        raise SettingsError(
            f"--since is {inert(since)!r}; allowed: an ISO date, 2h, 3d, 1w, or a run, such as {runs}"
        ) from None
    return max((crawl.number for crawl in crawls if crawl.began <= then), default=0)


def _when(crawl: Crawl) -> str:
    return clock(crawl.began)


def _write(path: str, found: Sequence[Change], missed: Sequence[str], crawls: Sequence[Crawl]) -> None:
    """Writes JSON Lines, ASCII only."""
    by_number = {crawl.number: crawl for crawl in crawls}
    lines: list[dict[str, Any]] = []
    for change in found:
        crawl = by_number[change.crawl]
        line: dict[str, Any] = {"change": change.word, "url": change.url, "run": crawl.run}
        line["time"] = datetime.fromtimestamp(crawl.began, UTC).isoformat(timespec="seconds")
        if change.other:
            line |= {"from": change.other, "redirected": change.is_redirected}
        if change.word == "changed":
            line["edits"] = [said._asdict() for said in change.edits]
        lines.append(line)
    lines += ({"change": "not seen", "url": url} for url in missed)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        with open(path, "a", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise SettingsError(f"{printable(path)!r} can't be written: {error.strerror}") from None


def _print(found: Sequence[Change], missed: Sequence[str], crawls: Sequence[Crawl], since: int) -> None:
    counts, latest = Counter(change.word for change in found), crawls[-1]
    first = "which was the first" if len(crawls) == 1 else "and all before it"
    compared = (f"since that of {_when(one)} ({one.run[:8]})" for one in crawls if one.number == since)
    before = next(compared, first)
    told = ", ".join(f"{counts[word]:,} {word}" for word in WORDS)
    print(f"The crawl of {_when(latest)} ({latest.run[:8]}), {before}\n  {told}")
    if not latest.is_whole:
        print(
            "  The last crawl was stopped, or met a wall, so pages that it has not met are not called hidden or gone"
        )
    if missed:
        print(f"  {many(len(missed), 'page')} not seen: nothing is known of them, and none is called gone")
    for word in WORDS if since else ():
        some = [change for change in found if change.word == word]
        for change in some[:SHOWN]:
            led = f", {'redirected' if change.is_redirected else 'moved'} from {inert(change.other)}"
            print(f"{word:8} {inert(change.url)}{led if change.other else ''}")
            for edit in change.edits[:3]:
                before, after = " ".join(edit.before.split()[-AROUND:]), " ".join(edit.after.split()[:AROUND])
                for sign, said in (("-", edit.old), ("+", edit.new)):
                    if said:
                        print(f"         {sign} {inert(before)} {inert(said, WIDTH)} {inert(after)}".rstrip())
        if len(some) > SHOWN:
            print(f"         ... and {len(some) - SHOWN:,} more")
