"""Every plan of tables finds everything within its distance, by brute force; the paper's own numbers."""

import random
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.plans import (
    MAX_CANDIDATES,
    MAX_TABLES,
    MIN_PREFIX,
    Plan,
    Table,
    block_plan,
    plan,
    plan_for,
    possible_plans,
)
from dedup.settings import SETTINGS

MAX_DISTANCE = SETTINGS["max_distance"].kind.high


BLOCKS = [block_plan(k) for k in range(4, MAX_DISTANCE + 1)]
EVERY = [found for k in range(MAX_DISTANCE + 1) for found in possible_plans(k)] + BLOCKS
EXHAUSTIVE = [found for k in range(3) for found in possible_plans(k)]
SMALL = (
    [
        Plan(bits, k, levels)
        for bits, k, levels in [
            (8, 0, (1,)), (8, 1, (2,)), (8, 1, (8,)), (8, 2, (3, 2)), (10, 3, (7,)), (12, 1, (3, 4)),
            (12, 1, (5,)), (12, 2, (4,)), (12, 3, (4, 4)), (12, 3, (5,)), (16, 2, (5, 3)), (16, 3, (6,)),
            (16, 4, (5, 5)), (16, 2, (3, 3, 3)),
        ]
    ]
    + [Plan(16, k, (4,), flips=True) for k in range(4, 8)]
    + [Plan(12, 3, (2,), flips=True)]
)  # fmt: skip


def each(plans: list[Plan]) -> Callable[[Callable[[Plan], None]], Callable[[], None]]:
    """Runs a test with each of these plans, in one test: there are a hundred, and most take a millisecond."""

    def looped(test: Callable[[Plan], None]) -> Callable[[], None]:
        def run() -> None:
            for found in plans:
                try:
                    test(found)
                except BaseException as error:
                    error.add_note(f"k={found.max_distance} levels={found}")
                    raise

        run.__doc__ = test.__doc__
        return run

    return looped


def array(numbers: list[int]) -> npt.NDArray[np.uint64]:
    return np.array(numbers, np.uint64)


def patterns(bits: int, most: int) -> npt.NDArray[np.uint64]:
    """Every way to flip up to so many bits."""
    flips = (chosen for number in range(most + 1) for chosen in combinations(range(bits), number))
    return array([sum(1 << bit for bit in chosen) for chosen in flips])


def flip(rng: random.Random, fingerprint: int, number: int, bits: int = 64) -> int:
    for bit in rng.sample(range(bits), number):
        fingerprint ^= 1 << bit
    return fingerprint


# --- Permutations -------------------------------------------------------------------------------------


@each(EVERY + SMALL)
def test_permuting_moves_every_bit_to_a_place_of_its_own(found: Plan) -> None:
    for table in found.tables:
        moved = [table.permute(1 << bit) for bit in range(found.bits)]
        assert sorted(moved) == [1 << bit for bit in range(found.bits)]


@each(EVERY + SMALL)
def test_numbers_and_arrays_are_permuted_alike(found: Plan) -> None:
    rng = random.Random(2)
    numbers = [0, 2**found.bits - 1, 1 << found.bits - 1] + [rng.getrandbits(found.bits) for _ in range(20)]
    for table in found.tables:
        assert table.permute(array(numbers)).tolist() == [table.permute(number) for number in numbers]


@each(EVERY + SMALL)
def test_a_prefix_range_holds_what_shares_the_prefix(found: Plan) -> None:
    rng = random.Random(3)
    for table in found.tables:
        number, rest = rng.getrandbits(found.bits), found.bits - table.prefix
        low, high = table.prefix_range(number)
        assert low <= number <= high
        assert low >> rest == high >> rest == number >> rest
        assert high - low == 2**rest - 1


# --- Nothing is missed, nothing is made up ------------------------------------------------------------


def choices(found: Plan) -> list[dict[Table, list[int]]]:
    """For each choice of the tables that are also looked at one bit beside: by table, in which bits a prefix may differ."""
    beside = {table: [0, *(1 << bit for bit in range(table.prefix))] for table in found.tables}
    return [
        {table: beside[table] if table in chosen else [0] for table in found.tables}
        for chosen in combinations(found.tables, found.flipped)
    ]


def missed(found: Plan, flipped: npt.NDArray[np.uint64]) -> list[int]:
    """The patterns of flipped bits that change the prefix of every table to one that some query does not look at."""
    every: set[int] = set()
    for masks in choices(found):
        left = flipped
        for table, some in masks.items():
            left = left[~np.isin(table.prefix_of(left), some)]
        every |= {*left.tolist()}
    return sorted(every)


@each(SMALL + EXHAUSTIVE)
def test_some_table_keeps_the_prefix(found: Plan) -> None:
    assert missed(found, patterns(found.bits, found.max_distance)) == []


@pytest.mark.slow
@each([*possible_plans(3)])
def test_some_table_keeps_the_prefix_for_three_bits(found: Plan) -> None:
    assert missed(found, patterns(64, 3)) == []


@cache
def samples(number: int) -> npt.NDArray[np.uint64]:
    """800 ways to flip so many bits."""
    rng = random.Random(4 + number)
    return array([flip(rng, 0, number) for _ in range(800)])


@each(EVERY)
def test_some_table_keeps_the_prefix_of_samples(found: Plan) -> None:
    flipped = [samples(number) for number in range(found.max_distance + 1)]
    assert missed(found, np.concatenate(flipped)) == []


def look_up(found: Plan, stored: npt.NDArray[np.uint64], queries: list[int]) -> list[set[int]]:
    """What the tables find for each query: entries with its prefix, or one beside it, then only those that are near."""
    candidates = np.zeros((len(queries), len(stored)), bool)
    for table, masks in choices(found)[0].items():
        permuted = table.permute(stored)
        for row, query in zip(candidates, queries, strict=True):
            for mask in masks:
                low, high = table.prefix_range(table.permute(query) ^ mask << found.bits - table.prefix)
                row |= (permuted >= np.uint64(low)) & (permuted <= np.uint64(high))
    near = np.bitwise_count(stored ^ array(queries)[:, None]) <= found.max_distance
    return [set(stored[row].tolist()) for row in candidates & near]


@each(EVERY)
def test_a_look_up_finds_exactly_what_a_linear_scan_finds(found: Plan) -> None:
    rng = random.Random(5)
    queries = [0, 2**64 - 1, 2**63] + [rng.getrandbits(64) for _ in range(2)]
    stored = [rng.getrandbits(64) for _ in range(200)]
    stored += [
        flip(rng, query, rng.randrange(found.max_distance + 4)) for query in queries for _ in range(15)
    ]
    for query, looked_up in zip(queries, look_up(found, array(stored), queries), strict=True):
        scan = {number for number in stored if (number ^ query).bit_count() <= found.max_distance}
        assert looked_up == scan
        assert scan


# --- Designs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "levels", "prefixes"),
    [
        (20, (6,), {31: 4, 32: 12, 33: 4}),  # blocks of 11, 11, 11, 11, 10, 10 bits, three of them on top
        (16, (4, 4), {28: 16}),  # 16 bits of four 16s, then 12 of four 12s
        (10, (5,), {25: 4, 26: 6}),  # 13, 13, 13, 13, 12, two on top
        (4, (4,), {16: 4}),
    ],
)
def test_the_designs_of_the_paper(tables: int, levels: tuple[Any, ...], prefixes: dict[int, int]) -> None:
    found = plan_for(tables, max_distance=3)
    counted = {table.prefix: 0 for table in found.tables}
    for table in found.tables:
        counted[table.prefix] += 1
    assert (found.levels, counted) == (levels, prefixes)


@each(EVERY)
def test_every_plan_is_within_bounds(found: Plan) -> None:
    assert found.size == len(found.tables) <= MAX_TABLES
    assert all(MIN_PREFIX <= table.prefix <= 64 for table in found.tables)


@pytest.mark.parametrize("k", range(MAX_DISTANCE + 1))
def test_plans_are_in_order(k: int) -> None:
    sizes = [found.size for found in possible_plans(k)]
    assert sizes == sorted(set(sizes))
    assert sizes[0] == k + 1 or k > 4  # above, so few tables have prefixes under 11 bits


# --- Which plan is chosen -----------------------------------------------------------------------------

PAGES = [1, 1000, 10**6, 10**8, 2**34]


@pytest.mark.parametrize("k", range(MAX_DISTANCE + 1))
def test_the_plan_has_the_fewest_tables_or_else_candidates(k: int) -> None:
    for pages in PAGES:
        within = [found for found in possible_plans(k) if found.candidates(pages) <= MAX_CANDIDATES]
        if within:
            assert plan(k, pages) == min(within, key=lambda found: found.size)
        else:
            assert plan(k, pages) in possible_plans(k)
    least = min(found.candidates(10**30) for found in possible_plans(k))
    assert plan(k, 10**30).candidates(10**30) == least > MAX_CANDIDATES


@pytest.mark.parametrize(
    ("tables", "k", "says"),
    [
        (5, 3, ["tables is 5 and max_distance is 3,", "allowed: 4, 10, 16, 20, 35,"]),
        (0, 3, ["tables is 0 and max_distance is 3,"]),
        (-4, 3, ["tables is -4 "]),
        ("4", 3, ["tables is '4' "]),
        (4, 7, ["tables is 4 and max_distance is 7,", "36, 64, or None"]),
        (4, 8, ["max_distance is 8; allowed: a whole number from 0 to 7"]),
        (4, -1, ["max_distance is -1; allowed: a whole number from 0 to 7"]),
    ],
)
def test_wrong_numbers_of_tables_are_refused(tables: Any, k: int, says: list[str]) -> None:
    with pytest.raises(SettingsError) as refusal:
        plan_for(tables, k)
    text = str(refusal.value)
    assert [part for part in says if part not in text] == []
    assert "\n" not in text


# --- The fewest tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(MAX_DISTANCE + 1))
def test_in_memory_four_tables_are_enough(k: int) -> None:
    planned = {Detector(max_distance=k).plan(pages, in_memory=True) for pages in PAGES}
    assert planned == {block_plan(k)}
    assert block_plan(k).size == min(k + 1, 4)
    assert Detector(max_distance=k).plan(1, 84 if k == 6 else plan(k, 1).size, in_memory=True).flipped == 0
