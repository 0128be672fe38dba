"""Many pages of an index in Redis at once: added as they are, or forgotten."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dedup.index.contract import Entry
from dedup.index.redis.record import pack, whole
from dedup.index.redis.survey import Access

__all__ = ["Bulk"]

#: Pages of one call of a script: with 28 tables, 5 ms of the server's time.
PAGES = 50


class Bulk:
    """What `add` and `forget` of an open index do; ``call`` runs one of its scripts."""

    def __init__(self, access: Access, call: Callable[..., Awaitable[list[Any]]]) -> None:
        self._access = access
        self._call = call

    def _key(self, name: str) -> bytes:
        return self._access.prefix + name.encode()

    async def add(self, entries: Sequence[Entry]) -> int:
        """Files pages as done; how many were not filed before."""
        added = 0
        for start in range(0, len(entries), PAGES):
            keys, arguments = list[bytes](), list[Any]()
            for entry in entries[start : start + PAGES]:
                probes = list(self._access.probes(entry))
                keys += [self._access.id_key(entry.page_id), *(probe[0] for probe in probes)]
                arguments += [pack(entry), *(probe[3] for probe in probes)]
            added += await self._changed("add", keys, len(probes), arguments)
        return added

    async def forget(self, page_ids: Sequence[str]) -> int:
        """Takes pages out; how many were filed.  Pages whose record can't be read are left."""
        forgotten = 0
        for start in range(0, len(page_ids), PAGES):
            ids = [self._access.id_key(page_id) for page_id in page_ids[start : start + PAGES]]
            keys = [self._key("released")]
            arguments, tables = list[Any](), 0
            with self._access.server.errors():
                numbers = await self._access.server.client.mget(ids)
                pages = [self._key("p:") + (number or b"") for number in numbers]
                records = await self._access.server.client.mget(pages)
            for page_id, number, record in zip(ids, numbers, records, strict=True):
                if entry := whole(record or b""):
                    buckets = [probe[0] for probe in self._access.probes(entry)]
                    tables = len(buckets)
                    keys += [page_id, *buckets]
                    arguments.append(number)
            forgotten += await self._changed("forget", keys, tables, arguments)
        return forgotten

    async def _changed(self, verb: str, keys: list[bytes], tables: int, arguments: list[Any]) -> int:
        """How many pages a script has changed."""
        (count,) = await self._call(verb, keys, [self._key("p:"), tables, *arguments])
        return int(count)
