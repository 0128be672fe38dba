"""A crawler's pulse, for whoever watches its container: a file that is touched as long as the event loop turns."""

import asyncio
from pathlib import Path
from typing import Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

#: Seconds between two beats.
BEAT = 5.0


class Pulse:
    """Touches the file that the setting CRAWLER_PULSE names."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Is called by Scrapy."""
        name = crawler.settings.get("CRAWLER_PULSE")
        if not name:
            raise NotConfigured  # and nothing is said of it
        pulse = cls(Path(name))
        crawler.signals.connect(pulse.engine_started, signals.engine_started)
        crawler.signals.connect(pulse.engine_stopped, signals.engine_stopped)
        return pulse

    def engine_started(self) -> None:
        """Begins to beat."""
        self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            self._path.touch()
            await asyncio.sleep(BEAT)

    def engine_stopped(self) -> None:
        """Beats no more."""
        self._beating.cancel()
