"""Many pages of an index in Redis at once: added as they are, or forgotten."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.buckets import Buckets
from dedup.index.redis.client import Server
from dedup.index.redis.reading import batches, filed_as
from dedup.index.redis.record import pack, whole

#: Pages of one call of a script: .5 ms of the server's time.
PAGES = 50


class Bulk:
    """Adds and forgets pages of an open index; ``call`` runs one of its scripts."""

    def __init__(self, server: Server, buckets: Buckets, call: Callable[..., Awaitable[list[Any]]]) -> None:
        self._server = server
        self._buckets = buckets
        self._keys = buckets.keys
        self._call = call

    async def add(self, entries: Sequence[Entry]) -> int:
        """Files pages as done, and returns how many were not filed before."""
        added = 0
        for some in batches(entries, PAGES):
            keys, arguments = list[bytes](), list[Any]()
            for entry in some:
                places = self._buckets.places(entry)
                keys += [place.bucket for place in places]
                arguments += [pack(entry), b"".join(place.key for place in places)]
            added += await self._changed("add", keys, arguments)
        return added

    async def forget(self, page_ids: Sequence[str], wanted: State | None = None) -> int:
        """Takes pages out, or those of one state, and returns how many were.  Pages whose record can't be read are left."""
        forgotten = 0
        for some in batches(page_ids, PAGES):
            keys, hashes, numbers = [self._keys.released], b"", list[int]()
            async with self._server.turn():
                found = await filed_as(self._server, self._buckets, some)
            for number, record in found:
                entry = whole(record or b"")
                if number and entry:
                    places = self._buckets.places(entry)
                    keys += [place.bucket for place in places]
                    hashes += places[0].key
                    numbers.append(number)
            forgotten += await self._changed("forget", keys, [wanted or "", hashes, *numbers])
        return forgotten

    async def _changed(self, verb: str, keys: list[bytes], arguments: list[Any]) -> int:
        """Returns how many pages a script has changed."""
        tables = len(self._buckets.tables)
        (count,) = await self._call(verb, keys, [self._keys.pages, tables, *arguments])
        return int(count)
