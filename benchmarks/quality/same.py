"""The measure by identity on a collection of which it is known which page each one is."""

import argparse
import random
from pathlib import Path
from typing import Any

from benchmarks.quality.measures import measure_identity
from benchmarks.quality.replay import Replay
from benchmarks.quality.truth import read_collection, read_html
from dedup.intervals import wilson
from dedup.scrapy.commands.terminal import each, interval, print_table

#: How many shuffled orders are tried, beside that of the collection.
ORDERS = 5


def evaluate_identity(path: Path, replay: Replay, opts: argparse.Namespace) -> dict[str, Any]:
    """Prints the figures for some orders of a collection's pages, and returns them."""
    collection = read_collection(path)
    detector, urls, fingerprints = replay.detector, [], []
    for name in each(collection.paths, "Fingerprints"):
        html, url = read_html(name, opts.root)
        urls.append(url)
        fingerprints.append(detector.fingerprint(html, url))
    judged = [fingerprint.reason is None for fingerprint in fingerprints]
    print(
        f"{len(urls):,} pages, {len(set(collection.names)):,} different ones by their names, "
        f"{judged.count(False):,} that can't be judged"
    )
    rows = []
    for seed in [*range(opts.seed, opts.seed + ORDERS), None]:
        order = list(range(len(urls)))
        if seed is not None:
            random.Random(seed).shuffle(order)
        of = replay(fingerprints, urls, order)
        found = measure_identity(of, order, collection.names, collection.truth, judged)
        rows.append({"seed": seed, **found._asdict(), "recall": found.recall})
    print_table(
        ["order", "drops", "false", "main text < .9", "95 %", "missed", "recall", "95 %"],
        [
            [
                "as given" if row["seed"] is None else f"seed {row['seed']}",
                row["drops"],
                row["false"],
                row["far"],
                f"{interval([100 * bound for bound in wilson(row['far'], row['drops'])], 2)} %",
                f"{row['missed']} of {row['could']}",
                f"{row['recall']:.4f}",
                wilson(row["could"] - row["missed"], row["could"]),
            ]
            for row in rows
        ],
        gap=False,
        starred=lambda row: False,
    )
    return {"pages": len(urls), "parameters": detector.parameters, "rows": rows}
