"""The policy of a crawl, without one: what becomes of each page that the filter is given."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dedup.droplog.log import DropLog
from dedup.errors import IndexUnavailableError, SettingsError
from dedup.filter import Filter
from dedup.filter.reading import ASIDE
from dedup.page.html import Page
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR, FailingIndex, Run, filtering, fingerprint, open_index, text, visit
from tests.support.logs import read_log
from tests.support.waiting import LIMIT, until

Filtering = Callable[..., AbstractAsyncContextManager[Run]]


@pytest.fixture
def run(tmp_path: Path) -> Filtering:
    """Filters with one drop log."""
    return partial(filtering, tmp_path / "drops.jsonl")


# --- What becomes of a page --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page([], 0, "partial"), "partial"),
        (Page([], 0, "binary"), "binary"),
        (Page([], 0, "empty"), "empty"),
        (Page(["some"] * 100, 0, "truncated"), "truncated"),
        (Page(["some", "words"], 0), "short"),
    ],
)
@driven
async def test_a_page_that_cant_be_judged_is_kept(run: Filtering, page: Page, reason: str) -> None:
    async with run() as it:
        for path in ("a", "b"):
            assert await it.judge(path, read=lambda: page) == f"keep: {reason}"
        assert it.figures == {"pages": 2, "unjudged": 2, f"unjudged/{reason}": 2}


@driven
async def test_a_large_page_holds_up_nothing_while_it_is_read(run: Filtering) -> None:
    has_begun, goes_on = threading.Event(), threading.Event()

    def read() -> Page:
        has_begun.set()
        assert goes_on.wait(LIMIT)  # for what the event loop has to do meanwhile
        return visit("large").read()

    async with run() as it:
        large = asyncio.create_task(it.judge("large", read=read, size=ASIDE + 1))
        await until(has_begun.is_set)
        assert await it.judge("small") == "keep: new"
        goes_on.set()
        assert await large == "keep: new"
        assert await it.judge("copy", "large", size=ASIDE + 1) == "drop: /large"


@driven
async def test_a_page_that_cant_be_read_is_kept(run: Filtering, caplog: pytest.LogCaptureFixture) -> None:
    def read() -> Page:
        raise RuntimeError("a fault of the reader")

    async with run() as it:
        assert await it.judge("a", read=read) == "keep: internal_error"
    [message] = caplog.records
    assert message.getMessage() == "Kept http://example.org/a: it can't be fingerprinted"
    assert message.exc_info


@pytest.mark.parametrize(
    ("action", "figures"),
    [
        ("drop", {"dropped": 1, "links_not_followed": 1}),
        ("nofollow", {"not_followed": 1, "links_not_followed": 1}),
        ("mark", {"marked": 1, "links_marked": 1}),
    ],
)
@driven
async def test_the_action_is_done_logged_and_counted(
    run: Filtering, tmp_path: Path, action: str, figures: dict[str, int]
) -> None:
    async with run(action=action) as it:
        await it.judge("a", "story")
        assert await it.judge("b", "story") == f"{action}: /a"
        assert it.figures == {"pages": 2, "new": 1, "duplicate": 1} | figures
    assert [record["action"] for record in read_log(tmp_path / "drops.jsonl")] == [action]


@pytest.mark.parametrize("action", ["drop", "nofollow", "mark"])
@driven
async def test_a_seed_is_only_marked(run: Filtering, action: str) -> None:
    async with run(action=action) as it:
        await it.judge("a", "story")
        assert await it.judge("b", "story", is_seed=True) == "mark: /a"


# --- The record --------------------------------------------------------------------------------------


@driven
async def test_there_is_a_record_exactly_when_there_is_a_duplicate(run: Filtering, tmp_path: Path) -> None:
    visits = [
        visit("a", "story"),
        visit("b", "story"),
        visit("a", "story"),
        visit("c", read=lambda: Page([], 0)),
    ]
    async with run() as it:
        outcomes = [await it.filter.judge(each) for each in visits]
        assert [each.verdict.status for each in outcomes] == ["new", "duplicate", "same", "unjudged"]
        assert [each.record is not None for each in outcomes] == [False, True, False, False]
        assert read_log(tmp_path / "drops.jsonl") == [outcomes[1].record]


@driven
async def test_a_record_says_what_was_dropped_and_why(run: Filtering, tmp_path: Path) -> None:
    async with run() as it:
        await it.judge("a", "story")
        outcome = await it.filter.judge(
            visit("b", "story", referer="http://me:secret@example.org/", depth=3, size=1_234)
        )
    [record] = read_log(tmp_path / "drops.jsonl")
    a, b = (DETECTOR.fingerprint(text("story", path), f"http://example.org/{path}") for path in "ab")
    comparison = DETECTOR.compare(a, b)
    assert datetime.fromisoformat(record.pop("time")).tzinfo is not None
    assert record == {
        "url": "http://example.org/b",
        "duplicate_of": "http://example.org/a",
        "distance": comparison.distance,
        "resemblance": round(comparison.resemblance or 0, 4),
        "own": None,  # whole pages are compared here
        "matching": None,
        "new": None,
        "gone": None,
        "simhash": b.hex,
        "duplicate_of_simhash": a.hex,
        "tokens": b.tokens,
        "links": 1,
        "bytes": 1_234,
        "rule": "simhash",
        "noise": None,
        "judge": "index",
        "action": "drop",
        "referer": "http://example.org/",
        "canonical": None,
        "agrees": None,
        "undone": None,
        "depth": 3,
    }
    assert outcome.verdict.rule == "simhash"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@driven
async def test_without_its_record_nothing_is_dropped_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with filtering(Path("/dev/full")) as it:
        await it.judge("a", "story")
        for path in ("b", "c", "d"):
            assert await it.judge(path, "story") == "keep: log"
        assert it.figures == {"pages": 4, "new": 1, "unjudged": 3, "unjudged/log": 3}
    (told,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert told.startswith("Kept http://example.org/b: the drop log can't be written: ")


@driven
async def test_a_wall_is_kept_and_not_recorded(run: Filtering, tmp_path: Path) -> None:
    async with run(max_cluster=2) as it:
        found = [await it.judge(f"{number}", "please log in") for number in range(5)]
        assert found == ["keep: new", "drop: /0", "drop: /0", "keep: alarm", "keep: alarm"]
        assert it.figures["alarms"] == 1
        assert it.figures["unjudged/alarm"] == 2
    assert len(read_log(tmp_path / "drops.jsonl")) == 2


# --- From one page to the next, and from one crawl to the next ---------------------------------------


@driven
async def test_what_was_handed_over_stays_filed_whatever_fails_later(run: Filtering) -> None:
    async with run() as it:
        await it.judge("a", "story")
        await it.filter.handed_over("a")
        await it.filter.failed("a")
        assert await it.judge("b", "story") == "drop: /a"


@driven
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_page_of_which_an_item_failed_is_filed_no_more(run: Filtering, is_late: bool) -> None:
    async with run() as it:
        await it.judge("a", "story")
        assert await it.judge("b", "story", origin="request of b") == "drop: /a"
        if is_late:
            await it.filter.handed_over("a")
        await it.filter.item_failed("a")
        await it.filter.handed_over("a")
        assert await it.judge("c", "story") == "keep: new"
        assert it.crawl.again == ["request of b"]


@driven
async def test_what_was_fetched_again_is_not_dropped_for_an_uncertain_page_once_more(run: Filtering) -> None:
    async with run() as it:
        await it.judge("a", "story")
        assert await it.judge("b", "story", origin="request of b") == "drop: /a"
        assert it.filter.is_busy()
        await it.filter.failed("a")
        assert it.crawl.again == ["request of b"]
        assert not it.filter.is_busy()
        await it.judge("c", "story")
        assert await it.judge("b", "story", origin="request of b") == "keep: uncertain"
        await it.filter.handed_over("c")
        assert await it.judge("b", "story", origin="request of b") == "drop: /c"
        assert it.crawl.again == ["request of b"]
        assert it.figures["fetched_again"] == 1


@driven
async def test_what_its_callback_asked_for_again_is_no_page(run: Filtering) -> None:
    async with run() as it:
        await it.judge("a", "a ban")
        assert await it.judge("b", "a ban", origin="request of b") == "drop: /a"
        await it.filter.asked_again("a", fingerprint("a ban").simhash, alike=True)
        assert it.crawl.again == ["request of b"]
        assert await it.judge("b", "a ban") == "keep: new"
        await it.filter.asked_again("b", fingerprint("a ban").simhash, alike=True)
        for _ in range(2):
            assert await it.judge("a", "a ban") == "keep: asked_again"
        await it.filter.handed_over("a")  # it has given up
        assert await it.judge("c", "a ban") == "keep: new"
        assert await it.judge("b", "story") == "keep: new"
        assert it.figures["asked_again"] == 2


@driven
async def test_what_was_asked_for_again_by_another_callback_may_be_a_page(run: Filtering) -> None:
    async with run() as it:
        await it.judge("a", "story")
        await it.filter.asked_again("a", fingerprint("story").simhash, alike=False)
        assert await it.judge("a", "story") == "keep: new"
        await it.filter.handed_over("a")
        assert await it.judge("b", "story") == "drop: /a"


@driven
async def test_a_page_that_shows_something_else_now_gives_back_what_was_dropped_for_it(
    run: Filtering,
) -> None:
    async with run() as it:
        await it.judge("a", "please log in")
        assert await it.judge("b", "please log in", origin="request of b") == "drop: /a"
        await it.filter.handed_over("a")
        await it.judge("a", "please log in", origin="request of a")
        assert it.crawl.again == []
        await it.judge("a", "story")
        assert it.crawl.again == ["request of b"]
        assert await it.judge("c", "please log in", origin="request of c") == "keep: outdated"


@driven
async def test_what_was_dropped_for_a_wall_is_fetched_again_and_kept(run: Filtering) -> None:
    async with run(max_cluster=2) as it:
        for number in range(3):
            await it.judge(f"{number}", "please log in", origin=number)
            await it.filter.handed_over("0")
        assert it.crawl.again == []
        assert await it.judge("3", "please log in", origin=3) == "keep: alarm"
        assert it.crawl.again == [1, 2]
        assert await it.judge("1", "please log in", origin=1) == "keep: alarm"
        assert it.crawl.again == [1, 2]


@driven
async def test_what_is_only_marked_is_not_fetched_again(run: Filtering) -> None:
    async with run(action="mark") as it:
        await it.judge("a", "story")
        await it.judge("b", "story", origin="request of b")
        await it.filter.failed("a")
    assert it.crawl.again == []


@driven
async def test_pages_of_a_crawl_that_did_not_finish_shadow_nothing(run: Filtering, tmp_path: Path) -> None:
    address = f"file:{tmp_path / 'index.sqlite'}"
    async with run(open_index(address, DETECTOR), finished=False) as it:
        await it.judge("a?v=1", "story")
        await it.filter.handed_over("a?v=1")
    async with run(open_index(address, DETECTOR)) as it:
        assert await it.judge("a?v=2", "story") == "keep: new"


# --- The audit ---------------------------------------------------------------------------------------


@driven
async def test_drops_are_audited_and_wrong_ones_told(
    run: Filtering, caplog: pytest.LogCaptureFixture
) -> None:
    async with run(audit=1.0) as it:
        await it.judge("a", "story")
        it.crawl.pages["http://example.org/a"] = text("story", "a")
        await it.judge("b", "story")
        await until(lambda: it.figures.get("audit/checked") == 1)
        it.crawl.pages["http://example.org/a"] = text("something else by now")
        await it.judge("c", "story")
        await until(lambda: it.figures.get("audit/checked") == 2)
        it.crawl.pages.clear()
        await it.judge("d", "story")
        await until(lambda: it.figures.get("audit/failed") == 1)
        assert it.crawl.fetched == ["http://example.org/a"] * 3
    assert it.figures["audit/wrong"] == 1
    rates = [it.figures[f"audit/wrong_rate{end}"] for end in ("", "_low", "_high")]
    assert rates == [0.5, 0.09453, 0.90547]
    [told] = [m.getMessage() for m in caplog.records if m.getMessage().startswith("Audit: ")]
    assert "http://example.org/c should not have been dropped" in told


@driven
async def test_only_drops_are_audited(run: Filtering) -> None:
    async with run(audit=1.0, action="nofollow") as it:
        await it.judge("a", "story")
        await it.judge("b", "story")
        await asyncio.sleep(0)
        assert it.crawl.fetched == []


# --- Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("action", "keep", "'drop', 'nofollow', 'mark'"),
        ("on_index_failure", "panic", "'keep', 'pause', 'stop'"),
        ("max_cluster", -1, "a whole number from 0 to 1,000,000,000,000"),
        ("audit", 1.5, "a number from 0 to 1"),
    ],
)
def test_an_option_that_is_not_allowed_is_refused(
    tmp_path: Path, option: str, value: Any, allowed: str
) -> None:
    log = DropLog(str(tmp_path / "drops.jsonl"))
    with pytest.raises(SettingsError) as refused:
        Filter(open_index("memory:", DETECTOR), log, **{option: value})
    log.close()
    assert str(refused.value) == f"{option} is {value!r}; allowed: {allowed}"


# --- Without a crawler -------------------------------------------------------------------------------


@driven
async def test_a_replay_that_is_to_stop_is_told_by_the_error(tmp_path: Path) -> None:
    index = FailingIndex()
    filter = Filter(index, DropLog(str(tmp_path / "drops.jsonl")), on_index_failure="stop")
    index.error = IndexUnavailableError("it is away")
    with pytest.raises(IndexUnavailableError, match="it is away"):
        await filter.judge(visit("a"))
    await filter.close()
