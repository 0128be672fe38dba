"""From text to fingerprint."""

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dedup

SEED, ROUNDS = 42, 5
TEXTS, WORDS = 60, 1000


def random_texts() -> list[str]:
    """Texts of words as frequent as in any language."""
    rng = random.Random(SEED)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 10))) for _ in range(20_000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=WORDS)) for _ in range(TEXTS)]


def grams(text: str) -> list[str]:
    """Runs of three words."""
    words = text.split()
    return [" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))]


def fingerprinters() -> dict[str, Callable[[str], Any]]:
    """Each peer's function of one text."""
    import datasketch
    import rensa
    import simhash
    import xxhash
    from FastSketchLSH import FastSimilaritySketch
    from gaoya.minhash import MinHashStringIndex
    from gaoya.simhash import SimHashStringIndex

    detector = dedup.Detector()
    sketch = FastSimilaritySketch(128, SEED)
    simhashes = SimHashStringIndex(num_blocks=8, hamming_distance=6, ngram_range=(1, 1))
    minhashes = MinHashStringIndex(
        hash_size=32, jaccard_threshold=0.75, num_bands=42, band_size=3, num_hashes=126, ngram_range=(3, 3)
    )

    def by_datasketch(text: str) -> None:
        datasketch.MinHash(num_perm=128).update_batch({gram.encode() for gram in grams(text)})

    def by_rensa(text: str) -> None:
        rensa.RMinHash(num_perm=128, seed=SEED).update(grams(text))

    def by_fast_sketch(text: str) -> None:
        sketch(grams(text))

    def by_text_dedup(text: str) -> bytes:
        hashes = np.array([xxhash.xxh3_64_intdigest(gram.encode()) for gram in grams(text)], ">u8")
        bits = np.unpackbits(hashes.view(np.uint8).reshape(len(hashes), 8), axis=1)
        return np.packbits(2 * bits.sum(0, dtype=int) >= len(hashes)).tobytes()

    return {
        "Shingleback: simhash, sketch and digest": detector.fingerprint_text,
        "gaoya SimHash": simhashes.query,
        "gaoya MinHash, 126": minhashes.query,
        "rensa RMinHash, 128": by_rensa,
        "FastSketchLSH, 128": by_fast_sketch,
        "datasketch MinHash, 128": by_datasketch,
        "text-dedup's SimHash": by_text_dedup,
        "simhash": lambda text: simhash.Simhash(text).value,
    }


def measure_texts(texts: list[str]) -> dict[str, float]:
    """us of a text, in turns, the least of the rounds."""
    peers = fingerprinters()
    least = dict.fromkeys(peers, float("inf"))
    for _ in range(ROUNDS):
        for name, function in peers.items():
            start = time.process_time()
            for text in texts:
                function(text)
            least[name] = min(least[name], (time.process_time() - start) / len(texts) * 1e6)
    return least
