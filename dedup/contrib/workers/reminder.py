"""What a worker says while it waits: for its shard, or for links that wait for a shard which nobody crawls."""

import time

from scrapy.crawler import Crawler

from dedup.contrib.workers.partition import Shard
from dedup.errors import IndexInUseError
from dedup.scrapy.signals import logger_for

#: Seconds between two lines.
PAUSE = 60.0
#: A worker that has died is known as dead after this many leases.
LEASES = 1.5


class Reminder:
    """What the log of a worker that waits for others says."""

    def __init__(self, crawler: Crawler, shard: Shard, lease: float) -> None:
        """``lease`` is in seconds."""
        self._shard = shard
        self._patience = LEASES * lease
        self._began = time.monotonic()
        self._waits = False  # for its shard, and has said so
        self._told = 0.0
        self._logger = logger_for(crawler, __name__)

    def wait(self) -> None:
        """Hears that another worker has the shard, or had it until it died.  Raises `IndexInUseError` if that one lives."""
        if not self._waits:
            self._waits = True
            text = "Waits for shard %s, which another worker has, or had until it died: that shows within %d seconds"
            self._logger.info(text, self._shard, self._patience)
        if time.monotonic() > self._began + self._patience:
            raise IndexInUseError(
                f"shard {self._shard} is being crawled by another worker; give this one the number of another shard, "
                f"or start it with auto/{self._shard.of}, which takes the first shard that is free",
                settings=("shard",),
            )

    def see(self, missing: tuple[int, int] | None) -> None:
        """Hears which shard has no worker, and how many links wait there; None: this worker does not wait for any."""
        now = time.monotonic()
        if missing is None:
            self._told = now
        elif now > self._told + PAUSE:
            self._told = now
            shard, links = missing
            text = "This worker waits: %s links wait for shard %d of %d, which nobody crawls; start a worker for it"
            self._logger.warning(text, f"{links:,}", shard + 1, self._shard.of)
