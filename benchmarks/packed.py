"""Sorted tables in fewer bits beside a plain array: bytes a fingerprint, a probe, and reading the whole table.

    python benchmarks/packed.py [--sizes 1000000 10000000 100000000]

Fingerprints are random.  A probe asks, in one of the paper's 16 tables (k = 3), for all within 3 bits that share a
prefix.  Times are those of the processor; rounds of the three tables take turns, and the median is told.
"""

import argparse
import time
from collections.abc import Callable
from math import log2
from statistics import median
from typing import Any

import numpy as np

from benchmarks.papers.compression import BLOCK, HuffmanTable, huffman_bits
from benchmarks.papers.packed import STEP, PackedTable
from dedup.fingerprint.plans import plan_for
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.simhash import distances

K, TABLE = 3, 5
PROBES, ROUNDS = 500, 7
CHUNK = 1 << 18
#: Reading one fingerprint after the other takes so long that only these are read.
BLOCKS = 2000


def seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def measure(size: int) -> None:
    rng = np.random.default_rng(42)
    table = plan_for(16, max_distance=K).tables[TABLE]
    stored = np.unique(table.permute(rng.integers(0, 1 << 64, size, np.uint64)))
    queries = table.restore(rng.integers(0, 1 << 64, PROBES, np.uint64)).tolist()
    packed, huffman = PackedTable(table.restore(stored), table), HuffmanTable(stored)

    def near(found: Hashes, permuted: int) -> Hashes:
        found = found[distances(found, permuted) <= K]
        return table.restore(found) if len(found) else found

    def near_in_array(query: int) -> Hashes:
        permuted = table.permute(query)
        low, high = (np.uint64(end) for end in table.prefix_range(permuted))
        return near(stored[stored.searchsorted(low) : stored.searchsorted(high, "right")], permuted)

    def near_in_huffman(query: int) -> Hashes:
        permuted = table.permute(query)
        return near(huffman.between(*table.prefix_range(permuted)), permuted)

    def read_array() -> None:
        for at in range(0, len(stored), CHUNK):
            table.restore(stored[at : at + CHUNK])

    def read_packed() -> None:
        for at in range(0, len(stored), CHUNK):
            packed[at : at + CHUNK]

    def read_huffman() -> None:
        for _ in zip(range(BLOCKS), huffman, strict=False):
            pass

    probes = (near_in_array, lambda query: packed.near(query, K), near_in_huffman)
    times = [[seconds(lambda p=p: [p(q) for q in queries]) for p in probes] for _ in range(ROUNDS)]
    reads = [[seconds(read) for read in (read_array, read_packed, read_huffman)] for _ in range(3)]
    few = len(stored) / len(huffman.keys) * min(BLOCKS, len(huffman.keys))
    kept = (8.0, packed.nbytes / len(stored), huffman.nbytes / len(stored))
    for name, octets, probe, read, count in zip(
        ("array", "packed", "Huffman"),
        kept,
        map(median, zip(*times, strict=True)),
        map(min, zip(*reads, strict=True)),
        (len(stored), len(stored), few),
        strict=True,
    ):
        print(
            f"| {size:,} | {name} | {octets:.2f} | {probe / PROBES * 1e6:.1f} | {count / read / 1e6:.1f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000_000, 10_000_000, 100_000_000])
    print("| fingerprints | table | bytes each | a probe, us | read, M/s |\n|---|---|---|---|---|")
    for size in parser.parse_args().sizes:
        measure(size)
    for size in (1 << 23, 1 << 34):
        noted = (
            32 if size < 1 << 32 else 64
        )  # for each STEP upper parts; in the paper's blocks, first, key and count
        bits = huffman_bits(log2(size))
        packed, huffman = (66 - log2(size) + noted / STEP) / 8, bits / 8 * (1 + (64 + 64 + 16 - bits) / BLOCK)
        print(f"| 2^{log2(size):.0f}, reckoned | packed, Huffman | {packed:.2f}, {huffman:.2f} | | |")


if __name__ == "__main__":
    main()
