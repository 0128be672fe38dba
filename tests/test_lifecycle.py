"""The life of a page, in every store: generated from the table in docs/lifecycle.md.

In each store every page is brought into each state for real, each event happens to it for real, and what
has become of it is looked at: its state, whether it is filed, and whether it casts a shadow.
"""

import asyncio
import random
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from dedup.index import Entry, Index, open_index
from dedup.index.lifecycle import CRAWL, State
from dedup.index.redis.scripts import VERBS
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.lifecycle import ROWS, TEXT, Event, after
from tests.support.stores import DETECTOR, PERSISTENT, end_lease


class Content:
    """A content, and the claims that are made of it: no other one is near."""

    def __init__(self, name: str = "", simhash: int = 0b1) -> None:
        url, made = f"http://example.org/{name}", fingerprint_of(simhash)
        self.page = (f"page {name}", url, made)
        self.twin = (f"twin {name}", f"{url}/twin", made)
        #: The page with another content.
        self.changed = (*self.page[:2], fingerprint_of(simhash, changed=60))
        #: A page elsewhere with the page's content.
        self.copy = (f"copy {name}", f"{url}/copy", made)
        self.entry = Entry(*self.page[:2], simhash, 0, simhash, (), made.sketch, 1_800_000_000, "0f" * 16)


THE = Content()
PAGE, TWIN, CHANGED, COPY = THE.page, THE.twin, THE.changed, THE.copy

ENDS = (Event.FINISH, Event.STOP, Event.DIE)
#: What happens to one page alone, each to one of its own, so that one world is enough for all of them.
ALONE = [event for event in Event if event not in {*ENDS, Event.BEGIN}]
EACH = {event: Content(event, random.Random(event).getrandbits(64)) for event in ALONE}
#: The states that a page can be in, by store: an index in memory has one run, a file holds confirmed pages only.
REACHED = {
    "memory": (State.ABSENT, State.PENDING, State.DONE, State.EARLIER, State.RECLAIMED),
    "file": tuple(state for state in State if state is not State.DEAD),
    "redis": tuple(State),
}


def expected(store: str, state: State, event: Event) -> State:
    """What the table says; but an index in memory ends with its run, and a file knows no dead pages."""
    found = after(state, event)
    if event in ENDS:  # then there is another run
        found = after(found, Event.BEGIN)
    gone = (
        event in ENDS if store == "memory" else store == "file" and found is State.DEAD and event is Event.DIE
    )
    return State.ABSENT if gone else found


class World:
    """A store, and the runs on it, one after the other."""

    def __init__(self, store: str, folder: Path, address: str, namespace: str) -> None:
        self.store = store
        self.folder = folder
        self.address = address
        self.namespace = namespace
        self.dead: list[Index] = []
        self.run: Index

    async def open(self, run: str | None = None) -> Index:
        """The next run, called so or by chance."""
        address = self.address
        if self.store == "file":
            address = f"file:{self.folder / str(len(self.dead)) / 'index.sqlite'}"
        self.run = open_index(address, DETECTOR, namespace=self.namespace, run=run)
        await self.run.open()
        return self.run

    async def written(self) -> None:
        """Waits until what is confirmed is written."""
        await self.run._confirmations.flush()  # type: ignore[attr-defined]

    async def die(self) -> None:
        """The run is silent from now on, and its lease has run out."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.dead.append(self.run)
        if self.store == "file":  # a copy, as the dead run still holds the file
            before, now = (self.folder / str(len(self.dead) - late) for late in (1, 0))
            shutil.copytree(before, now, ignore=shutil.ignore_patterns("*.lock"))
        if self.store == "redis":
            end_lease(self.address, self.namespace, self.run.run)

    async def bring(self, state: State, *contents: Content) -> None:
        """Brings the pages of some contents into a state."""
        await self.open()
        if state is State.SAFE:
            first = self.run
            await self.open()
            await self.bring_done(*contents)
            await self.run.close()
            self.run = first
        elif self.store == "memory" and state in {State.EARLIER, State.RECLAIMED}:
            await self.run.add([of.entry for of in contents])
        elif state in {State.EARLIER, State.RECLAIMED}:
            await self.bring_done(*contents)
            await self.happen(Event.DIE)
        elif state is State.DONE:
            await self.bring_done(*contents)
        elif state is not State.ABSENT:
            for of in contents:
                assert (await self.run.claim(*of.page)).status == "new"
        if state is State.DEAD:
            await self.happen(Event.DIE)
        if state is State.RECLAIMED:
            for of in contents:
                assert (await self.run.claim(*of.page)).status == "same"

    async def bring_done(self, *contents: Content) -> None:
        """The run claims pages, and confirms them."""
        for of in contents or (THE,):
            assert (await self.run.claim(*of.page)).status == "new"
            await self.happen(Event.CONFIRM, of)

    async def happen(self, event: Event, of: Content = THE) -> None:
        """Lets something happen to a page; after the end of a run, there is another."""
        run = self.run
        match event:
            case Event.CLAIM:
                await run.claim(*of.page)
            case Event.CHANGE:
                await run.claim(*of.changed)
            case Event.REPLACE:
                await run.claim(*of.copy)
                await run.confirm(of.copy[0])
                await self.written()
                await run.forget([of.copy[0]])
            case Event.CONFIRM:
                await run.confirm(of.page[0])
            case Event.RELEASE:
                await run.release(of.page[0])
            case Event.ANNUL:
                await run.annul(of.page[0])
            case Event.ADD:
                await run.add([of.entry])
            case Event.FORGET:
                await run.forget([of.page[0]])
            case Event.FINISH | Event.STOP:
                await run.close(finished=event is Event.FINISH)
                await self.open()
            case Event.DIE:
                await self.die()
                await self.open()
        await self.written()

    async def assert_is(self, state: State) -> None:
        """The page is in a state, and that shows."""
        await self.assert_are({THE: state})

    async def assert_are(self, states: dict[Content, State]) -> None:
        """The pages of some contents, and no others, are in a state each, and that shows."""
        right = {of.page[0]: state for of, state in states.items()}
        assert dict(zip(right, await self.run.states([*right]), strict=True)) == right
        assert {page: await self.run.find(page) is None for page in right} == {
            page: state is State.ABSENT for page, state in right.items()
        }
        assert await self.run.count() == sum(state is not State.ABSENT for state in right.values())
        for of, state in states.items():
            verdict = await self.run.claim(*of.twin)
            if state.casts_shadow:
                told = verdict.status, verdict.of, verdict.done
                assert told == ("duplicate", of.page[1], state.is_done), of.page[0]
            else:
                assert verdict.status == "new", of.page[0]

    async def close(self) -> None:
        for run in (self.run, *self.dead):
            await run.close()


@pytest.fixture
def world(store: str, address: str, namespace: str, tmp_path: Path) -> World:
    return World(store, tmp_path, address, namespace)


@asynccontextmanager
async def brought(world: World, state: State, *contents: Content) -> AsyncIterator[World]:
    """A world where a page, or those of some contents, are in a state; closed at the end."""
    try:
        await world.bring(state, *contents or (THE,))
        yield world
    finally:
        await world.close()


#: Each state in each store that knows it.
LIVES = [(store, state) for store, states in REACHED.items() for state in states]


@pytest.mark.parametrize(("store", "state"), LIVES)
@driven
async def test_an_event_makes_of_a_page_what_the_table_says(world: World, store: str, state: State) -> None:
    async with brought(world, state, *EACH.values()):
        for event, of in EACH.items():
            await world.happen(event, of)
        found = {of: expected(store, state, event) for event, of in EACH.items()}
        await assert_are_and_stay(world, found)


#: In memory all ends are alike; elsewhere, one that leaves a page as it is takes its turn in the long runs only.
ENDED = [
    pytest.param(store, state, event, marks=[pytest.mark.slow] * (event is not Event.FINISH and is_idle))
    for store, state in LIVES
    for event in ENDS
    for is_idle in [store == "memory" or after(state, event) is state]
]


@pytest.mark.parametrize(("store", "state", "event"), ENDED)
@driven
async def test_ends_of_runs_follow_the_table(world: World, store: str, state: State, event: Event) -> None:
    async with brought(world, state):
        await world.happen(event)
        await world.assert_is(expected(store, state, event))


async def assert_are_and_stay(world: World, found: dict[Content, State]) -> None:
    """Pages are in these states, and what is stored of them is as the table says, too."""
    await world.assert_are(found)
    for of in found:
        await world.run.release(of.twin[0])
    await world.happen(Event.FINISH)
    await world.assert_are({of: expected(world.store, state, Event.FINISH) for of, state in found.items()})


@pytest.mark.parametrize(("store", "state"), LIVES)
@driven
async def test_a_claim_says_same_of_a_filed_page_duplicate_in_a_shadow(world: World, state: State) -> None:
    async with brought(world, state):
        assert await world.run.states([PAGE[0]]) == [state]
        if state in {State.ABSENT, State.DEAD, State.EARLIER}:  # no run answers for it
            await world.run.claim(*TWIN)
            for content in (PAGE, CHANGED):
                assert (await world.run.claim(*content)).status == "duplicate"
                assert await world.run.states([PAGE[0]]) == [state]
            await world.run.release(TWIN[0])
            known = "same" if state is State.EARLIER else "new"
            assert (await world.run.claim(*PAGE)).status == known
        else:
            for content in (PAGE, CHANGED):
                assert (await world.run.claim(*content)).status == "same"


@pytest.mark.parametrize(("store", "state"), [life for life in LIVES if life[0] != "memory"])
@driven
async def test_of_another_run_that_lives_too_the_table_says_the_same(world: World, state: State) -> None:
    """Only a run that has claimed a page can confirm or release it, so that here these do nothing."""
    each = {event: of for event, of in EACH.items() if event is not Event.REPLACE}
    async with brought(world, state, *each.values()):
        first, seen = world.run, after(state, Event.BEGIN)
        await world.open()
        for event, of in each.items():
            await world.happen(event, of)
        mute = {Event.CONFIRM, Event.RELEASE}
        await world.assert_are(
            {of: seen if event in mute else after(seen, event) for event, of in each.items()}
        )
        await first.close()


@PERSISTENT
@pytest.mark.parametrize("state", [State.PENDING, State.RECLAIMED])
@driven
async def test_a_claim_belongs_to_the_run_that_has_made_it_last(world: World, state: State) -> None:
    async with brought(world, state):
        first = world.run
        await world.open()
        await world.happen(Event.CLAIM)
        await first.release(PAGE[0])  # not its own any more
        await first.close()
        assert await world.run.states([PAGE[0]]) == [state]
        await world.happen(Event.RELEASE)
        await world.assert_is(after(state, Event.RELEASE))


@PERSISTENT
@pytest.mark.parametrize("state", [State.PENDING, State.RECLAIMED])
@driven
async def test_a_run_that_confirms_a_claim_that_was_annulled_is_not_heard_unless_a_master_may_have_lost_it(
    world: World, store: str, state: State
) -> None:
    async with brought(world, state):
        first = world.run
        await world.open()
        await world.happen(Event.ANNUL)
        second, world.run = world.run, first
        await world.happen(Event.CONFIRM)
        world.run = second
        await world.assert_is(after(state, Event.ANNUL))
        await first.close()


@PERSISTENT
@pytest.mark.parametrize("event", ENDS)
@driven
async def test_what_a_run_that_died_has_handed_over_is_not_known(world: World, event: Event) -> None:
    """Its items may have been in a buffer, and an incremental crawl would leave them out for ever."""
    async with brought(world, State.DONE):
        for last in (event, Event.FINISH):
            await world.happen(last)
            for content in (PAGE, PAGE, COPY):
                verdict = await world.run.claim(*content)
                if content is COPY:
                    assert (verdict.status, verdict.of) == ("duplicate", PAGE[1])
                    await world.run.release(PAGE[0])
                    verdict = await world.run.claim(*content)
                    await world.run.release(COPY[0])
                assert verdict.known == (last is not Event.DIE)
            await world.run.claim(*PAGE)
            await world.happen(Event.CONFIRM)


@PERSISTENT
@pytest.mark.parametrize("event", [Event.ANNUL, Event.FORGET])
@pytest.mark.parametrize("said", [Event.CONFIRM, Event.RELEASE])
@driven
async def test_what_a_run_says_of_a_claim_that_is_gone_is_not_heard_of_one_that_came_in_its_place(
    world: World, event: Event, said: Event
) -> None:
    async with brought(world, State.PENDING):
        first, second = world.run, await world.open()
        await world.happen(event)
        assert (await second.claim(*CHANGED)).status == "new"
        world.run = first
        await world.happen(said)
        world.run = second
        assert await second.states([PAGE[0]]) == [State.PENDING]
        await world.happen(Event.RELEASE)
        assert await second.states([PAGE[0]]) == [State.ABSENT]
        await first.close()


@PERSISTENT
@pytest.mark.parametrize("state", [State.PENDING, State.RECLAIMED])
@pytest.mark.parametrize("said", [Event.CONFIRM, Event.RELEASE])
@pytest.mark.parametrize("then", [Event.CONFIRM, pytest.param(Event.RELEASE, marks=pytest.mark.slow)])
@driven
async def test_a_run_that_has_met_other_content_at_a_page_says_nothing_of_the_content_that_is_filed(
    world: World, state: State, said: Event, then: Event
) -> None:
    async with brought(world, state):
        first, second = world.run, await world.open()
        assert (await second.claim(*CHANGED)).status == "same"
        await world.happen(said)
        assert await second.states([PAGE[0]]) == [state]
        world.run = first
        await world.happen(then)
        world.run = second
        await world.assert_is(after(state, then))
        await first.close()


@PERSISTENT
@driven
async def test_a_page_is_done_by_whichever_run_has_handed_its_content_over_first(world: World) -> None:
    async with brought(world, State.PENDING):
        first, second = world.run, await world.open()
        assert (await second.claim(*PAGE)).status == "same"
        world.run = first
        await world.happen(Event.CONFIRM)
        world.run = second
        await world.happen(Event.RELEASE)
        await world.assert_is(State.DONE)
        await first.close()


@pytest.mark.parametrize("store", list(REACHED))
@driven
async def test_a_run_that_meets_a_page_with_two_contents_says_what_became_of_one(world: World) -> None:
    async with brought(world, State.PENDING):
        assert (await world.run.claim(*CHANGED)).status == "same"
        await world.happen(Event.CONFIRM)
        await world.assert_is(State.DONE)


@PERSISTENT
@driven
async def test_a_page_in_the_place_of_another_leaves_it_there_if_annulled(world: World, store: str) -> None:
    async with brought(world, State.EARLIER):
        first = world.run
        assert (await first.claim(*COPY)).kept
        await world.open()
        assert await world.run.annul(COPY[0])
        assert (await world.run.claim("other", "http://example.org/other", PAGE[2])).kept
        await first.confirm(COPY[0])
        await first._confirmations.flush()  # type: ignore[attr-defined]
        assert await first.states([COPY[0], PAGE[0]]) == [State.ABSENT, State.EARLIER]
        await first.close()


@PERSISTENT
@pytest.mark.parametrize("event", ENDS)
@driven
async def test_what_a_run_has_finished_is_safe_to_runs_of_its_crawl(world: World, event: Event) -> None:
    """A worker that was stopped has left the rest of its share of the crawl to them."""
    of_another = await world.open()  # a file knows its runs as long as one is open
    first, heir = (CRAWL * "c" + 16 * digit for digit in "12")
    await world.open(first)
    await world.bring_done()
    if event is Event.DIE:
        await world.die()
    else:
        await world.run.close(finished=event is Event.FINISH)
    await world.open(heir)
    try:
        await world.assert_is(State.SAFE if event is Event.FINISH else State.EARLIER)
        await world.run.release(TWIN[0])
        await world.run.close()
        await world.open()
        await world.assert_is(State.EARLIER)
    finally:
        await of_another.close()
        await world.close()


# --- The table ---------------------------------------------------------------------------------------------


def test_the_table_has_one_row_for_an_event_and_a_state_and_each_changes_something_or_is_a_claim() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(row.after is not row.before or row.event is Event.CLAIM for row in ROWS)
    assert {row.before for row in ROWS if row.event is Event.CLAIM} == set(State)
    assert {row.after for row in ROWS} == set(State)
    assert {row.event for row in ROWS} == set(Event)


def test_each_script_names_the_rows_that_it_carries_out() -> None:
    lua = files("dedup.index.redis").joinpath("lua")
    names = "|".join(row.name for row in ROWS)
    any_row = rf"(?:{'|'.join(Event)}) (?:{'|'.join(State)})"
    carried: dict[str, set[str]] = {}
    for script in ("known", *VERBS):
        text = lua.joinpath(f"{script}.lua").read_text()
        for cited in re.findall(
            rf"\brows? ({any_row}(?:,\s+{any_row})*)", text.replace("\n-- ", " "), re.IGNORECASE
        ):
            carried.setdefault(script, set()).update(re.split(r",\s+", cited))
    assert all(re.fullmatch(names, row) for rows in carried.values() for row in rows)

    def of(*events: Event) -> set[str]:
        return {row.name for row in ROWS if row.event in events}

    closing = {row.name for row in ROWS if row.event in {Event.FINISH, Event.STOP} and row.before.is_pending}
    assert carried == {
        "look": {"claim absent"},
        "file": of(Event.CLAIM, Event.CHANGE),
        "confirm": of(Event.CONFIRM),
        "release": of(Event.RELEASE, Event.ANNUL) | closing,
        "renew": of(Event.FINISH, Event.STOP) - closing,
        "known": of(Event.DIE, Event.BEGIN),
        "add": of(Event.ADD),
        "forget": of(Event.FORGET, Event.REPLACE),
    }


def test_the_page_defines_its_words() -> None:
    assert len(ROWS) == len(re.findall("^[|] [a-z]", TEXT[TEXT.index("| Event |") :], re.MULTILINE)), (
        "a row is misspelt"
    )
    for state in State:
        assert f"| {state} |" in TEXT
    for word in ("claim", "pending", "confirm", "release", "run", "lease", "dead", "finished", "shadow"):
        assert f"**{word}**" in TEXT
