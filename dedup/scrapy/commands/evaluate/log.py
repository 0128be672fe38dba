"""What other thresholds would have dropped, by the log of a crawl that only marked its near-duplicates."""

from collections import Counter
from pathlib import Path

from dedup.droplog.reader import Reader
from dedup.fingerprint.detector import Detector
from dedup.printing import many
from dedup.scrapy.commands.terminal import print_table

RESEMBLANCES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def evaluate_log(path: Path, detector: Detector) -> None:
    """Prints the table of drops by k and resemblance."""
    reader = Reader()
    records = (record for record in reader.read([path]) if not record.get("undone"))
    found = Counter((record["distance"], record["resemblance"]) for record in records)
    rows = [
        [k, *(sum(n for (d, r), n in found.items() if d <= k and r >= least) for least in RESEMBLANCES)]
        for k in range(1, 11)
    ]
    unreadable = f", {many(reader.unreadable, 'line')} unreadable" if reader.unreadable else ""
    print(f"{many(reader.records, 'near-duplicate')} in {path}{unreadable}")
    print("How many pages would have been dropped, by k (down) and resemblance (across):")
    print_table(
        ["k", *map(str, RESEMBLANCES)], rows, gap=False, starred=lambda row: row[0] == detector.max_distance
    )
    print(
        "The log knows only what its crawl found with its own thresholds. To see more, crawl with "
        "DEDUP_ACTION=mark, DEDUP_MAX_DISTANCE=7 and DEDUP_MIN_RESEMBLANCE=0.5."
    )
