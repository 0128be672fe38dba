"""What is lost where each of N workers learns for itself which links are worth a download, and one queue feeds them all.

    python benchmarks/shared_yields.py FOLDER[:START,START...] ... [--workers 1,2,4] [--seeds 3]
    python benchmarks/shared_yields.py DATA/storm_docs DATA/kafka_38_39:39/javadoc/index.html,38/javadoc/index.html

The crawls of `benchmarks/links.py`, with DEDUP_FOLLOW = "yield"; which worker takes a link from the queue is drawn.

own              each worker knows the verdicts on its own pages only, and what it has met and parked itself
shared           all know all, at once: more than any sharing could bring; it is the same as one worker
"""

import argparse
import asyncio
import random
from pathlib import Path
from statistics import mean

from benchmarks.links import ORDERS, Folder, FolderPage, by_index, read_folder
from dedup import Detector, open_index
from dedup.links import Doubt, Link, Links
from tests.support.simulation import Result, simulate


class Dealt(Links):
    """The links of several workers; each that leaves the queue is one worker's, which then learns from its page."""

    def __init__(self, workers: list[Links], seed: int) -> None:
        super().__init__()
        self.workers = workers
        self.parking = Lots(workers)  # type: ignore[assignment]
        self._rng = random.Random(seed)
        self._worker = workers[0]
        self._noted: dict[str, Links] = {}

    def doubt(self, link: Link) -> Doubt | None:
        self._worker = self._rng.choice(self.workers)
        return self._worker.doubt(link)

    def park(self, link: Link) -> None:
        self._worker.park(link)

    def note(self, link: Link) -> None:
        self._noted[link.url] = self._worker
        self._worker.note(link)

    def learn(self, url: str, *, new: bool | None) -> list[Link]:
        return self._noted.pop(url, self._worker).learn(url, new=new)

    def idle(self) -> list[Link]:
        return [link for worker in self.workers for link in worker.idle()]


class Lots:
    """What all workers have parked."""

    def __init__(self, workers: list[Links]) -> None:
        self._workers = workers

    def __len__(self) -> int:
        return sum(len(worker.parking) for worker in self._workers)

    def __contains__(self, url: str) -> bool:
        return any(url in worker.parking for worker in self._workers)

    def remove(self, url: str) -> None:
        for worker in self._workers:
            if url in worker.parking:
                worker.parking.remove(url)


async def crawl(
    site: Folder, order: str, links: Links | None, everything: Result | None
) -> tuple[Result, int]:
    """A crawl, and how many contents it has lost of those that the crawl that follows all finds."""
    index = open_index("memory:", Detector())
    judge, follow = by_index(index), "all" if everything is None else "never" if links is None else "yield"
    result = await simulate(site, judge, links, follow=follow, **ORDERS[order])  # type: ignore[arg-type]
    lost = 0
    for url in (everything or result).statuses:
        if url not in result.statuses:
            page = site.fetch(url)
            assert isinstance(page, FolderPage)
            lost += await judge(url, page) == "new"
    await index.close()
    return result, lost


async def measure(site: Folder, order: str, workers: list[int], seeds: int) -> None:
    """Prints a table."""
    everything, _ = await crawl(site, order, None, None)
    contents = everything.curve[-1]
    print(f"{site.name}, {order}: {contents:,} contents in {everything.downloads:,} pages")
    print(f"{'':16} {'pages':>8} {'contents':>9} {'lost':>6}")
    never = await crawl(site, order, None, everything)
    rows: list[tuple[str, list[tuple[Result, int]]]] = [("never followed", [never])]
    for number in workers:
        runs = range(seeds if number > 1 else 1)
        found = [
            await crawl(site, order, Dealt([Links() for _ in range(number)], seed), everything)
            for seed in runs
        ]
        rows.append((f"{number} own" if number > 1 else "1, or shared", found))
    for name, found in rows:
        pages, kept = mean(one.downloads for one, _ in found), mean(one.curve[-1] for one, _ in found)
        print(f"{name:16} {pages:8,.0f} {kept:9,.0f} {mean(lost for _, lost in found):6.1f}", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER[:START,...]")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for given in arguments.folders:
        folder, _, starts = given.partition(":")
        site = read_folder(Path(folder).resolve(), starts.split(",") if starts else [])
        for order in ORDERS:
            asyncio.run(measure(site, order, [*map(int, arguments.workers.split(","))], arguments.seeds))


if __name__ == "__main__":
    main()
