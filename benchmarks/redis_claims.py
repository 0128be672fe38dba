"""Redis: bytes per page, server time and round trips per claim, by plan; claims per second; and claims in one chrome.

    python benchmarks/redis_claims.py [--pages 100000] [--plans 3 6 6:28] [--fingerprints FILE.npz] [--clients 2]
        [--shops 300:2000 300:600 1000:2000] [--figures FILE]

A plan is a distance k, or k:tables for one of the paper's.  Files that many pages of random fingerprints, or of FILE.npz,
where each array ``simhash_...`` is one site, grown as benchmarks/tables.py does it, with a private redis-server.  Then,
16 in flight, claims 1,000 new pages, 1,000 twins (one bit and a tenth of the sketch apart) and 1,000 exact copies.  The
server's time is that of its main thread, with what it reads, writes and logs.

A shop, PRODUCTS:WORDS, is the worst case: that many products of 60 words each, in that many words of one menu and
footer, so that a claim has hundreds of candidates.  All are claimed, and then a copy of each; in Redis, in a file and
in memory.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import redis.asyncio as aioredis

from benchmarks import figures
from benchmarks.tables import grown, sources
from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.entry import NONE_RARE, Entry, rare_keys
from tests.support.pages.shops import COPIES, Shop, ShopPage
from tests.support.redis import running_server

SEED = 7
#: Claims of each kind.
CLAIMS = 1000
#: Words of a product that are its own.
OWN = 60

Claim = tuple[str, str, Fingerprint]


def page(rng: random.Random, simhash: int) -> Fingerprint:
    """A page of a random sketch and digest; no other has its rare shingles."""
    return Fingerprint(simhash, rng.randbytes(136), tokens=1000, links=50, digest=rng.getrandbits(64))


def twin(rng: random.Random, of: Fingerprint) -> Fingerprint:
    """A page one bit and a tenth of the sketch apart."""
    other = page(rng, of.simhash ^ 1 << rng.randrange(64))
    return Fingerprint(other.simhash, of.sketch[:116] + other.sketch[116:], 1000, 50, digest=other.digest)


def filed(name: str, of: Fingerprint, run: str) -> Entry:
    url = f"https://www.example.org/some/folder/{name}.html"
    return Entry(
        name,
        url,
        of.simhash,
        0,
        of.digest,
        (),
        of.sketch,
        1_800_000_000,
        run,
        of.digest,
        rare=rare_keys(NONE_RARE, of.digest),
    )


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


def opened(socket: Path, plan: str, number: int):
    k, _, tables = plan.partition(":")
    return open_index(
        f"unix://{socket}",
        Detector(max_distance=int(k)),
        namespace="bench",
        tables=int(tables) if tables else None,
        expected_pages=number,
    )


async def measure(
    socket: Path, plan: str, name: str, simhashes: list[int], clients: int
) -> dict[str, object]:
    rng, number = random.Random(SEED), len(simhashes) - CLAIMS
    client = aioredis.Redis(unix_socket_path=str(socket))
    await client.flushall()
    before = (await client.info("memory"))["used_memory"]
    index = opened(socket, plan, number)
    await index.open()
    pages = [(f"{rng.getrandbits(160):040x}", page(rng, simhash)) for simhash in simhashes]
    for start in range(0, number, 500):
        some = pages[start : min(start + 500, number)]
        await index.add([filed(*one, index.run) for one in some])
    used = (await client.info("memory"))["used_memory"] - before
    chosen = rng.sample(pages[:number], CLAIMS)
    kinds = {
        "new": pages[number:],
        "twin": [(f"twin of {of}", twin(rng, fingerprint)) for of, fingerprint in chosen],
        "copy": [(f"copy of {of}", fingerprint) for of, fingerprint in chosen],
    }
    row: dict[str, object] = {
        "fingerprints": name,
        "plan": plan,
        "pages": number,
        "bytes a page": round(used / number),
    }
    for kind, some in kinds.items():
        await client.config_resetstat()
        started = await server_time(client)
        await claims(index, some)
        row[f"us/{kind}"] = round((await server_time(client) - started) / CLAIMS * 1e6)
        if kind == "new":
            reads = (await client.info("stats"))["total_reads_processed"] / CLAIMS
    row |= {"reads/claim": round(reads, 3), "claims/s": round(await rates(socket, plan, number, clients))}
    print(*(f"{value!s:>12}" for value in row.values()), flush=True)
    await index.close()
    await client.aclose()
    return row


async def server_time(client: aioredis.Redis) -> float:
    """Seconds of CPU that the server has used for commands."""
    used = await client.info("cpu")
    return float(used["used_cpu_user_main_thread"] + used["used_cpu_sys_main_thread"])


async def rates(socket: Path, plan: str, number: int, clients: int) -> float:
    """Claims of new pages per second, of so many processes together."""
    command = [sys.executable, "-W", "ignore", __file__, "--client", str(socket), plan, str(number)]
    running = [
        await asyncio.create_subprocess_exec(*command, str(n), stdout=subprocess.PIPE) for n in range(clients)
    ]
    answers = await asyncio.gather(*(process.communicate() for process in running))
    return sum(float(answer) for answer, _ in answers)


async def claim_alone(socket: str, plan: str, number: str, seed: str) -> None:
    """Prints how many claims a second one process makes."""
    rng = random.Random(f"client {seed}")
    index = opened(Path(socket), plan, int(number))
    await index.open()
    pages = [(f"{rng.getrandbits(160):040x}", page(rng, rng.getrandbits(64))) for _ in range(5 * CLAIMS)]
    print(len(pages) / await claims(index, pages))
    await index.close()


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
    parser.add_argument("--plans", nargs="*", default=["3", "6", "6:28"])
    parser.add_argument("--fingerprints", type=Path)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--shops", nargs="*", default=["300:2000", "300:600", "1000:2000"])
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    figures.add_option(parser)
    arguments = parser.parse_args()
    if arguments.client:
        asyncio.run(claim_alone(*arguments.client))
        return
    with running_server("--appendfsync", "everysec") as server:
        if arguments.plans:
            print(
                f"seed {SEED}; server time in us per claim; claims a second of {arguments.clients} processes"
            )
            names = (
                "fingerprints",
                "plan",
                "pages",
                "bytes/page",
                "us/new",
                "us/twin",
                "us/copy",
                "reads/claim",
                "claims/s",
            )
            print(*(f"{name:>12}" for name in names))
        rows = list[dict[str, object]]()
        for name, site in sources(arguments.fingerprints) if arguments.plans else ():
            rng = np.random.default_rng(1)
            number = arguments.pages + CLAIMS
            random_ones = rng.integers(0, 2**64, number, np.uint64)
            simhashes = random_ones if site is None else grown(site, rng.integers(0, len(site), number), rng)
            for plan in arguments.plans:
                rows.append(
                    asyncio.run(measure(server.socket, plan, name, simhashes.tolist(), arguments.clients))
                )
        figures.write(arguments.figures, rows)
        print(f"shops of products of {OWN} words; CPU time in us (of the server, or else of the process)")
        print("products   words   store  us/new page  us/copy")
        for some in arguments.shops:
            asyncio.run(measure_shop(server.socket, *map(int, some.split(":"))))


if __name__ == "__main__":
    main()
