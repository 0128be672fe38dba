"""Claims of pages made of a chosen simhash, and the indexes in files that they go to."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

from dedup.fingerprint.detector import Fingerprint
from dedup.index import Index, open_index
from tests.support.redis import DETECTOR, page

Claim = tuple[str, str, Fingerprint]


def pages(number: int, name: str = "page", seed: int = 1) -> list[Claim]:
    """Claims of unrelated pages."""
    rng = random.Random(seed)
    return [(f"{name} {n}", f"http://example.org/{n}", page(rng.getrandbits(64))) for n in range(number)]


def twin_of(claim: Claim) -> Claim:
    """A claim of the same content elsewhere."""
    return f"twin of {claim[0]}", f"{claim[1]}/twin", claim[2]


def index_in(path: Path) -> Index:
    """The index in a file; to be closed."""
    return open_index(f"file:{path}", DETECTOR)


async def open_and_close(path: Path) -> None:
    """Raises what that raises."""
    index = index_in(path)
    try:
        await index.open()
    finally:
        await index.close()


def try_to_open(path: Path) -> None:
    """Raises what opening raises."""
    asyncio.run(open_and_close(path))


async def fill(path: Path, claims: list[Claim]) -> None:
    """Makes an index, or adds to it."""
    index = index_in(path)
    for claim in claims:
        await index.claim(*claim)
        await index.confirm(claim[0])
    await index.close()


def change(path: Path, statement: str) -> None:
    """Changes the database behind the back of the index."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
