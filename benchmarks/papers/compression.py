"""Compressed tables as the paper has them (Manku, Jain, Das Sarma 2007, section 3.2).

Of each fingerprint of a sorted table but the first of a block, it is written where the highest bit is in which it
differs from the one before it, in Huffman's code, and then all bits right of that one.  A block has 1,024 bytes and
begins with a whole fingerprint.  The key of a block is its last fingerprint: a probe looks for a key, by
interpolation, and reads the block.
"""

import heapq
from collections.abc import Iterator
from itertools import count

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes

#: Of a block, and of the fingerprint that it begins with.
BLOCK, FIRST = 8 * 1024, 64
#: No code is longer: that would take more fingerprints than there can be.
LONGEST = 64


class HuffmanTable:
    """Fingerprints that all differ, in ascending order, in blocks of 1,024 bytes.

    >>> table = HuffmanTable(np.array([3, 8, 11, 1 << 63], np.uint64))
    >>> table.between(4, 11).tolist(), table.between(12, 99).tolist()
    ([8, 11], [])
    """

    def __init__(self, fingerprints: Hashes) -> None:
        """``fingerprints``: uint64, shape (n,), n > 0.  Raises ValueError if two are equal or out of order."""
        if np.any(fingerprints[1:] <= fingerprints[:-1]):
            raise ValueError("a table of fingerprints that all differ, in ascending order, was expected")
        apart = _highest_bits(fingerprints[1:] ^ fingerprints[:-1])
        lengths = code_lengths(np.bincount(apart, minlength=64))
        self._symbols, self._starts = _canonical(lengths)
        self._lengths = lengths
        firsts = np.array(
            list(_firsts(np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[apart] + apart)))))
        )
        self.keys: Hashes = fingerprints[np.append(firsts[1:], len(fingerprints)) - 1]
        self._counts = np.diff(firsts, append=len(fingerprints)).astype(np.uint16)
        self._blocks = _write(fingerprints, apart, lengths, self._codes(), firsts)

    @property
    def nbytes(self) -> int:
        """What it takes in memory, in bytes."""
        return self._blocks.nbytes + self.keys.nbytes + self._counts.nbytes

    def between(self, low: int, high: int) -> Hashes:
        """All from ``low`` to ``high``: uint64, shape (m,)."""
        found = []
        for block in range(self._block_of(low), len(self.keys)):
            found.append(self._read(block))
            if self.keys[block] >= np.uint64(high):
                break
        values = np.concatenate(found) if found else np.empty(0, np.uint64)
        return values[(values >= np.uint64(low)) & (values <= np.uint64(high))]

    def __iter__(self) -> Iterator[Hashes]:
        """All fingerprints, block by block."""
        return map(self._read, range(len(self.keys)))

    def _block_of(self, value: int) -> int:
        """The first block with a key of ``value`` or more: interpolation search, O(log log n) steps for random ones."""
        low, high = 0, len(self.keys)  # the answer is in low..high
        least, greatest = 0, 1 << 64
        while low < high:
            guess = low + (high - low) * max(0, value - least) // (greatest - least)
            guess = min(max(guess, low), high - 1)
            key = int(self.keys[guess])
            if key >= value:
                if guess == low or int(self.keys[guess - 1]) < value:
                    return guess
                high, greatest = guess, key
            else:
                low, least = guess + 1, key
        return low

    def _read(self, block: int) -> Hashes:
        """The fingerprints of a block, one after the other."""
        octets = self._blocks[block].tobytes() + bytes(16)
        value = int.from_bytes(octets[:8], "big")
        values, at = [value], FIRST
        for _ in range(int(self._counts[block]) - 1):
            ahead = int.from_bytes(octets[at >> 3 : (at >> 3) + 17], "big") >> (8 - (at & 7)) & (
                (1 << 128) - 1
            )
            place = int(self._starts.searchsorted(np.uint64(ahead >> 64), "right")) - 1
            highest = self._symbols[place]
            at += int(self._lengths[highest])
            rest = ahead >> (128 - int(self._lengths[highest]) - highest) & ((1 << highest) - 1)
            value = (value >> highest ^ 1) << highest | rest
            values.append(value)
            at += highest
        return np.array(values, np.uint64)

    def _codes(self) -> Hashes:
        """The code of each place of a bit, in the lowest of its bits: uint64, shape (64,)."""
        codes = np.zeros(64, np.uint64)
        for symbol, start in zip(self._symbols, self._starts.tolist(), strict=True):
            codes[symbol] = start >> (LONGEST - int(self._lengths[symbol])) if self._lengths[symbol] else 0
        return codes


def huffman_bits(log2_size: float) -> float:
    """Bits that each of 2^log2_size random fingerprints takes, beside a block's first one and its key, reckoned.

    From one size to its double, all codes stay and each fingerprint has a bit less, so that a sample is enough.

    >>> [round(huffman_bits(size) / 8, 2) for size in (23, 34)]
    [5.55, 4.17]
    """
    rng = np.random.default_rng(1)
    sample = np.sort(rng.integers(0, 1 << 56, 1 << 16, np.uint64))
    apart = _highest_bits(sample[1:] ^ sample[:-1])
    frequencies = np.bincount(apart, minlength=64)
    bits = float(((code_lengths(frequencies) + np.arange(64)) * frequencies).sum() / frequencies.sum())
    return bits + (64 - log2_size) - (56 - 16)


def code_lengths(frequencies: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Huffman's code: the length of each symbol's code, in bits; 0 of those that don't occur.

    >>> code_lengths(np.array([5, 1, 1, 0])).tolist()
    [1, 2, 2, 0]
    """
    lengths = np.zeros(len(frequencies), np.int64)
    order = count()
    heap = [(int(weight), next(order), [at]) for at, weight in enumerate(frequencies) if weight]
    if len(heap) == 1:
        lengths[heap[0][2]] = 1
    heapq.heapify(heap)
    while len(heap) > 1:
        one, _, few = heapq.heappop(heap)
        other, _, more = heapq.heappop(heap)
        lengths[few + more] += 1
        heapq.heappush(heap, (one + other, next(order), few + more))
    return lengths


def _canonical(lengths: npt.NDArray[np.int64]) -> tuple[list[int], Hashes]:
    """Symbols by the length of their codes, and where their codes begin among all of 64 bits, ascending."""
    symbols = [int(each) for each in np.lexsort((np.arange(len(lengths)), lengths)) if lengths[each]]
    starts, start = [], 0
    for symbol in symbols:
        starts.append(start)
        start += 1 << (LONGEST - int(lengths[symbol]))
    return symbols, np.array(starts, np.uint64)


def _highest_bits(values: Hashes) -> npt.NDArray[np.int64]:
    """The place of the highest bit of each, from 0."""
    spread = values.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        spread |= spread >> np.uint64(shift)
    return np.bitwise_count(spread).astype(np.int64) - 1


def _firsts(written: npt.NDArray[np.int64]) -> Iterator[int]:
    """The fingerprint that each block begins with, given how many bits are written up to the end of each."""
    first = 0
    while first < len(written):
        yield first
        first = int(written.searchsorted(written[first] + BLOCK - FIRST, "right"))


def _write(
    fingerprints: Hashes,
    apart: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    codes: Hashes,
    firsts: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    """The blocks: uint8, shape (blocks, 1024)."""
    widths = np.concatenate((np.zeros(1, np.int64), lengths[apart] + apart))
    widths[firsts] = FIRST
    block = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(fingerprints)))
    ends = np.cumsum(widths)
    at = ends - widths
    at += block * BLOCK - at[firsts][block]
    words = np.zeros(len(firsts) * BLOCK // 64 + 1, np.uint64)
    highest = np.concatenate((np.zeros(1, np.int64), apart))
    is_first = np.zeros(len(fingerprints), bool)
    is_first[firsts] = True
    rest = fingerprints & ((np.uint64(1) << highest.view(np.uint64)) - np.uint64(1))
    sizes = np.where(is_first, 64, highest)
    _put(words, at + widths - sizes, sizes, np.where(is_first, fingerprints, rest))
    coded = ~is_first
    _put(words, at[coded], lengths[highest[coded]], codes[highest[coded]])
    return words[:-1].astype(">u8").view(np.uint8).reshape(-1, BLOCK // 8)


def _put(words: Hashes, at: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], values: Hashes) -> None:
    """Writes numbers of some bits where these begin, the highest bit first."""
    some = sizes > 0
    at, sizes, values = at[some], sizes[some], values[some]
    word, spare = at >> 6, 64 - (at & 63) - sizes  # bits left in the word, or how many are too many for it
    fits = spare >= 0
    high = np.where(
        fits, values << np.maximum(spare, 0).view(np.uint64), values >> np.maximum(-spare, 0).view(np.uint64)
    )
    _add(words, word, high)
    over = ~fits
    _add(words, word[over] + 1, values[over] << (64 + spare[over]).view(np.uint64))


def _add(words: Hashes, at: npt.NDArray[np.int64], values: Hashes) -> None:
    """Adds numbers to words whose places ascend: no two have a bit in common."""
    if len(at):
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        words[at[starts]] |= np.add.reduceat(values, starts)
