"""CPU per page of a crawl with and without the filter.

    python benchmarks/cpu_per_page.py FOLDER [--rounds 3]

Crawls all pages of a folder, served on loopback, (a) without the filter, (b) with it in mark mode, so that
the same pages are fetched, parsed and followed, (c) dropping.  CPU = user + system time of the crawler's
process, the least of the rounds, less that of a crawl of an empty page (start-up).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from real_site import ROOT, running

from tests.support.redis import running_server

PORT = 8130


def cpu(start: str, work: Path, **settings: object) -> tuple[float, int]:
    """CPU seconds of a crawl, and how many responses it had."""
    stats = work / "stats.json"
    options = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "LOG_LEVEL": "ERROR"} | settings
    command = [sys.executable, "-c", RUN, start, str(stats), json.dumps(options)]
    process = subprocess.Popen(command, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime, json.loads(stats.read_text())["downloader/response_count"]


RUN = """
import json, sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings
start, stats, options = sys.argv[1:]
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
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shingleback-") as temporary:
        work = Path(temporary)
        listing = work / "listing"
        listing.mkdir()
        pages = sorted(arguments.folder.rglob("*.html"))
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
            startup = min(
                cpu(beside + "none.html", work, DEDUP_ENABLED=False)[0] for _ in range(arguments.rounds)
            )
            print(f"{len(pages):,} pages; start-up {startup:.2f} s of CPU, subtracted below")
            base = 0.0
            for name, settings in variants.items():
                runs = []
                for number in range(arguments.rounds):
                    filled = {
                        key: value.format(work=work, socket=server.socket, round=number)
                        if isinstance(value, str)
                        else value
                        for key, value in settings.items()
                    }
                    runs.append(cpu(beside, work, DEDUP_LOG=f"{work}/drops.jsonl", **filled))
                seconds, responses = min(runs)
                per_page = (seconds - startup) / responses * 1e3
                base = base or per_page
                print(
                    f"{name:20} {responses:6,} pages {per_page:7.2f} ms a page, {per_page / base:5.2f} of the first"
                )


if __name__ == "__main__":
    main()
