"""CPU per judged page of a crawl with and without the filter.

    python benchmarks/cpu_per_page.py FOLDER [--rounds 3] [--pages 150] [--only memory ...] [--in-python] [--figures FILE]

Crawls all pages of a folder, served on loopback, (a) without the filter, (b) with it in mark mode, so that
the same pages are fetched, parsed and followed, (c) dropping.  CPU = user + system time of the crawler's
process, less that of a crawl of an empty page (start-up) of the same kind.  It is divided by the pages that are judged:
dead links cost the same with and without the filter.  Rounds are interleaved; the ratios are medians of those of each
round, and of the least.  Modules are compiled once, before the first round, as where a package is installed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from real_site import ROOT, running

from benchmarks import figures
from tests.support.redis import running_server

PORT = 8130


def cpu(start: str, work: Path, without: list[str], **settings: object) -> tuple[float, int, int]:
    """CPU seconds of a crawl, how many responses it had, and how many pages were judged."""
    stats = work / "stats.json"
    options = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "LOG_LEVEL": "ERROR"}
    options |= {"CONCURRENT_ITEMS": 100} | settings  # as most projects have it, since it is Scrapy's default
    command = [sys.executable, "-c", RUN, start, str(stats), json.dumps(options), *without]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(work / "compiled")
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    found = json.loads(stats.read_text())
    counts = found["downloader/response_count"], found.get("dedup/pages", 0)
    return usage.ru_utime + usage.ru_stime, *counts


RUN = """
import json, sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings
start, stats, options, *without = sys.argv[1:]
sys.modules.update(dict.fromkeys(without))  # then they can't be imported
settings = get_project_settings()
settings.setdict(json.loads(options), priority="cmdline")
process = AsyncCrawlerProcess(settings)
crawler = process.create_crawler("site")
process.crawl(crawler, start=start)
process.start()
with open(stats, "w") as file:
    json.dump(crawler.stats.get_stats(), file, default=str)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--pages",
        type=int,
        default=150,
        help="only so many pages, drawn at random, and no links from them; 0: all",
    )
    parser.add_argument("--only", nargs="*", metavar="WORD", help="only variants with one of these words")
    parser.add_argument("--in-python", action="store_true", help="without what is compiled")
    figures.add_option(parser)
    arguments = parser.parse_args()
    without = ["dedup.fast"] if arguments.in_python else []
    with tempfile.TemporaryDirectory(prefix="shingleback-") as temporary:
        work = Path(temporary)
        listing = work / "listing"
        listing.mkdir()
        pages = sorted(arguments.folder.rglob("*.html"))
        always: dict[str, object] = {"DEDUP_LOG": f"{work}/drops.jsonl"}
        if arguments.pages:
            random.Random(1).shuffle(pages)
            del pages[arguments.pages :]
            always["DEPTH_LIMIT"] = 1
        start = f"http://127.0.0.1:{PORT}/"
        links = "".join(f'<a href="{start}{page.relative_to(arguments.folder)}">x</a>' for page in pages)
        (listing / "index.html").write_text(f"<title>Every page</title>{links}")
        (listing / "none.html").write_text("<title>Nothing</title>")
        beside = f"http://127.0.0.1:{PORT + 1}/"
        web = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]
        variants = {
            "without the filter": {"DEDUP_ENABLED": False},
            "mark, memory:": {"DEDUP_ACTION": "mark", "DEDUP_INDEX": "memory:"},
            "mark, file:": {"DEDUP_ACTION": "mark", "DEDUP_INDEX": "file:{work}/{round}.sqlite"},
            "mark, file:, incremental": {
                "DEDUP_ACTION": "mark",
                "DEDUP_INDEX": "file:{work}/incremental{round}.sqlite",
                "DEDUP_INCREMENTAL": True,
            },
            "mark, file:, texts kept": {
                "DEDUP_ACTION": "mark",
                "DEDUP_INDEX": "file:{work}/texts{round}.sqlite",
                "DEDUP_KEEP_TEXT": True,
            },
            "mark, redis": {
                "DEDUP_ACTION": "mark",
                "DEDUP_INDEX": "unix://{socket}",
                "DEDUP_NAMESPACE": "r{round}",
            },
            "drop, file:": {"DEDUP_INDEX": "file:{work}/drop{round}.sqlite"},
        }
        with (
            running(*web, str(PORT), "-d", str(arguments.folder), ready=start),
            running(*web, str(PORT + 1), "-d", str(listing), ready=beside),
            running_server("--appendonly", "no") as server,
        ):
            base, *others = variants
            chosen = [base] + [
                each for each in others if not arguments.only or any(word in each for word in arguments.only)
            ]
            startup: dict[str, list[float]] = {name: [] for name in chosen}
            spent: dict[str, list[float]] = {name: [] for name in chosen}
            counted: dict[str, tuple[int, int]] = {}
            for number in range(-1, arguments.rounds):
                for name in chosen:
                    filled = {
                        key: value.format(work=work, socket=server.socket, round=number)
                        if isinstance(value, str)
                        else value
                        for key, value in variants[name].items()
                    }
                    if number < 2:  # the first has compiled the modules
                        begun, *_ = cpu(beside + "none.html", work, without, **always, **filled)
                        startup[name] += [begun] if number >= 0 else []
                    if number < 0:
                        continue
                    seconds, *counts = cpu(beside, work, without, **always, **filled)
                    spent[name].append(seconds)
                    counted[name] = (counts[0], counts[1])
        judged = max(pages for _, pages in counted.values())
        print(
            f"{len(pages):,} pages, {judged:,} judged; seconds of start-up are subtracted from what pages take"
        )
        net = {name: [each - min(startup[name]) for each in spent[name]] for name in chosen}
        rows = list[dict[str, object]]()
        for name, seconds_of in net.items():
            ratio = median(one / plain for one, plain in zip(seconds_of, net[base], strict=True))
            print(
                f"{name:20} {counted[name][0]:6,} responses, start-up {min(startup[name]):.2f} s (median "
                f"{median(startup[name]):.2f}), a page {min(seconds_of) / judged * 1e3:6.2f} ms (median "
                f"{median(seconds_of) / judged * 1e3:6.2f}), {min(seconds_of) / min(net[base]):5.2f} of the first "
                f"(median {ratio:5.2f})"
            )
            ratios = {"ratio": round(min(seconds_of) / min(net[base]), 2), "median ratio": round(ratio, 2)}
            more = round(min(startup[name]) - min(startup[base]), 2)
            rows.append(
                {
                    "what": name.replace(":", ""),
                    "code": "in Python" if without else "compiled",
                    **ratios,
                    "start-up": more,
                }
            )
        figures.write(arguments.figures, rows[1:])


if __name__ == "__main__":
    main()
