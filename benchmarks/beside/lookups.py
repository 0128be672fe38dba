"""What one peer takes to file many fingerprints, to look up, and to file some more."""

import resource
import time
from typing import Any

import numpy as np
import psutil

from benchmarks.beside.indexes import Peer

SEED, QUERIES = 42, 500


def flipped(rng: np.random.Generator, values: np.ndarray, bits: int) -> np.ndarray:
    for _ in range(bits):
        values = values ^ (np.uint64(1) << rng.integers(0, 64, len(values), np.uint64))
    return values


def look_up(kind: type[Peer], k: int, size: int, of_texts: bool, address: str) -> dict[str, Any]:
    """What one peer does, in this process."""
    rng = np.random.default_rng(SEED)
    values = rng.integers(0, 1 << 64, size, np.uint64)
    asked = rng.integers(0, 1 << 64, QUERIES, np.uint64)
    asked[::10] = flipped(rng, rng.choice(values, QUERIES // 10), 0 if of_texts else k)
    later = rng.integers(0, 1 << 64, QUERIES, np.uint64).tolist()
    process = psutil.Process()
    peer = kind(k, *([address] if address else []))

    def spent() -> float:
        return time.process_time() + peer.served()[0]

    before = process.memory_info().rss
    start = spent()
    peer.fill(values)
    found: dict[str, Any] = {"pages": size, "k": k, "fill": (spent() - start) / size * 1e6}
    found["bytes"] = (process.memory_info().rss - before + peer.served()[1]) / size
    start = spent()
    try:
        answers = [sorted(map(int, peer.near(value))) for value in asked.tolist()]
        found["look-up"] = (spent() - start) / QUERIES * 1e6
        right = [
            np.flatnonzero(np.bitwise_count(values ^ value) <= (0 if of_texts else k)).tolist()
            for value in asked
        ]
        found["right"] = sum(answer == expected for answer, expected in zip(answers, right, strict=True))
    except NotImplementedError:  # it is claims that are made, which look up and file
        pass
    start = spent()
    try:
        for row, value in enumerate(later, size):
            peer.add(row, value)
        found["insert"] = (spent() - start) / QUERIES * 1e6
    except NotImplementedError:
        pass
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found
