"""The crawls of a trial: each is a process of its own, which may be killed."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy.utils.test import get_crawler

from dedup.contrib.workers import shards
from tests.chaos.spec import Spec
from tests.chaos.spiders import Refuses, Traveller, Writes

#: Seconds that one crawl may take, on a machine however busy.
LIMIT = 600
#: Seconds after which what a silent crawler has claimed shadows nothing, and a shard is free.
LEASE = 3.0


class Process:
    """A running piece of work."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._end = time.monotonic() + LIMIT
        self._pid = os.fork()
        if not self._pid:
            _run(work)

    def has_ended(self) -> bool:
        """Whether it has ended; it has to, in time and without an error."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            assert status == 0, "a crawl could not be run"
            return True
        if time.monotonic() > self._end:
            self.kill()
            raise AssertionError("a crawl has not ended")
        return False

    def wait(self, enough: Callable[[], bool] = lambda: False) -> bool:
        """Waits for its end, or until it is enough, and then kills it (-9); whether it was killed."""
        while not self.has_ended():
            if enough():
                self.kill()
                return True
            time.sleep(0.005)
        return False

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _run(work: Callable[[], object]) -> None:
    status = 1
    try:
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")  # of what older Scrapys need
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (to the end of the process)
        work()
        status = 0
    except BaseException:  # noqa: BLE001 (a fork must not go on as its parent)
        traceback.print_exc()
    finally:
        os._exit(status)


def crawl(items: Path, own: dict[str, Any], url: str) -> Callable[[], object]:
    """The work of a crawl, which writes its items to a file."""

    def work() -> None:
        shards.LEASE, shards.BEAT = LEASE, 0.1
        asyncio.run(get_crawler(Traveller, own | {"ITEMS": str(items)}).crawl_async(url=url))

    return work


def settings(spec: Spec) -> dict[str, Any]:
    """Those of every crawl, with and without the filter."""
    common = {
        "SPEC": asdict(spec),
        "ITEM_PIPELINES": {Writes: 1},
        "DOWNLOADER_MIDDLEWARES": {Refuses: -5},
        "CONCURRENT_REQUESTS": spec.at_once,
        "CONCURRENT_REQUESTS_PER_DOMAIN": spec.at_once,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "CRITICAL",
    }
    if spec.breadth:
        common |= {"DEPTH_PRIORITY": 1, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}
    return common


def contents(*files: Path) -> set[str]:
    """What crawls have handed over."""
    lines = [line for file in files if file.exists() for line in file.read_bytes().splitlines(keepends=True)]
    whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return {
        " with ".join([item["content"], *(part for part in ("hours", "contact") if part in item)])
        for item in whole
    }


def has(number: int, *files: Path) -> Callable[[], bool]:
    """Whether crawls have handed over so many items."""
    return lambda: sum(file.read_bytes().count(b"\n") for file in files if file.exists()) >= number
