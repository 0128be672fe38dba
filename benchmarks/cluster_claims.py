"""Redis Cluster: claims a second, and CPU time of all masters and of a crawler per claim, with 1, 2 and 3 masters.

    python benchmarks/cluster_claims.py [--pages 5000] [--rounds 3] [--masters 1 2 3]

Claims and confirms that many pages of random fingerprints, 16 in flight, from one process; then twins of a fifth of
them, half of which are equal to their pages, and half one bit and a quarter of the sketch apart.  All of it runs on one
machine: where the masters and the crawler share its cores, claims a second say nothing of more machines, and CPU time
per claim and the share of the busiest master do.  The first line is one server without a cluster.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import redis

from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Fingerprint
from tests.support.cluster import running_cluster
from tests.support.redis import running_server

SEED = 7
Claim = tuple[str, Fingerprint]


def pages(rng: random.Random, number: int) -> list[Claim]:
    """Pages of random simhashes and sketches."""
    return [
        (
            f"{rng.getrandbits(160):040x}",
            Fingerprint(
                rng.getrandbits(64), rng.randbytes(136), tokens=1000, links=50, digest=rng.getrandbits(64)
            ),
        )
        for _ in range(number)
    ]


def twins(rng: random.Random, claims: list[Claim]) -> list[Claim]:
    """Copies of a fifth of the pages: equal, or near."""
    found = []
    for place, (name, of) in enumerate(rng.sample(claims, len(claims) // 5)):
        near = replace(
            of,
            simhash=(of.simhash or 0) ^ 1,
            sketch=of.sketch[:100] + rng.randbytes(36),
            digest=rng.getrandbits(64),
        )
        found.append((f"twin-{name}", of if place % 2 else near))
    return found


async def claim_all(index, claims: list[Claim]) -> None:
    """Claims and confirms pages, 16 at a time."""
    waiting = iter(claims)

    async def worker() -> None:
        for name, fingerprint in waiting:
            await index.claim(name, f"https://www.example.org/some/folder/{name}.html", fingerprint)
            await index.confirm(name)

    await asyncio.gather(*(worker() for _ in range(16)))


def spent(servers: list[redis.Redis]) -> list[float]:
    """CPU seconds of each server so far."""
    used = [server.info("cpu") for server in servers]
    return [each["used_cpu_user"] + each["used_cpu_sys"] for each in used]


async def measure(address: str, servers: list[redis.Redis], number: int, seed: int) -> list[float]:
    """Claims a second; us of all servers, of the busiest and of the crawler per claim of a new page, and of a twin."""
    rng = random.Random(seed)
    new = pages(rng, number)
    index = open_index(address, Detector(), namespace=f"bench {seed}", expected_pages=1_000_000)
    await index.open()
    figures = []
    for claims in (new, twins(rng, new)):
        before, own, started = spent(servers), time.process_time(), time.perf_counter()
        await claim_all(index, claims)
        wall, own = time.perf_counter() - started, time.process_time() - own
        used = [after - then for after, then in zip(spent(servers), before, strict=True)]
        figures += [len(claims) / wall, *(1e6 * each / len(claims) for each in (sum(used), max(used), own))]
    await index.close()
    return figures


@contextmanager
def place(masters: int) -> Iterator[tuple[str, list[redis.Redis]]]:
    """One server, or a cluster of some masters, and a client for each of them."""
    if masters == 0:
        with running_server() as server:
            yield server.address, [server.client]
    else:
        with running_cluster(masters, 0) as cluster:
            yield cluster.address, [node.client for node in cluster.nodes]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--masters", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    print("          ------------- new pages -------------   --------------- twins ---------------")
    print("masters   claims/s  servers  busiest  crawler us   claims/s  servers  busiest  crawler us")
    found: dict[int, list[list[float]]] = {}
    for number in range(options.rounds):
        for masters in (0, *options.masters):
            with place(masters) as (address, servers):
                figures = asyncio.run(measure(address, servers, options.pages, SEED + number))
            found.setdefault(masters, []).append(figures)
    for masters, rounds in found.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        shown = "  ".join(f"{figure:8,.0f}" for figure in medians)
        print(f"{masters or 'one server'!s:>10} {shown}", flush=True)


if __name__ == "__main__":
    main()
