"""The methods beside each other, on a collection with truth: cost, quality, and how often they find a page.

    python benchmarks/methods.py PAIRS.tsv.gz --root FOLDER [--figure FILE] [--figures FILE]

Per method: tables (those of the two digests included), microseconds of CPU for tokens -> fingerprint and for a claim
in memory, bytes a page in memory and in Redis (20,000 random pages, a private redis-server), and the inline measure of
benchmarks/quality.  The figure has the share of pairs that share a key, by their exact resemblance, beside the
formula.
"""

import argparse
import asyncio
import random
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import figures
from benchmarks.quality.measures import Stream, measure
from benchmarks.quality.truth import read_collection, read_html
from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import EXACT
from dedup.fingerprint.shingles import resemblance
from dedup.page.charset import decode
from dedup.page.read import read
from tests.support.redis import running_server

SEED = 42
METHODS = {
    "simhash, k = 6": Detector(),
    "simhash, k = 3": Detector(max_distance=3),
    "minhash": Detector(method="minhash"),
    "supershingle, 2 of 6 of 14": Detector(method="supershingle"),
    "supershingle, 4 of 6 of 5": Detector(method="supershingle", supershingle_size=5, megashingle_size=4),
}
REDIS_PAGES = 20_000
PAIRS = 20_000
BINS = np.arange(0.5, 1.001, 0.05)


def redis_bytes(detector: Detector) -> float:
    """Bytes of Redis per page, all told."""
    rng = random.Random(SEED)
    count = detector.finder.own_keys

    async def fill(address: str) -> None:
        index = open_index(address, detector, expected_pages=REDIS_PAGES)
        for page in range(REDIS_PAGES):
            simhash, digest, *bands = (rng.getrandbits(64) for _ in range(2 + count))
            found = Fingerprint(simhash, rng.randbytes(136), 1000, 50, None, digest, tuple(bands))
            await index.claim(f"{page:040}", f"https://www.example.org/some/folder/{page:06}.html", found)
            await index.confirm(f"{page:040}")
        await index.close()

    with running_server() as server:
        before = server.client.info("memory")["used_memory"]
        asyncio.run(fill(server.address))
        return (server.client.info("memory")["used_memory"] - before) / REDIS_PAGES


async def claim_all(detector: Detector, found: list[Fingerprint]) -> float:
    """Seconds of CPU per claim in memory."""
    index = open_index("memory:", detector)
    await index.open()
    started = time.process_time()
    for at, one in enumerate(found):
        await index.claim(str(at), str(at), one)
    return (time.process_time() - started) / len(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--figure", type=Path)
    figures.add_option(parser)
    arguments = parser.parse_args()
    site = arguments.pairs.name.removesuffix(".pairs.tsv.gz")
    collection = read_collection(arguments.pairs)
    order = list(range(len(collection.paths)))
    random.Random(SEED).shuffle(order)
    position = {page: at for at, page in enumerate(order)}
    truth = {position[a]: {position[b]: r for b, r in near.items()} for a, near in collection.truth.items()}
    pages = [
        read(decode(html), url)
        for html, url in (read_html(collection.paths[page], arguments.root) for page in track(order, "Pages"))
    ]
    shingles = [Detector().shingles(page) for page in pages]
    pairs = sorted((a, b) for a, near in truth.items() for b in near if a < b)
    pairs += [tuple(random.Random(at).sample(range(len(pages)), 2)) for at in range(PAIRS)]
    pairs = [(a, b) for a, b in random.Random(SEED).sample(pairs, min(PAIRS, len(pairs))) if a != b]
    exact = np.array([resemblance(shingles[a], shingles[b]) for a, b in track(pairs, "Pairs")])
    rows, curves = list[dict[str, object]](), {}
    for name, detector in track(METHODS.items(), "Methods", total=len(METHODS)):
        started = time.process_time()
        found = [detector.fingerprint_page(page) for page in pages]
        fingerprinting = (time.process_time() - started) / len(pages)
        claiming = asyncio.run(claim_all(detector, found))
        inline = measure(
            Stream(found, detector).filter(detector.max_distance, detector.min_resemblance), truth
        )
        plan = detector.plan(1_000_000, in_memory=True)
        columns_kept = len(EXACT) + max(1, detector.finder.own_keys)
        judged = np.array([found[a].reason is None and found[b].reason is None for a, b in pairs])
        near = np.array(
            [
                ok and detector.is_candidate(found[a], found[b])
                for ok, (a, b) in zip(judged, pairs, strict=True)
            ]
        )
        within = [(exact >= low) & (exact < low + 0.05) & judged for low in BINS[:-1]]
        curves[name] = [near[some].mean() if some.sum() >= 20 else np.nan for some in within]
        rows.append(
            {
                "method": name,
                "tables": len(EXACT) + plan.size,
                "us page": round(fingerprinting * 1e6),
                "us claim": round(claiming * 1e6),
                "B memory": plan.local_bytes + 8 * len(EXACT) + 8 * columns_kept + 4,
                "B Redis": round(redis_bytes(detector)),
                "drops": inline.drops,
                "false": inline.false,
                "missed": f"{inline.missed} of {inline.could:,}",
                "recall": round(inline.recall, 4),
            }
        )
    table = Table(*rows[0], box=None)
    for row in rows:
        table.add_row(*map(str, row.values()))
    figures.write(arguments.figures, [{"site": site, **row} for row in rows])
    Console(width=140).print(table)
    if arguments.figure:
        draw(arguments.figure, curves, site)


def draw(path: Path, curves: dict[str, list[float]], name: str) -> None:
    """Formula (lines) and measurement (dots) of each method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    share = np.linspace(0.5, 1, 101)
    for (method, measured), colour in zip(curves.items(), ("C0", "C4", "C1", "C2", "C3"), strict=True):
        chances = [METHODS[method].finder.probability(r) for r in share]
        axes.plot(BINS[:-1] + 0.025, measured, "o", color=colour, markersize=5, label=method)
        if None not in chances:
            axes.plot(share, chances, color=colour, linewidth=1)
        else:
            axes.plot(BINS[:-1] + 0.025, measured, ":", color=colour, linewidth=1)
    axes.set(xlabel="exact resemblance of two pages", ylabel="share of pairs that are candidates")
    axes.set_title(f"{name}: measured (dots), by formula (lines)")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
