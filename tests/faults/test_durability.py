"""kill -9 of a process that files pages: what was once in the file is there for good.

This speaks of processes that die.  When the power fails, SQLite keeps the file sound, and may lose the last
commits (write-ahead log, synchronous = NORMAL).
"""

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import slow
from tests.support.processes import Forked
from tests.support.stores import fill, in_file, index_in, pages, twin_of
from tests.support.waiting import LIMIT

CLAIMS = pages(5000)
#: A writer makes at most this many claims before it is killed: two or three times the file is written meanwhile.
LIFE = 600


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


def claims_of(path: Path) -> int:
    """How many claims a writer has made so far."""
    log = path.with_suffix(".log")
    return log.read_bytes().count(b"\n") if log.exists() else 0


def kill_a_writer(path: Path, enough: Callable[[], bool]) -> tuple[int, float]:
    """How many pages were in its file just before, and when that was."""
    process = Forked(write, path)
    process.wait(LIMIT, enough)
    seen, moment = in_file(path), time.monotonic()
    assert process.kill()
    return seen, moment


@dataclass
class Kept:
    """What a killed writer has left."""

    seen: int  #: pages that had been seen in the file
    due: int  #: pages that had been confirmed for a second
    kept: int


async def recover(path: Path, seen: int, killed: float) -> Kept:
    """Checks it."""
    log = path.with_suffix(".log")
    *lines, _ = log.read_text().split("\n") if log.exists() else [""]  # the last may be torn
    numbers = [int(line.split()[0]) for line in lines]
    confirmed = [number for number in numbers if number % 3]
    due = sum(float(line.split()[1]) < killed - 1 for line in lines if int(line.split()[0]) % 3)
    index = index_in(path)
    states = await index.states([CLAIMS[number][0] for number in confirmed])
    kept = states.count("earlier")
    assert states == ["earlier"] * kept + ["absent"] * (len(confirmed) - kept)  # in the order of confirmation
    assert await index.count() >= seen
    for number in random.Random(1).sample(numbers, min(20, len(numbers))):
        page, twin = CLAIMS[number], twin_of(CLAIMS[number])
        assert (await index.claim(*twin)).status == "new"
        await index.release(twin[0])
        written = number in confirmed[:kept]
        assert (await index.claim(*page)).status == ("same" if written else "new")
        assert (await index.claim(*twin)).of == page[1]
    await index.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return Kept(seen, due, kept)


@pytest.mark.parametrize("kills", [3, slow(1000)])
def test_what_a_killed_run_wrote_is_kept_and_what_was_pending_hides_none(tmp_path: Path, kills: int) -> None:
    def trial(seed: int) -> Kept:
        path = tmp_path / str(seed) / "index.sqlite"
        path.parent.mkdir()
        claims = LIFE if seed == 0 else random.Random(seed).randrange(LIFE)
        seen, killed = kill_a_writer(path, lambda: claims_of(path) >= claims)
        return asyncio.run(recover(path, seen, killed))

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(trial, range(kills)))
    seen, kept = sum(one.seen for one in outcomes), sum(one.kept for one in outcomes)
    late = sum(one.kept < one.due for one in outcomes)
    print(
        f"\n{kills} kills: {seen} pages had been seen, {kept} were kept; in {late}, some later than a second"
    )
    assert kept >= seen > 20 * kills / 5


def test_a_log_left_beside_a_deleted_index_is_not_taken_for_that_of_the_next(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    kill_a_writer(path, lambda: in_file(path) > 0)
    assert os.path.getsize(f"{path}-wal") > 0
    path.unlink()

    async def crawl_again() -> None:
        index = index_in(path)
        assert await index.count() == 0  # not the pages of the deleted one
        await index.close()
        await fill(path, CLAIMS[:10])

    asyncio.run(crawl_again())
