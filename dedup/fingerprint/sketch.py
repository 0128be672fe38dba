"""Sketches: small samples of a page's shingles from which the resemblance of two pages is estimated.

One-permutation hashing with b-bit values (Ping Li; Manasse, "Finding similar things quickly"): one hash
gives each shingle a slot and a value, and each slot keeps its smallest value, of which b bits are stored.  Value
0 means that the slot is empty, so that short pages, which leave most slots empty, are compared rightly: empty
against empty does not count, empty against filled differs.  Behind its slots, a sketch has the number of its shingles, so it
can be told how much of each of two sets is in the other.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dedup.compiled import fast
from dedup.fingerprint.shingles import Hashes, ascending, mix, unmix

#: Widths of a slot that fit a 64-bit word and leave a value for "empty".
WIDTHS = (2, 4, 8)
#: The least value of a slot that no shingle fell into.
EMPTY = np.uint64(2**64 - 1)

Counts = npt.NDArray[np.int64]


class Sketcher(Struct, frozen=True):
    """Makes sketches of one kind and compares them.  Sketches of other parameters can't be compared.

    Here are two sets of 4,000 that share 3,000, so 0.6 is right:

    >>> sketcher = Sketcher(slots=512, bits=2)
    >>> a, b = (sketcher.make(np.arange(i, i + 4000, dtype=np.uint64)) for i in (0, 1000))
    >>> sketcher.resemblances(sketcher.words([a, b]), a).round(2).tolist()
    [1.0, 0.56]
    """

    slots: int  #: a power of two, at least 64
    bits: int  #: one of `WIDTHS`
    #: Makes the choice of shingles independent of their hashes, which a page's author may know.
    key: int = 0

    @property
    def size(self) -> int:
        """Bytes of a sketch: those of the slots, and eight for the number of shingles."""
        return self.slots * self.bits // 8 + 8

    @property
    def kinds(self) -> int:
        """How many values a filled slot can have."""
        return (1 << self.bits) - 1

    def values(self, shingles: Hashes) -> Hashes:
        """Returns what of each shingle hash a slot is chosen by, and which of a slot is the least: uint64, shape (n,)."""
        return mix(shingles ^ np.uint64(self.key))

    def shingles(self, values: Hashes) -> Hashes:
        """Returns the shingle hashes that have these `values`."""
        if fast:
            return np.frombuffer(fast.unmix(values, self.key), np.uint64)
        return unmix(values) ^ np.uint64(self.key)

    def make(self, shingles: Hashes) -> bytes:
        """Returns the sketch of a set of shingle hashes, of shape (n,).  O(n log n).

        >>> few = np.arange(1, 4, dtype=np.uint64)
        >>> sum(octet != 0 for octet in Sketcher(slots=64, bits=8).make(few)[:64])
        3
        """
        return self.pack(ascending(self.values(shingles)))

    def pack(self, values: Hashes) -> bytes:
        """Returns the sketch of a set by its `values`, ascending."""
        return self._pack(self.least(values), len(values))

    def _pack(self, least: Hashes, count: int) -> bytes:
        # The low bits of the smallest value are independent of its being the smallest.
        stored = (least & np.uint64(0xFFFFFFFF)) % np.uint64(self.kinds) + np.uint64(1)
        packed = self._packed(stored.astype(np.uint8) * (least != EMPTY))
        return packed + count.to_bytes(8, "little")

    def least(self, values: Hashes) -> Hashes:
        """Returns the least value of each slot, or `EMPTY`: uint64, shape (slots,)."""
        least = np.full(self.slots, EMPTY, np.uint64)
        descending = values[::-1]
        least[self._slots_of(descending)] = descending  # of values for one slot, the last one stays
        return least

    def _slots_of(self, values: Hashes) -> npt.NDArray[np.int64]:
        return (values >> np.uint64(64 - (self.slots.bit_length() - 1))).view(np.int64)

    def select(
        self, values: Hashes, counts: npt.NDArray[np.uint8], most: float, rare: float = 0
    ) -> tuple[Hashes, Hashes]:
        """Returns the sketch of those `values`, ascending, whose counts are less than ``most``: uint64, shape (w,).

        And the slots in which there is one whose count is less than ``rare``, as `lanes` marks them: shape (w - 1,).
        """
        if fast:
            found = np.empty(self.size // 8, np.uint64), np.empty(self.size // 8 - 1, np.uint64)
            fast.select(values, counts, most, rare, self.slots, self.bits, *found)
            return found
        return self.select_in_numpy(values, counts, most, rare)

    def select_in_numpy(
        self, values: Hashes, counts: npt.NDArray[np.uint8], most: float, rare: float = 0
    ) -> tuple[Hashes, Hashes]:
        """Returns the same."""
        chosen = (counts < most).nonzero()[0][::-1]
        descending, least = values[chosen], np.full(self.slots, EMPTY, np.uint64)
        slots = self._slots_of(descending)
        least[slots] = descending
        bits = np.zeros((self.slots, self.bits), np.bool_)
        bits[slots, 0] = counts[chosen] < rare
        mask = np.packbits(bits.ravel(), bitorder="little").view(np.uint64)
        return self.words([self._pack(least, len(chosen))])[0], mask

    def _packed(self, values: npt.NDArray[np.uint8]) -> bytes:
        lanes = 8 // self.bits
        weights = (1 << (self.bits * np.arange(lanes))).astype(np.uint8)
        packed: npt.NDArray[np.uint8] = (values.reshape(-1, lanes) * weights).sum(axis=1, dtype=np.uint8)
        return packed.tobytes()

    def words(self, sketches: Iterable[bytes]) -> Hashes:
        """Sketches as they are compared, uint64, shape (n, w): their slots, and at last their numbers of shingles."""
        return np.frombuffer(b"".join(sketches), np.uint64).reshape(-1, self.size // 8)

    def match_counts(self, stored: Hashes, query: Hashes) -> Counts:
        """Returns how the slots of n sketches, of shape (n, w), compare with those of one, of shape (w,), or with n others.

        int64, shape (3, n): slots filled on either side, filled on both, and filled on both and equal.
        """
        stored, query = stored[..., :-1], query[..., :-1]
        a, b, differ = self.lanes(stored), self.lanes(query), self.lanes(stored ^ query)
        both = a & b
        return _bits(a | b, both, both & ~differ)

    def matches(self, stored: Hashes, queries: Hashes, among: Hashes) -> Counts:
        """Returns how the slots of n sketches, of shape (n, w), compare with those of m, of shape (m, w).

        int64, shape (5, m, n): slots filled on either side, filled on both, and equal; and of the choice ``among`` them, of
        shape (m, w - 1) (see `select`), those filled on both sides, and equal.
        """
        if fast:
            counts = np.empty((5, len(queries), len(stored)), np.int64)
            fast.match(*map(np.ascontiguousarray, (stored, queries, among)), self.bits, counts)
            return counts
        return self.matches_in_numpy(stored, queries, among)

    def matches_in_numpy(self, stored: Hashes, queries: Hashes, among: Hashes) -> Counts:
        """Returns the same."""
        counts = np.empty((5, len(queries), len(stored)), np.int64)
        stored, lanes = stored[:, :-1], self.lanes(stored[:, :-1])
        # In the processor's caches.
        for place, (query, some) in enumerate(zip(queries[:, :-1], among, strict=True)):
            own, same = self.lanes(query), ~self.lanes(stored ^ query)
            both = lanes & own
            counts[:, place] = _bits(lanes | own, both, both & same, both & some, both & some & same)
        return counts

    def lanes(self, words: Hashes) -> Hashes:
        """Per slot: 1 if any of its bits is set, else 0."""
        shift = 1
        while shift < self.bits:
            words = words | (words >> np.uint64(shift))
            shift *= 2
        return words & np.uint64(0xFFFFFFFFFFFFFFFF // self.kinds)

    def estimate(self, either: Counts, both: Counts, equal: Counts) -> npt.NDArray[np.float64]:
        """Returns the resemblances that slot counts speak for: float64, shape (n,); unbiased, except that they are kept within 0..1.

        Filled slots of different shingles are equal by chance once in c = 2^bits - 1; without those,
        equal slots out of non-empty ones estimate the resemblance (Li, Owen, Zhang 2012).  Its standard
        error is about sqrt(P(1-P) / slots) / (1 - 1/c) with P = R + (1-R)/c for pages of many shingles.

        >>> counts = np.array([[100, 100, 0], [100, 100, 0], [100, 50, 0]])
        >>> Sketcher(512, bits=8).estimate(*counts).round(2).tolist()
        [1.0, 0.5, 1.0]
        """
        estimates = (self.kinds * equal - both) / ((self.kinds - 1) * np.maximum(either, 1))
        return np.where(either == 0, 1.0, np.maximum(estimates, 0.0))

    def resemblance(self, a: bytes, b: bytes) -> float:
        """Estimated resemblance of two sketches."""
        return float(self.resemblances(self.words([a]), b)[0])

    def resemblances(self, stored: Hashes, query: bytes) -> npt.NDArray[np.float64]:
        """Estimated resemblance of n sketches, as `words` gives them, to one: float64, shape (n,).  O(n)."""
        own = self.words([query])
        return self.estimate(*self.matches(stored, own, own[:, :-1])[:3, 0])


def _bits(*words: Hashes) -> Counts:
    counts: Counts = np.array([np.bitwise_count(each).sum(axis=-1, dtype=np.int64) for each in words])
    return counts
