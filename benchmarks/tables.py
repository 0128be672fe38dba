"""The designs of tables beside each other, in memory: bytes a page, and the CPU time of a look-up and of filing a page.

    python benchmarks/tables.py [--pages 1000000 10000000] [--designs 3 3:4 3:10 6 6:28] [--fingerprints FILE.npz]

A design is a distance k, or k:tables for one of the paper's.  Fingerprints are random; or, of FILE.npz, each array
``simhash_...`` is one site, grown to that many pages: copies of its pages, whose bits flip as they do between a page
and the pages next to it, which keeps the skew of the site.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.plans import EXACT
from dedup.fingerprint.shingles import Hashes
from dedup.index.local.tables import SortedTables

LOOK_UPS, FILED = 1000, 40


def grown(site: Hashes, pages: npt.NDArray[np.int64], rng: np.random.Generator) -> Hashes:
    """These pages of a site, most with a few bits flipped: as many as in another page of its site that is near."""
    near = site[np.argsort(site)]
    flips = np.bitwise_count(near[1:] ^ near[:-1])
    flips = np.minimum(flips[flips > 0], 12)
    simhashes = site[pages]
    for bits in range(1, 13):
        chosen = np.flatnonzero(rng.choice(flips, len(pages)) >= bits)
        simhashes[chosen] ^= np.uint64(1) << rng.integers(0, 64, len(chosen), np.uint64)
    return simhashes


def spent(tables: SortedTables, queries: list[int], k: int) -> list[float]:
    """Microseconds of each look-up, ascending."""
    times = []
    for query in queries:
        start = time.thread_time()
        tables.within((0,) * len(EXACT) + (query,), k, 1000)
        times.append((time.thread_time() - start) * 1e6)
    return sorted(times)


def measure(design: str, simhashes: Hashes, queries: Hashes) -> str:
    k, _, number = design.partition(":")
    plan = Detector(max_distance=int(k)).plan(len(simhashes), int(number) if number else None, in_memory=True)
    rng = np.random.default_rng(2)
    others = rng.integers(
        0, 2**64, (len(EXACT), len(simhashes)), np.uint64
    )  # digests, markup and rare shingles
    keys = np.stack((*others, simhashes), axis=1)
    start = time.thread_time()
    tables = SortedTables(plan, keys)
    built = time.thread_time() - start
    times = spent(tables, queries.tolist(), plan.max_distance)
    filing = []
    for one in rng.integers(0, 2**64, (len(simhashes) // FILED, keys.shape[1]), np.uint64).tolist():
        start = time.thread_time()
        tables.add(tuple(one))
        filing.append(time.thread_time() - start)
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    return (
        f"k = {k}, {plan.size} tables ({plan}) | {plan.local_bytes} | {p50:.1f} | {p99:.1f} | "
        f"{sum(filing) / len(filing) * 1e6:.1f} | {max(filing) * 1e3:.1f} | {built:.1f}"
    )


def sources(file: Path | None) -> Iterator[tuple[str, Hashes | None]]:
    yield "random", None
    if file:
        with np.load(file) as arrays:
            for name in arrays:
                if name.startswith("simhash"):
                    yield name, arrays[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", nargs="*", type=int, default=[1_000_000])
    parser.add_argument("--designs", nargs="*", default=["3", "3:10", "6", "6:28"])
    parser.add_argument("--fingerprints", type=Path)
    options = parser.parse_args()
    print(
        "fingerprints | pages | design | bytes a page in tables | look-up p50 us | p99 | "
        "filing a page us | longest ms | built in s"
    )
    for pages in options.pages:
        for name, site in sources(options.fingerprints):
            rng = np.random.default_rng(1)
            both = (
                rng.integers(0, 2**64, pages + LOOK_UPS, np.uint64)
                if site is None
                else grown(site, rng.integers(0, len(site), pages + LOOK_UPS), rng)
            )
            for design in options.designs:
                shown = measure(design, both[:pages], both[pages:])
                print(f"{name} | {pages:,} | {shown}", flush=True)


if __name__ == "__main__":
    main()
