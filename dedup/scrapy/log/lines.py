"""The lines of Scrapy's log about near-duplicates: the first few in full, then counts.

They have a logger of their own, so that a project can silence them, and nothing else:
``logging.getLogger("dedup.drops").setLevel("WARNING")``.
"""

from scrapy.crawler import Crawler

from dedup.droplog.reason import reason
from dedup.droplog.record import Record
from dedup.printing import inert
from dedup.scrapy.settings import PREFIX
from dedup.scrapy.signals import logger_for

LOGGER = "dedup.drops"
#: How many near-duplicates have a line each.
FIRST = 10

_SAID = {"drop": "Dropped", "nofollow": "Not followed:", "mark": "Marked"}


class Lines:
    """Tells of near-duplicates: of the first ten, then that there are a hundred, a thousand, and so on."""

    def __init__(self, crawler: Crawler, show_all: bool) -> None:
        self._logger = logger_for(crawler, LOGGER)
        self._show_all = show_all
        self._count = 0
        self._next = FIRST * 10

    def add(self, record: Record) -> None:
        """One more near-duplicate was found, and is in the drop log."""
        self._count += 1
        if self._show_all or self._count <= FIRST:
            said = _SAID[record["action"]], inert(record["url"]), inert(record["duplicate_of"])
            self._logger.info("%s near-duplicate %s of %s: %s", *said, reason(record))
            if self._count == FIRST and not self._show_all:
                self._logger.info(
                    "No more near-duplicates are shown here, only counted (set %sSHOW_ALL to see all of them)",
                    PREFIX,
                )
        elif self._count == self._next:
            self._next *= 10
            self._logger.info("%s near-duplicates so far", f"{self._count:,}")
