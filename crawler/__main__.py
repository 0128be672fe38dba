"""``make crawl``: crawls a site, or the demo site of this package, and prints a summary."""

import logging
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from shutil import which

from scrapy.utils.project import get_project_settings

from crawler.demo import Site, serve
from crawler.spiders.site import SiteSpider
from dedup.scrapy.commands.crawl import ExitStatus
from dedup.scrapy.compat import crawler_process
from dedup.scrapy.log.summary import LOGGER, summary

#: Where the demo's files go; each run starts with empty ones.
DEMO = Path("demo")


def main(url: str) -> int:
    """Crawls ``url``, or the demo site if that is empty, and returns the exit status."""
    os.environ.setdefault("SCRAPY_SETTINGS_MODULE", "crawler.settings")  # from any folder
    settings = get_project_settings()
    with ExitStack() as stack:
        items = Path("pages.jsonl")
        if not url:
            DEMO.mkdir(exist_ok=True)
            items, log, index = (DEMO / name for name in ("pages.jsonl", "duplicates.jsonl", "index.sqlite"))
            for old in (items, *DEMO.glob(f"{log.name}*"), *DEMO.glob(f"{index.name}*")):
                old.unlink(missing_ok=True)
            demo = {"DEDUP_INDEX": f"file:{index}", "DEDUP_LOG": str(log), "DOWNLOAD_DELAY": 0}
            settings.setdict(demo, priority="cmdline")
            url = stack.enter_context(serve(Site()))
        settings.set("FEEDS", {str(items): {"format": "jsonlines"}}, priority="cmdline")
        wanted = stack.enter_context(ExitStatus())
        process = crawler_process(settings)
        for told_here in ("scrapy", LOGGER):  # settings and stats fill a screen, and the summary is printed
            logging.getLogger(told_here).setLevel(logging.WARNING)
        crawler = process.create_crawler(SiteSpider)
        process.crawl(crawler, start=url)
        process.start()
    stats = crawler.stats.get_stats()
    if not wanted.status:
        beside = os.path.relpath(Path(sys.executable).with_name("scrapy"))
        text = summary(stats, crawler.settings["DEDUP_LOG"], "scrapy" if which("scrapy") else beside)
        print(f"\n{url}: {text}\n  items     {items}")
    return wanted.status or int(process.bootstrap_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
