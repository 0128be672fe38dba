"""Drops as text: each record on a line, a summary in tables, or clusters.

All that is printed is printable ASCII, whatever a record holds.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from dedup.droplog import course
from dedup.droplog.drops import Drops
from dedup.droplog.reader import Reader, find_beside
from dedup.droplog.reason import reason
from dedup.droplog.record import FIELDS, Record
from dedup.droplog.representatives import representatives
from dedup.printing import clock, inert, many
from dedup.scrapy.commands.terminal import print_table, screen

CSV_HEADING = ",".join(FIELDS)

#: What decides by each rule; a method has another name.
RULES = {
    "exact": "both pages are equal",
    "rare": "nearly all that is own to each is on the other; found by a rare shingle",
    "simhash": "nearly all of it is on the kept page; found by its simhash",
    "no_vary_search": "by the word of the site, not fetched",
    "address": "its address means the kept page, which has all of its unique content",
    "probe": "what differs changed when either page was fetched again",
    "soft_404": "the host shows the same where nothing is",
}
#: The most rows of a table that are shown, the most hosts and patterns of a cluster, and the most of these in JSON.
ROWS, PARTS, MANY = 10, 5, 1_000
#: The most characters of a bar or a rule, and of a URL in a line.
BAR, URL = 30, 200


def as_line(record: Record) -> str:
    """Returns a record as a line for people."""
    url, of = inert(record["url"], URL), inert(record["duplicate_of"], URL)
    why = record.get("undone")
    did = f"undone ({inert(why, URL)}):" if why else record["action"]
    said = f"{clock(record['time'], seconds=True)} {did} {url} of {of}"
    return f"{said}: {reason(record)} ({many(record['links'], 'link')})"


def as_json(record: Mapping[str, object]) -> str:
    """Returns a record, or another object, as a line of JSON."""
    return json.dumps(record).replace("\x7f", "\\u007f")


def as_csv(record: Record) -> str:
    r"""Returns a record as a row under `CSV_HEADING`.  No spreadsheet takes a cell for a formula (OWASP, CSV injection).

    >>> print(as_csv({"url": "=1+1", "duplicate_of": "a,b", "distance": 0}))
    ,'=1+1,"a,b",0,,,,,,,,,,,,,,,,,,,
    """
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow([_cell(record.get(name)) for name in FIELDS])
    return row.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    quote = "'" if value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else ""
    return quote + value.encode("unicode_escape").decode("ascii")


def left_out(reader: Reader) -> Iterator[str]:
    """Tells, a line for each, what could not be read."""
    if reader.unreadable:
        yield f"{many(reader.unreadable, 'line')} left out: no record can be read there"
    for path in reader.damaged:
        yield f"{inert(str(path), URL)} is damaged: the records after the damage are missing"


def print_summary(drops: Drops, paths: Sequence[Path], read: int) -> None:
    """Prints totals, and tables of hosts, distances, resemblances and the largest clusters.

    Only a log that has the course of a crawl beside it tells of links and downloads; one of an archive has none.
    """
    total = drops.totals()
    is_of_crawl = any(find_beside(log, course.SUFFIX) for log in paths)
    where = inert(str(paths[0]), URL) if len(paths) == 1 else many(len(paths), "log")
    some = f" of {read:,}" if total.drops != read else ""
    print(f"{where}: {total.drops:,}{some} {'near-duplicate' if read == 1 else 'near-duplicates'}")
    if drops.undone:
        print(
            f"  {'undone':12}  {drops.undone:,}: fetched again, since the kept page failed, was an error page, or turned out to differ; not counted here"
        )
    if not total.drops:
        return
    print(f"  {'seen':12}  {_span(total.first, total.last)}")
    print(f"  {'pages':12}  {many(total.urls, 'URL')} on {many(total.hosts, 'host')}", end=", ")
    print(f"near-duplicates of {many(total.clusters, 'kept page')}")
    for action, count, what in (
        ("dropped", total.dropped, "neither parsed nor followed" if is_of_crawl else "left out"),
        ("not followed", total.not_followed, "parsed, but not followed"),
        ("marked", total.marked, f"parsed, and their {many(total.marked_links, 'link')} followed"),
    ):
        if count:
            print(f"  {action:12}  {count:,}: {what}")
    size = "" if total.bytes is None else f" of {decimal(total.bytes)}, unpacked"
    if is_of_crawl:
        print(f"  {'saved':12}  {many(total.links, 'link')} not followed (one on two pages counts twice)")
        print(f"  {'not saved':12}  {many(total.drops, 'download')}{size}: a page is judged by its content")
    else:
        print(f"  {'on them':12}  {many(total.links, 'link')} (one on two pages counts twice)")
        print(f"  {'read anyway':12}  {many(total.drops, 'page')}{size}: a page is judged by its content")
    if total.agrees or total.differs:
        told = total.agrees + total.differs
        print(
            f"  {'the site':12}  {total.agrees:,} of {told:,} whose canonical URL is the kept page's or their own name the "
            f"kept page's ({total.agrees / told:.0%})"
        )
    wide = max(20, screen().width - 30)
    hosts = (
        [host.drops, host.links, _size(host.bytes), inert(host.host, wide) or "(none)"]
        for host in islice(drops.hosts(), ROWS)
    )
    print_table(["drops", "links", "bytes", "host"], hosts, total.hosts)
    rules = ([count, inert(name, BAR), RULES.get(name, "")] for name, count in drops.rules())
    print_table(["drops", "rule", ""], rules)
    print_table(["drops", "distance", ""], _bars(drops.distances()))
    twentieths = {
        f"{low:.2f}-{low + 0.05:.2f}" if low < 1 else "1.00": n for low, n in drops.shares().items()
    }
    print_table(["drops", "in common", ""], _bars(twentieths))
    clusters = (
        [cluster.drops, cluster.links, cluster.hosts, inert(cluster.duplicate_of, wide)]
        for cluster in islice(drops.clusters(), ROWS)
    )
    print_table(["drops", "links", "hosts", "kept page"], clusters, total.clusters)


def _bars(counts: Mapping[Any, int]) -> Iterator[Sequence[Any]]:
    most = max(counts.values())
    return ((count, name, "#" * max(1, round(BAR * count / most))) for name, count in counts.items())


def print_representatives(drops: Drops, which: str, as_objects: bool) -> None:
    """Prints which page is preferred to each kept page; as objects, those that are preferred to none, too."""
    others = count = 0
    for page in representatives(drops, which):
        count += 1
        others += page.url != page.kept
        if as_objects:
            print(as_json(page._asdict()))
        elif page.url != page.kept:
            print(f"{inert(page.url, URL)} instead of {inert(page.kept, URL)}")
    if not as_objects:
        print(f"{others:,} of {many(count, 'kept page')} with near-duplicates would be another one")


def print_clusters(drops: Drops, as_objects: bool) -> None:
    """Prints each kept page with the hosts and patterns of what was dropped for it, the largest cluster first."""
    for number, cluster in enumerate(drops.clusters()):
        parts = drops.parts(cluster)
        if as_objects:
            some = {name: dict(islice(groups, MANY)) for name, groups in parts.items()}
            print(as_json(cluster._asdict() | some))
            continue
        if number:
            print()
        print(f"{many(cluster.drops, 'near-duplicate')} of {inert(cluster.duplicate_of, URL)}")
        print(f"  {'seen':8}  {_span(cluster.first, cluster.last)}")
        if cluster.new is not None:
            print(
                f"  {'new':8}  at most {many(cluster.new, 'shingle')} of their own that the kept page lacks"
            )
        for name, groups in parts.items():
            for at, (part, count) in enumerate(islice(groups, PARTS)):
                print(f"  {'' if at else name:8}  {count:,} {inert(part, URL) or '(none)'}")
            if more := sum(1 for _ in groups):
                print(f"  {'':8}  ... and {more:,} more {name}")


def _span(first: str, last: str) -> str:
    return " to ".join(dict.fromkeys(clock(time, seconds=True) for time in (first, last))) + " UTC"


def _size(octets: int | None) -> str:
    return "" if octets is None else decimal(octets)
