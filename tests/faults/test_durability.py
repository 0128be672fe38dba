"""kill -9 of a process that files pages: what was confirmed a second before is in the file for good.

This speaks of processes that die.  When the power fails, SQLite keeps the file sound, and may lose the last
commits (write-ahead log, synchronous = NORMAL).
"""

import asyncio
import os
import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.claims import fill, index_in, pages, twin_of
from tests.forked import Forked

CLAIMS = pages(5000)
#: The longest life of a writer, in seconds.
LIFE = 2.2


def write(path: Path) -> None:
    """Files pages until it is killed; a log says which was confirmed when.  Every third is left pending."""

    async def crawl() -> None:
        index = index_in(path)
        with path.with_suffix(".log").open("ab", buffering=0) as log:
            for number, claim in enumerate(CLAIMS):
                await index.claim(*claim)
                if number % 3:
                    await index.confirm(claim[0])
                log.write(f"{number} {time.monotonic()}\n".encode())
                await asyncio.sleep(0.002)

    asyncio.run(crawl())


def kill_a_writer(path: Path, seconds: float) -> float:
    """The moment at which it was killed."""
    process = Forked(write, path)
    process.wait(seconds)
    moment = time.monotonic()
    assert process.kill()
    return moment


async def recover(path: Path, killed: float) -> tuple[int, int]:
    """Checks what a killed writer has left; how many pages had to be there, and how many were."""
    log = path.with_suffix(".log")
    *lines, _ = log.read_text().split("\n") if log.exists() else [""]  # the last may be torn
    numbers = [int(line.split()[0]) for line in lines]
    confirmed = [number for number in numbers if number % 3]
    due = sum(float(line.split()[1]) < killed - 1 for line in lines if int(line.split()[0]) % 3)
    index = index_in(path)
    states = await index.states([CLAIMS[number][0] for number in confirmed])
    kept = states.count("done")
    assert states == ["done"] * kept + [None] * (len(confirmed) - kept)  # in the order of confirmation
    assert kept >= due, f"{due - kept} pages were lost"
    for number in random.Random(1).sample(numbers, min(20, len(numbers))):
        verdict = await index.claim(*twin_of(CLAIMS[number]))
        done = number in confirmed[:kept]
        assert verdict.of == (CLAIMS[number][1] if done else None)
        await index.release(twin_of(CLAIMS[number])[0])
    await index.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return due, kept


@pytest.mark.parametrize("kills", [5, pytest.param(1000, marks=pytest.mark.slow)])
def test_what_was_confirmed_a_second_before_a_kill_is_kept_and_what_was_pending_shadows_nothing(
    tmp_path: Path, kills: int
) -> None:
    def trial(seed: int) -> tuple[int, int]:
        path = tmp_path / str(seed) / "index.sqlite"
        path.parent.mkdir()
        killed = kill_a_writer(path, LIFE if seed == 0 else random.Random(seed).uniform(0, LIFE))
        return asyncio.run(recover(path, killed))

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(trial, range(kills)))
    due, kept = map(sum, zip(*outcomes, strict=True))
    print(f"\n{kills} kills: {due} pages had to be there, {kept} were")
    assert due > 20 * kills / 5


def test_a_log_left_beside_a_deleted_index_is_not_taken_for_that_of_the_next(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    kill_a_writer(path, 1)
    assert os.path.getsize(f"{path}-wal") > 0
    path.unlink()

    async def crawl_again() -> None:
        index = index_in(path)
        assert await index.count() == 0  # not the pages of the deleted one
        await index.close()
        await fill(path, CLAIMS[:10])

    asyncio.run(crawl_again())
