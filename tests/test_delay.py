"""The delay of a host that workers keep between them."""

import asyncio
import time

from dedup.frontier.delay import HOLD, Delay
from tests.support.coroutines import driven
from tests.support.redis import Server

KEY = "shingleback:delay:{a.example}"


@driven
async def test_a_host_is_free_for_any_worker_when_the_delay_after_its_answer_is_over(server: Server) -> None:
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
async def test_no_host_waits_for_longer_than_a_lease_if_the_clock_is_set_back(server: Server) -> None:
    """A key that ends in 20 seconds ends an hour later then."""
    server.client.set(KEY, "dead", px=3_600_000)
    delay = Delay(server.address, 0.05)
    try:
        waiting = asyncio.create_task(delay.take("a.example"))
        async with asyncio.timeout(10):
            while server.client.pttl(KEY) > 1000 * HOLD + 50:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        server.client.pexpire(KEY, 10)
        assert await waiting
    finally:
        await delay.close()
