"""Remembers at which depth pages were kept, in a crawl that limits the depth.

A copy is dropped because the kept page leads to all that the copy leads to.  Where depth is limited, that is wrong for a
copy that is nearer to the start: its links may be followed further.
"""

from dedup.filter.stats import Stats, count
from dedup.latest import PAGES


class Depths:
    """Remembers the depths of kept pages, if there is a limit.

    >>> from dedup.filter import Counts
    >>> depths = Depths(Counts(), limit=3)
    >>> depths.keep("a", 2)
    >>> [depths.leads_further(depth, "a") for depth in (1, 2, 3)], depths.leads_further(2, "of another run")
    ([True, False, False], True)
    """

    def __init__(self, stats: Stats, limit: int) -> None:
        """``limit``: the depth whose links are not followed any more; 0 = there is none."""
        self._stats = stats
        self._limit = limit
        self._kept: dict[str, int] = {}  # by page id

    def keep(self, page_id: str, depth: int) -> None:
        """A page was kept at a depth."""
        if self._limit and (page_id in self._kept or len(self._kept) < PAGES):
            self._kept[page_id] = min(depth, self._kept.get(page_id, depth))

    def leads_further(self, depth: int, of_id: str) -> bool:
        """Returns whether the links of a copy lead further than those of the kept page, as far as is known."""
        further = depth < min(self._limit, self._kept.get(of_id, self._limit))
        if further:
            count(self._stats, "depth/led_on")
        return further
