"""What is lost, and what is kept twice, where several workers learn the chrome of the same hosts at once.

    python -m benchmarks.shared_chrome [--workers 1,2,4] [--seeds 7,8]

The generated shops of tests/test_generated_sites.py, shop by shop; the pages of each are dealt to workers that claim
them at once, each through an index of its own on one Redis.  In a crawl, where pages come slower, a worker knows more of
what the others have learned.
"""

import argparse
import asyncio
import random
from collections.abc import Sequence

from dedup import Fingerprint, open_index
from dedup.index import Index
from tests.support.pages.shops import ShopPage, shops
from tests.support.redis import running_server
from tests.test_generated_sites import DETECTOR, Claimed, Figures, figures, fingerprints


async def crawl_site(
    indexes: Sequence[Index], pages: Sequence[ShopPage], of: Sequence[Fingerprint], order: Sequence[int]
) -> list[Claimed]:
    """What became of the pages of a site, dealt to workers in an order."""
    claimed = list[Claimed]()

    async def work(index: Index, hand: Sequence[int]) -> None:
        for number in hand:
            page = pages[number]
            verdict = await index.claim(page.url, page.url, of[number])
            await index.confirm(page.url)
            claimed.append(Claimed(page, verdict.status == "new"))

    hands = (order[worker :: len(indexes)] for worker in range(len(indexes)))
    await asyncio.gather(*map(work, indexes, hands))
    return claimed


async def crawl(
    address: str,
    sites: Sequence[Sequence[ShopPage]],
    of: Sequence[Sequence[Fingerprint]],
    workers: int,
    seed: int,
) -> Figures:
    """What became of the pages of all sites, one after the other."""
    rng, found = random.Random(seed), list[list[Claimed]]()
    indexes = [open_index(address, DETECTOR, namespace=f"{workers} {seed}") for _ in range(workers)]
    for pages, prints in zip(sites, of, strict=True):
        found.append(await crawl_site(indexes, pages, prints, rng.sample(range(len(pages)), len(pages))))
    for index in indexes:
        await index.close()
    return figures(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--seeds", default="7,8")
    arguments = parser.parse_args()
    sites = list(shops(1))
    of = [fingerprints(pages) for pages in sites]
    with running_server() as server:
        for seed in map(int, arguments.seeds.split(",")):
            for workers in map(int, arguments.workers.split(",")):
                got = asyncio.run(crawl(server.address, sites, of, workers, seed))
                print(
                    f"seed {seed}, {workers} workers: {got.lost} of {got.contents:,} products lost, recall {got.recall():.3f}"
                )


if __name__ == "__main__":
    main()
