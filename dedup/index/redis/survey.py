"""A look at an index in Redis while crawls may be using it.  The keys are described in lua/claim.lua.

All of it reads, in small steps: SCAN, and scripts over a few thousand entries at a time.  Memory: 8 bytes
a page for the numbers, so that pages come in the order of their filing.
"""

import re
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.contract import Entry, Index
from dedup.index.redis.client import Server
from dedup.index.redis.record import whole
from dedup.index.survey import BATCH, Filed, Finding, Standing, Survey, flaw

__all__ = ["Access", "RedisSurvey", "batches", "survey_redis"]

#: Keys asked for by one SCAN.
SCAN = 1000
#: Pages whose memory is measured.
SAMPLE = 30
#: The first part of the name of a page's key, after the prefix, and the number.
PAGE = re.compile(rb"p:([1-9][0-9]{0,14})")

Numbers = npt.NDArray[np.uint64]


class Access(NamedTuple):
    """What an index lends for the survey of it."""

    server: Server
    prefix: bytes  #: of every key
    id_key: Callable[[str], bytes]
    probes: Callable[[Entry], Iterable[tuple[bytes, int, int, int]]]


async def survey_redis(index: Index, access: Access) -> "RedisSurvey | None":
    """The survey of a namespace; None if no key is there."""
    survey = RedisSurvey(index, {}, access)
    (found,) = await survey.ask([("HGETALL", survey.key(b"header"))])
    there = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in (found or {}).items()
    }
    if not there:
        async for keys in survey.scan(b""):
            if not keys:
                continue
            if survey.key(b"header") in keys:
                raise IndexMismatchError(
                    f"{_shown(survey.key(b'header'))} in {index.where} is not the header of an index"
                )
            raise IndexCorruptError(
                f"the index {index.where} is damaged: it has keys, but no header, so that nobody knows what they "
                f"were built with; restore a backup, or delete every key that starts with {_shown(access.prefix)}"
            )
        return None
    index.adopt(there)
    if not re.fullmatch("1[1-9]|[2-5][0-9]|6[0-4]", there.get("bucket_bits", "")):
        raise IndexCorruptError(
            f"the index {index.where} is damaged: bucket_bits is {there.get('bucket_bits')!r}"
        )
    survey.header = there
    return survey


class RedisSurvey(Survey):
    """What one namespace holds."""

    def __init__(self, index: Index, header: Mapping[str, str], access: Access) -> None:
        super().__init__(index, header)
        self.access = access

    def key(self, name: bytes) -> bytes:
        """A key's full name."""
        return self.access.prefix + name

    def page_keys(self, numbers: Iterable[int]) -> list[bytes]:
        """The keys of records."""
        return [self.key(b"p:%d" % number) for number in numbers]

    async def ask(self, commands: Iterable[Sequence[Any]], together: bool = False) -> list[Any]:
        """Answers to commands, None where a key is of another type; all of one moment if ``together``."""
        with self.access.server.errors():
            async with self.access.server.client.pipeline(transaction=together) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                answers = await pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
                    raise answer
        return [None if isinstance(answer, Exception) else answer for answer in answers]

    async def script(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        """What a script answers."""
        text = files("dedup.index.redis").joinpath(f"lua/{verb}.lua").read_bytes()
        with self.access.server.errors():
            return await self.access.server.client.register_script(text)(keys=keys, args=arguments)

    async def scan(self, start: bytes) -> AsyncIterator[list[bytes]]:
        """Names of the keys of this index that start so, in batches; some may come twice."""
        pattern = re.sub(rb"([*?\[\]\\^-])", rb"\\\1", self.key(start)) + b"*"
        cursor = 0
        while True:
            with self.access.server.errors():
                cursor, keys = await self.access.server.client.scan(cursor, match=pattern, count=SCAN)
            yield keys
            if cursor == 0:
                return

    async def numbers(self) -> Numbers:
        """Numbers of all pages, ascending."""
        found = array("Q")
        async for keys in self.scan(b"p:"):
            names = (PAGE.fullmatch(key, len(self.access.prefix)) for key in keys)
            found.extend(int(name[1]) for name in names if name)
        return np.unique(np.frombuffer(found, np.uint64)) if found else np.empty(0, np.uint64)

    async def count(self) -> int:
        given, released = await self.ask([("GET", self.key(b"sequence")), ("GET", self.key(b"released"))])
        try:
            return max(0, int(given or 0) - int(released or 0))
        except ValueError:
            return 0

    async def pages(self) -> AsyncIterator[Filed]:
        for numbers in batches(await self.numbers()):
            records, owners, alive = await self._read(numbers)
            for number, record, owner in zip(numbers, records, owners, strict=True):
                if record is None:
                    (there,) = await self.ask([("EXISTS", *self.page_keys([number]))])
                    if not there:
                        continue  # taken out meanwhile
                entry = whole(record or b"")
                state: Standing = "done" if owner is None else "pending" if owner in alive else "dead"
                yield Filed(None if entry is None or flaw(self.index, entry) else entry, state)

    async def _read(self, numbers: list[int]) -> tuple[list[Any], list[Any], set[bytes]]:
        """Records, who they are pending for, and who is alive."""
        records, owners = await self.ask(
            [("MGET", *self.page_keys(numbers)), ("HMGET", self.key(b"pending"), *numbers)], together=True
        )
        leases, now = await self.leases()
        return records, owners or [None] * len(numbers), {run for run, ends in leases.items() if ends > now}

    async def leases(self) -> tuple[dict[bytes, float], float]:
        """When the lease of each run ends, and what time it is there, in ms."""
        found, (seconds, microseconds) = await self.ask(
            [("ZRANGE", self.key(b"runs"), 0, -1, "WITHSCORES"), ("TIME",)], together=True
        )
        flat = [
            part for pair in found or () for part in (pair if isinstance(pair, (tuple, list)) else (pair,))
        ]
        leases = dict(zip(flat[::2], map(float, flat[1::2]), strict=True))
        return leases, seconds * 1000 + microseconds / 1000

    def findings(self) -> AsyncIterator[Finding]:
        from dedup.index.redis.check import Invariants

        return Invariants(self).findings()

    async def stored(self) -> tuple[int | None, str]:
        numbers = await self.numbers()
        some = numbers[:: max(1, len(numbers) // SAMPLE)].tolist()
        records, *_ = await self._read(some) if some else [[]]
        octets = []
        for number, record in zip(some, records, strict=True):
            if entry := whole(record or b""):
                buckets = [probe[0] for probe in self.access.probes(entry)]
                own = [*self.page_keys([number]), self.access.id_key(entry.page_id)]
                commands: list[tuple[Any, ...]] = [("MEMORY", "USAGE", key) for key in (*own, *buckets)]
                commands += [("ZCARD", bucket) for bucket in buckets]
                try:
                    answers = [answer or 0 for answer in await self.ask(commands)]
                except IndexUnavailableError:  # this user may not ask for it
                    return None, ""
                shared = zip(answers[2 : 2 + len(buckets)], answers[2 + len(buckets) :], strict=True)
                octets.append(sum(answers[:2]) + sum(size / pages for size, pages in shared if pages))
        if not octets:
            return None, ""
        return round(
            len(numbers) * sum(octets) / len(octets)
        ), f"MEMORY USAGE of {len(octets)} pages, and what they share"

    async def close(self) -> None:
        """The connection is the index's."""


def batches(numbers: Numbers) -> Iterator[list[int]]:
    """So many at a time."""
    for start in range(0, len(numbers), BATCH):
        yield numbers[start : start + BATCH].tolist()


def _shown(key: bytes) -> str:
    return repr(key)[2:-1]
