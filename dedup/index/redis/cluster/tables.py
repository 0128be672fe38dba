"""The tables of an index over a cluster: where a page belongs in each, and where pages like it are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dedup.fingerprint.plans import EXACT, Plan
from dedup.index.entry import Entry
from dedup.index.redis.cluster.keys import SpreadKeys

#: A bucket is planned to hold this many pages: half of what a listpack holds, so that it stays one.
BUCKET_PAGES = 64


class Probe(NamedTuple):
    """Where a page belongs in a table, and where pages are that share its prefix there."""

    bucket: bytes  #: key
    low: int  #: the least score of the prefix
    high: int  #: the greatest
    own: int  #: the page's own


@dataclass(frozen=True)
class Tables:
    """The tables of an index that exists: how it spreads pages over buckets."""

    keys: SpreadKeys
    plan: Plan
    bucket_bits: int  #: of a key, which name a bucket; those below are scores, of 53 bits at most

    def probes(self, entry: Entry) -> Iterator[Probe]:
        """Yields where a page belongs, in each table."""
        below = 64 - self.bucket_bits
        rest = (1 << below) - 1
        keys = entry.keys
        for number, table in enumerate((*EXACT, *self.plan.tables)):
            permuted = table.permute(keys[table.column])
            low, high = table.prefix_range(permuted)
            yield Probe(self.keys.bucket(number, permuted >> below), low & rest, high & rest, permuted & rest)
