"""The tables of a local index in memory: whatever is filed, they find what a scan of all pages finds."""

import random
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from dedup.fingerprint.plans import EXACT, Plan, block_plan, exact_plan, plan_for
from dedup.fingerprint.simhash import distances
from dedup.index.local import buckets, table, tables
from dedup.index.local.tables import SortedTables

NO_DIGESTS = (0,) * len(EXACT)
FEW = [block_plan(0), block_plan(3), block_plan(7), plan_for(16, 3), plan_for(28, 6)]
MANY = [
    *(block_plan(k) for k in (1, 2, 4, 5, 6)),
    *(plan_for(tables, k) for k, tables in [(2, 9), (4, 15), (5, 21), (7, 64)]),
]
PLANS = pytest.mark.parametrize(
    "plan",
    [
        pytest.param(found, id=f"k={found.max_distance} levels={found}", marks=marks)
        for plans, marks in ((FEW, []), (MANY, [pytest.mark.slow]))
        for found in plans
    ],
)


@pytest.fixture
def in_small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges begin and end often, and take many steps."""
    monkeypatch.setattr(tables, "TAIL", 300)
    monkeypatch.setattr(table, "SLICE", 500)
    monkeypatch.setattr(buckets, "SLICE", 500)


@pytest.fixture(params=["compiled", "in numpy"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are looked up in compiled code, if it is there, or without it."""
    if request.param == "in numpy":
        monkeypatch.setattr(tables, "fast", None)
    elif tables.fast is None:
        pytest.skip("there was no C compiler")


def random_keys(number: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Keys of which many are near to, and some equal to, others."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, number, np.uint64)
    for _ in range(8):
        near = rng.random(number) < 0.5
        flipped = np.uint64(1) << rng.integers(0, 64, number, np.uint64)
        keys[near] = (keys[rng.permutation(number) // 4] ^ flipped)[near]
    keys[::100] = keys[0]
    return keys


def with_digests(keys: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Two digests, four rare shingles (here the key with a bit flipped), and the key."""
    return np.column_stack([keys ^ np.uint64(number) for number in (*range(1, 1 + len(EXACT)), 0)])


def around(key: int) -> tuple[int, ...]:
    """The same of one key."""
    return (*(key ^ number for number in range(1, 1 + len(EXACT))), key)


def finish(filed: SortedTables) -> None:
    """Takes the merge to its end that is under way."""
    for _ in filed._merging or ():
        pass
    filed._merging = None


def scanned(
    keys: np.ndarray[Any, np.dtype[np.uint64]], query: int, distance: int
) -> tuple[list[list[int]], bool]:
    """What a scan of all keys finds, however many they are."""
    right = np.flatnonzero(distances(keys, query) <= distance).tolist()
    apart = distances(keys[right], query).tolist()
    by_distance = groupby(sorted(zip(apart, right, strict=True)), key=itemgetter(0))
    return [[n for _, n in group] for _, group in by_distance], False


@pytest.mark.usefixtures("in_small_slices", "both_ways")
def test_differences_in_the_same_bits_of_both_halves_count_twice() -> None:
    keys = random_keys(2000, seed=3)
    query = int(keys[0])
    for at, bits in enumerate((1, 3, 4, 8), 1):
        keys[-at] = query ^ ((1 << bits) - 1) * (1 | 1 << 32)
    filed = SortedTables(block_plan(6), with_digests(keys))
    assert filed.within((*NO_DIGESTS, query), 6, 1000) == scanned(keys, query, 6)


@PLANS
@pytest.mark.usefixtures("in_small_slices", "both_ways")
def test_all_is_found_after_each_slice_of_a_merge(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SCAN_SHARE", 1)  # all is looked up in the tables
    keys = random_keys(3450, seed=plan.max_distance)
    keys[::7] &= np.uint64(2**64 - 2**34)  # crowded buckets
    filed = SortedTables(plan, with_digests(keys[:3000]))
    merging, rng = 0, random.Random(1)
    for number, key in enumerate(keys[3000:].tolist(), 3001):
        assert filed.add(around(key)) == number - 1
        merging += filed._merging is not None
        query = int(keys[rng.randrange(number)]) ^ 1 << number % 64
        found = filed.within((*NO_DIGESTS, query), plan.max_distance, number)
        assert found == scanned(keys[:number], query, plan.max_distance)
        assert (
            filed.equal((query ^ 1, *NO_DIGESTS[1:]))[0]
            == np.flatnonzero(keys[:number] == np.uint64(query)).tolist()
        )
    assert merging > 10
    finish(filed)
    filed.check()


@PLANS
@pytest.mark.usefixtures("in_small_slices")
def test_pages_filed_together_are_found_like_others(plan: Plan) -> None:
    keys = random_keys(5000, seed=plan.max_distance)
    filed = SortedTables(plan, with_digests(keys[:3000]))
    each = [tuple(row) for row in with_digests(keys).tolist()]
    at, rng = 3000, random.Random(1)
    while at < len(keys):
        for key in each[at : at + 250]:  # of which the last begin a merge, now and then
            filed.add(key)
        at += 250
        more = rng.choice((0, 1, 20, 700))
        assert filed.extend(each[at : at + more]) == min(at, len(keys))
        at += more
        query = int(keys[rng.randrange(filed.size)]) ^ 1
        right = scanned(keys[: filed.size], query, plan.max_distance)
        assert filed.within((*NO_DIGESTS, query), plan.max_distance, filed.size) == right
    finish(filed)
    filed.check()
    assert [filed.keys(number) for number in range(len(keys))] == each


def test_a_merge_takes_many_claims_and_holds_none_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page filed among n moves 65,536 rows at most, of the 6 n of all tables: a claim waits for .2 ms, not for all."""
    moved: list[int] = []
    weave = table.weave

    def counted(into: np.ndarray[Any, Any], *others: Any) -> None:
        moved[-1] = max(moved[-1], len(into))
        weave(into, *others)

    rng = np.random.default_rng(1)
    filed = SortedTables(block_plan(6), rng.integers(0, 2**64, (300_000, len(NO_DIGESTS) + 1), np.uint64))
    monkeypatch.setattr(table, "weave", counted)
    monkeypatch.setattr(buckets, "weave", counted)
    for keys in rng.integers(0, 2**64, (9000, len(NO_DIGESTS) + 1), np.uint64).tolist():
        moved.append(0)
        filed.add(tuple(keys))
    assert max(moved) <= 2**16 + 9000
    assert sum(rows > 0 for rows in moved) > 20


def test_a_few_pages_take_no_tables() -> None:
    keys = random_keys(tables.TAIL, seed=4)
    filed, query = SortedTables(block_plan(6), with_digests(keys)), int(keys[7])
    assert filed.within((*NO_DIGESTS, query), 6, 9999) == scanned(keys, query, 6)
    assert filed.equal((query ^ 1, *NO_DIGESTS[1:]))[0] == np.flatnonzero(keys == keys[7]).tolist()
    assert filed._covered == 0
    assert SortedTables(block_plan(6), with_digests(random_keys(tables.TAIL + 1, seed=4)))._covered > 0


def test_tables_of_nothing_find_nothing() -> None:
    filed = SortedTables(block_plan(3))
    filed.check()
    assert (filed.within((*NO_DIGESTS, 0), 3, 9), filed.equal(NO_DIGESTS)) == (
        ([], False),
        [[]] * len(NO_DIGESTS),
    )


# --- Skew ----------------------------------------------------------------------------------------------


def one_site(number: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Keys as of one site: a third of them are around one template, whose bits flip seldom, and a third around another."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, number, np.uint64)
    for share, odds in ((3, 0.02), (3, 0.08)):
        crowd = np.arange(number) % share == seed % share
        flips = (rng.random((np.count_nonzero(crowd), 64)) < odds) @ (
            np.uint64(1) << np.arange(64, dtype=np.uint64)
        )
        keys[crowd], seed = keys[seed] ^ flips, seed + 1
    return keys


@pytest.mark.parametrize("share", [1, 6], ids=["by the tables", "by a scan, if that is faster"])
@pytest.mark.parametrize("plan", [block_plan(3), block_plan(7), plan_for(28, 6)], ids=str)
@pytest.mark.usefixtures("in_small_slices", "both_ways")
def test_the_nearest_of_a_crowd_are_found(plan: Plan, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SCAN_SHARE", share)
    rng, k, most = random.Random(1), plan.max_distance, 200
    keys = one_site(6000, seed=k)
    filed = SortedTables(plan, with_digests(keys[:4000]))
    crowded = 0
    for number, key in enumerate(keys[4000:].tolist(), 4001):
        filed.add(around(key))
        if number % 40:
            continue
        query = int(keys[rng.randrange(number)]) ^ 1 << number % 64
        groups, _ = scanned(keys[:number], query, k)
        nearest = [n for group in groups for n in group]
        found, is_more = filed.within((*NO_DIGESTS, query), k, most)
        assert is_more == (len(nearest) > most)
        assert [n for group in found for n in group] == nearest[:most]
        assert [len(group) for group in found[:-1]] == [len(group) for group in groups[: len(found) - 1]]
        crowded += is_more
    assert crowded > 10


@pytest.mark.parametrize("columns", [1, 5, pytest.param(30, marks=pytest.mark.slow)])
def test_pages_sharing_the_most_keys_come_first(columns: int, both_ways: None, in_small_slices: None) -> None:
    rng = np.random.default_rng(columns)
    few = rng.integers(0, 2**64, 200, np.uint64)
    keys = few[rng.integers(0, len(few), (1_500, columns))]
    every = np.hstack((np.zeros((len(keys), len(EXACT)), np.uint64), keys))
    filed = SortedTables(exact_plan(columns), every[:700])
    for number in range(700, len(every)):
        asked = tuple(map(int, every[number]))
        shared = (keys[:number] == keys[number]).sum(axis=1)
        order = sorted(np.flatnonzero(shared).tolist(), key=lambda n: (-shared[n], n))
        if number % 50 == 0:
            for most in (3, 5_000):
                found = [order[:most]] if order else []
                assert filed.within(asked, 0, most) == (found, len(order) > most)
            assert filed.within((*NO_DIGESTS, *[1] * columns), 0, 9) == ([], False)
        filed.add(asked)
    finish(filed)
    filed.check()
