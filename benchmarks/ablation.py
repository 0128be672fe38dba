"""The ablation table of benchmarks/RESULTS.md: one command per row, on one or more collections.

python benchmarks/ablation.py NAME.pairs.tsv.gz [NAME2.pairs.tsv.gz ...] --root FOLDER [--figures FILE]
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import figures

ROOT = Path(__file__).resolve().parents[1]

#: What each row changes of the defaults.
ROWS = [
    ("the defaults", ""),
    ("no second stage", "-s DEDUP_MIN_RESEMBLANCE=0"),
    ("k = 3", "-s DEDUP_MAX_DISTANCE=3"),
    ("k = 7", "-s DEDUP_MAX_DISTANCE=7"),
    ("resemblance >= .6", "-s DEDUP_MIN_RESEMBLANCE=.6"),
    ("resemblance >= .7", "-s DEDUP_MIN_RESEMBLANCE=.7"),
    ("resemblance >= .8", "-s DEDUP_MIN_RESEMBLANCE=.8"),
    ("weights 1 + ln count", "--features weights=log"),
    ("weights 1", "--features weights=one"),
    ("simhash of 6-shingles (the literal reading)", "--features simhash_size=6,simhash_urls=True"),
    ("... and no second stage", "--features simhash_size=6,simhash_urls=True -s DEDUP_MIN_RESEMBLANCE=0"),
    ("URLs in the simhash, too", "--features simhash_urls=True"),
    ("sketch of the words only", "--features sketch_urls=False"),
    ("no URLs at all", "-s DEDUP_KEEP_URLS=False"),
    ("3-word shingles", "-s DEDUP_SHINGLE_SIZE=3"),
    ("pages of 10 words are judged", "-s DEDUP_MIN_TOKENS=10"),
    ("pages of under 100 words are not", "-s DEDUP_MIN_TOKENS=100"),
    ("sketch of 128 x 2 bits (32 bytes)", "--features slots=128"),
    ("sketch of 256 x 4 bits (128 bytes)", "--features slots=256,bits=4"),
    ("sketch of 1,024 x 2 bits (256 bytes)", "--features slots=1024"),
    ("sketch of 512 x 8 bits (512 bytes)", "--features bits=8"),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--root", type=Path, required=True)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found = list[dict[str, object]]()
    names = [pairs.name.partition(".")[0] for pairs in arguments.pairs]
    print(
        "| change | "
        + " | ".join(f"{name}: false, recall" for name in names)
        + " | `benchmarks.quality` with |"
    )
    print("| --- |" + " --- |" * (len(names) + 1))
    for name, options in ROWS:
        cells, row = list[str](), dict[str, object]({"change": name})
        for pairs in arguments.pairs:
            with tempfile.NamedTemporaryFile(suffix=".json") as out:
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.quality",
                    str(pairs.resolve()),
                    "--json",
                    out.name,
                ]
                command += ["--root", str(arguments.root.resolve()), "--quick", *shlex.split(options)]
                subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
                (measured,) = json.load(out)["rows"]
            rate, recall = f"{100 * measured['false_rate']:.2f} %", round(measured["recall"], 4)
            cells.append(f"{measured['false']}/{measured['drops']:,} ({rate}), {recall:.4f}")
            site = pairs.name.partition(".")[0]
            row |= {f"{site}: false": rate, f"{site}: recall": recall}
        if "--features" not in options:  # what no setting changes is for the lab book
            found.append(row)
        print(f"| {name} | {' | '.join(cells)} | {f'`{options}`' if options else ''} |", flush=True)
    figures.write(arguments.figures, found)


if __name__ == "__main__":
    main()
