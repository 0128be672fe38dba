"""An index spread over a Redis Cluster: where hosts, or sites, are not compared with each other, each is in one of its parts.

Each part is an index by itself, in a slot of its own; what is learned of hosts is read and written in their parts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.contract import Index
from dedup.index.entry import Entry, scope_mask
from dedup.index.lifecycle import State
from dedup.index.redis.hosts import SharedHosts
from dedup.index.redis.index import FORMAT, RedisIndex
from dedup.index.redis.keys import PARTS
from dedup.index.redis.session import Session
from dedup.index.survey import Finding, KnownHost, StoredPage, Survey
from dedup.index.verdict import Verdict
from dedup.page.urls import host
from dedup.settings import IndexSettings

T = TypeVar("T")


def clustered(address: str, namespace: str, detector: Detector, **options: Any) -> Index:
    """Returns the index of a cluster: in one slot, or spread if its scope allows that."""
    is_whole = options.get("scope", IndexSettings().scope) == "all"
    return (RedisIndex if is_whole else SpreadIndex)(address, namespace, detector, **options)


def part_name(namespace: str, part: int) -> str:
    """Returns what the keys of a part have for a namespace: no namespace has a brace.

    >>> part_name("crawl", 0), part_name("crawl", 15)
    ('crawl{0-2', 'crawl{15-60')
    """
    names = (f"{namespace}{{{part}-{number}" for number in count())
    return next(name for name in names if key_slot(name.encode()) * PARTS // REDIS_CLUSTER_HASH_SLOTS == part)


class SpreadIndex(Index):
    """An index in several slots of a cluster."""

    format = FORMAT
    is_shared = reads_many = True

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        options["run"] = self.run
        names = (part_name(namespace, part) for part in range(PARTS))
        self._parts = [RedisIndex(address, name, detector, **options) for name in names]
        self._where = f"{self._parts[0]._server.where} ({namespace})"
        if self.hosts is not None:
            self.hosts = SharedHosts(detector.sketcher, self.settings, self._session)
            for part in self._parts:
                part.hosts = self.hosts

    @property
    def where(self) -> str:
        return self._where

    def _part(self, name: str) -> RedisIndex:
        """Returns the part of a host."""
        return self._parts[scope_mask(self.settings.scope, f"http://{name}/") % PARTS]

    def _session(self, name: str) -> Session:
        return self._part(name)._session

    async def _each(self, call: Callable[[RedisIndex], Coroutine[Any, Any, T]]) -> list[T]:
        """Returns what all parts answer; raises the first error when all have answered."""
        answers = await asyncio.gather(*map(call, self._parts), return_exceptions=True)
        found = list[T]()
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
        return found

    async def _open(self) -> None:
        await self._each(lambda part: part.open())
        self.parameters = self._parts[0].parameters

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        return await self._part(host(entry.url))._claim(entry, page)

    async def _confirm(self, page_id: str) -> None:
        for part in self._parts:
            await part._confirm(page_id)

    async def _release(self, page_id: str) -> None:
        for part in self._parts:
            await part._release(page_id)

    async def _annul(self, page_id: str) -> bool:
        return any(await self._each(lambda part: part._annul(page_id)))

    async def _find(self, page_id: str) -> Entry | None:
        return next(filter(None, await self._each(lambda part: part._find(page_id))), None)

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        found = await self._each(lambda part: part._states(page_ids))
        there = (filter(State.ABSENT.__ne__, states) for states in zip(*found, strict=True))
        return [next(states, State.ABSENT) for states in there]

    async def _leases(self, runs: Sequence[str]) -> list[float]:
        return [*map(max, zip(*await self._each(lambda part: part._leases(runs)), strict=True))]

    async def _count(self) -> int:
        return sum(await self._each(lambda part: part._count()))

    async def _add(self, entries: Sequence[Entry]) -> int:
        parts = [self._part(host(entry.url)) for entry in entries]
        return sum(
            await self._each(
                lambda part: part._add([one for one, of in zip(entries, parts, strict=True) if of is part])
            )
        )

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        await self._parts[0]._add_hosts(tables)  # which all have in common

    async def _remember(self, notes: Mapping[str, bytes]) -> None:
        for name, octets in notes.items():
            await self._part(name)._remember({name: octets})

    async def _recall(self, host: str) -> bytes:
        return await self._part(host)._recall(host)

    async def _forget(self, page_ids: Sequence[str]) -> int:
        return sum(await self._each(lambda part: part._forget(page_ids)))

    async def survey(self) -> Survey | None:
        surveys = [*filter(None, await self._each(lambda part: part.survey()))]
        return SpreadSurvey(self.where, surveys) if surveys else None

    async def close(self, *, finished: bool = True) -> None:
        self._opened = False
        await self._each(lambda part: part.close(finished=finished))


class SpreadSurvey(Survey):
    """What the parts of an index hold, one after the other."""

    def __init__(self, where: str, surveys: Sequence[Survey]) -> None:
        super().__init__(where, surveys[0].parameters, surveys[0].header)
        self._surveys = surveys

    async def count(self) -> int:
        return sum([await survey.count() for survey in self._surveys])

    def _pages(self, run: str, before: float) -> AsyncIterator[StoredPage]:
        return self._each(lambda survey: survey.pages(run=run, before=before))

    def hosts(self) -> AsyncIterator[KnownHost]:
        return self._each(lambda survey: survey.hosts())

    def findings(self) -> AsyncIterator[Finding]:
        return self._each(lambda survey: survey.findings())

    async def _each(self, look: Callable[[Survey], AsyncIterator[T]]) -> AsyncIterator[T]:
        for survey in self._surveys:
            async for found in look(survey):
                yield found

    async def stored(self) -> tuple[int | None, str]:
        found = [await survey.stored() for survey in self._surveys]
        sizes = [size for size, _ in found if size is not None]
        return sum(sizes) if sizes else None, next((how for _, how in found if how), "")

    async def close(self) -> None:
        for survey in self._surveys:
            await survey.close()
