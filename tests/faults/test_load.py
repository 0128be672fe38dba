"""Many claims at once, over few connections: a wait for one of our own is no outage, and an outage is noticed by all."""

import asyncio
import hashlib
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dedup.errors import IndexUnavailableError
from dedup.filter import Counts, claims
from dedup.filter.claims import Claimant
from dedup.index import Index, Verdict, open_index
from dedup.index.redis import client
from dedup.index.redis.scripts import source
from tests.support.coroutines import driven
from tests.support.crawls import Run as Crawl
from tests.support.crawls import page
from tests.support.filters import Notes
from tests.support.fingerprints import fingerprint_of
from tests.support.redis import Line
from tests.support.stores import DETECTOR, opened
from tests.support.waiting import until

#: What the first requests of claims hold.
CLAIM = hashlib.sha1(source("look"), usedforsecurity=False).hexdigest().encode()


class Gate(Line):
    """Lets claims through when it is open, and all else at any time."""

    def __init__(self, server: Path) -> None:
        super().__init__(server)
        self.open = asyncio.Event()
        self.delay = 0.0
        self.claims = 0

    async def ask(self, request: bytes) -> list[bytes | None]:
        if claims := request.count(CLAIM):
            self.claims += claims
            await self.open.wait()
            await asyncio.sleep(self.delay * claims)
        return [request]


@asynccontextmanager
async def gated(server: Path, namespace: str) -> AsyncIterator[tuple[Index, Gate]]:
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        gate, proxy = Gate(server), Path(folder, "proxy.sock")
        async with gate.listening(proxy), opened(f"unix://{proxy}", namespace) as index:
            yield index, gate
            gate.open.set()


async def claim_all(index: Index, number: int, contents: int) -> list[Verdict | BaseException]:
    """Claims that many pages at once."""
    claims = (
        index.claim(
            f"{page}", f"http://{page}/", fingerprint_of(random.Random(page % contents).getrandbits(64))
        )
        for page in range(number)
    )
    return await asyncio.gather(*claims, return_exceptions=True)


def statuses(verdicts: list[Verdict | BaseException]) -> list[str]:
    return [verdict.status if isinstance(verdict, Verdict) else str(verdict) for verdict in verdicts]


@pytest.mark.parametrize("claims", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@driven
async def test_a_claim_waits_for_a_connection_as_long_as_others_are_answered(
    redis_socket: Path, namespace: str, monkeypatch: pytest.MonkeyPatch, claims: int
) -> None:
    monkeypatch.setattr(client, "CLAIMS", 2)
    monkeypatch.setattr(client, "DEADLINE", 1.0)
    async with gated(redis_socket, namespace) as (index, gate):
        gate.open.set()
        gate.delay = 2.5 / claims  # so all of them take longer than the deadline of one
        said = statuses(await claim_all(index, claims, claims // 2))
        assert sorted(said) == ["duplicate"] * (claims // 2) + ["new"] * (claims // 2)


@driven
async def test_a_loop_that_is_busy_with_other_pages_is_no_outage(
    redis_socket: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DEADLINE", 1.0)
    async with gated(redis_socket, namespace) as (index, gate):
        work = asyncio.create_task(claim_all(index, 4, 4))
        await until(lambda: gate.claims == 4)
        gate.open.set()
        for _ in range(3):
            time.sleep(0.5)  # noqa: ASYNC251 (that is the point)
            await asyncio.sleep(0)
        assert statuses(await work) == ["new"] * 4


@driven
async def test_confirmations_dont_wait_for_claims(redis_socket: Path, namespace: str) -> None:
    async with gated(redis_socket, namespace) as (index, gate):
        gate.open.set()
        await index.claim("a", "http://a/", fingerprint_of(1))
        gate.open.clear()
        waiting = asyncio.create_task(claim_all(index, 200, 200))
        await until(lambda: gate.claims > 1)  # the others share the next trip
        await index.confirm("a")
        await until(lambda: is_done(index, "a"))
        gate.open.set()
        assert statuses(await waiting) == ["new"] * 200


async def is_done(index: Index, page_id: str) -> bool:
    return await index.states([page_id]) == ["done"]


@driven
async def test_an_outage_is_told_at_once_to_all_who_wait(
    redis_socket: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DEADLINE", 0.3)
    async with gated(redis_socket, namespace) as (index, gate):
        said = await claim_all(index, 500, 500)
        assert all(isinstance(error, IndexUnavailableError) for error in said)
        assert gate.claims <= client.CLAIMS, "each has waited for an answer of its own"


class Silent(Line):
    """Answers nothing."""

    def __init__(self, server: Path) -> None:
        super().__init__(server)
        self.asked = 0

    async def ask(self, request: bytes) -> list[bytes | None]:
        self.asked += 1
        return []


@driven
async def test_an_index_that_does_not_answer_is_opened_once_for_all_who_wait(
    redis_socket: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DEADLINE", 0.3)
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        line, proxy = Silent(redis_socket), Path(folder, "proxy.sock")
        async with line.listening(proxy):
            index = open_index(f"unix://{proxy}", DETECTOR, namespace=namespace)
            for asked in (1, 2):
                said = await claim_all(index, 500, 500)
                assert {type(error) for error in said} == {IndexUnavailableError}
                assert line.asked == asked, "each has waited for an answer of its own"
            await index.close()


class Shaky(Line):
    """Delays every answer, and cuts a share of the connections in the midst of it."""

    def __init__(self, server: Path, delay: float, share: float) -> None:
        super().__init__(server)
        self._delay = delay
        self._share = share
        self._chance = random.Random(3)

    async def ask(self, request: bytes) -> list[bytes | None]:
        return [None if self._chance.random() < self._share else request]

    async def reply(self, reply: bytes) -> list[bytes | None]:
        await asyncio.sleep(self._delay)
        return [None if self._chance.random() < self._share else reply]


@pytest.mark.parametrize(
    ("delay", "share", "pages"), [(0.002, 0.1, 100), pytest.param(0.5, 0.02, 600, marks=pytest.mark.slow)]
)
@driven
async def test_over_a_shaky_line_each_page_has_its_verdict_or_is_filed_later(
    redis_socket: Path,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    delay: float,
    share: float,
    pages: int,
) -> None:
    monkeypatch.setattr(claims, "PAUSE_SECONDS", (0.02, 0.2))
    counts, crawl = Counts(), Notes()
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        line, proxy = Shaky(redis_socket, delay, share), Path(folder, "proxy.sock")
        async with line.listening(proxy):
            index = open_index(f"unix://{proxy}", DETECTOR, namespace=namespace)
            claimant = Claimant(index, "keep", counts, crawl.stop, crawl.is_closing)
            said: dict[str, str] = {}

            async def meet(page: int) -> None:
                name = f"{page}"
                content = fingerprint_of(random.Random(page // 2).getrandbits(64))
                said[name] = (await claimant.claim(name, f"http://{name}/", content)).status
                if said[name] != "duplicate":
                    await claimant.confirm(name)

            await asyncio.gather(*map(meet, range(pages)))
            await until(lambda: not claimant._aside)
            for _ in range(10):  # what is confirmed is written as soon as the line allows
                with suppress(IndexUnavailableError):
                    await index._confirmations.flush()  # type: ignore[attr-defined]
            await claimant.close(finished=True)
    kept = {int(name) // 2 for name, status in said.items() if status != "duplicate"}
    assert kept == set(range(pages // 2)), "a content is lost"
    late = counts.get("dedup/late/filed", 0) + counts.get("dedup/late/duplicate", 0)
    assert [*said.values()].count("unjudged") == late
    assert "dedup/late/never" not in counts
    async with opened(f"unix://{redis_socket}", namespace) as index:
        assert await index.count() == pages // 2, "a page is not filed, or a content twice"


@pytest.mark.slow
def test_of_500_requests_at_once_copies_are_dropped(crawl: Crawl, redis_socket: Path, namespace: str) -> None:
    names = [f"/{number}" for number in range(2_000)]
    pages = {"/": page("home", *names)} | {name: page(number // 2) for number, name in enumerate(names)}
    settings = {"DEDUP_INDEX": f"unix://{redis_socket}", "DEDUP_NAMESPACE": namespace}
    done = crawl(pages, **settings, CONCURRENT_REQUESTS=500, CONCURRENT_REQUESTS_PER_DOMAIN=500)
    assert done.figures["dropped"] == 1_000
    assert "unjudged" not in done.figures
