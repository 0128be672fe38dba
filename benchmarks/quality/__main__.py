"""The figures of benchmarks/RESULTS.md on a collection of pages.

    python -m benchmarks.quality NAME.pairs.tsv.gz --root FOLDER [-s DEDUP_NAME=VALUE ...] [options]

NAME.pairs.tsv.gz has a, b and their resemblance, and NAME.docs.txt.gz beside it the pages' paths below FOLDER.  The thresholds are those of the settings, and each k and resemblance.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scrapy.settings import Settings

from benchmarks import figures
from benchmarks.quality.collection import evaluate_collection
from benchmarks.quality.features import ablated
from benchmarks.quality.replay import Replay
from dedup.scrapy.commands.evaluate.run import thresholds
from dedup.scrapy.settings import read_settings


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("pairs", type=Path)
    add("--root", type=Path, default=Path(), help="the folder that paths start from (default: this one)")
    add("-s", dest="set", action="append", default=[], metavar="NAME=VALUE", help="a setting")
    add(
        "--features", default="", metavar="NAME=VALUE,...", help="e.g. weights=log,sketch_urls=False,slots=64"
    )
    add("--seed", type=int, default=42, help="number that the order of pages follows from (42)")
    through = "also measure what the index that DEDUP_INDEX names does with the pages"
    add("--through-index", action="store_true", help=through)
    exact = "also compare the resemblance that sketches estimate with the exact one"
    add("--sketch", action="store_true", help=exact)
    add("--quick", action="store_true", help="try the settings' thresholds only")
    add("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    figures.add_option(parser)
    opts = parser.parse_args(arguments)
    settings = Settings({"DEDUP_INDEX": "memory:"})
    for each in opts.set:
        settings.set(*each.split("=", 1), "cmdline")
    options = read_settings(settings)
    detector = replace(options.detector, features=ablated(opts.features))
    replay = Replay(settings["DEDUP_INDEX"], detector, options.index.settings)
    own = [(detector.max_distance, detector.min_resemblance)]
    found = evaluate_collection(opts.pairs, replay, own if opts.quick else thresholds(detector), opts)
    if opts.json:
        opts.json.write_text(json.dumps(found, indent=1) + "\n")
    rows = [
        {
            "site": opts.pairs.name.partition(".")[0],
            "order": opts.seed,
            "drops": row["drops"],
            "false": row["false"],
            "recall": round(row["recall"], 4),
        }
        for row in found["rows"]
        if "index" in row or (not opts.through_index and (row["k"], row["min_resemblance"]) in own)
    ]
    figures.write(opts.figures, rows)


if __name__ == "__main__":
    main()
