"""What becomes of pages while the index fails: the table of docs/reliability.md, row by row."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.filter import Counts, claims
from dedup.filter.claims import Claimant
from dedup.filter.responses import RESPONSES, Failure, Response
from tests.support.coroutines import driven
from tests.support.filters import FailingIndex, Notes, fingerprint
from tests.support.waiting import until

AWAY = IndexUnavailableError("it can't be reached")
CORRUPT = IndexCorruptError("it is damaged")
OTHER = IndexMismatchError("it is another one")
FAULT = RuntimeError("a fault of the program")


class Run:
    """A claimant over an index that can fail."""

    def __init__(self, policy: str) -> None:
        self.index, self.crawl, self.counts = FailingIndex(), Notes(), Counts()
        stop, is_closing = self.crawl.stop, self.crawl.is_closing
        self.claimant = Claimant(self.index, policy, self.counts, stop, is_closing)

    async def claim(self, page_id: str, seed: object = None) -> str:
        """The verdict on a page, in a word."""
        url, content = f"http://example.org/{page_id}", fingerprint(seed or page_id, page_id)
        verdict = await self.claimant.claim(page_id, url, content)
        return verdict.reason or verdict.status

    async def set_aside(self, pages: str) -> None:
        """Claims pages while the index is away."""
        self.index.error = AWAY
        for page in pages:
            await self.claim(page)


@asynccontextmanager
async def claiming(policy: str) -> AsyncIterator[Run]:
    run = Run(policy)
    try:
        yield run
    finally:
        await run.claimant.close(finished=True)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "PAUSE_SECONDS", (0.001, 0.004))


# --- The table ---------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_policy_and_failure() -> None:
    assert set(RESPONSES) == {
        (policy, failure) for policy in ("keep", "pause", "stop") for failure in Failure
    }


@pytest.mark.parametrize(
    ("policy", "error", "response"),
    [
        ("keep", AWAY, Response.SET_ASIDE),
        ("keep", CORRUPT, Response.KEEP),
        ("keep", OTHER, Response.KEEP),
        ("keep", FAULT, Response.KEEP),
        ("pause", AWAY, Response.WAIT),
        ("pause", CORRUPT, Response.STOP),
        ("pause", OTHER, Response.STOP),
        ("pause", FAULT, Response.KEEP),
        ("stop", AWAY, Response.STOP),
        ("stop", CORRUPT, Response.STOP),
        ("stop", OTHER, Response.STOP),
        ("stop", FAULT, Response.KEEP),
    ],
    ids=str,
)
@driven
async def test_what_becomes_of_a_page(policy: str, error: Exception, response: Response) -> None:
    async with claiming(policy) as run:
        run.index.error = error
        work = asyncio.create_task(run.claim("a"))
        await until(lambda: work.done() or run.index.asked > 3)
        assert work.done() == (response is not Response.WAIT)
        assert run.crawl.stopped == ([error] if response is Response.STOP else [])
        if work.done():
            assert await work == ("internal_error" if error is FAULT else "index")
        run.index.error = None
        if response is Response.SET_ASIDE:
            await until(lambda: run.counts.get("dedup/late/filed") == 1)
        elif response is Response.WAIT:
            assert await work == "new"
        waited, filed = response is Response.WAIT, response in {Response.SET_ASIDE, Response.WAIT}
        assert await run.claim("a") == ("same" if filed else "new")
        assert (run.counts.get("dedup/seconds/paused", 0) > 0) == waited


# --- "keep": what is set aside -----------------------------------------------------------------------


@driven
async def test_after_the_first_page_that_is_set_aside_the_others_dont_ask() -> None:
    async with claiming("keep") as run:
        run.index.error = AWAY
        assert [await run.claim(page) for page in "abc"] == ["index"] * 3
        assert run.index.asked == 1


@driven
async def test_what_was_set_aside_is_filed_in_its_order(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with claiming("keep") as run:
        assert await run.claim("before", "one") == "new"
        run.index.error = AWAY
        for page, seed in [("b", "one"), ("c", "two"), ("d", "two"), ("e", "three")]:
            assert await run.claim(page, seed) == "index"
        run.index.error = None
        await until(lambda: run.counts.get("dedup/late/filed", 0) == 2)
        assert run.counts["dedup/late/duplicate"] == 2
        assert await run.claim("f", "two") == "duplicate"
        assert await run.claim("c", "two") == "same"
    told = [m.getMessage() for m in caplog.records if m.getMessage().startswith("Kept while")]
    assert [text.split(" (")[0] for text in told] == [
        "Kept while the index was away: http://example.org/b, a near-duplicate of http://example.org/before",
        "Kept while the index was away: http://example.org/d, a near-duplicate of http://example.org/c",
    ]


@driven
async def test_one_answer_to_a_page_that_was_asked_about_before_is_enough() -> None:
    async with claiming("keep") as run:
        run.index.held = {"asked": asyncio.Event()}
        asked = asyncio.create_task(run.claim("asked"))
        await until(lambda: run.index.waiting)
        run.index.error = AWAY
        assert [await run.claim(page) for page in "ab"] == ["index"] * 2
        run.index.error = None
        run.index.held["asked"].set()
        assert await asked == "new"
        assert await run.claim("c") == "new"


@driven
async def test_ever_more_pages_are_filed_at_once() -> None:
    async with claiming("keep") as run:
        run.index.error = AWAY
        pages = [f"{number}" for number in range(1 + 2 + 4)]
        for page in pages:
            await run.claim(page)
        gate = asyncio.Event()
        run.index.held = dict.fromkeys(pages[3:], gate)
        run.index.error = None
        await until(lambda: len(run.index.waiting) == 4)
        gate.set()
        await until(lambda: run.counts["dedup/late/filed"] == len(pages))


@driven
async def test_while_the_first_is_not_answered_nothing_else_is_asked() -> None:
    async with claiming("keep") as run:
        await run.set_aside("abcdef")
        run.index.held = {"a": asyncio.Event()}
        run.index.error = None
        await until(lambda: run.index.waiting)
        asked = run.index.asked
        assert [await run.claim("g"), await run.claim("h", "a")] == ["index"] * 2
        assert run.index.asked == asked
        run.index.held["a"].set()
        await until(lambda: run.counts.get("dedup/late/duplicate") == 1)
        assert run.counts["dedup/late/filed"] == 7


@driven
async def test_an_index_that_goes_away_again_keeps_nobody_waiting() -> None:
    async with claiming("keep") as run:
        await run.set_aside("ab")
        run.index.held = {"b": asyncio.Event()}
        run.index.error = None
        await until(lambda: run.index.waiting)
        assert await run.claim("copy", "b") == "new"
        run.index.error = AWAY
        assert await run.claim("c") == "index"
        run.index.held["b"].set()
        run.index.error = None
    assert (run.counts["dedup/late/filed"], run.counts["dedup/late/duplicate"]) == (2, 1)


@driven
async def test_a_fault_of_one_page_is_no_matter_to_others(caplog: pytest.LogCaptureFixture) -> None:
    async with claiming("keep") as run:
        await run.set_aside("abc")
        claim = run.index.claim

        async def stumble(page_id: str, url: str, content: Any, carried: int) -> Any:
            if page_id == "b":
                raise FAULT
            return await claim(page_id, url, content, carried)

        run.index.claim = stumble  # type: ignore[method-assign]
        run.index.error = None
        await until(lambda: run.counts.get("dedup/late/filed") == 2)
        assert run.counts["dedup/late/never"] == 1
        assert "Not filed: http://example.org/b, which was kept" in caplog.messages


@driven
async def test_a_page_that_cant_be_judged_is_never_set_aside() -> None:
    async with claiming("keep") as run:
        await run.set_aside("a")
        run.index.error = None
        short = run.index.detector.fingerprint("<p>Not much to read")
        verdict = await run.claimant.claim("b", "http://example.org/b", short)
        assert verdict.reason == "short"


@driven
async def test_what_was_handed_over_while_the_index_was_away_is_confirmed_and_what_failed_not_filed() -> None:
    async with claiming("keep") as run:
        await run.set_aside("abc")
        await run.claimant.confirm("a")
        await run.claimant.release("c")
        run.index.error = None
        await until(lambda: run.counts.get("dedup/late/filed") == 2)
        assert await run.index.states(["a", "b", "c"]) == ["done", "pending", "absent"]


@driven
async def test_so_many_pages_are_set_aside_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "REMEMBERED", 2)
    async with claiming("keep") as run:
        run.index.error = AWAY
        assert [await run.claim(page) for page in "abc"] == ["index"] * 3
        assert run.counts["dedup/late/never"] == 1
        run.index.error = None
    assert run.counts["dedup/late/filed"] == 2


@pytest.mark.parametrize("error", [CORRUPT, OTHER, FAULT], ids=str)
@driven
async def test_pages_that_can_never_be_filed_are_counted(error: Exception) -> None:
    async with claiming("keep") as run:
        await run.set_aside("ab")
        run.index.error = error
        await until(lambda: run.counts.get("dedup/late/never") == 2)


@driven
async def test_at_the_end_what_is_set_aside_is_filed_if_that_can_be_done() -> None:
    async with claiming("keep") as run:
        await run.set_aside("a")
        run.index.error = None
    assert run.counts["dedup/late/filed"] == 1
    async with claiming("keep") as run:
        await run.set_aside("a")
    assert run.counts["dedup/late/never"] == 1


# --- "pause" and "stop" ------------------------------------------------------------------------------


@driven
async def test_a_crawl_that_is_about_to_end_waits_no_more() -> None:
    async with claiming("pause") as run:
        run.index.error = AWAY
        work = asyncio.create_task(run.claim("a"))
        await until(lambda: run.index.asked > 1)
        run.crawl.closing = True
        assert await work == "index"


@driven
async def test_a_crawl_that_was_stopped_waits_no_more() -> None:
    async with claiming("pause") as run:
        run.index.error = AWAY
        work = asyncio.create_task(run.claim("a"))
        await until(lambda: run.index.asked > 1)
        run.index.error = CORRUPT
        assert await work == "index"
        run.index.error = AWAY
        assert await run.claim("b") == "index"


@driven
async def test_a_crawl_is_stopped_once() -> None:
    async with claiming("stop") as run:
        run.index.error = AWAY
        assert [await run.claim(page) for page in "abc"] == ["index"] * 3
        assert run.crawl.stopped == [AWAY]


# --- What is said ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["keep", "pause", "stop"])
@driven
async def test_a_trouble_is_one_line_not_one_a_page(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    async with claiming(policy) as run:
        run.index.error = CORRUPT
        for page in "abc":
            await run.claim(page)
    told = [message.getMessage() for message in caplog.records if message.levelname == "WARNING"]
    assert told == [f"No verdicts: it is damaged (on_index_failure {policy})"]


@driven
async def test_a_fault_is_told_with_its_page_and_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with claiming("keep") as run:
        run.index.error = FAULT
        await run.claim("a")
    [message] = caplog.records
    assert message.getMessage() == "Kept http://example.org/a: it can't be claimed"
    assert message.exc_info


# --- When nothing fails ------------------------------------------------------------------------------


@driven
async def test_only_what_was_claimed_is_confirmed_or_released() -> None:
    async with claiming("keep") as run:
        asked: list[Any] = []

        async def note(page_id: str) -> None:
            asked.append(page_id)

        run.index.confirm = run.index.release = note  # type: ignore[method-assign]
        await run.claim("a", "one")
        await run.claim("b", "one")
        for page in "abc":
            await run.claimant.confirm(page)
            await run.claimant.release(page)
        assert asked == ["a"]
