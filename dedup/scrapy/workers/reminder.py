"""Says now and then that links wait for a shard which nobody crawls."""

import time

from scrapy.crawler import Crawler

from dedup.scrapy.signals import logger_for

#: Seconds between two lines.
PAUSE = 60.0


class Reminder:
    """What the log of a worker that waits for others says."""

    def __init__(self, crawler: Crawler, shards: int) -> None:
        self._shards = shards
        self._told = 0.0
        self._logger = logger_for(crawler, __name__)

    def see(self, missing: tuple[int, int] | None) -> None:
        """Hears which shard has no worker, and how many links wait there; None: this worker does not wait for any."""
        now = time.monotonic()
        if missing is None:
            self._told = now
        elif now > self._told + PAUSE:
            self._told = now
            shard, links = missing
            text = "This worker waits: %s links wait for shard %d of %d, which nobody crawls; start a worker for it"
            self._logger.warning(text, f"{links:,}", shard + 1, self._shards)
