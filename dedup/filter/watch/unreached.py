"""Counts the addresses that only dropped pages link to, and that the crawl has never asked for.

The links of a near-duplicate are not followed, and what is behind them may be found on no other page.  The
dropped pages can't tell how much is lost.  So the addresses are counted, and a sample of them can be fetched at the
end of the crawl, to estimate how many new contents they hold.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache

from dedup.errors import DedupError
from dedup.filter.stats import Stats, count
from dedup.index import Index
from dedup.intervals import wilson
from dedup.latest import PAGES, Latest
from dedup.page.html import Page
from dedup.page.ids import strip_session
from dedup.page.urls import digest, host
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: The links of one in so many kept pages are read.  A link that the spider never follows is on kept pages too, so it must not
#: be counted as lost.
READ_ONE_IN = 10
#: How many addresses are fetched at most.  Among 200 the share of new ones is known to 7 points or better.
MAX_SAMPLED = 200


class Unreached:
    """Counts the addresses that are linked from dropped pages, and were asked for by no other page.

    >>> from dedup.filter import Counts
    >>> unreached = Unreached(Counts())
    >>> unreached.visit("http://a.org/")
    >>> unreached.leave(["http://a.org/", "http://a.org/1", "http://a.org/2?sid=9f86d08188", "http://b.org/"])
    >>> unreached.ask("http://a.org/1")
    >>> unreached.count()
    1
    """

    def __init__(self, stats: Stats, most: int = PAGES) -> None:
        """Remembers at most ``most`` addresses, and as many hosts."""
        self._stats = stats
        self._most = most
        # By their digests: the URL of an address that was never asked for, or None.  Only digests that are 0
        # modulo 2^bits are remembered (Broder, On the resemblance and containment of documents, section 4).
        self._met: dict[int, str | None] = {}
        self._bits = 0
        self._hosts = Latest[str, None](most)
        self._kept = 0

    def ask(self, url: str) -> None:
        """Notes that the crawl asks for a URL."""
        key = _key(url)
        if self._met.get(key, "") is not None:
            self._add(key, None)

    def visit(self, url: str) -> None:
        """Notes that the crawl has got a page from a URL."""
        self._hosts[host(url)] = None
        self.ask(url)

    def reads(self) -> bool:
        """Returns whether the links of the next kept page are to be given to `ask`: reading those of every page takes too long."""
        self._kept += 1
        return self._kept % READ_ONE_IN == 1

    def leave(self, urls: Iterable[str]) -> None:
        """Notes the links of a page that are not followed."""
        for url in urls:
            if (key := _key(url)) not in self._met:
                self._add(key, url)

    def _add(self, key: int, url: str | None) -> None:
        if key & ((1 << self._bits) - 1):
            return
        self._met[key] = url
        if len(self._met) > self._most:
            self._bits += 1
            mask = (1 << self._bits) - 1
            self._met = {key: url for key, url in self._met.items() if not key & mask}

    def urls(self) -> list[str]:
        """Addresses that were never asked for, on hosts that the crawl has visited of late, in an order that means nothing."""
        return [url for _, url in sorted(self._met.items()) if url is not None and host(url) in self._hosts]

    def count(self) -> int:
        """Returns their number, or an estimate of it if more than `PAGES` addresses were met."""
        return len(self.urls()) << self._bits

    def close(self) -> None:
        """Puts the number into the stats."""
        if unreached := self.count():
            self._stats.set_value("dedup/unreached", unreached)

    async def sample(
        self, index: Index, share: float, fetch: Callable[[str], Awaitable[Page | None]]
    ) -> None:
        """Fetches a share of the addresses, and estimates how many new contents all of them hold.

        The pages are judged like others, but nobody gets them, their links are not followed, and they are not
        filed.  Of pages that are alike, one is new: contents that are new and there many times make the estimate too
        high, so that its lower bound is only what was found.
        """
        urls, claimed = self.urls(), list[str]()
        tried = new = 0
        try:
            for url in urls[: min(MAX_SAMPLED, round(share * len(urls) + 0.5))]:
                tried += 1
                try:
                    page = await fetch(url)
                    fingerprint = page and index.detector.fingerprint_page(page)
                    if not fingerprint or fingerprint.reason:
                        raise ValueError("no page that can be judged")
                    claimed.append(f"sample {url}")
                    verdict = await index.claim(claimed[-1], url, fingerprint)
                except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
                    logger.debug("No sample: %s: %s", inert(url), error)
                    count(self._stats, "unreached/failed")
                    continue
                new += verdict.status == "new"
        finally:
            for name in claimed:
                await _release(index, name)
        self._stats.set_value("dedup/unreached/sampled", tried)
        self._stats.set_value("dedup/unreached/new", new)
        if tried:
            _, high = wilson(new, tried)
            self._stats.set_value("dedup/unreached/contents_low", new)
            self._stats.set_value("dedup/unreached/contents", round(new / tried * self.count()))
            self._stats.set_value("dedup/unreached/contents_high", round(high * self.count()))


async def _release(index: Index, page_id: str) -> None:
    try:
        await index.release(page_id)
    except DedupError as error:  # it is released when the index is closed, or when its run is over
        logger.debug("A sample is not released yet: %s", error)


@lru_cache(maxsize=1 << 14)  # most links of a page are on others, too
def _key(url: str) -> int:
    return digest(strip_session(url))
