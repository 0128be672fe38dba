"""A call that is cancelled, at whatever await: nothing stays pending for ever, and no confirmed page is lost."""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from dedup.index import Index, batching, open_index
from dedup.index.batching import Confirmations, end
from dedup.index.local.index import LocalIndex
from dedup.index.redis.index import RedisIndex
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR, fingerprint
from tests.support.redis import Line, Server
from tests.support.stores import PERSISTENT
from tests.support.waiting import until


class Cancelled:
    """Awaits a coroutine, and cancels it where it waits for the n-th time, n from 0."""

    def __init__(self, work: Coroutine[Any, Any, Any], at: int) -> None:
        self._work = work
        self.left = at

    def __await__(self) -> Generator[Any, Any, Any]:
        waiting = self._work.__await__()
        try:
            future = next(waiting)
            while True:
                if self.left == 0 and (task := asyncio.current_task()):
                    task.cancel()
                self.left -= 1
                try:
                    sent = yield future
                except BaseException as error:  # noqa: BLE001 (it is passed on)
                    future = waiting.throw(error)
                else:
                    future = waiting.send(sent)
        except StopIteration as end:
            return end.value


async def cancelled(work: Coroutine[Any, Any, Any], at: int) -> Literal["", "deaf", "cancelled"]:
    """Whether it was: not if it came to its end before.  It may be deaf: `asyncio.wait_for` swallows some of these."""
    steps = Cancelled(work, at)

    async def run() -> None:
        await steps

    [error] = await asyncio.gather(asyncio.create_task(run()), return_exceptions=True)
    assert error is None or isinstance(error, asyncio.CancelledError), error
    if steps.left >= 0:
        return ""
    return "deaf" if error is None else "cancelled"


#: An index that is opened at the first call, or before.
FRESH = pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "open"])


@asynccontextmanager
async def indexed(address: str, namespace: str, *, fresh: bool) -> AsyncIterator[Index]:
    index = open_index(address, DETECTOR, namespace=namespace)
    if not fresh:
        await index.open()
    try:
        yield index
    finally:
        await index.close()


@FRESH
@driven
async def test_a_cancelled_claim_can_be_released(address: str, namespace: str, fresh: bool) -> None:
    for at in count():
        async with indexed(address, namespace, fresh=fresh) as index:
            page, url, content = f"page {at}", f"http://example.org/{at}", fingerprint(at)
            was_cancelled = await cancelled(index.claim(page, url, content), at)
            await index.count()  # after whose answer the server has read what it was sent before
            await index.release(page)
            assert (await index.claim(f"copy {at}", f"{url}/copy", content)).status == "new"
        if not was_cancelled:
            break
    assert at > 1 or not address.startswith("unix:")


@FRESH
@driven
async def test_a_cancelled_claim_can_be_made_again(address: str, namespace: str, fresh: bool) -> None:
    for at in count():
        async with indexed(address, namespace, fresh=fresh) as index:
            page, url, content = f"page {at}", f"http://example.org/{at}", fingerprint(at)
            was_cancelled = await cancelled(index.claim(page, url, content), at)
            assert (await index.claim(page, url, content)).status in {"new", "same"}
            await index.confirm(page)
            await release_all(index)
            assert (await index.claim(f"copy {at}", f"{url}/copy", content)).of_id == page
        if not was_cancelled:
            break


@driven
async def test_a_cancelled_claim_takes_nothing_back(address: str, namespace: str) -> None:
    for at in count():
        async with indexed(address, namespace, fresh=False) as index:
            page, url, content = f"page {at}", f"http://example.org/{at}", fingerprint(at)
            await index.claim(page, url, content)
            await cancelled(index.claim(page, url, content), at)
            await release_all(index)
            assert (await index.claim("copy", f"{url}/copy", content)).of_id == page
            await index.confirm(page)
            was_cancelled = await cancelled(index.claim(page, url, content), at)
            await release_all(index)
            assert (await index.claim("copy", f"{url}/copy", content)).of_id == page
        if not was_cancelled:
            break


@FRESH
@PERSISTENT
@driven
async def test_a_cancelled_confirmation_is_made(address: str, namespace: str, fresh: bool) -> None:
    """Or it is not confirmed, and released at the end; it is never half of that."""
    for at in count():
        async with indexed(address, namespace, fresh=fresh) as index:
            page = f"page {at}"
            await index.claim(page, "http://example.org/", fingerprint(at))
            was_cancelled = await cancelled(index.confirm(page), at)
        async with indexed(address, namespace, fresh=fresh) as index:
            assert await index.states([page]) == ["earlier"]
        if not was_cancelled:
            break


@PERSISTENT
@driven
async def test_a_cancelled_batch_is_written(address: str, namespace: str) -> None:
    names: list[str] = []
    for at in count():
        async with indexed(address, namespace, fresh=False) as index:
            for number in range(3):
                names.append(f"page {at} {number}")
                await index.claim(names[-1], "http://example.org/", fingerprint(names[-1]))
                await index.confirm(names[-1])
            was_cancelled = await cancelled(flush(index), at)
            if at % 2:
                await until(lambda: is_written(index))
        if not was_cancelled:
            break
    assert at > 0
    async with indexed(address, namespace, fresh=False) as index:
        assert await index.states(names) == ["earlier"] * len(names)


@driven
async def test_a_cancelled_release_is_made(address: str, namespace: str) -> None:
    for at in count():
        async with indexed(address, namespace, fresh=False) as index:
            url, content = f"http://example.org/{at}", fingerprint(at)
            await index.claim(f"page {at}", url, content)
            was_cancelled = await cancelled(index.release(f"page {at}"), at)
            await release_all(index)
            assert (await index.claim(f"copy {at}", f"{url}/copy", content)).status == "new"
        if not was_cancelled:
            break


@driven
async def test_a_swallowed_cancellation_ends_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `asyncio.wait_for` does before Python 3.12, if an answer comes at the same moment."""
    monkeypatch.setattr(batching, "AGAIN", 0.001)
    swallowed = []

    async def work() -> None:
        while True:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                if len(swallowed) == 2:
                    raise
                swallowed.append(None)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await end(task)
    assert task.cancelled()


@driven
async def test_every_item_of_a_cancelled_batch_is_written() -> None:
    for at in count():
        written: list[int] = []

        async def write(batch: dict[str, int], written: list[int] = written) -> None:
            for item in batch.values():
                await asyncio.sleep(0)
                written.append(item)

        confirmations = Confirmations(write)
        confirmations.add("a", 1)
        confirmations.add("b", 2)
        was_cancelled = await cancelled(confirmations.flush(), at)
        assert not was_cancelled or "b" in confirmations
        confirmations.add("c", 3)
        await confirmations.close()
        assert list(dict.fromkeys(written)) == [1, 2, 3]
        if not was_cancelled:
            break
    assert at == 2


@driven
async def test_what_was_put_back_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 0.001)
    written: list[int] = []
    may_write = asyncio.Event()

    async def write(batch: dict[str, int]) -> None:
        await may_write.wait()
        written.extend(batch.values())

    confirmations = Confirmations(write)
    confirmations.add("a", 1)
    flushing = asyncio.create_task(confirmations.flush())
    await until(lambda: not confirmations._waiting and confirmations._task and confirmations._lock.locked())
    flushing.cancel()
    may_write.set()
    await until(lambda: written)
    await confirmations.close()
    assert written == [1]


class Holding(Line):
    """When it is told to, it holds all answers once a page has been filed."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.socket)
        self._client = server.client
        self.holds = False

    def has_filed(self) -> bool:
        return bool(self._client.hlen("shingleback:{test}:pending"))

    async def reply(self, reply: bytes) -> list[bytes | None]:
        await until(lambda: not (self.holds and self.has_filed()))
        return [reply]


@driven
async def test_a_claim_without_its_answer_is_released(server: Server) -> None:
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        line, proxy = Holding(server), Path(folder, "proxy.sock")
        async with line.listening(proxy), indexed(f"unix://{proxy}", "test", fresh=False) as index:
            await index.claim("first", "http://first/", fingerprint("first"))  # loads the script
            await index.release("first")
            for page, released_by in [("a", index.release), ("b", lambda _: release_all(index))]:
                line.holds = True
                claim = asyncio.create_task(index.claim(page, f"http://{page}/", fingerprint(page)))
                await until(line.has_filed)
                claim.cancel()
                await asyncio.wait([claim])
                assert claim.cancelled()
                line.holds = False
                await released_by(page)
                assert not line.has_filed()


@pytest.mark.parametrize("trials", [40, pytest.param(1_000, marks=pytest.mark.slow)])
@driven
async def test_claims_and_writes_cancelled_whenever(redis_socket: Path, namespace: str, trials: int) -> None:
    rng, stuck, names = random.Random(7), 0, [f"page {trial}" for trial in range(trials)]
    async with indexed(f"unix://{redis_socket}", namespace, fresh=False) as index:
        for name in names:
            content = fingerprint(name)
            for work in (index.claim("cancelled", "http://example.org/", content), flush(index)):
                task = asyncio.create_task(work)
                for _ in range(rng.randrange(14)):
                    await asyncio.sleep(0)
                await asyncio.sleep(rng.choice([0, 0, 0.0002, 0.0006]))
                task.cancel()
                await asyncio.wait([task])
            await index.release("cancelled")
            stuck += (await index.claim(name, "http://example.org/2", content)).status != "new"
            await index.confirm(name)
    assert not stuck
    async with indexed(f"unix://{redis_socket}", namespace, fresh=False) as index:
        assert await index.states(names) == ["earlier"] * trials


async def release_all(index: Index) -> None:
    """What Redis does every 20 seconds."""
    if isinstance(index, RedisIndex):
        await index._releases.make_all()


def confirmations(index: Index) -> Confirmations[Any]:
    assert isinstance(index, RedisIndex | LocalIndex)
    return index._confirmations


async def flush(index: Index) -> None:
    await confirmations(index).flush()


def is_written(index: Index) -> bool:
    return not confirmations(index)._waiting and not confirmations(index)._writing
