"""`scrapy index plan`: what an index of N pages would take, before there is one.

Everything is reckoned from a few measured figures, for pages that are not alike.  Only what a crawler remembers is not
measured, but reckoned from its bounds.
"""

import argparse
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.plans import BLOCKS, EXACT, REDIS_BYTES, Plan
from dedup.index.redis.buckets import MAX_READ, bucket_bits
from dedup.index.redis.keys import PARTS
from dedup.printing import inert
from dedup.scrapy.commands.terminal import print_table
from dedup.settings import SETTINGS
from dedup.values import Kind, Number, Setting

#: Both stores number their pages in 32 bits.
MOST_PAGES = 2.0**32 - 3
#: More pages than that are planned for many indexes.
MOST_PLANNED = 1e15
#: How full a machine may get; the rest is for the crawler, or for what Redis writes while it forks.
FULL = 0.9
#: Bytes of each key of a page, in memory and in its record.
KEY = 8

#: An append-only file is rewritten at twice its size, beside the old one.
REDIS_FILES = 3
#: The figures, measured by benchmarks/costs.py unless said otherwise.
#:
#: * "file" and "redis" have bytes of a page: ``row`` is its number and its keys in the tables of digests; ``record`` and
#:   ``disk`` are for URLs of 60 characters.  And they have µs of CPU of a claim, of the crawler for a file and of the
#:   server for Redis: ``claim`` with its confirmation; more for each ``table`` (of a file, if it is searched by halves),
#:   each ``bucket`` that is read, and each page that is looked at (``candidate``, ``entry``).
#: * "crawler" has bytes of the process of a crawl: at its start, of the markup that it holds, and of each page; a thousand
#:   tables of hosts are reckoned.
#: * "shards" has bytes of Redis until a crawl by many workers has ended: a link that was handed over, and, with
#:   DEDUP_HEIR = "rest", one that waits (packed, 154 bytes) and one that is done.
#: * "recall" is that of simhash by its distance, on the worse of two sites (docs/measured.md, "What every default is worth").
COSTS: dict[str, dict[str, float]] = json.loads(Path(__file__).with_name("costs.json").read_text("ascii"))
FILE, REDIS, SHARDS, CRAWLER = (COSTS[name] for name in ("file", "redis", "shards", "crawler"))
RECALL = {int(k): recall for k, recall in COSTS["recall"].items()}
NO_RECALL = "which finds pages that are nearly equal, and plans for no recall; take minhash or simhash"
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Needs(NamedTuple):
    """What an index takes."""

    tables: int  #: those of digests left out
    memory: float  #: bytes
    disk: float  #: bytes
    looked: float  #: how many pages a claim looks at by chance
    claim: float  #: µs of CPU: of the crawler, or of the server


def in_file(plan: Plan, pages: float) -> Needs:
    """Returns what an index in a file takes.

    >>> from dedup.fingerprint.plans import block_plan
    >>> needs = in_file(block_plan(max_distance=6), 1e8)
    >>> needs.tables, needs.memory, needs.disk, round(needs.claim)
    (4, 14000000000.0, 58000000000.0, 349)
    """
    memory = FILE["row"] + KEY * (len(EXACT) + plan.columns) + plan.local_bytes
    looked = plan.candidates(pages)
    halves = FILE["table"] * plan.size if plan.size > BLOCKS else 0
    disk = FILE["disk"] + KEY * (plan.columns - 1)
    claim = FILE["claim"] + halves + FILE["candidate"] * looked
    return Needs(plan.size, pages * memory, pages * disk, looked, claim)


def in_redis(plan: Plan, pages: float) -> Needs:
    """Returns what an index in Redis takes that is planned for this many pages.

    >>> from dedup.fingerprint.plans import block_plan
    >>> needs = in_redis(block_plan(max_distance=6), 1e8)
    >>> needs.memory, round(needs.looked), round(needs.claim, -3)
    (59700000000.0, 79346, 7000.0)
    """
    bits = bucket_bits(plan, math.ceil(pages))
    buckets = plan.size + plan.flipped * bits
    looked = pages * buckets / 2.0**bits
    own = KEY * (plan.columns - 1)
    memory = REDIS["record"] + own + REDIS_BYTES * (1 + len(EXACT) + plan.size)
    disk = REDIS_FILES * (REDIS["disk"] + own + 12 * (plan.size - BLOCKS))
    claim = REDIS["claim"] + REDIS["table"] * plan.size
    claim += REDIS["bucket"] * buckets + REDIS["entry"] * looked
    return Needs(plan.size, pages * memory, pages * disk, looked, claim)


def print_plan(detector: Detector, tables: int | None, scope: str, opts: argparse.Namespace) -> int:
    """Prints what a file and Redis would take, and returns the exit status.  Raises `SettingsError`."""
    pages = _read("pages", Number(1.0, MOST_PLANNED), opts.pages)
    rate = _read("rate", Number(0.0, 1e6), opts.rate or "10")
    machine = _octets(opts.memory or "64G")
    said: list[str] = []
    if opts.recall:
        detector, said = _recalling(detector, _read("recall", SETTINGS["recall"].kind, opts.recall))
    plan = detector.plan(math.ceil(pages), tables, in_memory=True)
    stores = {"file": in_file(plan, pages), "Redis": in_redis(plan, pages)}
    machines = {name: math.ceil(needs.memory / (FULL * machine)) for name, needs in stores.items()}
    is_held = machines["Redis"] <= (1 if scope == "all" else PARTS)
    ((name, value),) = detector.finder.parameters.items()
    print(f"{pages:,.0f} pages by {detector.method}, {name} = {value}\n")
    each = stores.values()
    rows = (
        [*(f"{needs.tables:,}" for needs in each), "tables"],
        [*(decimal(int(needs.memory)) for needs in each), "of memory"],
        [*(decimal(int(needs.disk)) for needs in each), "of disk"],
        [
            "1" if machines["file"] == 1 else "none",
            f"{machines['Redis']:,}" if is_held else "none",
            f"machines of {decimal(int(machine))}, {FULL:.0%} full",
        ],
        [*(f"{needs.looked:,.0f}" for needs in each), "pages looked at by a claim"],
        [
            *(f"{needs.claim / 1000:,.2f}" for needs in each),
            "ms of CPU for a claim: of the crawler, or of the server",
        ],
        [*(f"{needs.claim * rate / 1e4:,.1f} %" for needs in each), f"of a core at {rate:g} pages a second"],
    )
    print_table([*stores, ""], rows, gap=False)
    said.append(f"in Redis, set DEDUP_EXPECTED_PAGES = {math.ceil(pages)}")
    if machines["file"] > 1:
        said.append("a file has to fit into the memory of one machine: this one does not")
        said.append(_shared_out(plan, pages, FULL * machine))
    if not is_held:
        said.append("one server of Redis does not hold this, nor does one master of a cluster")
    if 1 < machines["Redis"] <= PARTS:
        need = "" if is_held else 'with DEDUP_SCOPE = "host" or "site", '
        said.append(f"{need}a Redis Cluster of {machines['Redis']:,} masters holds it")
    if (most := 1e6 / stores["Redis"].claim) < rate:
        said.append(
            f"one server of Redis, which works on one core, answers {most:,.0f} new pages a second at most"
        )
    if stores["Redis"].looked > MAX_READ:
        said.append(
            f"in Redis a claim looks at {MAX_READ:,} pages at most, so near-duplicates would be missed"
        )
    start, held, page, hosts = (decimal(int(octets)) for octets in CRAWLER.values())
    said.append(
        f"a crawler takes {start} more at its start, {held} for pages that its filter holds, {page} for each of the last "
        f"100,000 pages, and 96 kB for each host, at most {hosts}"
    )
    link, waiting, done = (decimal(int(pages * octets)) for octets in SHARDS.values())
    said.append(
        f"with DEDUP_SHARD, Redis holds {link} more until the crawl has ended, if a link to each page is handed over; with "
        f'DEDUP_HEIR = "rest" another {waiting} if they all wait at once, and {done} when all are done'
    )
    said.append(
        "these figures are reckoned from measured ones, for pages unlike each other: see docs/operations.md"
    )
    print("", *said, sep="\n- ")
    return 0


def _shared_out(plan: Plan, pages: float, room: float) -> str:
    """Says how many crawls with indexes of their own, in files, hold what one does not; ``room`` is that of a machine."""
    count = math.ceil(max(pages / MOST_PAGES, in_file(plan, pages).memory / room))
    each = in_file(plan, pages / count)
    return (
        f'with DEDUP_SCOPE = "site" or "host", {count:,} crawls that share out the hosts hold it, each with its own file and machine: '
        f"{decimal(int(each.memory))} of memory, {decimal(int(each.disk))} of disk, and {each.claim / 1000:,.2f} ms for a claim"
    )


def _recalling(detector: Detector, recall: float) -> tuple[Detector, list[str]]:
    """Returns the detector that finds this share of near-duplicates, and what to set for it."""
    if detector.method == "minhash":
        planned = replace(detector, recall=recall)
        found = planned.finder.probability(detector.min_resemblance)
        at = f"of the pages of resemblance {detector.min_resemblance:g}, {found:.4f} are found"
        return planned, [f"set DEDUP_RECALL = {recall:g}: {at}"]
    if detector.method != "simhash":
        raise SettingsError(name="--recall", value=recall, others={"method": detector.method}, why=NO_RECALL)
    k = next((k for k, measured in RECALL.items() if measured >= recall), None)
    if k is None:
        most = f"at most {max(RECALL.values())}, which was measured for k = {max(RECALL)}"
        allowed = f"{most}; or METHOD minhash, which plans for it"
        raise SettingsError(name="--recall", value=recall, others={"method": "simhash"}, allowed=allowed)
    measured = f"the smallest measured distance that suffices: {RECALL[k]} on the worse of two sites"
    return replace(detector, max_distance=k), [f"set DEDUP_MAX_DISTANCE = {k}, {measured}"]


def _read(name: str, kind: Kind, text: str) -> float:
    value: float = Setting(f"--{name}", kind, None, "").read(text)
    return value


def _octets(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]?)B?", text)
    octets = float(found[1]) * UNITS[found[2]] if found else 0
    if octets < 1 or octets > 1e15:
        raise SettingsError(name="--memory", value=inert(text, 60), allowed="bytes, such as 64G or 500M")
    return octets
