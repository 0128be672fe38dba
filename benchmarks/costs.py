"""What a page and a claim cost in a file and in Redis: the table that `scrapy index plan` reckons from.

    python benchmarks/costs.py [--pages 20000] [--write]

Random pages, which are not alike, are claimed and confirmed one by one, by plans of different tables and of fuller buckets;
what a table, a bucket and an entry take is fitted to that by least squares.  Times are those of the processor: of this
process for a file, of the server for Redis.  A claim in one table that is searched by halves is that of 28 tables.  What a
crawler takes is what the process of benchmarks/long_crawl.py does.  With --write, the table is replaced; what is reckoned from
its bounds and the recall (benchmarks/ablation.py) stay.
"""

import argparse
import asyncio
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import redis

from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import BLOCKS, EXACT, REDIS_BYTES, Plan
from dedup.index.local.tables import SortedTables
from dedup.index.redis.buckets import bucket_bits
from dedup.index.weighing import MAX_LOOKED
from dedup.scrapy.commands.index import plan as planned
from tests.support.redis import running_server

SEED, CLAIMS = 7, 1000
#: Distance, tables, and the share of the pages that are expected: the fewer, the fuller the buckets.
RUNS = (
    (6, None, 1.0),
    (6, None, 0.1),
    (6, None, 0.02),
    (6, 28, 1.0),
    (6, 84, 1.0),
    (3, None, 1.0),
    (3, 16, 0.1),
)
#: Pages among which candidates are looked up, so that there are many.
LOOKED_AMONG = 2_000_000


def pages(count: int) -> list[tuple[str, str, Fingerprint]]:
    """Page ids, URLs and fingerprints."""
    rng = random.Random(SEED)
    names = [f"{rng.getrandbits(160):040x}" for _ in range(count)]
    return [
        (
            name,
            f"https://www.example.org/some/folder/{name[:16]}.html",
            Fingerprint(
                rng.getrandbits(64), rng.randbytes(136), tokens=1000, links=50, digest=rng.getrandbits(64)
            ),
        )
        for name in names
    ]


async def claim(address: str, run: tuple[int, int | None, float], count: int, spent) -> tuple[Plan, float]:
    """The plan, and µs for each of the last claims."""
    k, tables, share = run
    index = open_index(address, Detector(max_distance=k), tables=tables, expected_pages=int(share * count))
    await index.open()
    for number, (name, url, fingerprint) in enumerate(pages(count)):
        if number == count - CLAIMS:
            started = spent()
        await index.claim(name, url, fingerprint)
        await index.confirm(name)
    took = spent() - started
    await index.close()
    return index.plan, took / CLAIMS * 1e6


def fitted(rows: list[list[float]], times: list[float]) -> list[float]:
    """The costs by which these many things of each kind take these times."""
    costs, *_ = np.linalg.lstsq(np.array(rows, float), np.array(times), rcond=None)
    return [float(f"{max(cost, 0.0):.2g}") for cost in costs]


def costs_of_file(count: int) -> dict[str, float]:
    """Bytes and µs of an index in a file."""
    rows, times, disk = [], [], 0.0
    for run in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "index.sqlite")
            plan, took = asyncio.run(claim(f"file:{path}", run, count, time.process_time))
            disk = disk or sum(each.stat().st_size for each in Path(folder).iterdir()) / count
        print(f"file   {run}: {took:.0f} us", flush=True)
        rows.append([1, plan.size if plan.size > BLOCKS else 0])
        times.append(took)
    each, table = fitted(rows, times)
    return {
        "row": 4 + 8 * len(EXACT),
        "disk": round(disk),
        "claim": each,
        "table": table,
        "candidate": candidate(),
    }


def candidate() -> float:
    """µs for each page that a look-up in memory looks at."""
    plan = Detector().plan(LOOKED_AMONG, in_memory=True)
    rng = np.random.default_rng(SEED)
    took, looked = [], []
    for size in (LOOKED_AMONG // 20, LOOKED_AMONG):
        tables = SortedTables(plan, rng.integers(0, 2**64, (size, len(EXACT) + plan.columns), np.uint64))
        queries = rng.integers(0, 2**64, (CLAIMS, len(EXACT) + plan.columns), np.uint64).tolist()
        tables.within(tuple(queries[0]), plan.max_distance, MAX_LOOKED)  # it is sorted now
        started = time.process_time()
        for query in queries:
            tables.within(tuple(query), plan.max_distance, MAX_LOOKED)
        took.append((time.process_time() - started) / CLAIMS * 1e6)
        looked.append(plan.candidates(size))
    return float(f"{(took[1] - took[0]) / (looked[1] - looked[0]):.1g}")


def costs_of_redis(count: int) -> dict[str, float]:
    """Bytes and µs of an index in Redis."""
    rows, times, record, disk = [], [], 0.0, 0.0
    for run in RUNS:
        with running_server() as server:
            client = server.client
            before = client.info("memory")["used_memory"]

            def spent(client: redis.Redis = client) -> float:
                used = client.info("cpu")
                return used["used_cpu_user_main_thread"] + used["used_cpu_sys_main_thread"]

            plan, took = asyncio.run(claim(server.address, run, count, spent))
            if not record:
                used = (client.info("memory")["used_memory"] - before) / count
                record = used - REDIS_BYTES * (1 + len(EXACT) + plan.size)
                disk = rewritten(client) / count
        print(f"redis  {run}: {took:.0f} us", flush=True)
        bits = bucket_bits(plan, math.ceil(run[2] * count))
        buckets = plan.size + plan.flipped * bits
        rows.append([1, plan.size, buckets, count * buckets / 2.0**bits])
        times.append(took)
    names = ("claim", "table", "bucket", "entry")
    return {
        "record": round(record),
        "disk": round(disk),
        **dict(zip(names, fitted(rows, times), strict=True)),
    }


def costs_of_crawler(count: int) -> dict[str, float]:
    """Bytes of the process of a crawl, but for its index: at the start, of what it holds for long, and of each page.

    Those of "plain" have the filter's code in them.  The markup of pages is held until that is full, and so from the second tenth
    on the line is straight.
    """
    start, *_ = process_sizes("plain", count)
    _, *sizes = process_sizes("file", count)
    page, held = np.polyfit(count / 10 * np.arange(2, 11), sizes, 1)
    index = planned.in_file(Detector().plan(count, in_memory=True), 1).memory
    return {
        "start": round(start, -6),
        "held": round(held - start, -6),
        "page": round(page - index, -2),
    }


def process_sizes(store: str, count: int) -> list[float]:
    """Bytes of the process after each tenth of the pages."""
    called = [sys.executable, "-m", "benchmarks.long_crawl", store, "--pages", str(count)]
    told = subprocess.run(called, check=True, capture_output=True, text=True).stdout
    return [float(size) * 1e6 for size in re.findall(r"a page, +([\d.]+) MB", told)]


def rewritten(client: redis.Redis) -> int:
    """Bytes of the append-only file, just rewritten."""
    client.config_set("appendonly", "yes")
    client.bgrewriteaof()
    told = client.info("persistence")
    while told["aof_rewrite_in_progress"] or told["aof_rewrite_scheduled"]:
        time.sleep(0.1)
        told = client.info("persistence")
    return int(told["aof_current_size"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = {"file": costs_of_file(options.pages), "redis": costs_of_redis(options.pages)}
    found["crawler"] = planned.CRAWLER | costs_of_crawler(5 * options.pages)
    costs = planned.COSTS | found
    text = ",\n".join(f' "{name}": {json.dumps(values)}' for name, values in costs.items())
    print(text)
    if options.write:
        Path(planned.__file__).with_name("costs.json").write_text(f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    main()
