"""What a million pages, a hundred million and eight billion cost, from rates measured here; docs/measured.md has the result.

    python benchmarks/scale.py [--root FOLDER] [--claims 200000]

Pages are those of FOLDER (HTML files), or made up.  Rates are per core, of the processor's time; what is reckoned grows
with the pages, or as `dedup.batch` reckons it for its own choice of tables.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import dedup
from dedup.batch import near_pairs, query
from dedup.batch.hamming import _cheapest, _cost_of_pairs

SEED, K = 42, 3
SIZES = (10**6, 10**8, 8 * 10**9)
#: Bytes of a machine that an index may take.
MACHINE = 56e9


def spent(work: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def pages(root: Path | None) -> list[tuple[str, bytes]]:
    """200 pages, with URLs."""
    rng = random.Random(SEED)
    if root:
        found = sorted(root.rglob("*.html"))
        return [
            (f"http://localhost/{path}", path.read_bytes())
            for path in rng.sample(found, min(200, len(found)))
        ]
    words = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 10))) for _ in range(9000)]
    made = []
    for number in range(200):
        parts = [
            f"<p>{' '.join(rng.choices(words, k=40))} <a href='/{rng.choice(words)}/{at}'>{words[at]}</a></p>"
            for at in range(25)
        ]
        made.append((f"http://localhost/{number}", f"<title>{number}</title>{''.join(parts)}".encode()))
    return made


def rates(root: Path | None, claims: int) -> dict[str, float]:
    """Seconds of a page, of a claim, of a stored fingerprint in a batch of a million queries; bytes of a page."""
    rng = np.random.default_rng(SEED)
    sample = pages(root)
    detector = dedup.Detector()
    found = {"octets": mean(len(html) for _, html in sample)}
    found["page"] = min(
        spent(lambda: [detector.fingerprint(html, url) for url, html in sample]) for _ in range(3)
    ) / len(sample)
    with tempfile.TemporaryDirectory() as folder:
        with dedup.open(f"file:{folder}/index.sqlite", min_resemblance=0) as filed:
            simhashes = rng.integers(0, 1 << 64, claims, np.uint64).tolist()
            fingerprints = [
                dedup.Fingerprint(each, bytes(136), tokens=1000, links=9, digest=each) for each in simhashes
            ]
            found["claim"] = (
                spent(
                    lambda: [
                        filed._claim(f"{at:040x}", f"https://www.example.org/some/folder/{at}.html", each)
                        for at, each in enumerate(fingerprints)
                    ]
                )
                / claims
            )
        found["disk"] = sum(path.stat().st_size for path in Path(folder).iterdir()) / claims
    stored = rng.integers(0, 1 << 64, 8_000_000, np.uint64)
    asked = rng.integers(0, 1 << 64, 1_000_000, np.uint64)
    found["stored"] = min(spent(lambda: query(asked, stored, K)) for _ in range(3)) / len(stored)
    join = min(spent(lambda: near_pairs(asked, K)) for _ in range(3))
    found["join"] = join / _reckoned(10**6)
    return found


def _reckoned(size: int) -> float:
    return _cost_of_pairs(_cheapest(K, lambda plan: _cost_of_pairs(plan, size)), size)


def duration(seconds: float) -> str:
    """In words.

    >>> duration(90), duration(7200), duration(10**7)
    ('90 s', '2.0 h', '116 days')
    """
    if seconds < 600:
        return f"{seconds:.3g} s"
    if seconds < 4 * 86400:
        return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:,.0f} days"


def print_costs(rate: dict[str, float], memory: float, in_redis: float) -> None:
    print("| | " + " | ".join(f"{size:,} pages" for size in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    rows: list[tuple[str, Callable[[int], str]]] = [
        ("reading and fingerprinting", lambda size: duration(size * rate["page"])),
        ("claims, one by one, in a file", lambda size: duration(size * rate["claim"])),
        ("... memory", lambda size: f"{size * memory / 1e9:,.1f} GB"),
        ("... on disk", lambda size: f"{size * rate['disk'] / 1e9:,.1f} GB"),
        ("... in Redis instead", lambda size: f"{size * in_redis / 1e9:,.1f} GB"),
        ("... machines of 64 GB for that", lambda size: f"{-(-size * in_redis // MACHINE):,.0f}"),
        ("all pairs of all, in batch", lambda size: duration(_reckoned(size) * rate["join"])),
        ("a million queries, in batch", lambda size: duration(size * rate["stored"])),
        ("... what is read for that", lambda size: f"{8 * size / 1e9:,.2f} GB"),
    ]
    for name, cell in rows:
        print(f"| {name} | " + " | ".join(cell(size) for size in SIZES) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--claims", type=int, default=200_000)
    parser.add_argument("--memory", type=float, default=94, help="bytes of a page in an opened file's tables")
    parser.add_argument("--redis", type=float, default=500, help="bytes of a page in Redis")
    options = parser.parse_args()
    rate = rates(options.root, options.claims)
    print(
        f"a page of {rate['octets'] / 1e3:.0f} kB {rate['page'] * 1e3:.2f} ms, a claim {rate['claim'] * 1e6:.0f} us, "
        f"{rate['disk']:.0f} bytes on disk; a million queries {1 / rate['stored'] / 1e6:.1f} M stored/s; all pairs of a "
        f"million {rate['join'] * _reckoned(10**6):.2f} s; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB\n"
    )
    print_costs(rate, options.memory, options.redis)


if __name__ == "__main__":
    main()
