"""What hears of a crawl's pages beside the filter, such as what tells how a site has changed."""

from dedup.filter.noise.probe import Probe
from dedup.filter.stats import Stats
from dedup.filter.visit import Crawl, Outcome, Visit
from dedup.index import Index


class Listener:
    """Hears of the pages of one crawl: each method is an event, and does nothing here."""

    asks_at_end = False  #: `look_for_missing` asks for pages

    def begin(self, index: Index, probe: Probe, crawl: Crawl, stats: Stats) -> None:
        """The filter is made of these."""

    async def judged(self, visit: Visit, outcome: Outcome, *, incremental: bool) -> Outcome:
        """A page was judged.  Returns what becomes of it; ``incremental``: what has not changed may be left out."""
        return outcome

    def asked(self, url: str, *, is_read: bool) -> None:
        """A page was asked for, and not judged; ``is_read``: the spider has read all of it."""

    def spared(self, url: str) -> None:
        """A page was not asked for, since it is a kept one, or leads into a trap."""

    def is_open(self, page_id: str) -> bool:
        """Returns whether it is to hear that a page was handed over, or has failed."""
        return False

    def handed_over(self, page_id: str) -> None:
        """All output of a page was processed."""

    def failed(self, page_id: str) -> None:
        """A page could not be processed."""

    def undone(self, page_id: str) -> None:
        """A page that was handed over was not processed after all."""

    def flush(self) -> None:
        """This worker has nothing left to do, and others have."""

    async def look_for_missing(self, *, may_hide: bool) -> None:
        """The crawl has nothing left to do.  ``may_hide``: it has met whatever the site links to."""

    def close(self) -> None:
        """The crawl ends."""
