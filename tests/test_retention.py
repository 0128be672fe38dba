"""The pages of a run, and those filed before a time: all of them are found, and few others are read."""

import math
import random
from itertools import count
from types import SimpleNamespace

import pytest

from dedup.index import Index
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.stores import PERSISTENT, opened_at
from tests.support.surveys import entry

RUNS = [f"{number:032x}" for number in range(1, 7)]
DAY = 86_400
START = 1_800_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that claims read."""
    clock = SimpleNamespace(now=START, time=lambda: clock.now)
    monkeypatch.setattr("dedup.index.contract.time", clock)
    return clock


async def found_by(index: Index, run: str = "", before: float = math.inf) -> list[str]:
    """Asks a survey for the pages of a run, or of a time; the ids of those that it tells."""
    survey = await index.survey()
    assert survey is not None
    async with survey:
        return [filed.page_id async for filed, _ in survey.pages(run=run, before=before) if filed]


@PERSISTENT
@driven
async def test_every_page_of_a_run_and_of_a_time_is_found(
    address: str, namespace: str, clock: SimpleNamespace
) -> None:
    """Five crawls, a day apart, meet pages of earlier ones and new ones; pages of other indexes come in between."""
    rng, numbers, fresh = random.Random(5), count(), count(1000)
    known: list[int] = []
    for run in RUNS[:5]:
        clock.now += DAY
        async with opened_at(address, namespace=namespace, run=run) as index:
            if run != RUNS[0]:
                await index.add(
                    [entry(next(fresh), run=rng.choice(RUNS), filed=clock.now - 3 * DAY) for _ in range(5)]
                )
            new = [next(numbers) for _ in range(30)]
            for number in rng.sample(known, min(len(known), 8)) + new:
                clock.now += 60
                await index.claim(
                    f"page {number}",
                    f"http://a/{number}",
                    fingerprint_of(random.Random(number).getrandbits(64)),
                )
                if rng.random() < 0.8:
                    await index.confirm(f"page {number}")
                elif rng.random() < 0.5:
                    await index.release(f"page {number}")
            known += new
            await index.forget([f"page {number}" for number in rng.sample(known, 4)])
    async with opened_at(address, namespace=namespace) as index:
        survey = await index.survey()
        assert survey is not None
        filed = [page async for page, _ in survey.pages() if page]
        await survey.close()
        assert len(filed) > 100
        for run in [*RUNS, "f" * 32]:
            assert await found_by(index, run=run) == [page.page_id for page in filed if page.run == run]
        for moment in (START, *(page.filed for page in rng.sample(filed, 4)), clock.now + 1):
            expected = [page.page_id for page in filed if page.filed < moment]
            assert await found_by(index, before=moment) == expected
