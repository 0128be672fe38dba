"""Runs trials: the same crawl without and with the filter, the second one disturbed; what only the first hands over is lost."""

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stderr
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from scrapy.utils.test import get_crawler

from crawler.demo import serve
from tests.chaos.spec import Spec, simpler
from tests.chaos.world import Refuses, Site, Traveller, Writes

__all__ = ["lost", "shrunk"]

#: Seconds that one crawl may take, on a machine however busy.
LIMIT = 240


def lost(spec: Spec, redis: str = "") -> set[str]:
    """The contents that are handed over without the filter, and not with it; ``redis`` is the address of a server."""
    # The server complains to the standard error of clients that were killed.
    with tempfile.TemporaryDirectory() as name, redirect_stderr(StringIO()):
        folder = Path(name)
        with serve(Site(spec)) as url:
            _crawl(spec, url, folder / "without", settings(spec, "", enabled=False))
        assert _contents(folder / "without"), f"nothing to be lost: {spec}"
        with serve(Site(spec)) as url:
            return _contents(folder / "without") - _with_filter(spec, url, folder, redis)


def _with_filter(spec: Spec, url: str, folder: Path, redis: str) -> set[str]:
    index = {"memory": "memory:", "file": f"file:{folder}/index.sqlite", "redis": redis or "memory:"}[
        spec.index
    ]
    own = settings(spec, index) | {
        "DEDUP_LOG": f"{folder}/drops.jsonl",
        "DEDUP_PARKED": f"{folder}/parked.jsonl",
    }
    first, second = folder / "first", folder / "second"
    if spec.plan == "once":
        _crawl(spec, url, first, own)
        return _contents(first)
    items = max(1, int(spec.moment * spec.contents))
    if spec.plan == "stop":
        job = own | {"JOBDIR": f"{folder}/job"}
        _crawl(spec, url, first, job | {"CLOSESPIDER_ITEMCOUNT": items})
        _crawl(spec, url, second, job)
        return _contents(first) | _contents(second)
    slowly = own | {"DOWNLOAD_DELAY": spec.delay, "RANDOMIZE_DOWNLOAD_DELAY": False}
    _crawl(spec, url, first, slowly, kill_after=items if spec.plan == "kill" else None)
    _crawl(spec, url, second, own)
    return _contents(second)


def settings(spec: Spec, index: str, *, enabled: bool = True) -> dict[str, Any]:
    """Of one crawl."""
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
    if not enabled:
        return common
    return common | {
        "ADDONS": {"dedup.scrapy.Addon": 500},
        "DEDUP_INDEX": index,
        "DEDUP_NAMESPACE": uuid4().hex,
        "DEDUP_LEASE": 3.0,
        "DEDUP_ACTION": spec.action,
        "DEDUP_FOLLOW": spec.follow,
        "DEDUP_METHOD": spec.method,
        "DEDUP_SCOPE": spec.scope,
        "DEDUP_CHROME": not spec.whole,
    }


def _contents(items: Path) -> set[str]:
    lines = items.read_bytes().splitlines(keepends=True) if items.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return {f"{item['content']}{' with hours' * ('hours' in item)}" for item in whole}


def _crawl(spec: Spec, url: str, items: Path, own: dict[str, Any], kill_after: int | None = None) -> None:
    """Crawls in a process of its own, which is killed (-9) after so many items."""
    pid = os.fork()
    if not pid:
        _run(url, own | {"ITEMS": str(items)})
    end = time.monotonic() + LIMIT
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        time.sleep(0.005)
        late = time.monotonic() > end
        if late or (kill_after and items.exists() and items.read_bytes().count(b"\n") >= kill_after):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            assert not late, f"a crawl has not ended: {spec}"
            return


def _run(url: str, own: dict[str, Any]) -> None:
    status = 1
    try:
        logging.disable(logging.CRITICAL)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (to the end of the process)
        asyncio.run(get_crawler(Traveller, own).crawl_async(url=url))
        status = 0
    except BaseException:  # noqa: BLE001 (a fork must not go on as its parent)
        traceback.print_exc()
    finally:
        os._exit(status)


def shrunk(spec: Spec, redis: str = "") -> Spec:
    """The simplest trial like this one in which something is lost, too."""
    for other in simpler(spec):
        if lost(other, redis):
            return shrunk(other, redis)
    return spec
