"""Scrapy projects of strangers: made in a folder, and crawled by the ``scrapy`` of this interpreter, as users do.

They make no use of what only the newest Scrapy has, so that they run on every version.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.crawls import Site
from tests.support.waiting import LIMIT
from tests.support.warm import python

#: A spider that follows every link, and yields an item for each page; the test says where it begins.
SPIDER = """
    import scrapy

    class Walker(scrapy.Spider):
        name = "walker"

        async def start(self):
            yield scrapy.Request(self.url)

        def parse(self, response):
            yield {"url": response.url}
            yield from response.follow_all(css="a")
"""
#: An extension of the project: it writes the stats at its very end.
STATS = """
    import atexit, json

    class Stats:
        @classmethod
        def from_crawler(cls, crawler):
            def write():
                with open("stats.json", "w") as file:
                    json.dump(crawler.stats.get_stats(), file, default=str)
            atexit.register(write)
            return cls()
"""


@dataclass
class Done:
    """What came of a command."""

    status: int
    output: str
    items: list[dict[str, Any]]
    stats: dict[str, Any]

    @property
    def mishaps(self) -> list[str]:
        """The lines of the log that tell of errors."""
        return [line for line in self.output.splitlines() if " ERROR: " in line or "Traceback" in line]


class Project:
    """A project with the add-on, in a folder of its own."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder = folder
        self.site = site
        self.settings: dict[str, Any] = {
            "BOT_NAME": "theirs",
            "SPIDER_MODULES": ["theirs.spiders"],
            "ADDONS": {"dedup.scrapy.Addon": 500},
            "EXTENSIONS": {"theirs.stats.Stats": 0},
            "DEDUP_CHROME": False,  # small sites
            "CONCURRENT_REQUESTS": 1,
            "DEPTH_PRIORITY": 1,
            "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
            "TELNETCONSOLE_ENABLED": False,
        }
        (folder / "theirs").mkdir()
        (folder / "theirs" / "__init__.py").touch()
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = theirs.settings\n")
        self.write("stats", STATS)
        self.write("spiders", SPIDER)

    def write(self, module: str, text: str) -> None:
        """Writes a module of the project."""
        (self.folder / "theirs" / f"{module}.py").write_text(dedent(text))

    def configure(self, **settings: Any) -> None:
        """Writes settings.py, with ``settings`` besides those of every command."""
        lines = [f"{name} = {value!r}\n" for name, value in (self.settings | settings).items()]
        self.write("settings", "".join(lines))

    def obey(self, code: str) -> None:
        """Adds what a settings.py of this code says."""
        names: dict[str, Any] = {}
        exec(code, names)  # noqa: S102
        self.settings |= {name: value for name, value in names.items() if name.isupper()}

    def scrapy(self, *arguments: str, **settings: Any) -> Done:
        """Runs a command of Scrapy in the project; ``settings`` are added to those of settings.py."""
        self.configure(**settings)
        for name in ("items.jsonl", "stats.json"):
            (self.folder / name).unlink(missing_ok=True)
        done = subprocess.run(
            [python(), "-m", "scrapy", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        items, stats = self.folder / "items.jsonl", self.folder / "stats.json"
        return Done(
            done.returncode,
            done.stdout + done.stderr,
            [*map(json.loads, items.read_text().splitlines())] if items.exists() else [],
            json.loads(stats.read_text()) if stats.exists() else {},
        )

    def crawl(self, spider: str = "walker", **settings: Any) -> Done:
        """Crawls the site from its front page."""
        return self.scrapy("crawl", spider, "-a", f"url={self.site.url}/", "-o", "items.jsonl", **settings)

    def paths(self, done: Done) -> list[str]:
        """The paths of the pages that the spider has made items of, in order."""
        return [item["url"].removeprefix(self.site.url) for item in done.items]


def documented(heading: str, first: str) -> str:
    """The code that docs/spiders.md shows under a heading, in the block whose first line begins so."""
    text = (ROOT / "docs" / "spiders.md").read_text()
    [section] = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    [block] = re.findall(rf"^```python\n({re.escape(first)}.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    """A project whose spider walks the site."""
    return Project(tmp_path, site)
