"""The survey of an index in Redis, taken while crawls may be using it."""

from collections.abc import AsyncIterator, Mapping

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.parameters import Parameters
from dedup.index.redis.buckets import ENTRY
from dedup.index.redis.check import Check
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import Keys
from dedup.index.redis.reading import Reading, batches
from dedup.index.redis.record import whole
from dedup.index.survey import Finding, KnownHost, StoredPage, Survey, state_outside
from dedup.printing import octets as shown

#: Pages whose memory is measured.
SAMPLE = 30


async def read_header(server: Server, keys: Keys, where: str) -> dict[str, str]:
    """Returns the fields of the header; none if there is no key of an index."""
    found, is_there = await server.ask([("HGETALL", keys.header), ("EXISTS", keys.header)])
    if is_there and not found:
        raise IndexMismatchError(f"{shown(keys.header)} in {where} is not the header of an index")
    if not found:
        async for some in server.scan(keys.prefix):
            if some:
                raise IndexCorruptError(
                    f"the index {where} is damaged: it has keys, but no header, so that nobody knows what they were "
                    f"built with; restore a backup, or delete every key that starts with {shown(keys.prefix)}"
                )
    return {
        str(name, "utf-8", "replace"): str(value, "utf-8", "replace") for name, value in (found or {}).items()
    }


class RedisSurvey(Survey):
    """What one namespace holds."""

    def __init__(
        self, where: str, parameters: Parameters, header: Mapping[str, str], reading: Reading
    ) -> None:
        super().__init__(where, parameters, header)
        self._reading = reading
        self._server = reading.server
        self._keys = reading.keys

    async def count(self) -> int:
        given, released = await self._reading.counters() or (0, 0)
        return max(0, given - released)

    async def _pages(self, run: str, before: float) -> AsyncIterator[StoredPage]:
        for numbers in batches((await self._reading.numbers()).tolist()):
            records, owners, alive = await self._reading.claims(numbers)
            unread = [number for number, record in zip(numbers, records, strict=True) if record is None]
            asked = [("EXISTS", self._keys.page(number)) for number in unread]
            there = dict(zip(unread, await self._server.ask(asked) if asked else [], strict=True))
            for number, record, owner in zip(numbers, records, owners, strict=True):
                if not there.get(number, True):
                    continue  # no page has it, or it was taken out meanwhile
                entry = whole(record or b"")
                claimed_by = None if owner is None else owner.decode("utf-8", "replace")
                filer = entry.run if entry else claimed_by or ""
                done_by = None if filer == claimed_by else filer
                yield self.readable(entry, state_outside(done_by, claimed_by, alive))

    def findings(self) -> AsyncIterator[Finding]:
        return Check(self._reading, self.parameters, self.header).findings()

    async def hosts(self) -> AsyncIterator[KnownHost]:
        async for keys in self._server.scan(self._keys.tables):
            for octets in filter(None, await self._server.ask([("GET", key) for key in keys])):
                try:
                    yield KnownHost(*unpack_table(octets))
                except ValueError:
                    yield KnownHost("", None)

    async def stored(self) -> tuple[int | None, str]:
        numbers = await self._reading.numbers()
        some = numbers[:: max(1, len(numbers) // SAMPLE)].tolist()
        octets, read = 0.0, 0
        for number, record in zip(some, await self._reading.records(some) if some else [], strict=True):
            if (entry := whole(record or b"")) is None:
                continue
            buckets = [place.bucket for place in self._reading.buckets.places(entry)]
            usage = [("MEMORY USAGE", key) for key in (self._keys.page(number), *buckets)]
            sizes = [("STRLEN", bucket) for bucket in buckets]
            try:
                own, *answers = (answer or 0 for answer in await self._server.ask([*usage, *sizes]))
            except IndexUnavailableError:  # this user may not ask for it
                return None, ""
            shared = zip(answers[: len(sizes)], answers[len(sizes) :], strict=True)
            octets += own + sum(size * ENTRY.itemsize / full for size, full in shared if full)
            read += 1
        if not read:
            return None, ""
        return round(len(numbers) * octets / read), f"MEMORY USAGE of {read} pages, and what they share"

    async def close(self) -> None:
        """The connections are the index's, which closes them."""
