"""The survey of an index over a Redis Cluster, taken while crawls may be using it."""

from collections.abc import AsyncIterator, Callable, Mapping

from dedup.errors import IndexMismatchError
from dedup.fingerprint.plans import MIN_PREFIX
from dedup.index.lifecycle import State
from dedup.index.parameters import Parameters
from dedup.index.redis.cluster.check import Invariants
from dedup.index.redis.cluster.keys import CommonKeys, SpreadKeys
from dedup.index.redis.cluster.nodes import Cluster
from dedup.index.redis.cluster.reading import Reading, count_pages, whole
from dedup.index.redis.cluster.record import Phase
from dedup.index.redis.reading import alive
from dedup.index.redis.record import bits_of
from dedup.index.redis.survey import Sample, SharedSurvey, read_header
from dedup.index.survey import Finding, StoredPage, state_outside
from dedup.printing import octets as shown


async def survey_cluster(
    cluster: Cluster,
    common: CommonKeys,
    namespace: str,
    where: str,
    adopt: Callable[[Mapping[str, str]], Parameters],
) -> "ClusterSurvey | None":
    """Returns the survey of a namespace; None if it has no header.  ``adopt`` checks the parameters that are stored."""
    header = await read_header(cluster, common, where, common.prefix, SpreadKeys.of(namespace))
    if not header:
        return None
    if not {"digest", "tables", "created"} <= header.keys():
        raise IndexMismatchError(f"{shown(common.header)} in {where} is not the header of an index")
    parameters = adopt(header)
    bits = bits_of(header, MIN_PREFIX, where)
    keys = SpreadKeys(namespace, header["created"], parameters.plan, bits)
    reading = Reading(cluster, common, keys)
    return ClusterSurvey(where, parameters, header, reading)


class ClusterSurvey(SharedSurvey):
    """What one namespace holds."""

    def __init__(self, where: str, parameters: Parameters, header: dict[str, str], reading: Reading) -> None:
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
