"""Waiting for what has to come, for as long as a busy machine takes, and no longer."""

import asyncio
import time
from collections.abc import Awaitable, Callable

__all__ = ["LIMIT", "until", "wait_until"]

#: What has not come after this many seconds does not come at all.  Nothing waits this long where all is well.
LIMIT = 300


def wait_until(condition: Callable[[], object]) -> None:
    """Returns as soon as a condition holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "what is waited for does not come"
        time.sleep(0.01)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Returns as soon as a condition holds that is asked by a coroutine."""
    async with asyncio.timeout(LIMIT):
        while not await condition():  # noqa: ASYNC110 (no event tells of it)
            await asyncio.sleep(0.01)
