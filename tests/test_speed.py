"""Guards: what a claim, an opened index and a known body cost, beside work that no change of ours makes dearer.

Bounds are about three times what was measured.  Each cost is the least of many rounds, in which both sides take turns,
by the clock of the CPU: what else the machine does only adds to it.  tests/test_page_speed.py does so for a page.

Calls of functions are counted where all is done in many small steps: whatever the machine does, they are as many.  These
bounds are 1.3 times what was counted.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time_ns
from typing import Any

import pytest
from parsel import Selector

from dedup import index as indexes
from dedup.filter import Body, Visit
from dedup.fingerprint import chrome, numbers, sketch
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index
from dedup.index.local import buckets, tables
from dedup.page import limits, tokens, walk
from dedup.page.read import read
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR, filtering, open_index, text, visit
from tests.support.pages.shops import Shop

ROUNDS = 15
Work = Callable[[], Coroutine[Any, Any, object]]


async def least(*works: Work, rounds: int = ROUNDS) -> list[int]:
    """The least nanoseconds of CPU that each of some works takes, in turns."""
    spent = [1 << 62] * len(works)
    for _ in range(rounds):
        for number, work in enumerate(works):
            started = process_time_ns()
            await work()
            spent[number] = min(spent[number], process_time_ns() - started)
    return spent


async def parse() -> None:
    """The unit: ten pages of 200 words with little markup are parsed."""
    for seed in range(10):
        _ = Selector(text=PAGES[seed], type="html").root


PAGES = [text(seed) for seed in range(10)]


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
            made = Fingerprint(bits(64), self._rng.randbytes(136), 200, 3, digest=bits(64), view=bits(64))
            name = str(self._count)
            assert (await self.index.claim(name, f"http://example.org/{name}", made)).status == "new"
            await self.index.confirm(name)


@driven
async def test_a_claim_costs_a_few_parses_and_hardly_more_among_many_pages(tmp_path: Path) -> None:
    few, many = (Claims(open_index("memory:", DETECTOR), seed) for seed in (1, 2))
    for _ in range(80):
        await many()
    a_parse, among_few, among_many = await least(parse, few, many)
    await few.index.close()
    await many.index.close()
    assert among_many < 3 * among_few
    assert among_many / 50 < 8 * a_parse / 10


@driven
async def test_a_page_of_an_index_that_is_opened_costs_a_fraction_of_a_parse(tmp_path: Path) -> None:
    address = f"file:{tmp_path}/index.sqlite"
    filled = Claims(open_index(address, DETECTOR), 1)
    for _ in range(80):
        await filled()
    await filled.index.close()

    async def opened() -> None:
        async with open_index(address, DETECTOR) as index:
            assert await index.count() == 4_000

    a_parse, an_opening = await least(parse, opened, rounds=7)
    assert an_opening / 4_000 < 0.3 * a_parse / 10


@driven
async def test_a_page_whose_body_is_known_costs_a_part_of_one_that_is_read(tmp_path: Path) -> None:
    stories = [text(seed, "and so on, at length " * 3_000) for seed in range(50)]
    async with filtering(tmp_path / "drops.jsonl", max_cluster=0) as it:
        numbers = iter(range(1_000))

        async def judge(seed: int) -> None:
            number = next(numbers)
            url, html = f"http://example.org/{number}", stories[seed]
            body = Body(html.encode(), "utf-8", "html")
            await it.filter.judge(visit(str(number), read=partial(read, html, url), body=lambda: body))

        async def known() -> None:
            await judge(0)

        async def unknown() -> None:
            await judge(next(numbers) % 49 + 1)

        await known()
        cheap, dear = await least(known, unknown)
        assert it.figures["equal_bodies"] >= ROUNDS
    assert cheap < 0.5 * dear


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Counts the calls of functions that are made meanwhile, those of Python and those of C."""
    events = Counter[str]()
    sys.setprofile(lambda frame, event, function: events.update((event,)))
    try:
        yield events
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(
    ("is_compiled", "bound"),
    [pytest.param(False, 1_480, id="in Python"), pytest.param(True, 690, id="compiled")],
)
@driven
async def test_a_page_is_judged_in_so_many_calls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_compiled: bool, bound: int
) -> None:
    if is_compiled:
        pytest.importorskip("dedup.fast")
    for module in () if is_compiled else (buckets, chrome, limits, numbers, sketch, tables, tokens, walk):
        monkeypatch.setattr(module, "fast", None)
    shop = Shop("shop.example.org", 60, 80, seed=3)
    visits = []
    for number in range(180):
        html = shop.page(number % 60, random.Random(number % 60)).html + f"<p>{number // 60}"
        url = f"http://shop.example.org/{number}"
        visits.append(visit(str(number), read=partial(read, html, url)))
    index = indexes.open_index("memory:", DETECTOR)
    async with filtering(tmp_path / "drops.jsonl", index, action="mark") as it:

        async def judge(some: list[Visit]) -> None:
            for each in some:
                await it.filter.judge(each)
                await it.filter.handed_over(each.page_id)

        await judge(visits[:60])
        with counted_calls() as events:
            await judge(visits[60:])
        assert it.figures["duplicate"] == 120
    assert (events["call"] + events["c_call"]) / 120 < bound
