"""What is stored of an index in Redis, read in small steps while crawls may be using it.

Nothing here writes.  Memory: 8 bytes a page for the
numbers, so that pages come in the order of their filing.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dedup.index.redis.buckets import Buckets
from dedup.index.redis.client import Server
from dedup.index.redis.keys import LEASE_MS, PAGE
from dedup.index.survey import BATCH

#: The name of a run.
RUN = re.compile(rb"[0-9a-f]{32}")
#: What a counter holds.
COUNT = re.compile(rb"[0-9]{1,15}")

Numbers = npt.NDArray[np.uint64]
T = TypeVar("T")


class Reading:
    """Reads the pages, claims and leases of one namespace."""

    def __init__(self, server: Server, buckets: Buckets) -> None:
        self.server = server
        self.buckets = buckets
        self.keys = buckets.keys

    async def numbers(self) -> Numbers:
        """Returns the numbers of all pages, ascending."""
        found = array("Q")
        async for keys in self.server.scan(self.keys.pages):
            names = (PAGE.fullmatch(key, len(self.keys.prefix)) for key in keys)
            found.extend(int(name[1]) for name in names if name)
        return np.unique(np.frombuffer(found, np.uint64)) if found else np.empty(0, np.uint64)

    async def records(self, numbers: Iterable[int]) -> list[Any]:
        """Returns the records, None where there is none."""
        (found,) = await self.server.ask([("MGET", *map(self.keys.page, numbers))])
        return found or []

    async def claims(self, numbers: list[int]) -> tuple[list[Any], list[Any], set[str]]:
        """Returns the records, which run each page is pending for, and which runs are alive."""
        questions = ("MGET", *map(self.keys.page, numbers)), ("HMGET", self.keys.pending, *numbers)
        records, owners = await self.server.ask(questions, together=True)
        return records, owners or [None] * len(numbers), alive(*await self.leases())

    async def leases(self) -> tuple[dict[bytes, float], float]:
        """Returns when the lease of each run ends, and what time it is there, in ms."""
        questions = ("ZRANGE", self.keys.runs, 0, -1, "WITHSCORES"), ("TIME",)
        found, (seconds, microseconds) = await self.server.ask(questions, together=True)
        return scores(found), seconds * 1000 + microseconds / 1000

    async def counters(self) -> list[int]:
        """Returns how many numbers were given out, and how many taken back; nothing if that can't be read."""
        given, released = await self.server.ask([("GET", self.keys.sequence), ("GET", self.keys.released)])
        texts = given or b"", released or b"0"  # the first release makes it
        return [int(text) for text in texts] if all(map(COUNT.fullmatch, texts)) else []


def scores(answer: Any) -> dict[bytes, float]:
    """Returns the members of a sorted set and their scores, which come in pairs by RESP3."""
    if answer and isinstance(answer[0], bytes):
        answer = zip(answer[::2], answer[1::2], strict=True)
    return {member: float(score) for member, score in answer or ()}


def alive(leases: Mapping[bytes, float], now: float) -> set[str]:
    """Returns the runs whose leases have not ended."""
    return {str(run, "utf-8", "replace") for run, ends in leases.items() if now < ends <= now + LEASE_MS}


def batches(items: Sequence[T], most: int = BATCH) -> Iterator[list[T]]:
    """Yields the items, ``most`` at a time."""
    for start in range(0, len(items), most):
        yield [*items[start : start + most]]
