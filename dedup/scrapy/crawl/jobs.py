"""The run of a job: a crawl that is stopped, and goes on with its JOBDIR, is one run of the index.

The name of the run lies in the JOBDIR while no crawl is using that.  A start that is refused leaves it there.  A crawl
that is killed leaves none: Scrapy may have lost requests of its pages, so the next one judges anew.
"""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from scrapy.settings import BaseSettings

from dedup.index.lifecycle import CRAWL

FILE = "dedup.run"


def left_run(settings: BaseSettings) -> str | None:
    """Returns the run that goes on; None if a new one begins."""
    folder = settings.get("JOBDIR")
    with suppress(OSError, UnicodeDecodeError):
        run = Path(folder, FILE).read_text("ascii").strip() if folder else ""
        return run if len(run) == 32 and set(run) <= set("0123456789abcdef") else None
    return None


def new_run(crawl: str) -> str:
    """Returns a run of a crawl by many workers, whose name its own begins with; "" for a crawl by itself.

    >>> new_run("9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d")[:CRAWL]
    '9b1deb4d3b7d4bad'
    """
    return crawl[:CRAWL] + uuid4().hex[len(crawl[:CRAWL]) :]


def begin_run(settings: BaseSettings) -> None:
    """From now on a kill ends the run.  Raises OSError."""
    if folder := settings.get("JOBDIR"):
        Path(folder, FILE).unlink(missing_ok=True)


def leave_run(settings: BaseSettings, run: str) -> None:
    """Leaves the run to the crawl that goes on with this job, if this is one."""
    if folder := settings.get("JOBDIR"):
        with suppress(OSError):  # then a new run begins
            Path(folder, FILE).write_text(f"{run}\n", "ascii")
