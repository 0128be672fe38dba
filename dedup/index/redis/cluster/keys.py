"""The keys of an index over a Redis Cluster.

===================================  ==========  ===================================================================
Key                                  Type        What it holds
===================================  ==========  ===================================================================
shingleback+cluster:{NAMESPACE}:...  as of one   header, sequence, released, runs, hosts and h:BLAKE2b, in one slot
                                     server      (`dedup.index.redis.keys`); the header has the NAME below, too
shingleback+cluster:NAMESPACE:NAME:  string      the record of a page; PAGE are 16 bytes, the BLAKE2b of its page id
p:PAGE                                           (`dedup.index.redis.cluster.record`)
shingleback+cluster:NAMESPACE:NAME:  sorted set  pages whose permuted keys XOR scope have the same top bucket_bits
{SHELF.BITS}:TABLE:BUCKET                        bits, which are BUCKET, in hex.  Its members are PAGEs; a score is
                                                 the bits below, at most 53, which a double holds exactly.  The key
                                                 is the digest in table 0 and that of its markup in table 1, a
                                                 rare shingle in each of tables 2 to 5; in the others
                                                 the simhash, or a band in each
===================================  ==========  ===================================================================

A record has a slot of its own.  Tables whose permutations begin with the same block of bits are on one shelf, and what
begins with the same bits there is in one slot: so a page is filed in 28 tables by 7 calls, and the slots of a shelf are
spread over all masters.

NAME is made up with the header: if an index is emptied and made anew, a crawl that goes on with the old one writes
nothing into the new one.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from dedup.fingerprint.plans import EXACT, Plan, Table
from dedup.index.entry import Entry
from dedup.index.redis.keys import ID_OCTETS, KINDS, Keys

#: The name of a bucket, and in it the table and the bucket.
BUCKET = re.compile(rb"{[0-9]+[.][0-9a-f]+}:(0|[1-9][0-9]{0,3}):(0|[1-9a-f][0-9a-f]{0,15})")
#: A bucket is planned to hold this many pages: half of what a listpack holds, so that it stays one.
BUCKET_PAGES = 64
#: Every kind of key that all crawlers share, by its name after the prefix, and its type.
COMMON = KINDS[:4]  # the others are spread


class CommonKeys(Keys):
    """What all crawlers share, in one slot.

    >>> CommonKeys("crawl").runs
    b'shingleback+cluster:{crawl}:runs'
    """

    start = b"shingleback+cluster:"

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace)
        self.starts = self.prefix, SpreadKeys.of(namespace)


class Probe(NamedTuple):
    """Where a page belongs in a table, and where pages are that share its prefix there."""

    bucket: bytes  #: key
    low: int  #: the least score of the prefix
    high: int  #: the greatest
    own: int  #: the page's own


class SpreadKeys:
    """Pages and buckets, spread over all slots, of an index that exists.

    >>> from dedup.fingerprint.plans import plan_for
    >>> keys = SpreadKeys("crawl", "0f0f", plan_for(28, max_distance=6), bucket_bits=14)
    >>> [keys.bucket(table, 0b11111111_000001) for table in (6, 12, 13)]
    [b'shingleback+cluster:crawl:0f0f:{6.ff}:6:3fc1', ...{6.ff}:12:3fc1', ...{7.ff}:13:3fc1']
    """

    def __init__(self, namespace: str, name: str, plan: Plan, bucket_bits: int) -> None:
        self.start = self.of(namespace)
        self.prefix = self.start + f"{name}:".encode()
        self.pages = self.prefix + b"p:"
        self.tables = (*EXACT, *plan.tables)
        #: Of a key, those that name a bucket; those below are scores, of 53 bits at most.
        self.bucket_bits = bucket_bits
        block = min(bucket_bits, plan.bits // plan.levels[0])
        self._below = bucket_bits - block  # bits of a bucket below those that its shelf has in common
        self._shelves: list[int] = []
        beginnings: dict[tuple[int, int], int] = {}
        for table in self.tables:
            self._shelves.append(beginnings.setdefault(_beginning(table), len(beginnings)))

    @staticmethod
    def of(namespace: str) -> bytes:
        """Returns what the names of all these keys begin with, whatever the NAME."""
        return CommonKeys.start + f"{namespace}:".encode()

    def name(self, page_id: str) -> bytes:
        """Returns what a page is called in buckets, and in the name of its record."""
        return hashlib.blake2b(page_id.encode(), digest_size=ID_OCTETS).digest()

    def record(self, name: bytes) -> bytes:
        """Returns the key of a page's record."""
        return self.pages + name

    def probes(self, entry: Entry) -> Iterator[Probe]:
        """Yields where a page belongs, in each table."""
        below = 64 - self.bucket_bits
        rest = (1 << below) - 1
        keys = entry.keys
        for number, table in enumerate(self.tables):
            permuted = table.permute(keys[table.column])
            low, high = table.prefix_range(permuted)
            yield Probe(self.bucket(number, permuted >> below), low & rest, high & rest, permuted & rest)

    def bucket(self, table: int, bucket: int) -> bytes:
        """Returns the key of a part of a table."""
        place = self._shelves[table], bucket >> self._below, table, bucket
        return self.prefix + b"{%d.%x}:%d:%x" % place

    @staticmethod
    def shelf(bucket: bytes) -> bytes:
        """Returns what the names of all buckets begin with that are on one shelf, in one slot."""
        return bucket[: bucket.rindex(b"}")]


def _beginning(table: Table) -> tuple[int, int]:
    """Returns the column of a table, and which bit of the key comes first there."""
    right, mask, _ = table.moves[0]
    return table.column, right + mask.bit_length() - 1
