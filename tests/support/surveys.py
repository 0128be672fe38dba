"""Surveys of indexes, and pages that are filed without a claim."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Entry, Index, open_index
from dedup.index.entry import NONE_RARE, rare_keys
from dedup.index.survey import Finding, StoredPage
from tests.support.stores import DETECTOR, opened_at

RUN = "0f" * 16
NAMESPACE = "test"
PREFIX = f"shingleback:{{{NAMESPACE}}}:"
#: The kind of finding for a field of a wrong type or size.
TYPES = "unreadable pages"


def entry(number: int, **changes: Any) -> Entry:
    """Makes a page as an index files it; pages of different numbers are unrelated."""
    rng = random.Random(number)
    simhash, digest = rng.getrandbits(64), rng.getrandbits(64)
    url = f"http://example.org/{number}"
    filed = Entry(
        f"id {number}", url, simhash, 0, digest, (), rng.randbytes(136), 1_800_000_000 + number, RUN, digest,
        rare=rare_keys(NONE_RARE, digest),
    )  # fmt: skip
    return filed._replace(**changes)


def claim_of(filed: Entry) -> tuple[str, str, Fingerprint]:
    """Makes the claim that is filed as this entry."""
    fingerprint = Fingerprint(
        filed.simhash, filed.sketch, 100, 0, None, filed.digest, filed.bands, filed.markup
    )
    return filed.page_id, filed.url, fingerprint


async def surveyed(index: Index) -> tuple[list[StoredPage], list[Finding]]:
    """Takes a survey; returns its pages and findings."""
    survey = await index.survey()
    assert survey is not None
    async with survey:
        return [filed async for filed in survey.pages()], [found async for found in survey.findings()]


@asynccontextmanager
async def unopened(address: str, detector: Detector = DETECTOR, **options: Any) -> AsyncIterator[Index]:
    """Makes an index that is not opened, only looked at."""
    index = open_index(address, detector, **options)
    try:
        yield index
    finally:
        await index.close()


async def restored(address: str, path: Path) -> int:
    """Follows the advice of a finding: files what can be read of a damaged index in a fresh one; counts it."""
    async with unopened(address, namespace=NAMESPACE) as index:
        entries = [filed for filed, _ in (await surveyed(index))[0] if filed]
    async with opened_at(f"file:{path}") as fresh:
        await fresh.add([filed._replace(scope=0) for filed in entries])
        assert (await surveyed(fresh))[1] == []
        return await fresh.count()
