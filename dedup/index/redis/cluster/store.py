"""What the protocol asks for, done with the nodes of a cluster."""

import asyncio
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from dedup.errors import IndexCorruptError
from dedup.fingerprint.plans import EXACT
from dedup.index.entry import Entry
from dedup.index.redis.cluster.keys import Probe, SpreadKeys
from dedup.index.redis.cluster.nodes import Call, Cluster
from dedup.index.redis.cluster.protocol import Do, File, Look, Seen, Swap, Unfile, Wait
from dedup.index.redis.cluster.record import Leases, Record, decode, encode, head_of
from dedup.index.redis.keys import LEASE_MS
from dedup.index.redis.reading import batches
from dedup.index.redis.session import Session
from dedup.index.weighing import MAX_COMPARED, MAX_EQUAL, MAX_LOOKED

S = TypeVar("S")
T = TypeVar("T")
#: Pages with which something is done at once.
PAGES = 50
#: Seconds that a claim waits for others that go first; then it goes before them.
PATIENCE = 1.0
#: Seconds between two looks at those, at first and at most.
PAUSE, LONGEST_PAUSE = 0.002, 0.05


class Neighbours(NamedTuple):
    """What a page has met in its buckets."""

    pages: tuple[bytes, ...]
    crowded: bool  #: true if there were more
    lacking: int  #: in how many buckets it was not


class Store:
    """The records, buckets and leases of an index that is open, as one run sees them."""

    def __init__(self, cluster: Cluster, session: Session, keys: SpreadKeys, radius: int) -> None:
        self.keys = keys
        self._cluster = cluster
        self._session = session
        self._radius = radius

    def name(self, page_id: str) -> bytes:
        """Returns what a page is called here."""
        return self.keys.name(page_id)

    async def each(self, do: Callable[[S], Awaitable[T]], pages: Sequence[S]) -> list[T]:
        """Does something with each page, with `PAGES` at once; raises the first error, when all those have ended."""
        done: list[T] = []
        for some in batches(pages, PAGES):
            self._session.check()
            async with self._cluster.turn():
                found = await asyncio.gather(*map(do, some), return_exceptions=True)
            for result in found:
                if isinstance(result, BaseException):
                    raise result
                done.append(result)
        return done

    async def carry_out(
        self,
        todo: Generator[Do, Any, T],
        *,
        seen: Seen | None = None,
        ready: Callable[[Mapping[bytes, Record | None]], Awaitable[None]] | None = None,
        note: Callable[[Neighbours], object] = lambda met: None,
    ) -> T:
        """Does what a part of the protocol asks for, and returns what it returns.

        ``seen`` is what its first look would see; ``ready`` is called with records before the protocol gets them, and
        ``note`` with what was met in the buckets.
        """
        answer: Any = None
        waited, pause = 0.0, PAUSE
        while True:
            try:
                request = todo.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            match request:
                case Look(pages):
                    answer, seen = seen or await self.look(pages), None
                    if ready:
                        await ready(answer[0])
                case Swap(page, expected, new):
                    answer = await self._swap(page, expected, new)
                case File(entry):
                    met = await self.file(entry)
                    note(met)
                    answer = met.pages
                case Unfile(entry, other):
                    await self._unfile(entry, other)
                    answer = None
                case Wait():
                    began = time.monotonic()
                    if waited < PATIENCE:
                        await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                    answer = waited < PATIENCE
                    waited += time.monotonic() - began

    async def look(self, pages: Iterable[bytes]) -> Seen:
        """Returns the records, and then the leases of the runs that they name."""
        pages = tuple(pages)
        found = await self._cluster.values([self.keys.record(page) for page in pages])
        records = {page: self._record(octets) for page, octets in zip(pages, found, strict=True)}
        runs = {entry.run for record in records.values() if record for entry in record.contents()}
        runs.discard(self._session.run)
        if not runs:
            return records, Leases(self._session.run, self._session.began)
        return records, await self.leases(sorted(runs))

    async def leases(self, runs: Iterable[str]) -> Leases:
        """Returns the leases of some runs.  Raises `IndexMismatchError` if the index is another by now."""
        session, names = self._session, list(runs)
        keys = [session.keys.header, session.keys.sequence, session.keys.runs]
        digest, last, now, *ends = await self._cluster.run("leases", keys, names)
        if digest.decode() != session.digest:
            raise session.gone()
        known = {run: float(end) for run, end in zip(names, ends, strict=True) if end}
        return Leases(session.run, session.began, last, now, LEASE_MS, known)

    async def _swap(
        self, page: bytes, expected: Record | None, new: Record | None
    ) -> tuple[Record | None] | None:
        arguments = head_of(expected), encode(new)
        answer = await self._cluster.run("swap", [self.keys.record(page)], arguments)
        if answer == 1:
            return None
        return (self._record(answer[0]),)

    def _record(self, octets: bytes | None) -> Record | None:
        try:
            return decode(octets)
        except (ValueError, struct.error):
            raise IndexCorruptError(
                f"the index {self._session.where} is damaged: the record of a page is torn; see scrapy index check"
            ) from None

    async def file(self, entry: Entry, *, only: int | None = None, look_only: bool = False) -> Neighbours:
        """Files a page in its buckets, or in the ``only`` first of them, and looks into each."""
        page = b"" if look_only else self.keys.name(entry.page_id)
        shelves = defaultdict[bytes, list[Probe]](list)
        for probe in list(self.keys.probes(entry))[:only]:
            shelves[self.keys.shelf(probe.bucket)].append(probe)
        calls = []
        for probes in shelves.values():
            places = (each for probe in probes for each in (probe.own, probe.low, probe.high))
            keys = [probe.bucket for probe in probes]
            calls.append(Call.script("file", keys, page, self._radius, MAX_LOOKED, *places))
        answers = await self._cluster.call_all(calls)
        exact, near = answers[: len(EXACT)], answers[len(EXACT) :]  # each of those is a shelf
        first = [other for _, _, *others in exact for other in sorted(others)[:MAX_EQUAL]]
        shared = Counter(other for _, _, *others in near for other in others)
        nearest = [other for other, _ in shared.most_common(MAX_COMPARED)]
        crowded = (
            len(shared) > MAX_COMPARED
            or len(exact[0]) - 2 > MAX_EQUAL
            or any(answer[1] for answer in answers)
        )
        lacking = 0 if look_only else sum(answer[0] for answer in answers)
        return Neighbours(tuple(dict.fromkeys((*first, *nearest))), crowded, lacking)

    async def _unfile(self, entry: Entry, other: Entry | None) -> None:
        """Takes a page out of its buckets, but for those in which its other content is as well."""
        page = self.keys.name(entry.page_id)
        there = {probe.bucket: probe.own for probe in self.keys.probes(other)} if other else {}
        calls = [
            Call.command("ZADD", probe.bucket, there[probe.bucket], page)  # whose score may be another
            if probe.bucket in there
            else Call.command("ZREM", probe.bucket, page)
            for probe in self.keys.probes(entry)
        ]
        await self._cluster.call_all(calls)
