"""Waiting until something has come, for as long as a busy machine takes, and no longer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable

#: Seconds after which a test gives up waiting.  It never waits this long when all is well.
LIMIT = 300


def wait_until(condition: Callable[[], object]) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "what is waited for does not come"
        time.sleep(0.01)


async def until(condition: Callable[[], Awaitable[object] | object]) -> None:
    """Waits until a condition holds, while other tasks go on; a coroutine may tell whether it does."""
    async with asyncio.timeout(LIMIT):
        while True:
            held = condition()
            if await held if isawaitable(held) else held:
                return
            await asyncio.sleep(0.002)
