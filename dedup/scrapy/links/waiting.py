"""The requests that wait when a crawl stops, for the crawl that goes on with its JOBDIR.

They are kept as Scrapy keeps those in its queues on disk.  One that can't be, because its callback is no method of
the spider, is in the log of parked links only.
"""

import logging
import pickle
from pathlib import Path

from scrapy import Spider
from scrapy.utils.request import request_from_dict

from dedup.links import Link, Links

logger = logging.getLogger(__name__)


def leave_parked(path: Path, links: Links, spider: Spider) -> None:
    """Writes the requests that wait."""
    lost = 0
    try:
        with path.open("wb") as file:
            for link in links.parking.all_links():
                try:
                    line = pickle.dumps((link.found_on, link.origin.to_dict(spider=spider)))
                except Exception:  # noqa: BLE001 (pickle raises anything)
                    lost += 1
                    continue
                file.write(line)
    except OSError as error:
        logger.warning("The parked links can't be stored, and are in the log only: %s", error)
        return
    if lost:
        logger.warning("%d parked links can't be stored, and are in the log only", lost)


def take_parked(path: Path, links: Links, spider: Spider) -> None:
    """Parks the requests again that an earlier part of the job has left."""
    try:
        with path.open("rb") as file:
            while True:
                found_on, values = pickle.load(file)
                request = request_from_dict(values, spider=spider)
                links.park(Link(request.url.partition("#")[0], found_on, origin=request))
    except (EOFError, FileNotFoundError):
        pass
    except Exception as error:  # noqa: BLE001 (a damaged file may raise anything)
        logger.warning("Some parked links can't be read again, and are in the log only: %s", error)
