"""Drops as they are shown: a record on a line, a summary in tables, clusters.

All of it is printable ASCII, whatever a record holds.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.filesize import decimal
from rich.table import Table

from dedup.droplog.drops import Drops
from dedup.droplog.records import FIELDS, Reader, Record
from dedup.printing import inert
from dedup.scrapy.commands.terminal import screen

__all__ = [
    "CSV_HEADING",
    "as_csv",
    "as_json",
    "as_line",
    "left_out",
    "print_clusters",
    "print_summary",
    "print_table",
]

CSV_HEADING = ",".join(FIELDS)

#: Of more rows in a table, of more hosts or patterns of a cluster, and in its JSON, so many are shown.
ROWS, PARTS, MANY = 10, 5, 1_000
#: Characters of a bar, and of a URL in a line.
BAR, URL = 30, 200


def as_line(record: Record) -> str:
    """A record on one line, for people."""
    url, of = inert(record["url"], URL), inert(record["duplicate_of"], URL)
    return (
        f"{_clock(record['time'])} {record['action']} {url} of {of} (distance {record['distance']}, "
        f"resemblance {record['resemblance']:.2f}, {record['links']:,} links)"
    )


def as_json(record: Record) -> str:
    """A record as it is in the log."""
    return json.dumps(record).replace("\x7f", "\\u007f")


def as_csv(record: Record) -> str:
    r"""A record as a row under `CSV_HEADING`, of which no spreadsheet makes a formula (OWASP, CSV injection).

    >>> print(as_csv({"url": "=1+1", "duplicate_of": "a,b", "distance": 0}))
    ,'=1+1,"a,b",0,,,,,,,,,,
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
    """What could not be read, in words."""
    if reader.unreadable:
        yield f"{_many(reader.unreadable, 'line')} unreadable, and left out"
    for path in reader.damaged:
        yield f"{inert(str(path), URL)} is damaged: records are missing from where that is"


def print_summary(drops: Drops, paths: Sequence[Path], read: int) -> None:
    """Totals, and tables of hosts, distances, resemblances and the largest clusters."""
    total = drops.totals()
    where = inert(str(paths[0]), URL) if len(paths) == 1 else _many(len(paths), "log")
    some = f" of {read:,}" if total.drops != read else ""
    print(f"{where}: {total.drops:,}{some} {'near-duplicate' if read == 1 else 'near-duplicates'}")
    if not total.drops:
        return
    print(f"  {'seen':12}  {_span(total.first, total.last)}")
    print(f"  {'pages':12}  {_many(total.urls, 'URL')} on {_many(total.hosts, 'host')}", end=", ")
    print(f"near-duplicates of {_many(total.clusters, 'kept page')}")
    for action, count, what in (
        ("dropped", total.dropped, "neither parsed nor followed"),
        ("not followed", total.not_followed, "parsed, but not followed"),
        ("marked", total.marked, f"parsed, and their {_many(total.marked_links, 'link')} followed"),
    ):
        if count:
            print(f"  {action:12}  {count:,}: {what}")
    print(f"  {'saved':12}  {_many(total.links, 'link')} not followed (one on two pages counts twice)")
    size = "" if total.bytes is None else f" of {decimal(total.bytes)}, unpacked"
    print(f"  {'not saved':12}  {_many(total.drops, 'download')}{size}: a page is judged by its content")
    wide = max(20, screen().width - 30)
    print_table(
        ["drops", "links", "bytes", "host"],
        (
            [host.drops, host.links, _size(host.bytes), inert(host.host, wide) or "(none)"]
            for host in islice(drops.hosts(), ROWS)
        ),
        total.hosts,
    )
    print_table(["drops", "distance", ""], _bars(drops.distances()))
    twentieths = {
        f"{low:.2f}-{low + 0.05:.2f}" if low < 1 else "1.00": n for low, n in drops.resemblances().items()
    }
    print_table(["drops", "resemblance", ""], _bars(twentieths))
    print_table(
        ["drops", "links", "hosts", "kept page"],
        (
            [cluster.drops, cluster.links, cluster.hosts, inert(cluster.duplicate_of, wide)]
            for cluster in islice(drops.clusters(), ROWS)
        ),
        total.clusters,
    )


def print_table(heading: Sequence[str], rows: Iterable[Sequence[Any]], of: int = 0, gap: bool = True) -> None:
    """Prints rows of numbers that end in a text, and how many more there are; after an empty line, or at once."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in heading[:-1]:
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column(heading[-1], no_wrap=True, style="cyan")
    for row in rows:
        shown.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    console = screen()
    with console.capture() as printed:
        console.print(shown)
    print(*[""] * gap, *(line.rstrip() for line in printed.get().splitlines()), sep="\n")
    if of > shown.row_count:
        print(f"... and {of - shown.row_count:,} more")


def _bars(counts: Mapping[Any, int]) -> Iterator[Sequence[Any]]:
    most = max(counts.values())
    return ((count, name, "#" * max(1, round(BAR * count / most))) for name, count in counts.items())


def print_clusters(drops: Drops, as_objects: bool) -> None:
    """Each kept page, with what was dropped for it; the largest cluster first."""
    for number, cluster in enumerate(drops.clusters()):
        parts = {"hosts": drops.hosts_of(cluster), "patterns": drops.patterns_of(cluster)}
        if as_objects:
            some = {name: dict(islice(groups, MANY)) for name, groups in parts.items()}
            print(as_json(cluster._asdict() | some))
            continue
        if number:
            print()
        print(f"{_many(cluster.drops, 'near-duplicate')} of {inert(cluster.duplicate_of, URL)}")
        print(f"  {'seen':8}  {_span(cluster.first, cluster.last)}")
        for name, groups in parts.items():
            for at, (part, count) in enumerate(islice(groups, PARTS)):
                print(f"  {'' if at else name:8}  {count:,} {inert(part, URL) or '(none)'}")
            if more := sum(1 for _ in groups):
                print(f"  {'':8}  ... and {more:,} more {name}")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _clock(time: str) -> str:
    return time[:19].replace("T", " ")


def _span(first: str, last: str) -> str:
    return " to ".join(dict.fromkeys(map(_clock, (first, last)))) + " UTC"


def _size(octets: int | None) -> str:
    return "" if octets is None else decimal(octets)
