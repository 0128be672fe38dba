"""What is stored of an index over a cluster, read in small steps while crawls may be using it.

Nothing here writes.  Memory: 24 bytes a page, so that pages come in the order of their filing.
"""

import struct
from collections.abc import AsyncIterator, Sequence

from dedup.index.redis.cluster.keys import CommonKeys, SpreadKeys
from dedup.index.redis.cluster.nodes import Cluster
from dedup.index.redis.cluster.record import Record, decode
from dedup.index.redis.reading import batches, scores

#: Up to this many keys are counted one by one; of more, this many are a sample.
COUNTED = 200_000
_NUMBER = struct.Struct(">BQ")


class Reading:
    """Reads the pages and leases of one namespace."""

    def __init__(self, cluster: Cluster, common: CommonKeys, keys: SpreadKeys) -> None:
        self.cluster = cluster
        self.common = common
        self.keys = keys

    async def all_keys(self) -> AsyncIterator[list[bytes]]:
        """Yields the names of all keys, also of those of an earlier index; some may come twice."""
        for start in self.common.starts:
            async for keys in self.cluster.scan(start):
                yield keys

    async def records(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yields the keys of all records and what is there, in the order of their filing."""
        found: list[tuple[int, bytes]] = []
        async for keys in self.cluster.scan(self.keys.pages):
            heads = await self.cluster.ask([("GETRANGE", key, 0, _NUMBER.size - 1) for key in keys])
            for key, head in zip(keys, heads, strict=True):
                found.append((_NUMBER.unpack(head)[1] if head and len(head) == _NUMBER.size else 0, key))
        for some in batches([*dict.fromkeys(key for _, key in sorted(found))]):
            for key, octets in zip(some, await self.values(some), strict=True):
                if octets is not None:  # else taken out meanwhile
                    yield key, octets

    async def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the texts at some keys; None where there is none."""
        return await self.cluster.ask([("GET", key) for key in keys])

    async def leases(self) -> tuple[dict[bytes, float], float]:
        """Returns when the lease of each run ends, and what time it is there, in ms."""
        common = self.common
        (found,) = await self.cluster.ask([("ZRANGE", common.runs, 0, -1, "WITHSCORES")])
        _, _, now = await self.cluster.run("leases", [common.header, common.sequence, common.runs], ())
        return scores(found), float(now)


async def count_pages(cluster: Cluster, pages: bytes) -> int:
    """Returns how many keys begin with ``pages``: up to `COUNTED` keys exactly; of more, by a sample."""
    size, seen, found = await cluster.size(), 0, 0
    async for keys in cluster.scan(b""):
        seen += len(keys)
        found += sum(key.startswith(pages) for key in keys)
        if seen >= COUNTED:
            return round(size * found / seen)
    return found


def whole(octets: bytes | None) -> Record | None:
    """Returns a record; None if it can't be read."""
    try:
        return decode(octets)
    except (ValueError, struct.error):
        return None
