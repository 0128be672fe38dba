"""Indexes for a test: opened and closed, filled, damaged."""

import asyncio
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector
from dedup.index import Index, open_index
from tests.support.fingerprints import Claim, fingerprint_of
from tests.support.waiting import until

DETECTOR = Detector(max_distance=3, min_resemblance=0.7)
#: The name of a run that goes on whenever an index is opened by it.
RUN = "0a1b" * 8
#: Marks a test of the stores that outlive a process.
PERSISTENT = pytest.mark.parametrize("store", ["file", "redis"])

#: Page ids that a store could confuse, or that could confuse a store.
ODD_IDS = {
    "empty": "", "space": " ", "two lines": "a\r\nb", "NUL": "a\0b", "a NUL and another tail": "a\0c",
    "not ASCII": "Ω≈ç√ 🕷", "lone surrogate": "\ud800", "another lone surrogate": "\udfff",
    "a lone surrogate, escaped": r"\ud800", "lone surrogates around one escaped": "\ud800\\ud800\udfff",
    "what is filed of a lone surrogate": "\uffff\\ud800", "what is filed of that": "\uffff\uffff\\\\ud800",
    "one escaped among lone surrogates": "\ud800\ud800\udfff", "braces and colons": "shingleback:{x}:i:",
    "SQL": "'); DROP TABLE pages; --", "100 KB": "x" * 100_000, "100 KB and another tail": "x" * 99_999 + "y",
}  # fmt: skip


@asynccontextmanager
async def opened_at(address: str, detector: Detector = DETECTOR, **options: Any) -> AsyncIterator[Index]:
    """Opens an index, and closes it at the end."""
    index = open_index(address, detector, **options)
    try:
        await index.open()
        yield index
    finally:
        await index.close()


@asynccontextmanager
async def opened(
    address: str, namespace: str = "test", detector: Detector = DETECTOR, **options: Any
) -> AsyncIterator[Index]:
    """Opens an index whose server may be gone or changed by the time the index is closed."""
    index = open_index(address, detector, namespace=namespace, **options)
    try:
        await index.open()
        yield index
    finally:
        with suppress(DedupError):
            await index.close()


async def until_done(index: Index, page_ids: Sequence[str]) -> None:
    """Waits until the server of an index has all of these pages as done (a file: see `until_written`)."""

    async def done() -> bool:
        return await index.states(page_ids) == ["done"] * len(page_ids)

    await until(done)


def end_lease(address: str, namespace: str, run: str, after: float = 0) -> None:
    """Ends the lease of a run on Redis, as if it had been silent for a minute, or so many seconds later."""
    key = f"shingleback:{{{namespace}}}:runs"
    end = round((time.time() + after) * 1000) if after else 1
    with redis.Redis(unix_socket_path=address.removeprefix("unix://")) as client:
        client.zadd(key, {run: end}, xx=True)


async def until_written(path: Path, number: int) -> None:
    """Waits until this number of pages is in a file that is open elsewhere."""

    await until(lambda: in_file(path) == number)


def in_file(path: Path) -> int:
    """Counts the pages in a file, which may be open elsewhere."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        (number,) = connection.execute("SELECT count(*) FROM pages").fetchone()
    return int(number)


# --- Pages for an index ------------------------------------------------------------------------------


def pages(number: int, name: str = "page", seed: int = 1) -> list[Claim]:
    """Makes claims of unrelated pages."""
    rng = random.Random(seed)
    return [
        (f"{name} {n}", f"http://example.org/{n}", fingerprint_of(rng.getrandbits(64))) for n in range(number)
    ]


def twin_of(claim: Claim) -> Claim:
    """Makes a claim of the same content at another URL."""
    return f"twin of {claim[0]}", f"{claim[1]}/twin", claim[2]


# --- Indexes in files --------------------------------------------------------------------------------


def index_in(path: Path) -> Index:
    """Makes the index in a file, which the caller has to close."""
    return open_index(f"file:{path}", DETECTOR)


async def open_and_close(path: Path) -> None:
    """Opens and closes the index in a file."""
    async with opened_at(f"file:{path}"):
        pass


def try_to_open(path: Path) -> None:
    """Opens the index in a file, and raises what that raises."""
    asyncio.run(open_and_close(path))


async def fill(path: Path, claims: list[Claim]) -> None:
    """Claims and confirms pages in a file, which need not be there yet."""
    async with opened_at(f"file:{path}") as index:
        for claim in claims:
            await index.claim(*claim)
            await index.confirm(claim[0])


def change(path: Path, statement: str) -> None:
    """Changes the database behind the back of the index."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
