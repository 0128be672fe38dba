"""Permuted tables: which permutations find every fingerprint within k bits of a query.

Manku, Jain, Das Sarma 2007, section 3.  Cut the bits into r > k blocks: two fingerprints that differ in
at most k bits agree on at least r - k whole blocks.  So there is one table for each choice of r - k blocks.
They move to the top, and their p bits are the prefix: every match of a query shares its prefix in some table.
The bits below may be cut again in the same way (a second level), for fewer candidates per table.

Where looking at one prefix more costs next to nothing, four tables are enough for every k to 7:
two fingerprints within 7 bits differ in at most one bit of one of four blocks, so a query looks at its own prefix in
each table, and in most at those that differ from it in one bit (multi-index hashing; Norouzi, Punjani, Fleet 2012).

The paper's designs for 64 bits, k = 3 and 2^34 fingerprints, section 3.1.1, by number of tables:

>>> for tables in (20, 16, 10, 4):
...     found = plan_for(tables, max_distance=3)
...     prefixes = [table.prefix for table in found.tables]
...     print(tables, found.levels, min(prefixes), max(prefixes), 2**34 >> min(prefixes))
20 (6,) 31 33 8
16 (4, 4) 28 28 64
10 (5,) 25 26 512
4 (4,) 16 16 262144
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, combinations, pairwise, product
from math import comb, prod
from typing import Any, NamedTuple, TypeVar

from dedup.errors import SettingsError
from dedup.fingerprint.fingerprint import RARE
from dedup.fingerprint.shingles import Hashes
from dedup.settings import SETTINGS

#: Prefixes are at least this long: a Redis Cluster keeps the bits below the first 11 as an exact double.
MIN_PREFIX = 11
#: More tables than this are not offered: each costs a probe and an entry per page.
MAX_TABLES = 100
#: Blocks of multi-index hashing: in one of them, two fingerprints within 2 * 4 - 1 bits differ in at most one.
BLOCKS = 4
#: A plan is good enough if a query meets this many unrelated fingerprints at most (.7 ms in Redis).
MAX_CANDIDATES = 500.0
#: Tables whose prefixes have this many bits are kept as buckets, with a list of where each prefix begins.
BUCKET_BITS = 16
#: Bytes of a page in each table in Redis: 8 + 4, and what its bucket takes beside its entries (measured).  In memory the
#: same two, or, in a bucket, half of the key.
REDIS_BYTES, LOCAL_BYTES, BUCKET_BYTES = 17, 12, 8

_T = TypeVar("_T", int, Hashes)


class Table(NamedTuple):
    """One permutation of the bits, as moves of whole blocks, and how many top bits are its prefix.

    A table holds one of a page's keys: the simhash, or a band.  Its prefix may be the whole key.
    """

    moves: tuple[tuple[int, int, int], ...]  #: (shift right, mask, shift left) of each run of bits
    prefix: int  #: p, in bits
    bits: int  #: f, the width of a fingerprint
    column: int = 6  #: which of a page's keys it holds; those before are held by the `EXACT` tables

    def permute(self, fingerprint: _T) -> _T:
        """Returns the permuted fingerprint, of an int or of each of uint64, shape (n,).  O(blocks) each.

        >>> hex(plan_for(4, max_distance=3).tables[1].permute(0x1111222233334444))
        '0x2222111133334444'
        """
        permuted: Any = fingerprint & 0
        for right, mask, left in self.moves:
            permuted |= ((fingerprint >> right) & mask) << left
        return permuted  # type: ignore[no-any-return]

    def restore(self, permuted: _T) -> _T:
        """Returns the fingerprint that was permuted, or each of some.

        >>> table = plan_for(4, max_distance=3).tables[1]
        >>> hex(table.restore(table.permute(0x1111222233334444)))
        '0x1111222233334444'
        """
        fingerprint: Any = permuted & 0
        for right, mask, left in self.moves:
            fingerprint |= ((permuted >> left) & mask) << right
        return fingerprint  # type: ignore[no-any-return]

    def prefix_of(self, fingerprint: _T) -> _T:
        """Returns the prefix of a fingerprint that is not permuted, or of each of some."""
        prefix: Any = self.permute(fingerprint) >> (self.bits - self.prefix)
        return prefix  # type: ignore[no-any-return]

    def prefix_range(self, permuted: int) -> tuple[int, int]:
        """Returns the first and last value that share the prefix of a permuted fingerprint."""
        rest = (1 << (self.bits - self.prefix)) - 1
        return permuted & ~rest, permuted | rest


#: The tables of digests, of markup, and of four rare shingles, which every method has.
EXACT = tuple(
    Table(((0, (1 << 64) - 1, 0),), prefix=64, bits=64, column=column) for column in range(2 + RARE)
)


@dataclass(frozen=True)
class Plan:
    """The tables for one width, distance and cutting; equal levels make equal tables, everywhere.

    There are tables for each of ``columns`` keys: for one simhash, or for each of a page's bands.  With ``flips``, a
    table for each block has that block as its prefix, and matches share all of a prefix but for one bit.
    """

    bits: int  #: f, the width of a fingerprint
    max_distance: int  #: k
    levels: tuple[int, ...]  #: r, the number of blocks, at each level
    columns: int = 1
    flips: bool = False

    @property
    def left_out(self) -> int:
        """How many blocks of each level are not in a prefix: as many as differ in a match, or all but one."""
        return self.levels[0] - 1 if self.flips else self.max_distance

    @property
    def flipped(self) -> int:
        """In how many tables, whichever these are, a query looks at prefixes that differ from its own in one bit, too.

        If a match were found in none, it would differ in two bits or more of each of their blocks, and in one of every
        other block: in more than k bits (Qin et al. 2018).

        >>> [block_plan(k).flipped for k in range(8)]
        [0, 0, 0, 0, 1, 2, 3, 4]
        """
        return max(0, self.max_distance + 1 - self.levels[0]) if self.flips else 0

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """One table per column and choice of blocks at every level."""
        every_bit = tuple(range(self.bits - 1, -1, -1))
        return tuple(
            Table(_moves(order, self.bits), prefix, self.bits, column)
            for column in range(len(EXACT), len(EXACT) + self.columns)
            for order, prefix in _orders(every_bit, self.left_out, self.levels)
        )

    @property
    def size(self) -> int:
        """Number of tables: the product over the levels of C(r, k), or of r with ``flips``, for each column."""
        return self.columns * prod(comb(blocks, self.left_out) for blocks in self.levels)

    @property
    def is_of_buckets(self) -> bool:
        """True if an index in memory holds it in buckets."""
        return self.columns == 1 and {table.prefix for table in self.tables} == {BUCKET_BITS}

    @property
    def local_bytes(self) -> int:
        """What a page takes in all tables of an index in memory."""
        return self.size * (BUCKET_BYTES if self.is_of_buckets else LOCAL_BYTES)

    def candidates(self, pages: float) -> float:
        """Returns how many unrelated fingerprints a query is expected to meet among ``pages`` of them."""
        beside = self.flipped * self.tables[0].prefix / 2.0 ** self.tables[0].prefix
        return pages * (beside + sum(1 / 2.0**table.prefix for table in self.tables))

    def describe(self, pages: int) -> str:
        """One line for people.

        >>> plan_for(4, max_distance=3).describe(1_000_000)
        '4 tables (k = 3, p = 16): 61 candidates a page at 1,000,000 pages, 32 bytes a page in memory, 68 in Redis'
        """
        prefixes = sorted({table.prefix for table in self.tables})
        p = "..".join(str(prefix) for prefix in sorted({prefixes[0], prefixes[-1]}))
        stores = f"{self.local_bytes} bytes a page in memory"
        if self.flips:
            p += ", of which one bit may differ"
        else:
            stores += f", {REDIS_BYTES * self.size} in Redis"
        return (
            f"{self.size} tables (k = {self.max_distance}, p = {p}): "
            f"{self.candidates(pages):,.0f} candidates a page at {pages:,} pages, {stores}"
        )

    def __str__(self) -> str:
        """Returns what an index calls its plan: the blocks at each level, and how many bits of a prefix may differ."""
        return ".".join(map(str, self.levels)) + ("+1" if self.flips else "")


def _cut(order: tuple[int, ...], blocks: int) -> list[tuple[int, ...]]:
    """Cuts bits into blocks as equal as can be, the larger ones first (11, 11, 11, 11, 10, 10)."""
    width, larger = divmod(len(order), blocks)
    ends = accumulate((width + (block < larger) for block in range(blocks)), initial=0)
    return [order[start:end] for start, end in pairwise(ends)]


def _orders(
    order: tuple[int, ...], left_out: int, levels: tuple[int, ...]
) -> Iterable[tuple[tuple[int, ...], int]]:
    """Returns the bit positions from the top, and the prefix length, of each table."""
    if not levels:
        yield order, 0
        return
    blocks = _cut(order, levels[0])
    for chosen in combinations(range(len(blocks)), len(blocks) - left_out):
        top = tuple(bit for block in chosen for bit in blocks[block])
        rest = tuple(bit for block in range(len(blocks)) if block not in chosen for bit in blocks[block])
        for below, prefix in _orders(rest, left_out, levels[1:]):
            yield top + below, len(top) + prefix


def _moves(order: tuple[int, ...], bits: int) -> tuple[tuple[int, int, int], ...]:
    ends = [end for end in range(1, bits) if order[end] != order[end - 1] - 1]
    runs = pairwise([0, *ends, bits])
    return tuple((order[end - 1], (1 << (end - start)) - 1, bits - end) for start, end in runs)


def exact_plan(columns: int) -> Plan:
    """One table for each of ``columns`` keys, which pages share exactly or not at all.

    >>> [(table.prefix, table.column) for table in exact_plan(2).tables]
    [(64, 6), (64, 7)]
    """
    return Plan(64, 0, (1,), columns)


def block_plan(max_distance: int) -> Plan:
    """Returns the fewest tables: k + 1 blocks up to k = 3, then four whose prefixes may differ in one bit.

    They are the same for any number of pages, of which a query meets a thousandth: 793 of 1,000,000 where k = 6.

    >>> [block_plan(k).size for k in range(8)]
    [1, 2, 3, 4, 4, 4, 4, 4]
    >>> block_plan(6).describe(1_000_000)
    '4 tables (k = 6, p = 16, of which one bit may differ): 793 candidates a page at 1,000,000 pages, 32 bytes a page in memory'
    """
    SETTINGS["max_distance"].check(max_distance)
    if max_distance < BLOCKS:
        return Plan(64, max_distance, (max_distance + 1,))
    return Plan(64, max_distance, (BLOCKS,), flips=True)


@cache
def possible_plans(max_distance: int) -> tuple[Plan, ...]:
    """Returns every plan for 64 bits of one or two levels worth having, fewest tables first, longest prefix first.

    >>> [plan.size for plan in possible_plans(3)][:6]
    [4, 10, 16, 20, 35, 40]
    """
    best: dict[int, tuple[int, Plan]] = {}
    once = range(max_distance + 1, 65)
    twice = once[:6]
    for levels in [(r,) for r in once] + list(product(twice, twice)):
        found = Plan(64, max_distance, levels)
        if found.size > MAX_TABLES or (max_distance == 0 and levels != (1,)):
            continue
        if levels[-1] > 64 * (max_distance / levels[0] if len(levels) > 1 else 1):
            continue
        prefix = min(table.prefix for table in found.tables)
        if prefix >= MIN_PREFIX and prefix > best.get(found.size, (0, found))[0]:
            best[found.size] = prefix, found
    return tuple(best[size][1] for size in sorted(best))


def plan_for(tables: int, max_distance: int) -> Plan:
    """Returns the plan of a given number of tables, as the setting ``tables`` asks for.

    Raises `SettingsError` where no cutting into blocks gives that number.
    """
    SETTINGS["max_distance"].check(max_distance)
    plans = {found.size: found for found in possible_plans(max_distance)}
    if tables in plans:
        return plans[tables]
    others, why = {"max_distance": max_distance}, "for which the 64 bits can't be cut into blocks"
    allowed = f"{', '.join(map(str, plans))}, or None, which has the number planned"
    raise SettingsError(name="tables", value=tables, others=others, why=why, allowed=allowed)


def plan(max_distance: int, expected_pages: int) -> Plan:
    """Returns the fewest tables that keep the candidates of a query within bounds at ``expected_pages``.

    A wrong guess costs speed or memory, never a match.

    >>> plan(3, 1_000_000).size, plan(3, 100_000_000).size, plan(5, 1_000_000).size
    (4, 10, 21)
    """
    SETTINGS["max_distance"].check(max_distance)
    plans = possible_plans(max_distance)
    enough = (found for found in plans if found.candidates(expected_pages) <= MAX_CANDIDATES)
    return next(enough, None) or min(plans, key=lambda found: found.candidates(expected_pages))
