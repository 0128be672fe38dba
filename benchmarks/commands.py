"""What the commands cost: CPU of `scrapy duplicates`, of the verbs of `scrapy index`, and of starting a crawl.

    python benchmarks/commands.py [--records 2e6] [--pages 100000] [--rounds 3] [--only log|index|start]

The log is generated: so many records, of 530 bytes each, of 500 hosts and of kept pages that differ much in how many
near-duplicates they have.  The index has so many pages of random fingerprints, half of them in chains of near ones,
and is filled by `scrapy index import`.  A crawl is started on a page with nothing on it, in a project without the add-on
and in one with it.  CPU = user + system time of the command's process, start-up included, the least of the rounds; the
log is read once.
"""

import argparse
import functools
import http.server
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from dedup import Detector, open_index
from dedup.fingerprint.fingerprint import Called
from dedup.index.entry import Entry
from dedup.index.export import header_line, page_line

SEED = 7
ADDON = 'ADDONS = {"dedup.scrapy.Addon": 500}\n'


class Cost(NamedTuple):
    """What a process took."""

    cpu: float  # seconds
    wall: float  # seconds
    memory: float  # megabytes, at most


def cost(arguments: Sequence[object], folder: Path, output: Path) -> Cost:
    """The cost of a `scrapy` command, whose output goes to a file."""
    command = [sys.executable, "-W", "ignore", "-m", "scrapy", *map(str, arguments)]
    compiled = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(output.parent / "compiled"),
    }
    started = time.perf_counter()
    with output.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=compiled, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, output.read_text()
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024)


def show(name: str, costs: Sequence[Cost]) -> None:
    least = Cost(*map(min, zip(*costs, strict=True)))
    print(f"{name:44} {least.cpu:7.2f} s CPU {least.wall:7.2f} s wall {least.memory:5.0f} MB", flush=True)


def make_project(folder: Path, name: str, settings: str, start: str = "") -> Path:
    """A project with one spider, which visits one page."""
    project = folder / name
    spiders = project / "proj" / "spiders"
    spiders.mkdir(parents=True)
    (project / "scrapy.cfg").write_text("[settings]\ndefault = proj.settings\n")
    (project / "proj" / "__init__.py").touch()
    (spiders / "__init__.py").touch()
    common = 'BOT_NAME = "p"\nSPIDER_MODULES = ["proj.spiders"]\nTELNETCONSOLE_ENABLED = False\n'
    (project / "proj" / "settings.py").write_text(common + settings)
    (spiders / "s.py").write_text(
        "import scrapy\n\n\nclass S(scrapy.Spider):\n"
        f'    name = "s"\n    start_urls = ["{start}"]\n\n    def parse(self, response):\n        pass\n'
    )
    return project


def write_log(path: Path, records: int) -> None:
    """Writes a drop log of so many records."""
    rng = random.Random(SEED)
    kept = [
        f"https://host{rng.randrange(500)}.example.org/shop/item-{number}.html" for number in range(20_000)
    ]
    time_of = datetime(2026, 11, 1, tzinfo=UTC)
    with path.open("w") as file:
        for number in range(records):
            time_of += timedelta(milliseconds=rng.randrange(400))
            of = kept[int(len(kept) * rng.random() ** 3)]
            simhash, own = rng.getrandbits(64), rng.randrange(50, 2_000)
            record = {
                "time": time_of.isoformat(timespec="milliseconds"),
                "url": f"{of.removesuffix('.html')}-{number}.html?session={rng.getrandbits(40):x}",
                "duplicate_of": of,
                "distance": rng.randrange(7),
                "resemblance": round(1 - rng.random() / 5, 4),
                "own": own,
                "matching": own - 3,
                "new": 3,
                "simhash": f"{simhash:016x}",
                "duplicate_of_simhash": f"{simhash ^ 1:016x}",
                "tokens": rng.randrange(50, 5_000),
                "links": rng.randrange(300),
                "bytes": rng.randrange(1_000, 200_000),
                "rule": rng.choice(("exact", "simhash")),
                "action": "drop",
                "referer": kept[rng.randrange(len(kept))],
                "canonical": None,
                "agrees": None,
                "depth": rng.randrange(20),
            }
            file.write(json.dumps(record) + "\n")


def write_export(path: Path, pages: int) -> None:
    """Writes an export of so many pages."""
    rng = random.Random(SEED)
    index = open_index("memory:", Detector())
    octets, run, simhash = index.detector.sketcher.size, f"{rng.getrandbits(128):032x}", 0
    with path.open("w") as file:
        file.write(header_line(index) + "\n")
        for number in range(pages):
            simhash = simhash ^ 1 << rng.randrange(64) if number % 2 else rng.getrandbits(64)
            file.write(
                page_line(
                    Entry(
                        f"{rng.getrandbits(160):040x}",
                        f"https://host{number % 500}.example.org/shop/item-{number}.html",
                        simhash,
                        0,
                        rng.getrandbits(64),
                        (),
                        rng.randbytes(octets),
                        1_790_000_000 + number // 10,
                        run,
                        rng.getrandbits(64),
                        Called(*(rng.getrandbits(64) for _ in Called._fields)),
                    )
                )
                + "\n"
            )


def measure_log(work: Path, records: int) -> None:
    log, out = work / "drops.jsonl", work / "out"
    project = make_project(work, "reading", ADDON)
    write_log(log, records)
    print(f"a log of {log.stat().st_size / 1e6:,.0f} MB, {records:,} records")
    show("scrapy duplicates", [cost(["duplicates", log], project, out)])
    show("scrapy duplicates --host", [cost(["duplicates", log, "--host", "host7.example.org"], project, out)])
    log.unlink()


def measure_index(work: Path, pages: int, rounds: int) -> None:
    out, given = work / "out", work / "given.jsonl"
    project = make_project(work, "indexed", ADDON)
    write_export(given, pages)
    print(f"an index of {pages:,} pages")
    number = iter(range(sys.maxsize))

    def index(verb: str, *arguments: object, file: str = "i0") -> Cost:
        return cost(["index", verb, *arguments, "-s", f"DEDUP_INDEX=file:{work}/{file}.sqlite"], project, out)

    verbs: Mapping[str, Callable[[], Cost]] = {
        "import": lambda: index("import", given, file=f"i{next(number)}"),
        "export": lambda: index("export", work / f"taken{next(number)}.jsonl"),
        "check": lambda: index("check"),
        "info": lambda: index("info"),
    }
    for verb, run in verbs.items():
        show(f"scrapy index {verb}", [run() for _ in range(rounds)])


def measure_start(work: Path, rounds: int) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    web = work / "web"
    web.mkdir()
    (web / "none.html").write_text("<title>Nothing</title>")
    handler = functools.partial(Quiet, directory=str(web))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        start = f"http://127.0.0.1:{server.server_port}/none.html"
        plain, filtered = make_project(work, "plain", "", start), make_project(work, "filtered", ADDON, start)
        crawls: Mapping[str, tuple[Path, Sequence[str]]] = {
            "scrapy crawl, plain project": (plain, ()),
            "... with the add-on, index in memory": (filtered, ("-s", "DEDUP_INDEX=memory:")),
            "... with the add-on, index in a file": (filtered, ()),
            "... with the add-on, DEDUP_ENABLED = False": (filtered, ("-s", "DEDUP_ENABLED=False")),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in crawls}
        for _ in range(rounds):  # by turns, since others may use the machine
            for name, (project, options) in crawls.items():
                costs[name].append(cost(["crawl", "s", *options], project, work / "out"))
        server.shutdown()
    print("a crawl of an empty page")
    for name, found in costs.items():
        show(name, found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=float, default=2e6)
    parser.add_argument("--pages", type=float, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("log", "index", "start"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shingleback-") as temporary:
        work = Path(temporary)
        parts: Mapping[str, Callable[[], None]] = {
            "start": lambda: measure_start(work, 3 * arguments.rounds),
            "index": lambda: measure_index(work, int(arguments.pages), arguments.rounds),
            "log": lambda: measure_log(work, int(arguments.records)),
        }
        for name, part in parts.items():
            if arguments.only in (None, name):
                part()


if __name__ == "__main__":
    main()
