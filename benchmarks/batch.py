"""Many against many, and many texts, beside peers, in one run and on one core.

    pip install faiss-cpu pynear datasketch
    OMP_NUM_THREADS=1 python benchmarks/batch.py [--queries 1000000] [--stored 8000000] [--distance 3]

Fingerprints are random, and pairs within the distance are planted.  Times are those of the processor, the best of
three, building of tables included.  A peer that would take minutes is asked a sample, and its time is reckoned.
A sort of a million numbers tells how fast the machine was meanwhile.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dedup
from dedup.batch import clusters, near_pairs, query

SEED = 42
#: A peer is asked this many of the queries.
SAMPLE = 20_000


def best(function: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least seconds, and the answer."""
    found = []
    for _ in range(times):
        start = time.process_time()
        answer = function()
        found.append(time.process_time() - start)
    return min(found), answer


def flipped(rng: np.random.Generator, values: np.ndarray, bits: int) -> np.ndarray:
    """The same with up to so many bits changed."""
    for _ in range(bits):
        values = values ^ (np.uint64(1) << rng.integers(0, 64, len(values), np.uint64))
    return values


def octets(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)


def faiss_query(queries: np.ndarray, stored: np.ndarray, k: int) -> tuple[float, int]:
    """Seconds for all queries, by a sample, and how many pairs the sample has."""
    import faiss

    faiss.omp_set_num_threads(1)
    start = time.process_time()
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.add(octets(stored))
    built = time.process_time() - start
    some = queries[:SAMPLE]
    start = time.process_time()
    limits, *_ = index.range_search(octets(some), k + 1)  # nearer than the radius, not as near
    return built + (time.process_time() - start) * len(queries) / len(some), int(limits[-1])


def pynear_query(queries: np.ndarray, stored: np.ndarray, k: int) -> tuple[float, int]:
    """Likewise, of a hundredth of the sample."""
    import pynear

    start = time.process_time()
    index = pynear.MIHBinaryIndex(4)
    index.set(octets(stored))
    built = time.process_time() - start
    some = queries[: SAMPLE // 100]
    start = time.process_time()
    _, apart = index.searchKNN(octets(some), 4, k)
    taken = time.process_time() - start
    return built + taken * len(queries) / len(some), sum(d <= k for each in apart for d in each)


def texts_of(number: int) -> list[str]:
    """Texts of 400 words, each fourth of them another one with one word changed."""
    rng, texts = random.Random(SEED), []
    words = [f"word{n}" for n in range(3000)]
    for n in range(number):
        text = rng.choices(words, k=400)
        if n % 4 == 3:
            text = texts[rng.randrange(n)].split()
            text[rng.randrange(400)] = "changed"
        texts.append(" ".join(text))
    return texts


def unique_by_datasketch(texts: list[str]) -> list[str]:
    from datasketch import MinHash, MinHashLSH

    lsh, kept = MinHashLSH(threshold=0.75, num_perm=128), []
    for number, text in enumerate(texts):
        words, minhash = text.lower().split(), MinHash(num_perm=128)
        minhash.update_batch([" ".join(words[at : at + 6]).encode() for at in range(len(words) - 5)])
        if not lsh.query(minhash):
            lsh.insert(number, minhash)
            kept.append(text)
    return kept


def unique_by_dedup(texts: list[str]) -> list[str]:
    return list(dedup.unique(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--stored", type=int, default=8_000_000)
    parser.add_argument("--distance", type=int, default=3)
    options = parser.parse_args()
    k, rng = options.distance, np.random.default_rng(SEED)

    def machine() -> None:
        taken, _ = best(lambda: np.sort(np.random.default_rng(1).integers(0, 2**64, 1_000_000, np.uint64)))
        print(f"   (a sort of 1,000,000 takes {taken * 1e3:.0f} ms now)", flush=True)

    queries = rng.integers(0, 2**64, options.queries, np.uint64)
    stored = rng.integers(0, 2**64, options.stored, np.uint64)
    stored[::1000] = flipped(rng, rng.choice(queries, len(stored[::1000])), k)
    machine()
    taken, found = best(lambda: query(queries, stored, k))
    print(
        f"query: {options.queries:,} against {options.stored:,}, k = {k}: {taken:.2f} s, "
        f"{options.stored / taken / 1e6:.2f} M stored a second, {len(found.left):,} pairs",
        flush=True,
    )
    in_sample = int((found.left < SAMPLE).sum())
    for name, peer in ("faiss MultiHash 4 x 16", faiss_query), ("pynear MIH 4", pynear_query):
        try:
            taken, pairs = peer(queries, stored, k)
        except ImportError as error:
            print(f"   {name}: {error}")
            continue
        print(
            f"   {name}: {taken:.1f} s; pairs of its sample {pairs:,} (ours of {SAMPLE:,}: {in_sample:,})",
            flush=True,
        )
    machine()
    queries[::100] = flipped(rng, queries[1::100], k)
    taken, found = best(lambda: near_pairs(queries, k))
    print(f"near_pairs: {options.queries:,}, k = {k}: {taken:.2f} s, {len(found.left):,} pairs")
    taken, _ = best(lambda: clusters(queries, k))
    print(f"clusters: {taken:.2f} s", flush=True)
    try:
        taken, pairs = faiss_query(queries, queries, k)
        print(f"   faiss MultiHash 4 x 16: {taken:.1f} s; pairs of its sample {pairs:,}", flush=True)
    except ImportError as error:
        print(f"   faiss: {error}")
    texts = texts_of(400)
    for name, rule in ("dedup.unique", unique_by_dedup), ("datasketch", unique_by_datasketch):
        try:
            rule(texts[:4])  # imports what it needs
            taken, kept = best(lambda rule=rule: rule(texts))
        except ImportError as error:
            print(f"   {name}: {error}")
            continue
        print(f"{name}: 400 texts: {taken:.2f} s, {len(kept)} kept", flush=True)
    machine()


if __name__ == "__main__":
    main()
