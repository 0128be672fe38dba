"""Guards: how many functions are called for a claim and for a page, those in C included.

It is the same at any load and on any machine, so that a loss by half shows: the bounds are 1.3 times what was counted by
Python 3.11, and later versions call less.  What a call takes is not seen here, but by benchmarks/page_speed.py.
"""

import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

import pytest

from dedup.droplog.log import DropLog
from dedup.filter import Filter, Visit
from dedup.fingerprint import numbers
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, open_index
from dedup.page import walk
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR
from tests.support.pages.shops import Shop

pytest.importorskip("dedup.fast")


class Claims:
    """Claims of new pages of one index, fifty at a time."""

    def __init__(self, index: Index, seed: int) -> None:
        self.index = index
        self._rng = random.Random(seed)
        self._count = 0

    async def __call__(self) -> None:
        for _ in range(50):
            self._count += 1
            bits = self._rng.getrandbits
            made = Fingerprint(bits(64), self._rng.randbytes(136), 200, 3, digest=bits(64), markup=bits(64))
            name = str(self._count)
            assert (await self.index.claim(name, f"http://example.org/{name}", made)).status == "new"
            await self.index.confirm(name)


async def calls(work: Callable[[], Awaitable[object]], rounds: int = 3) -> int:
    """How many functions are called meanwhile: the least of some rounds, as something else may be due in one of them."""
    found = []
    for _ in range(rounds):
        counted = 0

        def note(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            await work()
        finally:
            sys.setprofile(None)
        found.append(counted)
    return min(found)


@pytest.mark.parametrize(("store", "most"), [("memory:", 151), ("file:{}/index.sqlite", 207)])
@driven
async def test_a_claim_calls_no_more_functions(tmp_path: Path, store: str, most: int) -> None:
    async with open_index(store.format(tmp_path), DETECTOR) as index:
        claims = Claims(index, 1)
        await claims()
        assert await calls(claims) / 50 < most


@pytest.mark.parametrize(
    ("is_compiled", "most"), [(True, 1080), (False, 6000)], ids=["compiled", "in Python"]
)
@driven
async def test_a_page_that_is_judged_calls_no_more_functions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_compiled: bool, most: int
) -> None:
    if not is_compiled:
        monkeypatch.setattr(walk, "fast", None)
        monkeypatch.setattr(numbers, "fast", None)
    shop, rng, judged = (
        Shop("shop.example.org", 700, 600, seed=3),
        random.Random(1),
        Filter(open_index("memory:", DETECTOR), DropLog(str(tmp_path / "drops.jsonl"))),
    )
    pages = iter([shop.page(number, rng) for number in range(50)])

    async def some() -> None:
        for _ in range(10):
            page = next(pages)
            outcome = await judged.judge(Visit.of_html(page.html, page.url, DETECTOR))
            assert outcome.verdict.status == "new"
            await judged.handed_over(page.url)

    await some()
    await some()
    assert await calls(some) / 10 < most
    await judged.close()
