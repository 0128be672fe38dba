"""The same content at the same instant: exactly one claim of it is kept."""

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dedup.index import open_index
from dedup.index.local import segments
from tests.support import slow
from tests.support.fingerprints import fingerprint_of
from tests.support.stores import DETECTOR, in_file

WORKERS = 8

RACE = """
import asyncio, json, multiprocessing, random, sys
from dedup import Detector, open_index
from dedup.fingerprint.detector import Fingerprint

address, namespace, workers, rounds = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])

async def race(worker):
    rng = random.Random(11)  # the same in every worker
    index = open_index(address, Detector(max_distance=3, min_resemblance=0.7), namespace=namespace)
    await index.open()
    verdicts = []
    for number in range(rounds):
        simhash = rng.getrandbits(64)
        fingerprint = Fingerprint(simhash, b"\\x55" * 128 + bytes(8), tokens=100, links=0, digest=simhash)
        barrier.wait(600)
        verdict = await index.claim(f"{number} by {worker}", f"http://{worker}/", fingerprint)
        verdicts.append((verdict.status, verdict.of))
    barrier.wait(600)
    await index.close()
    return verdicts

def work(worker, results):
    results.put((worker, asyncio.run(race(worker))))

fork = multiprocessing.get_context("fork")
barrier = fork.Barrier(workers)
results = fork.SimpleQueue()
for worker in range(workers):
    fork.Process(target=work, args=(worker, results), daemon=True).start()
print(json.dumps(dict(results.get() for _ in range(workers))))
"""


@pytest.mark.parametrize("rounds", [40, slow(10_000)])
def test_of_eight_claims_at_once_one_is_told_new(redis_socket: Path, namespace: str, rounds: int) -> None:
    command = [sys.executable, "-c", RACE, f"unix://{redis_socket}", namespace, str(WORKERS), str(rounds)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=600)
    verdicts = json.loads(done.stdout)
    first: Counter[str] = Counter()
    for number in range(rounds):
        told = {worker: tuple(verdicts[worker][number]) for worker in verdicts}
        (kept,) = (worker for worker in told if told[worker] == ("new", None))
        assert Counter(told.values()) == {("new", None): 1, ("duplicate", f"http://{kept}/"): WORKERS - 1}
        first[kept] += 1
    print(f"\n{rounds} rounds; kept by worker: {dict(first)}")
    assert len(first) > WORKERS / 2  # it was a race


def test_eight_threads_that_open_one_file_at_once_share_it(tmp_path: Path) -> None:
    """Each with an event loop of its own.  Of one content they keep one page."""
    start, done = threading.Barrier(WORKERS), threading.Barrier(WORKERS)
    outcomes: list[list[str]] = []
    address = f"file:{tmp_path / 'index.sqlite'}"

    def work(worker: int) -> None:
        async def crawl() -> list[str]:
            index = open_index(address, DETECTOR)
            start.wait()
            found = []
            for number in range(50):
                simhash = number * 0x0101_0101_0101_0101
                verdict = await index.claim(
                    f"{worker} {number}", f"http://{worker}/", fingerprint_of(simhash)
                )
                found.append(verdict.status)
                await index.confirm(f"{worker} {number}")
            done.wait()
            await index.close()
            return found

        outcomes.append(asyncio.run(crawl()))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = sum(found.count("new") for found in outcomes)
    assert len(outcomes) == WORKERS
    assert kept == 50
    assert in_file(tmp_path / "index.sqlite") == 50


def test_a_run_that_ends_keeps_others_out_while_it_looks_for_its_pages(tmp_path: Path) -> None:
    """Another one that writes what it has confirmed takes pages out of those."""
    free: list[bool] = []

    class Looked(dict[str, Any]):
        def values(self) -> Any:
            thread = threading.Thread(target=try_lock)
            thread.start()
            thread.join()
            return super().values()

    def try_lock() -> None:
        free.append(shelf.lock.acquire(blocking=False))
        if free[-1]:
            shelf.lock.release()

    async def crawl() -> None:
        async with open_index(f"file:{tmp_path / 'index.sqlite'}", DETECTOR) as index:
            await index.claim("one", "http://a/", fingerprint_of(1))
            nonlocal shelf
            shelf = index._shelf  # type: ignore[attr-defined]
            shelf.live = Looked(shelf.live)

    shelf: Any = None
    asyncio.run(crawl())
    assert free == [False]


@pytest.mark.parametrize("does", ["begins", "ends"])
def test_no_run_begins_or_ends_in_the_midst_of_what_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    """It would commit half of it."""
    met, halves = threading.Event(), list[int]()

    class Watched:
        """The lock, which tells when another thread comes to it."""

        def __init__(self, lock: threading.Lock) -> None:
            self.lock = lock

        def __enter__(self) -> None:
            met.set()
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    def come() -> None:
        shelf.begin("other") if does == "begins" else shelf.end("other", finished=True)
        met.set()

    def update(*args: Any) -> None:
        if not other.ident:
            shelf._writing = Watched(shelf._writing)
            other.start()
            met.wait()
            halves.append(in_file(tmp_path / "index.sqlite"))
        segments.update(*args)

    async def crawl() -> None:
        nonlocal shelf
        async with open_index(f"file:{tmp_path / 'index.sqlite'}", DETECTOR) as index:
            shelf = index._shelf  # type: ignore[attr-defined]
            shelf.begin("other")
            await index.claim("one", "http://a/", fingerprint_of(1))
            await index.confirm("one")
            monkeypatch.setattr("dedup.index.local.sqlite.update", update)
            await index.flush()
            other.join()

    shelf: Any = None
    other = threading.Thread(target=come)
    asyncio.run(crawl())
    assert halves == [0]
    assert in_file(tmp_path / "index.sqlite") == 1


HOLD = """
import asyncio, multiprocessing, sys
from dedup import Detector, open_index
from dedup.errors import DedupError

workers, rounds = int(sys.argv[2]), int(sys.argv[3])

def work(results):
    for number in range(rounds):
        index = open_index(f"file:{sys.argv[1]}/{number}.sqlite", Detector())

        async def hold():
            barrier.wait(600)
            try:
                await index.open()
                outcome = 0
            except DedupError as error:
                outcome = error.exit_status
            barrier.wait(600)
            await index.close()
            return outcome

        results.put((number, asyncio.run(hold())))

fork = multiprocessing.get_context("fork")
barrier = fork.Barrier(workers)
results = fork.SimpleQueue()
for _ in range(workers):
    fork.Process(target=work, args=(results,), daemon=True).start()
for _ in range(workers * rounds):
    print(*results.get())
"""


@pytest.mark.parametrize("rounds", [4, slow(500)])
def test_of_eight_processes_that_open_one_file_at_once_seven_are_refused(tmp_path: Path, rounds: int) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path), str(WORKERS), str(rounds)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=600, text=True)
    outcomes = Counter(done.stdout.splitlines())
    for number in range(rounds):
        assert outcomes[f"{number} 0"] == 1
        assert outcomes[f"{number} 6"] == WORKERS - 1
