"""Min-hash signatures beside those of other libraries: time, memory, and what a stored byte is worth.

    pip install 'shingleback[bench]'
    python benchmarks/signatures.py [--trials 1000] [--rounds 20]

All start from the same tokens of a page, 1,705 words, so 1,700 shingles of six.  "shingles" is the time to what a
library takes (ours: a hash per token, six of which are combined; theirs: six words joined to a string, as their
own documents do, encoded where they want bytes), "sketch" what it does with that, hashing of strings included,
"both" the sum: equal work.  Rows "on our hashes" give a peer our shingle hashes.  Peers get all pages at once, by
their batch calls; ours one by one.  Times are CPU time of all threads, the least of the rounds.

"stored" is the smallest form that the library itself has, "RAM" the growth of the process per live sketch (Linux).
The standard error is that of the estimate for seeded pairs of resemblance .75, 1,700 shingles each, its bias
included; times the root of the bytes stored it is what one byte would give: the lower, the more is said by a byte.
rensa's rho samples tokens by their position, so it finds copies, but does not estimate resemblance.
"""

import argparse
import gc
import pickle
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from rich.console import Console
from rich.table import Table

from dedup import bbit, minhash
from dedup.shingles import Hashes, hash_tokens, shingle_hashes
from dedup.signatures import agreement, bottom_k, bottom_k_resemblance, one_permutation, signature

SEED = 42
SHINGLES, SIZE, PAGES = 1700, 6, 40
COMMON = 1457  # of 1,700: a resemblance of .7499
WARM, KEPT = 5_000, 20_000


@dataclass(frozen=True)
class Kind:
    """A way to make, store and compare sketches."""

    name: str
    shingle: Callable[[list[str], int], Any]  #: tokens, size -> a page's shingles as the library takes them
    sketch: Callable[[list[Any]], Sequence[Any]]  #: shingles of pages -> their sketches
    compare: Callable[[Any, Any], float]
    store: Callable[[Any], bytes]
    kept: bool = True  #: whether a sketch is an object of its own


def hashes(tokens: list[str], size: int) -> Hashes:
    return shingle_hashes(hash_tokens(tokens), size)


def strings(tokens: list[str], size: int) -> list[str]:
    return list(map(" ".join, zip(*(tokens[start:] for start in range(size)), strict=False)))


def octets(tokens: list[str], size: int) -> list[bytes]:
    return list(map(str.encode, strings(tokens, size)))


def ours() -> Iterator[Kind]:
    def each(make: Callable[[Hashes], Any]) -> Callable[[list[Hashes]], Sequence[Any]]:
        return lambda pages: [make(page) for page in pages]

    for r in (128, 90, 84):
        yield Kind(
            f"signature, {r}",
            hashes,
            each(lambda page, r=r: signature(page, r)),
            agreement,
            np.ndarray.tobytes,
        )
    for bits in reversed(bbit.BITS):
        yield Kind(
            f"signature, 128 of {bits} bit",
            hashes,
            each(lambda page, bits=bits: bbit.pack(signature(page, 128), bits)),
            lambda a, b, bits=bits: bbit.estimate(a, b, bits),
            bytes,
        )
    yield Kind(
        "one permutation, 128",
        hashes,
        each(lambda page: one_permutation(page, 128)),
        agreement,
        np.ndarray.tobytes,
    )
    yield Kind(
        "one permutation, 128 of 2 bit",
        hashes,
        each(lambda page: bbit.pack(one_permutation(page, 128), 2)),
        lambda a, b: bbit.estimate(a, b, 2),
        bytes,
    )
    yield Kind(
        "bottom 128",
        hashes,
        each(lambda page: bottom_k(page, 128)),
        lambda a, b: bottom_k_resemblance(a, b, 128),
        np.ndarray.tobytes,
    )
    yield Kind(
        "the filter's sketch, 512 of 2 bit",
        hashes,
        each(lambda page: minhash.sketch(page, 512, 2)),
        lambda a, b: float(minhash.resemblances(np.frombuffer(a, np.uint64).reshape(1, -1), b, 2)[0]),
        bytes,
    )


def datasketch() -> Iterator[Kind]:
    from datasketch import LeanMinHash, MinHash, bBitMinHash

    def jaccard(a: Any, b: Any) -> float:
        return a.jaccard(b)

    def serialize(sketch: Any) -> bytes:
        lean = LeanMinHash(sketch)
        buffer = bytearray(lean.bytesize())
        lean.serialize(buffer)
        return bytes(buffer)

    def bulk(**options: Any) -> Callable[[list[Any]], Sequence[Any]]:
        return lambda pages: MinHash.bulk(pages, **options)

    fast = bulk(num_perm=128, hashfunc=xxhash.xxh32_intdigest)
    yield Kind("datasketch MinHash, 128, its SHA-1", octets, bulk(num_perm=128), jaccard, serialize)
    for r in (128, 90, 84):
        make = bulk(num_perm=r, hashfunc=xxhash.xxh32_intdigest)
        yield Kind(f"datasketch MinHash, {r}, xxh32", octets, make, jaccard, serialize)
    yield Kind(
        "datasketch LeanMinHash, 128, xxh32",
        octets,
        lambda pages: [LeanMinHash(sketch) for sketch in fast(pages)],
        jaccard,
        serialize,
    )
    for bits in (8, 2, 1):
        yield Kind(
            f"datasketch bBitMinHash, 128 of {bits} bit, xxh32",
            octets,
            lambda pages, bits=bits: [bBitMinHash(sketch, bits) for sketch in fast(pages)],
            jaccard,
            lambda sketch: bytes(sketch.__getstate__()),
        )
    yield Kind(
        "datasketch MinHash, 128, on our hashes",
        lambda tokens, size: (hashes(tokens, size) >> np.uint64(32)).tolist(),
        bulk(num_perm=128, hashfunc=int),
        jaccard,
        serialize,
    )


def rensa() -> Iterator[Kind]:
    from rensa import CMinHash, RMinHash

    def jaccard(a: Any, b: Any) -> float:
        return a.jaccard(b)

    def equal(a: list[int], b: list[int]) -> float:
        return statistics.fmean(map(int.__eq__, a, b))

    def words(sketch: Any) -> bytes:
        return np.array(sketch if isinstance(sketch, list) else sketch.digest(), np.uint32).tobytes()

    def flat(pages: list[Hashes]) -> Sequence[Any]:
        ends = np.cumsum([0, *map(len, pages)], dtype=np.uint64)
        return RMinHash.digest_matrix_from_flat_token_hashes(np.concatenate(pages), ends, 128, SEED).to_rows()

    for r in (128, 90, 84):
        yield Kind(
            f"rensa RMinHash, {r}",
            strings,
            lambda pages, r=r: RMinHash.from_token_sets(pages, r, SEED),
            jaccard,
            words,
        )
    yield Kind(
        "rensa RMinHash, 128, one matrix",
        strings,
        lambda pages: RMinHash.digest_matrix_from_token_sets(pages, 128, SEED).to_rows(),
        equal,
        words,
        kept=False,
    )
    yield Kind(
        "rensa rho, 128, one matrix",
        strings,
        lambda pages: RMinHash.digest_matrix_from_token_sets_rho(pages, 128, SEED).to_rows(),
        equal,
        words,
        kept=False,
    )
    yield Kind("rensa RMinHash, 128, on our hashes", hashes, flat, equal, words, kept=False)
    yield Kind(
        "rensa CMinHash, 128",
        strings,
        lambda pages: CMinHash.from_token_sets(pages, 128, SEED),
        jaccard,
        lambda sketch: np.array(sketch.digest_u64(), np.uint64).tobytes(),
    )


LIBRARIES: dict[str, Callable[[], Iterator[Kind]]] = {
    "shingleback": ours,
    "datasketch": datasketch,
    "rensa": rensa,
}


def installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def pages(count: int, tokens: int, seed: int) -> list[list[str]]:
    """Pages of random words, the frequent ones short, as in prose."""
    rng = random.Random(seed)
    letters = "etaoinshrdlcumwfgypbvk"
    words = ["".join(rng.choices(letters, k=2 + number.bit_length() // 2)) for number in range(1, 8000)]
    weights = [1 / number for number in range(1, 8000)]
    return [rng.choices(words, weights, k=tokens) for _ in range(count)]


def fastest(kinds: list[Kind], rounds: int) -> dict[Callable[..., Any], float]:
    """CPU microseconds of a page, of all threads, by each function; the rounds go through all kinds in turn."""
    drawn = pages(PAGES, SHINGLES + SIZE - 1, SEED)
    times: dict[Callable[..., Any], float] = {}
    for kind in kinds * rounds:
        started = time.process_time()
        shingles = [kind.shingle(tokens, SIZE) for tokens in drawn]
        between = time.process_time()
        kind.sketch(shingles)
        ended = time.process_time()
        for function, seconds in ((kind.shingle, between - started), (kind.sketch, ended - between)):
            times[function] = min(times.get(function, seconds * 1e6 / PAGES), seconds * 1e6 / PAGES)
    return times


def growth(library: str, name: str) -> float:
    """Bytes of memory that each live sketch takes; run in a process of its own."""
    kind = next(kind for kind in LIBRARIES[library]() if kind.name == name)
    drawn = [kind.shingle(tokens, SIZE) for tokens in pages(10, 305, SEED)]
    live: list[Any] = []
    while len(live) < WARM:  # these fill what has been freed
        live += kind.sketch(drawn)
    live += [None] * KEPT
    start = resident()
    for at in range(WARM, WARM + KEPT, 10):
        live[at : at + 10] = kind.sketch(drawn)
    return (resident() - start) / KEPT


def resident() -> int:
    """Bytes of memory that this process has, after a collection; Linux only."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def errors(kind: Kind, trials: int) -> list[float]:
    """Signed errors of the estimates for seeded pairs of pages, whose shingles are words."""
    rng, found = random.Random(SEED), []
    union = 2 * SHINGLES - COMMON
    for _ in range(trials):
        words = [f"{rng.getrandbits(64):x}" for _ in range(union)]
        pair = [words[:SHINGLES], words[SHINGLES - COMMON :]]
        found.append(kind.compare(*kind.sketch([kind.shingle(page, 1) for page in pair])) - COMMON / union)
    return found


def row(library: str, kind: Kind, times: dict[Callable[..., Any], float], trials: int) -> list[str]:
    before, after = times[kind.shingle], times[kind.sketch]
    sketch = kind.sketch([kind.shingle(pages(1, 305, SEED)[0], SIZE)])[0]
    stored, pickled = len(kind.store(sketch)), len(pickle.dumps(sketch, protocol=5))
    taken = "-"
    if kind.kept:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            taken = f"{pool.submit(growth, library, kind.name).result():,.0f}"
    found = errors(kind, trials)
    error = statistics.fmean(signed**2 for signed in found) ** 0.5
    return [
        *(f"{time:,.0f}" for time in (before, after, before + after)),
        *(f"{stored:,}", f"{pickled:,}" if kind.kept else "-", taken),
        *(f"{statistics.fmean(found):+.4f}", f"{error:.4f}", f"{error * stored**0.5:.2f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    console = Console()
    found = {library: installed(library) for library in LIBRARIES}
    title = ", ".join(f"{library} {number}" for library, number in found.items() if number)
    table = Table(title=f"{title}, numpy {np.__version__}", title_justify="left")
    table.add_column("")
    for heading in (
        *("shingles\nµs/page", "sketch\nµs/page", "both\nµs/page"),
        *("stored\nbytes", "pickled\nbytes", "RAM\nbytes"),
        *("mean error\nat R = .75", "standard\nerror", "error x\n√bytes"),
    ):
        table.add_column(heading, justify="right")
    kinds = {library: list(LIBRARIES[library]()) for library, number in found.items() if number}
    times = fastest([kind for each in kinds.values() for kind in each], arguments.rounds)
    for library in LIBRARIES:
        if library not in kinds:
            console.print(f"{library} is not installed, so it is left out: pip install 'shingleback[bench]'")
            continue
        for kind in kinds[library]:
            table.add_row(kind.name, *row(library, kind, times, arguments.trials))
        table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
