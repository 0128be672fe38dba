"""What a worker that dies costs: nothing is lost, and each death lets one more copy of a content be kept, at most.

Several filters, each with a run of its own, work on one index in Redis, as the workers of a crawl do.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dedup.droplog.log import DropLog
from dedup.filter import Counts, Crawl, Filter
from dedup.filter.watch import doubts
from dedup.index.batching import end
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR, open_index, visit
from tests.support.stores import end_lease
from tests.support.waiting import LIMIT

#: Each store that workers share.
SHARED = pytest.mark.parametrize("store", ["redis"])


class Worker(Crawl):
    """Visits its pages, and what it is to fetch again.  The first letter of a page says which content it has."""

    def __init__(self, fleet: "Fleet", pages: Sequence[str]) -> None:
        self.fleet = fleet
        self.left = deque((page, True) for page in pages)
        self.open: list[str] = []  # pages that were kept, but not yet handed over
        self.index = open_index(fleet.address, DETECTOR, namespace=fleet.namespace, lease=30.0)
        self.counts = Counts()
        log = DropLog(str(fleet.folder / f"{len(fleet.workers)}.jsonl"))
        self.filter = Filter(self.index, log, stats=self.counts, crawl=self)
        fleet.workers.append(self)

    def fetch_again(self, origin: Any, *, judged: bool = True) -> None:
        self.left.append((origin, judged))

    async def fetch_next(self) -> None:
        """Fetches a page; one that is kept is out, whatever becomes of the worker."""
        page, judged = self.left.popleft()
        if judged:
            outcome = await self.filter.judge(visit(page, page[0], origin=page))
            if outcome.action != "keep":
                return
            self.open.append(page)
        self.fleet.kept[page[0]] += 1

    async def hand_over(self) -> None:
        """The callbacks of all pages that were kept have ended."""
        for page in self.open:
            await self.filter.handed_over(page)
        self.open.clear()
        await self.index._confirmations.flush()  # type: ignore[attr-defined]

    async def die(self) -> None:
        """Ends without a word; its lease goes on."""
        self.fleet.workers.remove(self)
        index: Any = self.index
        await index.open()
        for task in (index._session._renewing, index._confirmations._task, self.filter._watch._task):
            await end(task)
        self.filter.log.close()
        await index._server.close()

    def lose_lease(self, *, after: float = 0) -> None:
        """Ends the lease of this worker, which is dead, at once or so many seconds later."""
        end_lease(self.fleet.address, self.fleet.namespace, self.index.run, after)


class Fleet:
    """The workers of a crawl, and how often each content was kept by them."""

    def __init__(self, address: str, namespace: str, folder: Path) -> None:
        self.address = address
        self.namespace = namespace
        self.folder = folder
        self.workers: list[Worker] = []
        self.kept: Counter[str] = Counter()

    async def work(self) -> None:
        """All workers crawl to their ends; they wait for each other's pages only when they have nothing else to do."""
        while True:
            for worker in self.workers:
                await worker.hand_over()
                while worker.left:
                    await worker.fetch_next()
                    await worker.hand_over()
            waiting = [worker for worker in self.workers if worker.filter.is_busy()]
            for worker in waiting:
                if annulling := worker.filter._watch._annulling:
                    await annulling
            if not waiting and not any(worker.left for worker in self.workers):
                return
            await asyncio.sleep(0.001)


@asynccontextmanager
async def sailing(address: str, namespace: str, folder: Path) -> AsyncIterator[Fleet]:
    fleet = Fleet(address, namespace, folder)
    try:
        yield fleet
    finally:
        for worker in fleet.workers:
            await worker.filter.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "INTERVAL", 0.005)
    monkeypatch.setattr(doubts, "PATIENCE", LIMIT)
    # Leases are longer than a busy machine lets a worker wait; their renewals, which drops wait for, come often.
    monkeypatch.setattr("dedup.index.redis.session.RENEWALS", 100)


@SHARED
@pytest.mark.parametrize("lease_ends", [True, False], ids=["lease over", "over later"])
@driven
async def test_of_the_copies_that_a_dead_worker_leaves_in_doubt_one_is_kept(
    address: str, namespace: str, tmp_path: Path, lease_ends: bool
) -> None:
    async with sailing(address, namespace, tmp_path) as fleet:
        killed = Worker(fleet, ["a"])
        await killed.fetch_next()
        for copies in (["a1", "a2"], ["a3", "a4"]):
            worker = Worker(fleet, copies)
            await worker.fetch_next()
            await worker.fetch_next()
        assert fleet.kept == {"a": 1}
        await killed.die()
        killed.lose_lease(after=0 if lease_ends else 1)
        if not lease_ends:
            await fleet.work()
        Worker(fleet, ["a"])  # in its place
        await fleet.work()
        assert fleet.kept == {"a": 2}


@SHARED
@pytest.mark.parametrize(("has_heir", "times"), [(True, 2), (False, 3)])
@driven
async def test_a_worker_that_ends_as_another_has_its_shard_answers_for_its_pages(
    address: str, namespace: str, tmp_path: Path, has_heir: bool, times: int
) -> None:
    async with sailing(address, namespace, tmp_path) as fleet:
        paused, heir, other = Worker(fleet, ["a"]), Worker(fleet, ["a"]), Worker(fleet, ["a1"])
        for worker in (paused, heir):
            await worker.fetch_next()
            await worker.hand_over()
        await other.index.open()
        paused.filter.has_heir = has_heir
        fleet.workers.remove(paused)
        await paused.filter.close(finished=False)
        await fleet.work()
        assert fleet.kept == {"a": times}


@SHARED
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 1)) for seed in range(6)]
)
@driven
async def test_each_death_costs_one_more_copy_at_most_and_loses_nothing(
    address: str, namespace: str, tmp_path: Path, seed: int
) -> None:
    """The place of a dead worker is taken when its lease is over, as that of a worker with shards is."""
    rng = random.Random(seed)

    async def crawl(working: Sequence[Worker], steps: int) -> None:
        for _ in range(steps):
            worker = rng.choice(working)
            if worker.left:
                await worker.fetch_next()
            if rng.random() < 0.2:
                await worker.hand_over()

    async with sailing(address, namespace, tmp_path) as fleet:
        shards = [[f"{content}{shard}" for content in "abcdef"] for shard in range(3)]
        for shard in shards:
            rng.shuffle(shard)
        working = [Worker(fleet, shard) for shard in shards]
        deaths = rng.randint(1, 3)
        for death in sorted(rng.sample(range(30), deaths), reverse=True):
            await crawl(working, 30 - death)
            which = rng.randrange(3)
            dead = working.pop(which)
            await dead.die()
            await crawl(working, rng.choice([0, 0, 0, 5, 20]))
            dead.lose_lease()
            working.insert(which, Worker(fleet, shards[which]))
        await fleet.work()
        assert set(fleet.kept) == set("abcdef")
        assert max(fleet.kept.values()) <= 1 + deaths


@SHARED
@driven
async def test_a_copy_more_is_kept_if_the_place_of_a_dead_worker_is_taken_before_its_lease_is_over(
    address: str, namespace: str, tmp_path: Path
) -> None:
    async with sailing(address, namespace, tmp_path) as fleet:
        killed = Worker(fleet, ["a"])
        await killed.fetch_next()
        await killed.hand_over()
        await killed.die()
        heir, other = Worker(fleet, ["a"]), Worker(fleet, ["a1", "a2"])
        await heir.fetch_next()
        await heir.hand_over()
        await other.fetch_next()
        await other.fetch_next()
        assert fleet.kept == {"a": 2}
        killed.lose_lease()
        await fleet.work()
        assert fleet.kept == {"a": 3}
