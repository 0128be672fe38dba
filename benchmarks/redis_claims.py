"""Redis: bytes per page, server time and round trips per claim, by number of tables; and claims in one chrome.

    python benchmarks/redis_claims.py [--pages 100000] [--plans 3:4 3:10 6:28] [--shops 300:2000 300:600 1000:2000]

Claims that many pages of random fingerprints (so nearly all are new), 16 in flight, with a private
redis-server; then claims 2,000 twins of them, one bit and a quarter of the sketch apart.

A shop, PRODUCTS:WORDS, is the worst case: that many products of 60 words each, in that many words of one menu and
footer, so that a claim has hundreds of candidates.  All are claimed, and then a copy of each; in Redis, in a file and
in memory.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import redis.asyncio as aioredis

from dedup import Detector, open_index
from dedup.fingerprint.detector import Fingerprint
from tests.support.pages.shops import COPIES, Shop, ShopPage
from tests.support.redis import running_server

SEED = 7
#: Words of a product that are its own.
OWN = 60

Claim = tuple[str, str, Fingerprint]


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


def shop_claims(products: int, words: int) -> list[list[Claim]]:
    """The claims of all products, and those of their copies."""
    shop, rng, detector = Shop("shop.example", words, OWN, 1, products), random.Random(SEED), Detector()
    kinds = list(COPIES)

    def pages() -> Iterator[Iterator[ShopPage]]:
        yield (shop.page(product, rng) for product in range(products))
        yield (shop.copy(product, kinds[product % len(kinds)], rng) for product in range(products))

    return [
        [
            (f"{part} {at}", page.url, detector.fingerprint(page.html, page.url))
            for at, page in enumerate(some)
        ]
        for part, some in enumerate(pages())
    ]


async def claim_shop(address: str, parts: list[list[Claim]], client: aioredis.Redis | None) -> list[float]:
    """The CPU time per claim, in us, of each part: that of the server, or without one of this process."""

    async def spent() -> float:
        if client is None:
            return time.process_time()
        used = await client.info("cpu")
        return used["used_cpu_user"] + used["used_cpu_sys"]

    index = open_index(address, Detector(), namespace="bench")
    await index.open()
    times = []
    for part in parts:
        before = await spent()
        for name, url, fingerprint in part:
            await index.claim(name, url, fingerprint)
            await index.confirm(name)
        times.append((await spent() - before) / len(part) * 1e6)
        await asyncio.sleep(1.5)  # what is confirmed is written meanwhile
    await index.close()
    return times


async def measure_shop(socket: Path, products: int, words: int) -> None:
    parts = shop_claims(products, words)
    client = aioredis.Redis(unix_socket_path=str(socket))
    await client.flushall()
    with tempfile.TemporaryDirectory() as folder:
        for store, address in (
            ("redis", f"unix://{socket}"),
            ("file", f"file:{folder}/index.sqlite"),
            ("memory", "memory:"),
        ):
            new, copy = await claim_shop(address, parts, client if store == "redis" else None)
            print(f"{products:8} {words:7} {store:>7} {new:12.0f} {copy:8.0f}", flush=True)
    await client.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--plans", nargs="*", default=["3:4", "3:10", "6:28"])
    parser.add_argument("--shops", nargs="*", default=["300:2000", "300:600", "1000:2000"])
    arguments = parser.parse_args()
    with running_server("--appendfsync", "everysec") as server:
        if arguments.plans:
            print(f"{arguments.pages:,} pages, seed {SEED}; server time in us per script call")
            print(" k  tables  bytes/page  bytes/page/table  us/new page  us/twin  reads/claim   wall us")
        for plan in arguments.plans:
            k, tables = map(int, plan.split(":"))
            asyncio.run(measure(server.socket, k, tables, arguments.pages))
        print(f"shops of products of {OWN} words; CPU time in us (of the server, or else of the process)")
        print("products   words   store  us/new page  us/copy")
        for some in arguments.shops:
            asyncio.run(measure_shop(server.socket, *map(int, some.split(":"))))


if __name__ == "__main__":
    main()
