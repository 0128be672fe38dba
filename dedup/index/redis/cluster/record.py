"""What is stored of a page in a cluster: one record, which says what the page is, and how far a claim of it has come.

=========  =====================================================================  ===========
Bytes      What they are                                                          Type
=========  =====================================================================  ===========
0 to 28    the head: phase (1), number (8), attempt (4), run (16)                 big-endian
then       the record of the page on one server (`dedup.index.redis.record`)      after its length, 4 bytes
the rest   such a record, or nothing: what the page is if the claim comes to
           nothing
=========  =====================================================================  ===========
"""

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from dedup.index import lifecycle
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.record import pack, unpack


class Phase(IntEnum):
    """How far a claim has come."""

    TRYING = 1  #: Nobody knows yet whether the page is kept.
    BEATEN = 2  #: Another page like it goes first; it is to be tried again.
    KEPT = 3  #: It is kept, and neither confirmed nor released.
    DONE = 4  #: It is confirmed.


class Record(NamedTuple):
    """What is stored of a page."""

    phase: Phase
    number: int  #: when it was claimed, in us since 1970: of two that try, the lower one goes first
    attempt: int  #: how often this claim has tried
    entry: Entry  #: the page; the run that it names is the one that answers for it
    before: "Record | None" = None  #: what the page is if this claim comes to nothing

    @property
    def head(self) -> tuple[int, int, int, str]:
        """What tells this record of the page from all others: a record is replaced only if its head is still this."""
        return self.phase, self.number, self.attempt, self.entry.run

    @property
    def settled(self) -> "Record | None":
        """The page without a claim that is being tried."""
        return self.before if self.phase in (Phase.TRYING, Phase.BEATEN) else self

    def contents(self) -> Iterator[Entry]:
        """Yields all contents with which the page is in buckets."""
        yield self.entry
        if self.before:
            yield from self.before.contents()

    def is_attempt_of(self, other: "Record") -> bool:
        """Returns whether both are of one attempt."""
        return self.head[1:] == other.head[1:]


_HEAD = struct.Struct(">BQI16s")
_LENGTH = struct.Struct(">I")
#: Bytes of a head, with which a record begins.
HEAD = _HEAD.size


def head_of(record: Record | None) -> bytes:
    """Returns the bytes of a head, with which those of its record begin."""
    return encode(record)[:HEAD]


def encode(record: Record | None) -> bytes:
    """Returns the bytes of a record: its head, its entry after the length of that, and what was before; of none, nothing."""
    if record is None:
        return b""
    phase, number, attempt, run = record.head
    entry = pack(record.entry)
    head = _HEAD.pack(phase, number, attempt, bytes.fromhex(run))
    return head + _LENGTH.pack(len(entry)) + entry + encode(record.before)


def decode(octets: bytes | None) -> Record | None:
    """Returns the record of some bytes.  Raises ValueError or `struct.error` if `encode` makes no such bytes."""
    if not octets:
        return None
    phase, number, attempt, run = _HEAD.unpack_from(octets)
    start = HEAD + _LENGTH.size
    end = start + _LENGTH.unpack_from(octets, HEAD)[0]
    entry = unpack(octets[start:end])
    record = Record(Phase(phase), number, attempt, entry, decode(octets[end:]))
    if entry.run != run.hex() or encode(record) != octets:
        raise ValueError("a record is torn")
    return record


class Leases(NamedTuple):
    """Which runs live, and which have finished, as one run sees them."""

    run: str  #: the one that asks
    began: int  #: the number that had been given out last when it began
    last: int = 0  #: the number that was given out last
    now: float = 0.0  #: in ms
    length: float = 0.0  #: of a lease, in ms
    #: Of runs: when their leases end, or, with a minus, the number at which they finished.
    ends: Mapping[str, float] = {}

    def are_alive(self, run: str) -> bool:
        return run == self.run or self.now < self.ends.get(run, 0) <= self.now + self.length

    def have_died(self, run: str) -> bool:
        """Returns whether a run was never closed: what it has handed over may be lost."""
        return self.ends.get(run, 0) > 0 and not self.are_alive(run)

    def have_finished(self, run: str) -> bool:
        """Returns whether a run has finished since the one that asks began, or in its crawl."""
        since = 0 if lifecycle.of_one_crawl(run, self.run) else self.began
        return since < -self.ends.get(run, 0) <= self.last


def state_of(record: Record | None, leases: Leases) -> State:
    """Returns what a page is to the run that asks."""
    record = record and record.settled
    if record is None:
        return State.ABSENT
    if record.phase is Phase.DONE:
        return lifecycle.state_of(record.entry.run, None, leases)
    return lifecycle.state_of(record.before and record.before.entry.run, record.entry.run, leases)
