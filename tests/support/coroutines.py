"""Tests that are coroutines."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["driven"]


def driven(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine, run to its end."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
