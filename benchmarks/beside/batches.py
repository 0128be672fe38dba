"""Ours beside its peers on a batch of texts: what is dropped of 13,000 licence texts and notices, rightly or not.

    make bench                                     # after the rest; or: python -m benchmarks.beside.batches

The texts are those of the package scancode-toolkit-mini, of 30 words and more: licences, and the notices by which they
are met, many of which differ in a name or in a version.  Each peer runs in a process of its own.  CPU is that of the
processor, of all its processes; memory is the most that the process had, Python and the texts included.

What is right is told by exact resemblance (Jaccard) of shingles of five words, between a text and what the peer has kept:

- wrong: dropped texts that resemble no kept one by .75, or by .6;
- recall: of texts that resemble a kept one by .8 (.9), the share that is dropped;
- orders: how many are kept of the same texts in their order, and shuffled.

text-dedup's rule is rewritten here as its README has it (bands of min-hashes, all that share one is a cluster, nothing is
compared), since it can't be called on a list.  semhash is left out: it needs the weights of a model.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix

#: What of texts is kept: bool, shape (n,).
Kept = np.ndarray[Any, np.dtype[np.bool_]]
WORD = re.compile(r"\w+")


def licences() -> list[str]:
    """The texts, in the order of their files."""
    spec = importlib.util.find_spec("licensedcode")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the texts are missing: pip install --no-deps scancode-toolkit-mini")
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    paths = sorted([*folder.glob("licenses/*.LICENSE"), *folder.glob("rules/*.RULE")])
    texts = [path.read_text("utf-8").split("\n---\n", 1)[-1] for path in paths]
    return [text for text in texts if len(text.split()) >= 30]


def shingles(text: str) -> set[str]:
    words = WORD.findall(text.lower())
    return {" ".join(words[at : at + 5]) for at in range(max(1, len(words) - 4))}


# --- Ours and the peers: what each keeps


def ours(texts: Sequence[str], **settings: Any) -> Kept:
    import dedup

    return ~dedup.duplicated(text=list(texts), **settings)


def first_of_each(texts: Sequence[str], index: Any, make: Callable[[set[str]], Any], least: float) -> Kept:
    """Keeps a text unless its min-hashes resemble those of a kept one in its bands."""
    made, kept = {}, []
    for number, text in enumerate(texts):
        found = make(shingles(text))
        is_new = not any(made[other].jaccard(found) >= least for other in index.query(found))
        if is_new:
            made[number] = found
            index.insert(number, found)
        kept.append(is_new)
    return np.array(kept)


def datasketch(texts: Sequence[str], least: float) -> Kept:
    from datasketch import MinHash, MinHashLSH

    def make(of: set[str]) -> MinHash:
        found = MinHash(num_perm=128)
        found.update_batch([shingle.encode() for shingle in of])
        return found

    return first_of_each(texts, MinHashLSH(threshold=least, num_perm=128), make, least)


def rensa(texts: Sequence[str], least: float) -> Kept:
    from rensa import RMinHash, RMinHashLSH

    def make(of: set[str]) -> RMinHash:
        found = RMinHash(num_perm=128, seed=42)
        found.update([*of])
        return found

    return first_of_each(texts, RMinHashLSH(threshold=least, num_perm=128, num_bands=16), make, least)


def text_dedup(texts: Sequence[str]) -> Kept:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.7, num_perm=256)
    above = list(range(len(texts)))

    def top(row: int) -> int:
        while above[row] != row:
            above[row] = row = above[above[row]]
        return row

    for number, text in enumerate(texts):
        found = MinHash(num_perm=256)
        found.update_batch([shingle.encode() for shingle in shingles(text)])
        for other in index.query(found):
            a, b = top(number), top(other)
            above[max(a, b)] = min(a, b)
        index.insert(number, found)
    return np.array([top(row) == row for row in range(len(texts))])


def datatrove(texts: Sequence[str]) -> Kept:
    from datatrove.data import Document
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.logging import logger

    logger.remove()
    # Its own default hash takes str, which newer versions of xxhash refuse.
    config = MinhashConfig(num_buckets=14, hashes_per_bucket=8, hash_config=HashConfig(hash_fc="sha1"))
    documents = [Document(text=text, id=str(number)) for number, text in enumerate(texts)]
    kept = np.zeros(len(texts), bool)

    def note(data: Iterator[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        for document in data:
            kept[int(document.id)] = True
            yield document

    with tempfile.TemporaryDirectory() as folder:
        steps: list[tuple[list[Any], int]] = [
            ([documents, MinhashDedupSignature(f"{folder}/signatures", config)], 1),
            ([MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)], 14),
            ([MinhashDedupCluster(f"{folder}/buckets", f"{folder}/removed", config=config)], 1),
            ([documents, MinhashDedupFilter(f"{folder}/removed"), note], 1),
        ]
        for number, (step, tasks) in enumerate(steps):
            LocalPipelineExecutor(step, tasks=tasks, workers=1, logging_dir=f"{folder}/log{number}").run()
    return kept


PEERS: dict[str, tuple[Callable[..., Kept], dict[str, Any]]] = {
    "Shingleback": (ours, {}),
    "Shingleback, min_resemblance=.85": (ours, {"min_resemblance": 0.85}),
    "Shingleback, method=minhash": (ours, {"method": "minhash"}),
    "datasketch, .75": (datasketch, {"least": 0.75}),
    "datasketch, .8": (datasketch, {"least": 0.8}),
    "rensa, .8": (rensa, {"least": 0.8}),
    "text-dedup's rule, .7": (text_dedup, {}),
    "datatrove, 14 buckets of 8": (datatrove, {}),
}


# --- What is right


def run(name: str, texts: Sequence[str]) -> tuple[Kept, float, float]:
    """What a peer keeps, its seconds of the processor, and the most MB that it had."""
    peer, how = PEERS[name]
    peer(texts[:50], **how)  # what it imports does not count

    def used() -> float:
        return sum(
            sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )

    before = used()
    kept = peer(texts, **how)
    # Not ru_maxrss, which the process has from the one that started it.
    most = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return kept, used() - before, int(most[1]) / 1024 if most else 0.0


class Truth:
    """The exact resemblance of all pairs of texts that have at least half of their shingles in common."""

    def __init__(self, texts: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        sets = [[numbers.setdefault(one, len(numbers)) for one in shingles(text)] for text in texts]
        starts = np.cumsum([0, *map(len, sets)])
        places = np.concatenate([np.array(one) for one in sets])
        rows = csr_matrix((np.ones(len(places), np.int32), places, starts), (len(texts), len(numbers)))
        sizes, columns, found = np.diff(starts), rows.T.tocsc(), []
        for first in range(0, len(texts), 200):
            shared = (rows[first : first + 200] @ columns).tocoo()
            left = shared.row + first
            alike = shared.data / (sizes[left] + sizes[shared.col] - shared.data)
            some = (alike >= 0.5) & (left != shared.col)
            found.append((left[some], shared.col[some], alike[some]))
        self._left, self._right, self._alike = map(np.concatenate, zip(*found, strict=True))

    def best(self, kept: Kept) -> np.ndarray[Any, np.dtype[np.float64]]:
        """For each text, how much it resembles the most similar of the kept ones: those before it, if it is kept itself.

        It is 0 if that is less than half.
        """
        counted = kept[self._right] & (~kept[self._left] | (self._right < self._left))
        found = np.zeros(len(kept))
        np.maximum.at(found, self._left[counted], self._alike[counted])
        return found


def judged(truth: Truth, kept: Kept) -> dict[str, Any]:
    best = truth.best(kept)
    recall = {f"recall {least}": float((~kept)[best >= least].mean()) for least in (0.8, 0.9)}
    wrong = {f"wrong {least}": int((~kept & (best < least)).sum()) for least in (0.75, 0.6)}
    return {"dropped": int((~kept).sum()), **wrong, **recall}


def measure(texts: list[str]) -> dict[str, Any]:
    truth, result = Truth(texts), {}
    shuffled = random.Random(1).sample(texts, len(texts))
    columns = ("cpu", "MB", "dropped", "wrong 0.75", "wrong 0.6", "recall 0.8", "recall 0.9")
    print(
        f"{len(texts):,} texts\n{'':34} "
        + " ".join(f"{name:>10}" for name in columns)
        + "  kept in two orders"
    )
    for name in PEERS:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as alone:
            kept, cpu, memory = alone.submit(run, name, texts).result()
            again = int(alone.submit(run, name, shuffled).result()[0].sum())
        found: dict[str, Any] = {"cpu": cpu, "MB": memory, **judged(truth, kept)}
        result[name] = {**found, "orders": [int(kept.sum()), again], "load": os.getloadavg()[0]}
        figures = " ".join(
            f"{found[each]:10.3f}" if "recall" in each else f"{found[each]:10,.0f}" for each in columns
        )
        print(f"{name:34} {figures}  {result[name]['orders']}", flush=True)
    return result


def draw(result: dict[str, Any], path: Path) -> None:
    """What each finds beside what it drops wrongly, and what it takes; ours are dark."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    for number, (name, each) in enumerate(result.items()):
        colour = "#1a4f8b" if name.startswith("Shingleback") else "#7d8b99"
        place, above = (each["wrong 0.75"] + 1, each["recall 0.8"]), -14 if number % 2 else 5
        left.scatter(*place, s=60, color=colour)
        called = name.removeprefix("Shingleback, ")
        left.annotate(called, place, xytext=(6, above), textcoords="offset points", color=colour)
    left.set_xscale("log")
    left.set_xlim(1, 100_000)
    left.set_xlabel("dropped, and like no kept text by .75 (and one)")
    left.set_ylabel("share dropped of what is like a kept text by .8")
    names = sorted(result, key=lambda name: result[name]["cpu"], reverse=True)
    colours = ["#1a4f8b" if name.startswith("Shingleback") else "#b9c4d0" for name in names]
    bars = right.barh(names, [result[name]["cpu"] for name in names], color=colours)
    right.bar_label(bars, fmt=lambda value: f"{value:,.1f}", padding=3)
    right.set_xscale("log")
    right.xaxis.set_minor_formatter(plt.NullFormatter())
    right.margins(x=0.15)
    right.set_title("seconds of the processor")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=20_000, help="at most so many of them, by chance")
    parser.add_argument("--out", type=Path, default=Path("batches.json"))
    arguments = parser.parse_args()
    texts = licences()
    result = measure(random.Random(2).sample(texts, min(len(texts), arguments.texts)))
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    draw(result, arguments.out.with_suffix(".png"))
    print(f"\nwritten: {arguments.out}, {arguments.out.with_suffix('.png')}")


if __name__ == "__main__":
    main()
