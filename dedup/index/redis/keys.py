"""The keys of an index in Redis, and which of them hold a page.

Every key starts with ``shingleback:{NAMESPACE}:``; the braces put all of them into one slot of a cluster.  An index that is
spread over several has ``shingleback:{NAMESPACE{PART}:`` in each (`dedup.index.redis.spread`).

==================  ==========  ====================================================================
Key                 Type        What it holds
==================  ==========  ====================================================================
header              hash        name -> value of every parameter, and digest, a hash of them all
i:BUCKET            string      entries by page id: its hash, 8 bytes, and the number of the page, 4
p:NUMBER            string      the record of a page: see `dedup.index.redis.record`
t:TABLE:BUCKET      string      entries of pages: a key XOR scope, and the number.  The key is the
                                digest in table 0, and that of its markup in table 1; in the
                                others the simhash, or a band in each.  BUCKET, in hex, are the top
                                bits of the key, permuted as in that table: bucket_bits of them, or
                                fewer of equal keys; see `dedup.index.redis.buckets`
sequence            counter     the last number given out; never missing, never set back.  Changes that
                                file no page take a number, too, and give it back
released            counter     how many of the numbers were taken back
pending             hash        number -> run, of every claim that is not confirmed
h:BLAKE2b           string      the table of a host, of whose name these are 16 bytes: see
                                `dedup.index.redis.hosts`
hosts               sorted set  those bytes -> when that table was written last, in ms of the
                                server's clock; of more than 10,000, the oldest is taken out
notes               hash        host -> what crawls have noted of it, for those after them; of
                                10,000 at most
began               hash        left by earlier versions, and not read
runs                sorted set  run -> when its lease ends, in ms of the server's clock, or, with a
                                minus, the number that it took when it finished; of those, 1,000
                                are remembered
master              string      the node of a cluster that had all of these last
==================  ==========  ====================================================================
"""

import hashlib
import re

#: No lease is longer than this, in ms: a run that has not renewed its own is dead then (see `dedup.index.lifecycle`).
LEASE_MS = 60_000
#: Parts of an index that is spread over a cluster, and masters that can share it.
PARTS = 16
#: Bytes of the digest that stands for a page id, or for a host.
ID_OCTETS = 16
#: The name of a page's record, after the prefix, and in it the number.
PAGE = re.compile(rb"p:([1-9][0-9]{0,14})")
#: The name of a bucket, and in it the table, if that is not the one of page ids, and the bucket.
BUCKET = re.compile(rb"(?:i|t:(0|[1-9][0-9]{0,3})):(0|[1-9a-f][0-9a-f]{0,15})")
#: Every kind of key, by its name after the prefix, and its type.
KINDS = (
    (re.compile(rb"header|pending|notes|began"), b"hash"),
    (re.compile(rb"sequence|released|master"), b"string"),
    (re.compile(rb"runs|hosts"), b"zset"),
    (re.compile(rb"h:.{%d}" % ID_OCTETS, re.DOTALL), b"string"),
    (PAGE, b"string"),
    (BUCKET, b"string"),
)


class Keys:
    """The names of all keys of a namespace.

    >>> keys = Keys("crawl")
    >>> keys.sequence, keys.page(7)
    (b'shingleback:{crawl}:sequence', b'shingleback:{crawl}:p:7')
    """

    def __init__(self, namespace: str) -> None:
        self.prefix = f"shingleback:{{{namespace}}}:".encode()
        self.header = self.prefix + b"header"
        self.sequence = self.prefix + b"sequence"
        self.released = self.prefix + b"released"
        self.master = self.prefix + b"master"
        self.pending = self.prefix + b"pending"
        self.runs = self.prefix + b"runs"
        self.notes = self.prefix + b"notes"
        self.pages = self.prefix + b"p:"  #: what the names of all records start with
        self.hosts = self.prefix + b"hosts"
        self.tables = self.prefix + b"h:"  #: what the names of all tables of hosts start with

    def page(self, number: int) -> bytes:
        """Returns the key of a record."""
        return self.pages + b"%d" % number

    def host(self, name: str) -> bytes:
        """Returns the key of a host's table."""
        return self.tables + hashlib.blake2b(name.encode(), digest_size=ID_OCTETS).digest()
