"""Drops that are not yet certain: what becomes of them when the kept page is done, fails or is never heard of."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from dedup.errors import IndexUnavailableError
from dedup.filter import Counts
from dedup.filter.watch import doubts
from dedup.filter.watch.doubts import Watch
from dedup.filter.watch.drop import Drop
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR, FailingIndex, Notes, fingerprint
from tests.support.waiting import until


class Run:
    """A watch over pages that another crawler has claimed."""

    def __init__(self) -> None:
        self.index, self.counts = FailingIndex(), Counts()
        crawl = Notes()
        self.again = crawl.again
        self.watch = Watch(self.index, self.counts, crawl)

    async def add(self, of: str, page: str, *, certain: bool = False) -> None:
        if (await self.index.states([of])) == ["absent"]:
            await self.index.claim(of, f"http://example.org/{of}", replace(fingerprint(of), simhash=0))
        drop = Drop(page, f"http://example.org/{page}", f"request of {page}", 0)
        self.watch.add(of, drop, certain=certain)


@asynccontextmanager
async def watching() -> AsyncIterator[Run]:
    run = Run()
    try:
        yield run
    finally:
        await run.watch.close()
        await run.index.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "INTERVAL", 0.001)


@driven
async def test_a_crawl_is_woken_when_it_waits_for_no_page_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    woken = list[bool]()
    async with watching() as run:
        monkeypatch.setattr(Notes, "wake", lambda _: woken.append(run.watch.is_waiting()))
        await run.add("a", "b")
        await run.add("c", "d")
        run.watch.settle("a", processed=True)
        assert woken == []
        run.watch.settle("c", processed=True)
        assert woken == [False]
    assert (run.again, run.counts) == ([], {})


@driven
async def test_a_drop_for_a_page_that_is_done_meanwhile_keeps_no_crawl_waiting() -> None:
    async with watching() as run:
        run.watch.settle("a", processed=True)
        await run.add("a", "b")
        assert not run.watch.is_waiting()
        run.watch.undo("a", "it is a wall")
        assert run.again == ["request of b"]
        await run.add("a", "c")
        assert run.watch.is_waiting()


@driven
async def test_the_index_tells_what_became_of_another_crawlers_page() -> None:
    async with watching() as run:
        await run.add("a", "b")
        await run.add("x", "y")
        await run.index.confirm("a")
        await run.index.release("x")
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of y"]


@driven
async def test_a_page_that_failed_and_is_done_with_another_content_answers_for_no_copy_of_the_first() -> None:
    async with watching() as run:
        await run.add("a", "b")
        await run.index.release("a")
        await run.index.claim("a", "http://example.org/a", fingerprint("another"))
        await run.index.confirm("a")
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b"]


@driven
async def test_an_index_out_of_reach_is_asked_again() -> None:
    async with watching() as run:
        await run.add("a", "b")
        run.index.error = IndexUnavailableError("it is away")
        asked = run.index.asked
        await until(lambda: run.index.asked > asked + 2)
        assert run.watch.is_waiting()
        await run.index.release("a")
        run.index.error = None
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b"]


@driven
async def test_what_was_dropped_for_a_page_that_turns_out_to_be_none_is_fetched_again_once() -> None:
    async with watching() as run:
        await run.add("a", "b")
        run.watch.settle("a", processed=True)
        await run.add("a", "c", certain=True)
        await run.add("x", "y", certain=True)
        assert not run.watch.is_waiting()
        run.watch.undo("a", "it is a wall")
        run.watch.undo("a", "it is a wall")
        assert run.again == ["request of b", "request of c"]


@driven
async def test_a_page_that_is_met_with_another_content_turns_out_to_be_none() -> None:
    async with watching() as run:
        await run.add("a", "b")
        near = 2**DETECTOR.max_distance - 1
        for simhash in (0, near):
            run.watch.met("a", simhash)
            assert run.again == []
        run.watch.met("a", 2 * near + 1)
        assert run.again == ["request of b"]
        await run.add("a", "c", certain=True)
        run.watch.met("a", None)
        assert run.again == ["request of b", "request of c"]
        assert not run.watch.is_waiting()


@driven
async def test_a_claim_of_which_nobody_says_what_became_is_annulled(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching() as run:
        assert not run.watch.is_waiting()
        await run.add("a", "b")
        await run.add("a", "c")
        assert run.watch.is_waiting()
        assert run.again == []
        monkeypatch.setattr(doubts, "PATIENCE", 0.0)
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b", "request of c"]
        assert await run.index.states(["a"]) == ["absent"]
        assert run.counts == {"dedup/uncertain": 2, "dedup/fetched_again": 2}


@driven
async def test_if_not_annulled_its_copies_are_fetched_again_unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching() as run:
        await run.add("a", "b")
        monkeypatch.setattr(doubts, "PATIENCE", 0.0)
        run.index.error = IndexUnavailableError("it is away")
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b, unjudged"]
        run.index.error = None
        await run.add("a", "c")  # has waited for that page already
        run.index.error = IndexUnavailableError("it is away")
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b, unjudged", "request of c, unjudged"]


@driven
async def test_a_page_whose_copies_stay_in_doubt_is_kept_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "PATIENCE", 0.0)
    async with watching() as run:
        for dead in range(doubts.MAX_AGAIN):
            assert run.watch.may_doubt("b")
            await run.add(f"page of {dead}", "b")
            await until(lambda: not run.watch.is_waiting())
        assert not run.watch.may_doubt("b")


@driven
async def test_what_is_uncertain_at_the_end_is_fetched_again_unjudged() -> None:
    async with watching() as run:
        await run.add("a", "b")
        await run.add("x", "y", certain=True)
    assert run.again == ["request of b, unjudged"]
    assert run.counts == {"dedup/uncertain": 1, "dedup/fetched_again": 1}


@driven
async def test_so_many_uncertain_drops_are_remembered_and_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "REMEMBERED", 2)
    async with watching() as run:
        for page in "bc":
            assert run.watch.may_doubt("d")
            await run.add("a", page)
        assert not run.watch.may_doubt("d")


@driven
async def test_of_certain_drops_the_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "REMEMBERED", 2)
    async with watching() as run:
        for of in "abc":
            await run.add(of, f"copy of {of}", certain=True)
        for of in "abc":
            run.watch.undo(of, "it is a wall")
        assert run.again == ["request of copy of b", "request of copy of c"]


class OthersIndex(FailingIndex):
    """An index with the pages of another run, whose lease is given."""

    is_shared = True
    lease = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.asked_for_leases = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def leases(self, runs: Sequence[str]) -> list[float]:
        self.asked_for_leases += 1
        await self.answers.wait()
        return [self.lease] * len(runs)


@asynccontextmanager
async def watching_others() -> AsyncIterator[tuple[Run, OthersIndex]]:
    async with watching() as run:
        run.index = index = OthersIndex()
        run.watch = Watch(index, run.counts, run.watch.crawl)
        await run.add("a", "b")
        await index.confirm("a")
        try:
            yield run, index
        finally:
            await run.watch.close()


async def looks(run: Run, index: OthersIndex, times: int = 3) -> None:
    asked = index.asked
    await until(lambda: index.asked > asked + times or not run.watch.is_waiting())


@driven
async def test_a_drop_is_certain_once_the_run_of_the_kept_page_has_given_a_sign_of_life() -> None:
    async with watching_others() as (run, index):
        await looks(run, index)
        assert run.watch.is_waiting()
        index.lease = 2.0
        await until(lambda: not run.watch.is_waiting())
        await run.add("a", "c")
        await looks(run, index)
        assert run.watch.is_waiting()  # that was before the drop
        index.lease = math.inf  # it has finished
        await until(lambda: not run.watch.is_waiting())
        assert run.again == []


@pytest.mark.parametrize(("patience", "silence"), [(doubts.PATIENCE, doubts.SILENCE), (0.001, 1e9)])
@driven
async def test_what_was_dropped_for_a_page_of_a_run_that_died_before_is_fetched_again(
    monkeypatch: pytest.MonkeyPatch, patience: float, silence: float
) -> None:
    """Its lease has not ended when the drop is made, and is waited for, but it is never renewed."""
    monkeypatch.setattr(doubts, "PATIENCE", patience)
    monkeypatch.setattr(doubts, "SILENCE", silence)
    async with watching_others() as (run, index):
        await looks(run, index)
        assert run.watch.is_waiting()
        await index.forget(["a"])  # as a page of a dead run, it casts no shadow any more
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b"]


@driven
async def test_whoever_has_met_the_kept_page_again_answers_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks its run has died, and the next has filed it anew: nothing more is ever heard of the first."""
    async with watching_others() as (run, index):
        await looks(run, index)
        find, leases = index.find, {index.run: 1.0, "heir": 2.0}

        async def found(page_id: str) -> Any:
            filed = await find(page_id)
            return filed and filed._replace(run="heir")

        async def asked(runs: Sequence[str]) -> list[float]:
            return [leases[run] for run in runs]

        monkeypatch.setattr(index, "find", found)
        monkeypatch.setattr(index, "leases", asked)
        await looks(run, index)
        assert run.watch.is_waiting()  # it may have been filed before the drop
        leases["heir"] = 3.0
        await until(lambda: not run.watch.is_waiting())
        assert run.again == []


@driven
async def test_what_was_dropped_for_a_run_silent_too_long_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching_others() as (run, index):
        await looks(run, index)
        monkeypatch.setattr(doubts, "PATIENCE", 0.0)
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b, unjudged"]
        assert run.watch.may_doubt("c", "another run")
        assert not run.watch.may_doubt("c", index.run)


@driven
async def test_a_silent_run_is_trusted_again_at_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker was paused, and goes on; or this one was so busy that it has not heard of it."""
    async with watching_others() as (run, index):
        await looks(run, index)
        with monkeypatch.context() as impatient:
            impatient.setattr(doubts, "PATIENCE", 0.0)
            await until(lambda: not run.watch.is_waiting())
        asked = index.asked_for_leases
        await until(lambda: index.asked_for_leases > asked + 3)
        assert not run.watch.may_doubt("c", index.run)  # nothing was heard of it
        index.lease = 2.0
        await until(lambda: run.watch.may_doubt("c", index.run))
        await run.add("a", "c")
        asked = index.asked_for_leases
        await until(lambda: index.asked_for_leases > asked + 3)
        assert run.watch.is_waiting()  # that sign was given before the drop
        index.lease = 3.0
        await until(lambda: not run.watch.is_waiting())
        assert run.again == ["request of b, unjudged"]


@driven
async def test_a_page_met_over_and_over_is_not_always_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each copy is certain a little later, but then there is always another."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(doubts, "time", clock)
    async with watching_others() as (run, index):
        for number in range(5):
            await looks(run, index)
            index.lease += 1.0
            await run.add("a", f"copy {number}")
            await looks(run, index)
            clock.now += 0.6 * doubts.PATIENCE * doubts.SILENCE
            assert run.watch.is_waiting()
            await looks(run, index)
            assert run.again == []


@driven
async def test_a_look_that_takes_long_makes_no_run_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """This crawl waits for the index, or for its own turn, while the other renews its lease."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(doubts, "time", clock)
    async with watching_others() as (run, index):
        index.answers.clear()
        asked = index.asked_for_leases
        await until(lambda: index.asked_for_leases > asked)
        clock.now += 2 * doubts.PATIENCE * doubts.SILENCE
        assert run.watch.is_waiting()
        assert run.watch._annulling is None
        assert run.again == []


@driven
async def test_the_links_of_what_is_fetched_again_are_not_saved() -> None:
    async with watching() as run:
        run.watch.add("a", Drop("b", "http://b/", "request of b", links=7), certain=True)
        run.watch.undo("a", "it is a wall")
        assert run.counts == {"dedup/fetched_again": 1, "dedup/links_not_followed": -7}
