"""What a claim costs amid a flood: pages within 6 bits of each other that share no shingles.

    python benchmarks/floods.py [--pages 50000] [--stores memory file redis]

CPU time per claim, of the server or else of this process, when the forged pages are of the same run, and when they are
of an earlier one.
"""

import argparse
import asyncio
import random
import tempfile
import time

import redis.asyncio as aioredis

from dedup import open_index
from tests.support.redis import running_server
from tests.test_floods import DETECTOR, EARLIER, flood, forged

CLAIMS = 50


async def measure(address: str, pages: int, whose: str) -> float:
    """Milliseconds of CPU time per claim."""
    client = aioredis.Redis(unix_socket_path=address.removeprefix("unix://"))

    async def spent() -> float:
        if not address.startswith("unix:"):
            return time.process_time()
        used = await client.info("cpu")
        return float(used["used_cpu_user_main_thread"] + used["used_cpu_sys_main_thread"])

    index = open_index(address, DETECTOR, namespace=whose)
    await index.open()
    await index.add(flood(pages, index.run if whose == "own" else EARLIER))
    rng, before = random.Random(1), await spent()
    for number in range(CLAIMS):
        await index.claim(f"claim {number}", "http://example.org/", forged(rng))
    used = await spent() - before
    await index.close()
    await client.aclose()
    return used / CLAIMS * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=50_000)
    parser.add_argument("--stores", nargs="*", default=["memory", "file", "redis"])
    options = parser.parse_args()
    for whose in ("own", "earlier"):
        with tempfile.TemporaryDirectory() as folder, running_server() as server:
            places = {"memory": "memory:", "file": f"file:{folder}/index.sqlite", "redis": server.address}
            for store in options.stores:
                used = asyncio.run(measure(places[store], options.pages, whose))
                print(
                    f"{store:6} amid {options.pages:,} of the {whose} run: {used:.1f} ms a claim", flush=True
                )


if __name__ == "__main__":
    main()
