"""Many fingerprints against many (Manku, Jain, Das Sarma 2007, section 3.3): all pairs within a distance, exactly.

As in the paper, it is the queries that are put in tables, each sorted by a permutation of the bits, and what is stored
is read once, in chunks.  A fingerprint within k bits of a query shares the prefix of at least one table with it
(`dedup.fingerprint.plans`).  Here, a map with a bit for each prefix says first which of the stored ones may do so:
few, and only those are looked up.

Fingerprints are arrays of 64-bit integers, with or without a sign, of shape (n,).  Columns of pandas and polars, and
files that are mapped into memory, are read where they are.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup.batch.pairs import Clusters, Numbers, Pairs
from dedup.batch.tables import Chunk, Probe, prefix_mask, within
from dedup.errors import DedupError, SettingsError
from dedup.fingerprint.plans import Plan, Table, possible_plans
from dedup.fingerprint.shingles import Hashes
from dedup.settings import SETTINGS

#: Bytes that may be used beside the arguments, unless told otherwise, and the least that makes sense.
MEMORY, LEAST = 1 << 30, 1 << 28
#: Bytes of a query beside its entries in tables, of an entry, and of a pair of the answer while it is put in order.
PER_QUERY, PER_ENTRY, PER_PAIR = 100, 32, 64
#: Stored fingerprints that are looked at in one go: what is computed of them stays in a processor's cache.
CHUNK = 1 << 18
#: What things take, in ns: sorting an entry, asking a map, going on where it has the bit, comparing what is looked up,
#: and comparing neighbours.
SORT, ASK, GO_ON, COMPARE, PASS = 60.0, 8.0, 50.0, 20.0, 5.0


def query(queries: Any, stored: Any, max_distance: int, *, memory: int = MEMORY) -> Pairs:
    """Returns all pairs of a query and a stored fingerprint that differ in at most ``max_distance`` (0 to 7) of 64 bits.

    ``memory`` bounds the bytes that are used beside the arguments and the answer: queries that need more are asked in
    parts, and what is stored is read once for each part.  Raises `DedupError` if the answer alone needs more.

    >>> query([0b1111, 0], [0b1101, 1 << 63, 0b1111], max_distance=1)
    Pairs(left=array([0, 0, 1]), right=array([0, 2, 1]), distances=array([1, 0, 1], dtype=uint8))
    """
    asked, there = _fingerprints("queries", queries), _fingerprints("stored", stored)
    answer = _Answer(max_distance, memory)
    plan = _cheapest(max_distance, lambda plan: _cost_of_query(plan, len(asked), len(there)))
    part = memory // 2 // (PER_QUERY + PER_ENTRY * plan.size)
    for first in range(0, len(asked), part):
        groups = _Groups(asked[first : first + part])
        masks = [prefix_mask(table) for table in plan.tables]
        probes = [Probe(table, groups.values, masks[:n]) for n, table in enumerate(plan.tables)]
        for at in range(0, len(there), CHUNK):
            chunk = Chunk(there[at : at + CHUNK])
            for probe in probes:
                for values, rows in probe.near(chunk, max_distance):
                    differing = np.bitwise_count(values ^ chunk.values[rows])
                    answer.expect(int(groups.sizes(values).sum()))
                    which, left = groups.rows(values)
                    answer.add(left + first, rows[which] + at, differing[which])
    return answer.pairs()


def near_pairs(simhashes: Any, max_distance: int, *, memory: int = MEMORY) -> Pairs:
    """Returns all pairs of fingerprints that differ in at most ``max_distance`` (0 to 7) of 64 bits, each once: left < right.

    Uses 100 bytes for each fingerprint.  Raises `DedupError` if the answer needs more than ``memory`` bytes: n equal
    fingerprints make n (n - 1) / 2 pairs.  `clusters` says without pairs what belongs together.

    >>> near_pairs([0b1111, 1 << 63, 0b1110], max_distance=1)
    Pairs(left=array([0]), right=array([2]), distances=array([1], dtype=uint8))
    """
    groups = _Groups(_fingerprints("simhashes", simhashes))
    answer = _Answer(max_distance, memory)
    several = groups.values[groups.counts > 1]
    for values, others in ((several, several), *_near(groups.values, max_distance)):
        sizes = groups.sizes(others)
        answer.expect(int((groups.sizes(values) * sizes).sum()) // (2 if values is others else 1))
        which, left = groups.rows(values)
        pair, right = groups.rows(others[which])
        left, which = left[pair], which[pair]
        if values is others:
            once = left < right
            left, right, which = left[once], right[once], which[once]
        differing = np.bitwise_count(values ^ others)[which]
        answer.add(np.minimum(left, right), np.maximum(left, right), differing)
    return answer.pairs()


def clusters(simhashes: Any, max_distance: int) -> Numbers:
    """For each fingerprint, the first of its cluster, or itself if it is near none before it: int64, shape (n,).

    Fingerprints belong together that differ in at most ``max_distance`` (0 to 7) of 64 bits, and, chain by chain, all
    that are near these.  Uses 100 bytes for each.  Takes a time that grows with n, and with the square of how many
    different ones share a prefix: half a second for a million that are unrelated, half a minute for 50,000 that differ
    in their last bits only.

    >>> clusters([0b1111, 1 << 63, 0b0011, 0b0111, 0b0011], max_distance=1).tolist()
    [0, 1, 0, 0, 0]
    """
    groups = _Groups(_fingerprints("simhashes", simhashes))
    SETTINGS["max_distance"].check(max_distance)
    found = Clusters(len(groups.order))
    found.join(groups.order, np.repeat(groups.order[groups.starts], groups.counts))
    for values, others in _near(groups.values, max_distance):
        found.join(groups.first(values), groups.first(others))
    return found.lowest()


def _near(values: Hashes, max_distance: int) -> Iterator[tuple[Hashes, Hashes]]:
    """Pairs of fingerprints, which all differ, within a distance."""
    for number in range(len(tables_of_pairs(len(values), max_distance))):
        yield from near_by_table(values, max_distance, number)


def tables_of_pairs(rows: int, max_distance: int) -> tuple[Table, ...]:
    """Returns the cheapest tables that find all pairs among ``rows`` different fingerprints; no tables if only equal ones are near."""
    return _cheapest(max_distance, lambda plan: _cost_of_pairs(plan, rows)).tables if max_distance else ()


def near_by_table(values: Hashes, max_distance: int, number: int) -> Iterator[tuple[Hashes, Hashes]]:
    """Pairs of fingerprints, which all differ, that one of `tables_of_pairs` finds and none before it."""
    tables = tables_of_pairs(len(values), max_distance)
    return within(tables[number], values, max_distance, [*map(prefix_mask, tables[:number])])


class _Groups:
    """Rows by their fingerprints."""

    def __init__(self, rows: Hashes) -> None:
        self.order: Numbers = rows.argsort(kind="stable")
        values = rows[self.order]
        first = np.ones(len(values), np.bool_)
        first[1:] = values[1:] != values[:-1]
        self.starts: Numbers = np.flatnonzero(first)
        self.counts: Numbers = np.diff(self.starts, append=len(values))
        self.values: Hashes = values[self.starts]

    def sizes(self, values: Hashes) -> Numbers:
        """Returns how many rows there are of each."""
        return self.counts[self.values.searchsorted(values)]

    def first(self, values: Hashes) -> Numbers:
        """Returns the first row of each."""
        return self.order[self.starts[self.values.searchsorted(values)]]

    def rows(self, values: Hashes) -> tuple[Numbers, Numbers]:
        """Returns all rows of all of these: the place of its value among them, and the row."""
        groups = self.values.searchsorted(values)
        counts = self.counts[groups]
        which = np.repeat(np.arange(len(values)), counts)
        ends = counts.cumsum()
        return which, self.order[np.arange(len(which)) + (self.starts[groups] - ends + counts)[which]]


class _Answer:
    """Pairs as they are found."""

    def __init__(self, max_distance: int, memory: int) -> None:
        SETTINGS["max_distance"].check(max_distance)
        if not isinstance(memory, int) or memory < LEAST:
            raise SettingsError(name="memory", value=memory, allowed=f"a number of bytes from {LEAST}")
        self._most = memory // PER_PAIR
        self._count = 0
        self._left, self._right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self._distances = [np.empty(0, np.uint8)]

    def expect(self, count: int) -> None:
        """Raises if this many more pairs are too many."""
        self._count += count
        if self._count > self._most:
            raise DedupError(
                f"there are more than {self._most:,} pairs, all that the memory allowed holds; allow more, or ask "
                "for clusters"
            )

    def add(self, left: Numbers, right: Numbers, distances: npt.NDArray[np.uint8]) -> None:
        self._left.append(left)
        self._right.append(right)
        self._distances.append(distances)

    def pairs(self) -> Pairs:
        left, right = np.concatenate(self._left), np.concatenate(self._right)
        order = np.lexsort((right, left))
        return Pairs(left[order], right[order], np.concatenate(self._distances)[order])


def _fingerprints(name: str, given: Any) -> Hashes:
    """Returns an array of uint64 that shares the memory of what is given, if that has an array of 64 bits."""
    allowed = "uint64 or int64, shape (n,), or a list of such numbers"
    if isinstance(given, list | tuple):
        for number in given:
            if not isinstance(number, int | np.integer) or not -(1 << 63) <= number < 1 << 64:
                raise TypeError(f"{name} has {number!r} in it; allowed: {allowed}")
        return np.array([int(number) % (1 << 64) for number in given], np.uint64)
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype not in (np.uint64, np.int64):
        raise TypeError(f"{name} is {array.dtype}, shape {array.shape}; allowed: {allowed}")
    return array.view(np.uint64)


def _plans(max_distance: int) -> list[Plan]:
    """Returns those with blocks of four bits or more, as the map of a table needs them."""
    return [plan for plan in possible_plans(max_distance) if max(plan.levels) <= 16]


def _cheapest(max_distance: int, cost: Callable[[Plan], float]) -> Plan:
    return min(_plans(max_distance), key=cost)


def _cost_of_query(plan: Plan, queries: int, stored: int) -> float:
    met = sum(GO_ON * min(1.0, queries / 2.0 ** min(table.prefix, 24)) for table in plan.tables)
    return plan.size * (SORT * queries + ASK * stored) + (met + COMPARE * plan.candidates(queries)) * stored


def _cost_of_pairs(plan: Plan, rows: int) -> float:
    return plan.size * SORT * rows + PASS * plan.candidates(rows) * rows / 2
