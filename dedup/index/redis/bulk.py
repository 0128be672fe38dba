"""Many pages of an index in Redis at once: added as they are, or forgotten."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dedup.fingerprint.plans import EXACT
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.client import Server
from dedup.index.redis.keys import Tables
from dedup.index.redis.record import pack, whole

__all__ = ["Bulk"]

#: Pages of one call of a script: with 28 tables, 5 ms of the server's time.
PAGES = 50


class Bulk:
    """Adds and forgets pages of an open index; ``call`` runs one of its scripts."""

    def __init__(self, server: Server, tables: Tables, call: Callable[..., Awaitable[list[Any]]]) -> None:
        self._server = server
        self._tables = tables
        self._keys = tables.keys
        self._call = call

    async def add(self, entries: Sequence[Entry]) -> int:
        """Files pages as done; how many were not filed before."""
        added = 0
        for start in range(0, len(entries), PAGES):
            keys, arguments = list[bytes](), list[Any]()
            for entry in entries[start : start + PAGES]:
                probes = list(self._tables.probes(entry))
                keys += [self._keys.page_id(entry.page_id), *(probe.bucket for probe in probes)]
                arguments += [pack(entry), *(probe.own for probe in probes)]
            added += await self._changed("add", keys, arguments)
        return added

    async def forget(self, page_ids: Sequence[str], wanted: State | None = None) -> int:
        """Takes pages out, or those of one state; how many were.  Pages whose record can't be read are left."""
        forgotten = 0
        for start in range(0, len(page_ids), PAGES):
            ids = [self._keys.page_id(page_id) for page_id in page_ids[start : start + PAGES]]
            keys, arguments = [self._keys.released], list[Any]()
            async with self._server.turn():
                numbers = await self._server.values(ids)
                pages = [self._keys.pages + (number or b"") for number in numbers]
                records = await self._server.values(pages)
            for page_id, number, record in zip(ids, numbers, records, strict=True):
                if entry := whole(record or b""):
                    keys += [page_id, *(probe.bucket for probe in self._tables.probes(entry))]
                    arguments.append(number)
            forgotten += await self._changed("forget", keys, [wanted or "", *arguments])
        return forgotten

    async def _changed(self, verb: str, keys: list[bytes], arguments: list[Any]) -> int:
        """How many pages a script has changed."""
        tables = len(EXACT) + self._tables.plan.size
        (count,) = await self._call(verb, keys, [self._keys.pages, tables, *arguments])
        return int(count)
