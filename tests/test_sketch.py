"""The sketch's estimate of resemblance against the exact one, and its slots against plain Python."""

import hashlib
import random
import statistics

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.fingerprint.shingles import hash_tokens, mix, resemblance
from dedup.fingerprint.sketch import WIDTHS, Sketcher
from tests.support.fingerprints import array

steady = settings(derandomize=True, database=None, deadline=None, max_examples=25)

SLOTS = [64, 128, 256, 512, 1024]
SETS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 50), max_size=200)


def sketch(shingles: npt.NDArray[np.uint64], slots: int, bits: int, key: int = 0) -> bytes:
    return Sketcher(slots, bits, key).make(shingles)


def words(*sketches: bytes) -> npt.NDArray[np.uint64]:
    """Sketches as the rows that are compared."""
    return np.frombuffer(b"".join(sketches), np.uint64).reshape(len(sketches), -1)


def slots_of(octets: bytes | list[int], bits: int) -> list[int]:
    """The values of all slots, from the lowest bits up."""
    return [octet >> shift & (1 << bits) - 1 for octet in octets for shift in range(0, 8, bits)]


def compare(a: bytes, b: bytes, bits: int = 2) -> float:
    return Sketcher(8 * (len(a) - 8) // bits, bits).resemblance(a, b)


# --- The sketch ---------------------------------------------------------------------------------------


@steady
@given(SETS, st.sampled_from(SLOTS), st.sampled_from(WIDTHS), st.integers(0, 2**64 - 1))
def test_each_slot_holds_its_smallest_hash(shingles: list[int], slots: int, bits: int, key: int) -> None:
    smallest = {}
    for value in mix(array(shingles) ^ np.uint64(key)).tolist():
        slot = value * slots >> 64
        smallest[slot] = min(value, smallest.get(slot, value))
    expected = [0] * slots
    for slot, value in smallest.items():
        expected[slot] = value % 2**32 % (2**bits - 1) + 1  # 0 is for empty slots
    found = sketch(array(shingles), slots, bits, key)
    assert slots_of(found[:-8], bits) == expected
    assert int.from_bytes(found[-8:], "little") == len(set(shingles))


def test_a_key_chooses_other_shingles() -> None:
    shingles = hash_tokens([str(number) for number in range(5000)])
    a, b = (sketch(shingles, 512, 8, key) for key in (1, 2))
    assert compare(a, b, 8) < 0.05


GOLDEN = {
    (64, 8): "ecd0104c89fc5907309ff28cd8b7cf28",
    (512, 2): "c50a2036c4bdcd1ee366eddd77062c75",
    (1024, 4): "5227a2db536930746d6eb5d34ad7eac1",
}


@pytest.mark.parametrize(("slots", "bits"), GOLDEN)
def test_golden_sketches(slots: int, bits: int) -> None:
    shingles = hash_tokens([f"shingle {number}" for number in range(1000)])
    found = hashlib.sha256(sketch(shingles, slots, bits, key=42)[:-8]).hexdigest()
    assert found[:32] == GOLDEN[slots, bits]


# --- Counting slots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    "slots", [pytest.param(slots, marks=[pytest.mark.slow] * (slots in {128, 512})) for slots in SLOTS]
)
def test_slots_are_counted_as_one_by_one(slots: int, bits: int) -> None:
    rng = random.Random(slots * bits)
    full, empty = [255] * (slots * bits // 8), [0] * (slots * bits // 8)
    rows = [full, empty] + [rng.choices([0, 255, *range(256)], k=slots * bits // 8) for _ in range(4)]
    rows += [[octet & rng.choice([0, 255, rng.randrange(256)]) for octet in row] for row in rows]
    for query in rows[:4]:
        expected = []
        for row in rows:
            pairs = list(zip(slots_of(row, bits), slots_of(query, bits), strict=True))
            both = [(a, b) for a, b in pairs if a and b]
            expected.append((sum(1 for a, b in pairs if a or b), len(both), sum(a == b for a, b in both)))
        found = Sketcher(slots, bits).match_counts(
            words(*(bytes(row) + bytes(8) for row in rows)), words(bytes(query) + bytes(8))[0]
        )
        assert found.T.tolist() == [list(counts) for counts in expected]


# --- The estimate -------------------------------------------------------------------------------------


@steady
@given(SETS, SETS, st.sampled_from(SLOTS), st.sampled_from(WIDTHS))
def test_estimates_are_symmetric_within_0_and_1(a: list[int], b: list[int], slots: int, bits: int) -> None:
    sketches = [sketch(array(shingles), slots, bits) for shingles in (a, b)]
    found = compare(*sketches, bits)
    assert found == compare(*reversed(sketches), bits)
    assert 0 <= found <= 1


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("size", [1, 5, 5000])
def test_an_empty_set_resembles_only_an_empty_set(size: int, bits: int) -> None:
    empty, other = sketch(array([]), 512, bits), sketch(array(range(size)), 512, bits)
    assert compare(empty, other, bits) == compare(other, empty, bits) == 0
    assert compare(empty, empty, bits) == 1


SIZES = [5, 60, 300, 2000, *(pytest.param(size, marks=pytest.mark.slow) for size in (20, 20_000))]
TRIALS = {5: 150, 20: 150, 60: 150, 300: 150, 2000: 60, 20_000: 12}


def errors(size: int, tenths: int, slots: int = 512, bits: int = 2) -> list[float]:
    """Signed errors of the estimate, before it is cut off at 0, for seeded pairs of sets of one size."""
    rng = np.random.default_rng([size, tenths])
    common = round(2 * size * tenths / (10 + tenths))
    found = []
    for _ in range(TRIALS[size]):
        drawn = rng.integers(0, 2**64, 2 * size - common, np.uint64)
        a, b = drawn[:size], drawn[size - common :]
        sketcher = Sketcher(slots, bits)
        counts = sketcher.match_counts(words(sketcher.make(a)), words(sketcher.make(b))[0])
        either, both, equal = counts[:, 0].tolist()
        found.append((3 * equal - both) / (2 * either) - resemblance(a, b))
    return found


@pytest.mark.parametrize("size", SIZES)
def test_the_estimate_is_unbiased_and_close(size: int) -> None:
    for tenths in (0, 3, 5, 8, 10):
        found = errors(size, tenths)
        mean, spread = statistics.fmean(found), statistics.pstdev(found)
        absolute = statistics.fmean(map(abs, found))
        assert abs(mean) <= 4 * spread / len(found) ** 0.5 + 1e-12
        assert absolute <= 0.03 or tenths < 5
