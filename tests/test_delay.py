"""The delay of a host that workers keep between them."""

import asyncio
import time
from itertools import pairwise

import pytest

from dedup.index.redis import delay
from dedup.index.redis.delay import HOLD, Delay
from dedup.scrapy.delay import SharedDelayMiddleware
from tests.support.coroutines import driven
from tests.support.crawls import Run, Site, page
from tests.support.redis import Server
from tests.support.waiting import LIMIT, wait_until

KEY = "shingleback:delay:{a.example}"


@driven
async def test_a_host_is_free_after_its_delay(server: Server) -> None:
    one, other = Delay(server.address, 0.05), Delay(server.address, 0.05)
    try:
        name = await one.take("a.example")
        waiting = asyncio.create_task(other.take("a.example"))
        assert await one.take("b.example")
        await asyncio.sleep(0.1)
        assert not waiting.done()
        ended = time.monotonic()
        await one.end("a.example", name)
        await other.end("a.example", name)  # it is not its own
        await waiting
        assert time.monotonic() - ended >= 0.045
    finally:
        await one.close()
        await other.close()


@driven
async def test_a_clock_that_is_set_back(server: Server) -> None:
    """A key that ends in 20 seconds ends an hour later then."""
    server.client.set(KEY, "dead", px=3_600_000)
    one = Delay(server.address, 0.05)
    try:
        waiting = asyncio.create_task(one.take("a.example"))
        async with asyncio.timeout(LIMIT):
            while server.client.pttl(KEY) > 1000 * HOLD + 50:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        server.client.pexpire(KEY, 10)
        assert await waiting
    finally:
        await one.close()


def test_a_lease_is_renewed(crawl: Run, site: Site, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes, and longer than the host would wait for a worker that died."""
    monkeypatch.setattr(delay, "HOLD", 2.0)  # and renewed four times as often
    lasted: dict[str, list[int]] = {}
    key = "shingleback:delay:{127.0.0.1}"

    def watch(path: str) -> None:
        lasted[path] = []

        def is_renewed() -> bool:
            lasted[path].append(server.client.pttl(key))
            return sum(left < later for left, later in pairwise(lasted[path])) == 2

        wait_until(is_renewed)

    site.on_request = watch
    settings = {
        "DEDUP_INDEX": server.address,
        "DOWNLOAD_DELAY": 0.01,
        "DOWNLOADER_MIDDLEWARES": {SharedDelayMiddleware: 1_000_000},
    }
    crawl({"/": page("home", "/a"), "/a": page("story")}, **settings)
    assert set(lasted) == {"/", "/a"}
    assert all(min(left) > 0 for left in lasted.values())
    assert server.client.pttl(key) <= 10
