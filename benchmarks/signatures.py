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
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from rich.console import Console
from rich.table import Table

from benchmarks.papers import bbit
from benchmarks.papers.signatures import agreement, bottom_k, bottom_k_resemblance, one_permutation
from dedup.fingerprint.shingles import Hashes, hash_tokens, shingle_hashes
from dedup.fingerprint.signatures import signature
from dedup.fingerprint.sketch import Sketcher

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


def jaccard(a: Any, b: Any) -> float:
    return a.jaccard(b)


def ours() -> Iterator[Kind]:
    def kind(name: str, make: Callable[[Hashes], Any], compare: Callable[[Any, Any], float]) -> Kind:
        return Kind(name, hashes, lambda pages: [make(page) for page in pages], compare, bytes)

    def packed(name: str, make: Callable[[Hashes], Any], bits: int) -> Kind:
        pack = partial(bbit.pack, bits=bits)
        return kind(f"{name} of {bits} bit", lambda page: pack(make(page)), partial(bbit.estimate, bits=bits))

    for r in (128, 90, 84):
        yield kind(f"signature, {r}", partial(signature, selectors=r), agreement)
    for bits in reversed(bbit.BITS):
        yield packed("signature, 128", partial(signature, selectors=128), bits)
    yield kind("one permutation, 128", partial(one_permutation, slots=128), agreement)
    yield packed("one permutation, 128", partial(one_permutation, slots=128), 2)
    yield kind("bottom 128", partial(bottom_k, k=128), partial(bottom_k_resemblance, k=128))
    sketcher = Sketcher(slots=512, bits=2)
    yield kind("the filter's sketch, 512 of 2 bit", sketcher.make, sketcher.resemblance)


def datasketch() -> Iterator[Kind]:
    from datasketch import LeanMinHash, MinHash, bBitMinHash

    def serialize(sketch: Any) -> bytes:
        lean = LeanMinHash(sketch)
        buffer = bytearray(lean.bytesize())
        lean.serialize(buffer)
        return bytes(buffer)

    def kind(name: str, r: int = 128, hashfunc: Any = xxhash.xxh32_intdigest, shingle: Any = octets) -> Kind:
        bulk = partial(MinHash.bulk, num_perm=r, hashfunc=hashfunc)
        return Kind(f"datasketch MinHash, {r}, {name}", shingle, bulk, jaccard, serialize)

    yield kind("its SHA-1", hashfunc=None)
    for r in (128, 90, 84):
        yield kind("xxh32", r)
    bulk = partial(MinHash.bulk, num_perm=128, hashfunc=xxhash.xxh32_intdigest)
    lean = "datasketch LeanMinHash, 128, xxh32"
    yield Kind(lean, octets, lambda pages: list(map(LeanMinHash, bulk(pages))), jaccard, serialize)
    for bits in (8, 2, 1):
        yield Kind(
            f"datasketch bBitMinHash, 128 of {bits} bit, xxh32",
            octets,
            lambda pages, bits=bits: [bBitMinHash(sketch, bits) for sketch in bulk(pages)],
            jaccard,
            lambda sketch: bytes(sketch.__getstate__()),
        )
    yield kind("on our hashes", 128, int, lambda *page: (hashes(*page) >> np.uint64(32)).tolist())


def rensa() -> Iterator[Kind]:
    from rensa import CMinHash, RMinHash

    def words(sketch: Any) -> bytes:
        return np.array(sketch if isinstance(sketch, list) else sketch.digest(), np.uint32).tobytes()

    def matrix(name: str, shingle: Callable[..., Any], make: Callable[[list[Any]], Any]) -> Kind:
        def equal(a: list[int], b: list[int]) -> float:
            return statistics.fmean(map(int.__eq__, a, b))

        return Kind(f"rensa {name}", shingle, lambda pages: make(pages).to_rows(), equal, words, kept=False)

    def flat(pages: list[Hashes]) -> Any:
        ends = np.cumsum([0, *map(len, pages)], dtype=np.uint64)
        return RMinHash.digest_matrix_from_flat_token_hashes(np.concatenate(pages), ends, 128, SEED)

    for r in (128, 90, 84):
        make = partial(RMinHash.from_token_sets, num_perm=r, seed=SEED)
        yield Kind(f"rensa RMinHash, {r}", strings, make, jaccard, words)
    options = {"num_perm": 128, "seed": SEED}
    make = partial(RMinHash.digest_matrix_from_token_sets, **options)
    yield matrix("RMinHash, 128, one matrix", strings, make)
    make = partial(RMinHash.digest_matrix_from_token_sets_rho, **options)
    yield matrix("rho, 128, one matrix", strings, make)
    yield matrix("RMinHash, 128, on our hashes", hashes, flat)
    yield Kind(
        "rensa CMinHash, 128",
        strings,
        partial(CMinHash.from_token_sets, **options),
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
            print(f"{library} is not installed, so it is left out: pip install 'shingleback[bench]'")
            continue
        for kind in kinds[library]:
            table.add_row(kind.name, *row(library, kind, times, arguments.trials))
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
