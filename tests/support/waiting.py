"""Waiting for what has to come, for as long as a busy machine takes, and no longer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable

__all__ = ["LIMIT", "until", "wait_until"]

#: What has not come after this many seconds does not come at all.  Nothing waits this long where all is well.
LIMIT = 300


def wait_until(condition: Callable[[], object]) -> None:
    """Returns as soon as a condition holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "what is waited for does not come"
        time.sleep(0.01)


async def until(condition: Callable[[], Awaitable[object] | object]) -> None:
    """Returns as soon as a condition holds, which may be asked by a coroutine; other tasks go on meanwhile."""
    async with asyncio.timeout(LIMIT):
        while True:
            held = condition()
            if await held if isawaitable(held) else held:
                return
            await asyncio.sleep(0.002)
