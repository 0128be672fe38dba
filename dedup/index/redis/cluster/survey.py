"""The survey of an index over a Redis Cluster, taken while crawls may be using it."""

from collections.abc import AsyncIterator, Mapping

from dedup.index.lifecycle import State
from dedup.index.parameters import Parameters
from dedup.index.redis.cluster.check import Invariants
from dedup.index.redis.cluster.reading import Reading, count_pages, whole
from dedup.index.redis.cluster.record import Phase
from dedup.index.redis.reading import alive
from dedup.index.redis.survey import Sample, SharedSurvey
from dedup.index.survey import Finding, StoredPage, state_outside


class ClusterSurvey(SharedSurvey):
    """What one namespace holds."""

    def __init__(
        self, where: str, parameters: Parameters, header: Mapping[str, str], reading: Reading
    ) -> None:
        super().__init__(where, parameters, header, reading.cluster, reading.common)
        self._reading = reading

    async def count(self) -> int:
        return await count_pages(self._reading.cluster, self._reading.keys.pages)

    async def _pages(self, run: str, before: float) -> AsyncIterator[StoredPage]:
        living = alive(*await self._reading.leases())
        async for _, octets in self._reading.records():
            record = whole(octets)
            if record is None:
                yield StoredPage(None, State.DONE)
            elif settled := record.settled:
                done = settled.before if settled.phase is Phase.KEPT else settled
                claimed_by = settled.entry.run if settled.phase is Phase.KEPT else None
                state = state_outside(done and done.entry.run, claimed_by, living)
                yield self.readable((done if done and state is State.DONE else settled).entry, state)

    def findings(self) -> AsyncIterator[Finding]:
        return Invariants(self._reading, self.parameters, self.header).findings()

    async def _sample(self, most: int) -> tuple[int, list[Sample]]:
        names = [key async for key, _ in self._reading.records()]
        some = names[:: max(1, len(names) // most)]
        records = zip(some, map(whole, await self._reading.values(some)), strict=True)
        samples = []
        for key, record in records:
            if record:
                buckets = [probe.bucket for probe in self._reading.keys.probes(record.entry)]
                samples.append(Sample(key, buckets, "ZCARD", 1))
        return len(names), samples
