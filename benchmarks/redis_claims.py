"""Redis: bytes per page, server time and round trips per claim, by number of tables.

    python benchmarks/redis_claims.py [--pages 100000] [--plans 3:4 3:10 6:28]

Claims that many pages of random fingerprints (so nearly all are new), 16 in flight, with a private
redis-server; then claims 2,000 twins of them, one bit and a quarter of the sketch apart.
"""

import argparse
import asyncio
import random
import time
from dataclasses import replace
from pathlib import Path

import redis.asyncio as aioredis

from dedup import Detector, open_index
from dedup.fingerprint.detector import Fingerprint
from tests.support.redis import running_server

SEED = 7


def page(rng: random.Random) -> Fingerprint:
    """A page of a random simhash and sketch."""
    simhash, digest = rng.getrandbits(64), rng.getrandbits(64)
    return Fingerprint(simhash, rng.randbytes(128), tokens=1000, links=50, digest=digest)


async def claims(index, pages: list[tuple[str, Fingerprint]]) -> float:
    """Seconds that it takes to claim and confirm all pages, 16 at a time."""
    waiting = iter(pages)

    async def worker() -> None:
        for name, fingerprint in waiting:
            await index.claim(name, f"https://www.example.org/some/folder/{name}.html", fingerprint)
            await index.confirm(name)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(16)))
    return time.perf_counter() - started


async def measure(socket: Path, k: int, tables: int, number: int) -> None:
    rng = random.Random(SEED)
    client = aioredis.Redis(unix_socket_path=str(socket))
    await client.flushall()
    before = (await client.info("memory"))["used_memory"]
    index = open_index(
        f"unix://{socket}", Detector(max_distance=k), namespace="bench", tables=tables, expected_pages=number
    )
    await index.open()
    pages = [(f"{rng.getrandbits(160):040x}", page(rng)) for _ in range(number)]
    await client.config_resetstat()
    wall = await claims(index, pages)
    stats, commands = await client.info("stats"), await client.info("commandstats")
    script = commands["cmdstat_evalsha"]
    twins = [
        (
            f"twin-{name}",
            replace(page(rng), simhash=of.simhash ^ 1, sketch=of.sketch[:100] + rng.randbytes(28)),
        )
        for name, of in rng.sample(pages, 2000)
    ]
    await client.config_resetstat()
    await claims(index, twins)
    twin_script = (await client.info("commandstats"))["cmdstat_evalsha"]
    await index.close()
    used = (await client.info("memory"))["used_memory"] - before
    in_tables = 0
    async for key in client.scan_iter("shingleback:{bench}:t:*", count=1000):
        in_tables += await client.memory_usage(key, samples=0)
    print(
        f"{k:2} {tables:7} {used / number:11.0f} {in_tables / number / (tables + 1):16.1f} "
        f"{script['usec_per_call']:10.1f} {twin_script['usec_per_call']:9.1f} "
        f"{stats['total_reads_processed'] / number:12.3f} {wall / number * 1e6:9.0f}",
        flush=True,
    )
    await client.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--plans", nargs="*", default=["3:4", "3:10", "6:28"])
    arguments = parser.parse_args()
    with running_server("--appendfsync", "everysec") as server:
        print(f"{arguments.pages:,} pages, seed {SEED}; server time in us per script call")
        print(" k  tables  bytes/page  bytes/page/table  us/new page  us/twin  reads/claim   wall us")
        for plan in arguments.plans:
            k, tables = map(int, plan.split(":"))
            asyncio.run(measure(server.socket, k, tables, arguments.pages))


if __name__ == "__main__":
    main()
