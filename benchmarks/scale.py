"""Look-ups among 2^34 fingerprints, simulated: fewer fingerprints, and prefixes shorter by as many bits.

    python benchmarks/scale.py [--log2 34] [--held 23] [--distance 3]

A probe of a table with prefixes of p bits meets 2^(34 - p) unrelated fingerprints; so does one among 2^23 whose
prefixes are 11 bits shorter.  What a larger memory takes longer to answer is not in the times, which are those of the
processor, medians of a probe of one table, times the number of tables.
"""

import argparse
import time
from statistics import mean, median

import numpy as np

from dedup.batch.packed import PackedTable
from dedup.fingerprint.plans import possible_plans
from dedup.fingerprint.simhash import distances

PROBES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--log2", type=int, default=34)
    parser.add_argument("--held", type=int, default=23)
    parser.add_argument("--distance", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(42)
    stored = rng.integers(0, 1 << 64, 1 << options.held, np.uint64)
    queries = rng.integers(0, 1 << 64, PROBES, np.uint64).tolist()
    print(
        "| tables | prefix | candidates a probe | a look-up in arrays, ms | packed | GB in arrays | packed |"
    )
    print("|---|---|---|---|---|---|---|")
    for plan in possible_plans(options.distance):
        shortest = min(plan.tables, key=lambda table: table.prefix)
        table = shortest._replace(prefix=shortest.prefix - options.log2 + options.held)
        if table.prefix < 4 or plan.size > 40:
            continue
        array, packed = np.sort(table.permute(stored)), PackedTable(stored, table)
        counts, plain, few = [], [], []
        for query in queries:
            start = time.process_time()
            permuted = table.permute(query)
            low, high = (np.uint64(end) for end in table.prefix_range(permuted))
            found = array[array.searchsorted(low) : array.searchsorted(high, "right")]
            near = found[distances(found, permuted) <= options.distance]
            plain.append(time.process_time() - start)
            counts.append(len(found))
            start = time.process_time()
            same = packed.near(query, options.distance)
            few.append(time.process_time() - start)
            assert np.array_equal(table.restore(near), same)
        octets = plan.size * 2.0**options.log2 / 1e9
        each = (66 - options.log2 + 0.5) / 8
        print(
            f"| {plan.size} {plan.levels} | {shortest.prefix} | {mean(counts):,.0f} | "
            f"{median(plain) * plan.size * 1e3:.2f} | {median(few) * plan.size * 1e3:.2f} | "
            f"{8 * octets:,.0f} | {each * octets:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
