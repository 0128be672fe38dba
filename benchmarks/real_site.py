"""Crawls a real site, unpacked into a folder, on the file index and on Redis, twice each.

    python benchmarks/real_site.py FOLDER [--truth PAIRS.tsv.gz] [--every-page] [--settings NAME=VALUE ...]

Serves the folder by ``python -m http.server`` and runs ``scrapy crawl site``.  With a truth file (a, b,
resemblance of every pair >= .6, paths relative to the folder's parent) it counts false drops (no kept page
of resemblance >= .7) and misses (kept although an earlier kept page has >= .9).  One request at a time, so
that both stores see the pages in one order and must agree page for page.  ``--every-page`` starts at a page, served
beside it, that links to all pages in shuffled order: links of dropped pages are never followed, so a crawl
from the front page meets only part of a site of many versions.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from urllib.request import urlopen

from tests.support.redis import running_server

SEED = 42
ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def running(*command: str, ready: str) -> Iterator[None]:
    """A server, once it answers at a URL."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                urlopen(ready).close()
                break
            except OSError:
                time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def crawl(
    start: str, index: str, out: Path, settings: list[str]
) -> tuple[list[str], list[dict[str, str]], float]:
    """URLs kept, in order; drop records; seconds of CPU and wall time."""
    out.mkdir()
    options = {
        "DEDUP_INDEX": index,
        "DEDUP_LOG": str(out / "drops.jsonl"),
        "DEDUP_PARKED": str(out / "parked.jsonl"),
        "DOWNLOAD_DELAY": "0",
        "CONCURRENT_REQUESTS": "1",
        "LOG_LEVEL": "WARNING",
    } | dict(setting.split("=", 1) for setting in settings)
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "crawl",
        "site",
        "-a",
        f"start={start}",
        "-O",
        f"{out}/pages.jsonl",
    ]
    command += [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True)
    seconds = time.perf_counter() - started
    kept = [json.loads(line)["url"] for line in (out / "pages.jsonl").open()]
    drops = out / "drops.jsonl"
    return kept, [json.loads(line) for line in drops.open()] if drops.exists() else [], seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--every-page", action="store_true")
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--port", type=int, default=8123)
    arguments = parser.parse_args()
    truth: dict[str, dict[str, float]] = defaultdict(dict)
    if arguments.truth:
        with gzip.open(arguments.truth, "rt") as lines:
            next(lines)
            for a, b, resemblance in (line.rstrip("\n").split("\t") for line in lines):
                truth[a][b] = truth[b][a] = float(resemblance)
    name = arguments.folder.resolve().name
    start = f"http://127.0.0.1:{arguments.port}/"

    def path(url: str) -> str:
        found = unquote(urlsplit(url).path)
        return f"{name}{found}index.html" if found.endswith("/") else name + found

    with tempfile.TemporaryDirectory(prefix="shingleback-") as temporary:
        work = Path(temporary)
        web = [sys.executable, "-m", "http.server", str(arguments.port), "--bind", "127.0.0.1"]
        listing = [*web[:3], str(arguments.port + 1), *web[4:], "-d", str(work / "listing")]
        pages = sorted(str(page.relative_to(arguments.folder)) for page in arguments.folder.rglob("*.html"))
        random.Random(SEED).shuffle(pages)
        (work / "listing").mkdir()
        links = "".join(f'<a href="{start}{quote(page)}">{page}</a>\n' for page in pages)
        (work / "listing" / "index.html").write_text(f"<title>Every page</title>{links}")
        beside = f"http://127.0.0.1:{arguments.port + 1}/"
        print(f"{len(pages):,} pages in {name}, shuffled with seed {SEED}" if arguments.every_page else name)
        results = {}
        with (
            running(*web, "-d", str(arguments.folder), ready=start),
            running(*listing, ready=beside),
            running_server() as server,
        ):
            print(
                f"{'index':12} {'run':>3} {'fetched':>8} {'kept':>6} {'dropped':>8} {'false':>6} {'missed':>7} {'s':>6}"
            )
            for store, index in (("file:", f"file:{work}/index.sqlite"), ("redis", server.address)):
                for run in (1, 2):
                    # One page may be reached under two URLs: / and /index.html are no false drop.
                    kept, drops, seconds = crawl(
                        beside if arguments.every_page else start,
                        index,
                        work / f"{store[:5]}{run}",
                        arguments.settings,
                    )
                    results[store, run] = sorted(kept), sorted(drop["url"] for drop in drops)
                    paths = [path(url) for url in kept]
                    false = [
                        drop
                        for drop in drops
                        if path(drop["url"]) != path(drop["duplicate_of"])
                        and max((truth[path(drop["url"])].get(page, 0) for page in paths), default=0) < 0.7
                    ]
                    missed = [
                        page
                        for at, page in enumerate(paths)
                        if max((truth[page].get(earlier, 0) for earlier in paths[:at]), default=0) >= 0.9
                    ]
                    fetched = len(kept) + len(drops)
                    counts = (len(false), len(missed)) if arguments.truth else ("-", "-")
                    print(
                        f"{store:12} {run:3} {fetched:8,} {len(kept):6,} {len(drops):8,} "
                        f"{counts[0]:>6} {counts[1]:>7} {seconds:6.1f}"
                    )
                    if arguments.truth and run == 1:
                        for drop in false[:5]:
                            print(
                                "   false:",
                                drop["url"],
                                "of",
                                drop["duplicate_of"],
                                drop["distance"],
                                drop["resemblance"],
                            )
                        for page in missed[:5]:
                            print("   missed:", page)
        alike = [results["file:", run] == results["redis", run] for run in (1, 2)]
        for run in (1, 2):
            for file_urls, redis_urls in zip(results["file:", run], results["redis", run], strict=True):
                if file_urls != redis_urls:
                    differ = set(file_urls) ^ set(redis_urls)
                    print(f"   run {run} differs:", sorted(differ)[:5])
        print(f"the two stores agree page for page: {'yes' if all(alike) else 'NO'} (run 1, run 2: {alike})")


if __name__ == "__main__":
    main()
