"""The end of a crawl: what it still has to fetch when nothing else is left."""

import asyncio
from collections.abc import Awaitable, Callable

from dedup.filter.judges import Bench
from dedup.filter.listener import Listener
from dedup.filter.watch.doubts import INTERVAL
from dedup.index.batching import end


class Ending:
    """Asks at the end for what only dropped pages link to, and for what earlier crawls have met and this one has not."""

    def __init__(self, bench: Bench, listener: Listener) -> None:
        self._bench = bench
        self._listener = listener
        self._looking: asyncio.Task[None] | None = None
        self._sampling: asyncio.Task[None] | None = None

    def is_busy(self) -> bool:
        """Returns whether the crawl should go on: see `Filter.is_busy`."""
        self._bench.barren.let_go()
        return self._bench.watch.is_waiting() or self._is_sampling()

    def looks_for_missing(self) -> bool:
        """Returns whether pages are asked for that earlier crawls have met and this one has not: see `Filter`."""
        crawl = self._bench.crawl
        if not self._listener.asks_at_end:
            return False
        if self._looking is None and not crawl.has_ended():
            self._listener.flush()
        elif self._looking is None:
            may_hide = not (crawl.depth_limit or self._bench.unreached.count())
            self._looking = asyncio.create_task(self._listener.look_for_missing(may_hide=may_hide))
            self._looking.add_done_callback(lambda _: crawl.wake())
        return self.is_looking

    @property
    def is_looking(self) -> bool:
        """Whether such pages are being asked for."""
        return self._looking is not None and not self._looking.done()

    def _is_sampling(self) -> bool:
        """Returns whether the audit fetches what was not reached, which it begins with now."""
        bench = self._bench
        if self._sampling is None and bench.audit.share and bench.unreached.count():
            sample = bench.unreached.sample(bench.index, bench.audit.share, bench.crawl.fetch)
            self._sampling = asyncio.create_task(sample)
        return self._sampling is not None and not self._sampling.done()

    async def come(self, idle: Callable[[], Awaitable[object]]) -> None:
        """Returns when nothing is left to do: see `Filter.finish`."""
        stats, is_done = self._bench.stats, False
        while not is_done:
            asked = stats.get_value("dedup/fetched_again")
            await idle()
            # What was asked for while that returned is not yet fetched.
            is_busy = self.is_busy() or self.looks_for_missing()
            is_done = not is_busy and stats.get_value("dedup/fetched_again") == asked
            if not is_done:
                await asyncio.sleep(INTERVAL)

    async def close(self) -> None:
        """Asks for nothing more."""
        await self._bench.barren.close()
        await end(self._sampling)
        await end(self._looking)
