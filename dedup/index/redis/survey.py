"""The survey of an index in Redis, taken while crawls may be using it."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.lifecycle import State
from dedup.index.parameters import Parameters
from dedup.index.redis.buckets import ENTRY, Buckets
from dedup.index.redis.check import Invariants
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import Keys
from dedup.index.redis.reading import Reading, batches
from dedup.index.redis.record import whole
from dedup.index.redis.span import numbers_of
from dedup.index.survey import Filed, Finding, KnownHost, Survey
from dedup.printing import octets as shown

__all__ = ["RedisSurvey", "survey_redis"]

#: Pages whose memory is measured.
SAMPLE = 30


async def survey_redis(
    server: Server, keys: Keys, where: str, adopt: Callable[[Mapping[str, str]], Parameters]
) -> "RedisSurvey | None":
    """The survey of a namespace; None if it has no keys.  ``adopt`` checks the parameters that are stored."""
    (found,) = await server.ask([("HGETALL", keys.header)])
    fields = (found or {}).items()
    header = {str(name, "utf-8", "replace"): str(value, "utf-8", "replace") for name, value in fields}
    if not header:
        async for some in server.scan(keys.prefix):
            if not some:
                continue
            if keys.header in some:
                raise IndexMismatchError(f"{shown(keys.header)} in {where} is not the header of an index")
            raise IndexCorruptError(
                f"the index {where} is damaged: it has keys, but no header, so that nobody knows what they "
                f"were built with; restore a backup, or delete every key that starts with {shown(keys.prefix)}"
            )
        return None
    parameters = adopt(header)
    bits = header.get("bucket_bits", "")
    if not re.fullmatch("[89]|[1-5][0-9]|6[0-4]", bits):
        raise IndexCorruptError(f"the index {where} is damaged: bucket_bits is {header.get('bucket_bits')!r}")
    reading = Reading(server, Buckets(keys, parameters.plan, int(bits), header.get("created", "")))
    return RedisSurvey(where, parameters, header, reading)


class RedisSurvey(Survey):
    """What one namespace holds."""

    def __init__(self, where: str, parameters: Parameters, header: dict[str, str], reading: Reading) -> None:
        super().__init__(where, parameters, header)
        self._reading = reading
        self._ask = reading.server.ask
        self._keys = reading.keys

    async def count(self) -> int:
        given, released = await self._ask([("GET", self._keys.sequence), ("GET", self._keys.released)])
        try:
            return max(0, int(given or 0) - int(released or 0))
        except ValueError:
            return 0

    async def _pages(self, run: str, before: float) -> AsyncIterator[Filed]:
        for numbers in batches(await numbers_of(self._reading, run, before)):
            records, owners, alive = await self._reading.claims(numbers)
            unread = [number for number, record in zip(numbers, records, strict=True) if record is None]
            asked = [("EXISTS", self._keys.page(number)) for number in unread]
            there = dict(zip(unread, await self._ask(asked) if asked else [], strict=True))
            for number, record, owner in zip(numbers, records, owners, strict=True):
                if not there.get(number, True):
                    continue  # no page has it, or it was taken out meanwhile
                entry = whole(record or b"")
                if owner is None or (entry and owner not in alive and owner.decode() != entry.run):
                    state = State.DONE  # perhaps met again by a run that died
                else:
                    state = State.PENDING if owner in alive else State.DEAD
                yield self.readable(entry, state)

    async def hosts(self) -> AsyncIterator[KnownHost]:
        slots = self.parameters.detector.sketcher.slots
        async for keys in self._reading.server.scan(self._keys.tables):
            (found,) = await self._ask([("MGET", *keys)]) if keys else [[]]
            for octets in filter(None, found or ()):
                try:
                    yield KnownHost(*unpack_table(octets, slots))
                except ValueError:
                    yield KnownHost("", None)

    def findings(self) -> AsyncIterator[Finding]:
        return Invariants(self._reading, self.parameters, self.header).findings()

    async def stored(self) -> tuple[int | None, str]:
        numbers = await self._reading.numbers()
        some = numbers[:: max(1, len(numbers) // SAMPLE)].tolist()
        octets = []
        for number, record in zip(some, await self._reading.records(some) if some else [], strict=True):
            if entry := whole(record or b""):
                buckets = [place.bucket for place in self._reading.buckets.places(entry)]
                keys = self._keys.page(number), *buckets
                commands: list[tuple[Any, ...]] = [("MEMORY", "USAGE", key) for key in keys]
                commands += [("STRLEN", bucket) for bucket in buckets]
                try:
                    own, *answers = (answer or 0 for answer in await self._ask(commands))
                except IndexUnavailableError:  # this user may not ask for it
                    return None, ""
                shared = zip(answers[: len(buckets)], answers[len(buckets) :], strict=True)
                octets.append(own + sum(size * ENTRY.itemsize / length for size, length in shared if length))
        if not octets:
            return None, ""
        average = sum(octets) / len(octets)
        return round(len(numbers) * average), f"MEMORY USAGE of {len(octets)} pages, and what they share"

    async def close(self) -> None:
        """The connection is the index's, which closes it."""
