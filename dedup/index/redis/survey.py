"""The survey of an index in Redis, taken while crawls may be using it."""

from collections.abc import AsyncIterator, Mapping

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.lifecycle import State
from dedup.index.parameters import Parameters
from dedup.index.redis.check import Check
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import unpack_table
from dedup.index.redis.keys import Keys
from dedup.index.redis.reading import Reading, batches
from dedup.index.redis.record import whole
from dedup.index.survey import Finding, KnownHost, StoredPage, Survey
from dedup.printing import octets as shown

#: Keys whose memory is measured; SCAN tells them in no order of theirs.
SAMPLE = 1000


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
            for record, owner in zip(records, owners, strict=True):
                if record is None:
                    continue  # it was taken out meanwhile, or is of another type
                entry = whole(record)
                claimed_by = None if owner is None else owner.decode("utf-8", "replace")
                state = State.DONE
                if claimed_by in alive:
                    state = State.PENDING
                elif claimed_by is not None and (entry is None or entry.run == claimed_by):
                    state = State.DEAD
                yield self.readable(entry, state)

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
        count, some = 0, list[bytes]()
        async for keys in self._server.scan(self._keys.prefix):
            count += len(keys)
            some += keys[: SAMPLE - len(some)]
        try:
            sizes = await self._server.ask([("MEMORY USAGE", key) for key in some])
        except IndexUnavailableError:  # this user may not ask for it
            return None, ""
        found = [size for size in sizes if size]
        if not found:
            return None, ""
        return round(count * sum(found) / len(found)), f"MEMORY USAGE of {len(found)} keys"

    async def close(self) -> None:
        """The connections are the index's, which closes them."""
