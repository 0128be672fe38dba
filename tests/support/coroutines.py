"""Tests that are coroutines."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any


def driven(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Makes a test of a coroutine function: runs the coroutine to its end."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
