"""Manners: how kept pages were asked for, with which headers, cookies, proxy or browser, so that they can be asked for again."""

from typing import Any

from dedup.filter.visit import Crawl, Visit
from dedup.index import Entry, Index
from dedup.index.entry import original_id
from dedup.latest import PAGES, Latest
from dedup.page.urls import host


class Manners:
    """How the kept pages of one crawl were asked for."""

    def __init__(self, index: Index, crawl: Crawl) -> None:
        self._index = index
        self._crawl = crawl
        self._manners = Latest[str, Any](PAGES)  # by page id
        self._usual = Latest[str, Any]()  # that of the page that was kept last, by host

    def note(self, visit: Visit) -> None:
        """Remembers how a page was asked for that is kept."""
        manner, name = self._crawl.manner(visit.origin), host(visit.url)
        usual = self._usual.get(name)
        # Most pages of a host share one, of more than a kilobyte.
        self._usual[name] = self._manners[visit.page_id] = usual if manner == usual else manner

    def of(self, filed: Entry, visit: Visit) -> Any:
        """How a kept page is asked for: as it was, or as the page here if another crawl has kept it; None if it must not be.

        Asked for at its own URL as the page here was, it would be the page here; and cookies are for one host.
        """
        page_id = original_id(filed.page_id)
        if page_id in self._manners or filed.run == self._index.run:
            return self._manners.get(page_id)
        is_other = filed.url != visit.url and host(filed.url) == host(visit.url)
        return self._crawl.manner(visit.origin) if is_other else None
