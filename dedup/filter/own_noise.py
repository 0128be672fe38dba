"""Own noise: what was seen to change on a kept page itself, beside what changes on other pages of its kind.

Two kinds of page may have addresses of one pattern, and what changes on the ones, such as a quote of the day, may be
all that the others have of their own.  So a kept page is asked for before any is dropped for it, and has to show something
else at those places itself.  Once enough pages of a kind have, and none has not, one page may be dropped for a kept one
because of what was seen on others; before a second one is, that page is asked for, too.

>>> pages = OwnNoise()
>>> pages.met("a", Shown(1, {5: 17, 9: 4}))
>>> pages.met("a", Shown(1, {5: 18, 9: 4}))
>>> pages.explains("a", Shown(1, {5: 19, 9: 4})), pages.explains("a", Shown(1, {5: 19, 9: 5}))
(True, False)
"""

from dataclasses import dataclass, field
from math import inf

from dedup.filter.noise import MAX_KINDS, SIGNS, Shown
from dedup.latest import Latest

#: Kept pages of which it is remembered what they showed.
MAX_SHOWN = 100_000
#: Kept pages of a kind that have to change themselves before what was seen on others explains anything.
ENOUGH = 8


@dataclass(slots=True)
class _KeptPage:
    """What a kept page showed where there is noise, and what of that has changed."""

    shown: Shown
    changed: set[int] = field(default_factory=set)
    is_trusted: bool = True  #: nothing was dropped for it without having been seen to change on it
    is_asked: bool = False
    counts: bool = True  #: it is yet to be counted among those of its kind

    def unexplained(self, shown: Shown) -> set[int] | None:
        """Returns where a page that shows this differs, and this one was not seen to change; None if they can't be compared."""
        is_comparable = self.shown.probed == shown.probed
        return _differing(self.shown, shown) - self.changed if is_comparable else None


class OwnNoise:
    """What the kept pages of one crawl have shown at places of noise."""

    def __init__(self) -> None:
        self._pages = Latest[str, _KeptPage](MAX_SHOWN)
        self._explained = Latest[str, float](
            MAX_KINDS
        )  # pages that changed themselves, by kind; minus infinity if any did not

    def met(self, page_id: str, shown: Shown) -> None:
        """Notes what a kept page shows; what differs from what it has shown before is its own noise."""
        page = self._pages.get(page_id)
        if page is None:
            self._pages[page_id] = _KeptPage(shown)
        elif page.shown.probed == shown.probed:
            page.changed |= _differing(page.shown, shown)
        else:  # there is more noise than was known then
            page.shown, page.changed = shown, set()

    def explains(self, page_id: str, shown: Shown) -> bool:
        """Whether a page that shows this differs from the kept one only where that was seen to change."""
        page = self._pages.get(page_id)
        unexplained = None if page is None else page.unexplained(shown)
        if page is None or unexplained is None:
            return False
        # What changes brings signs of its own, of which there are few: they may be the same by chance.
        return not unexplained - ({SIGNS} if page.changed else set())

    def count(self, page_id: str, kind: str, *, explains: bool) -> None:
        """Counts a kept page among those of its kind that explain a difference, or among those that don't, once."""
        page = self._pages.get(page_id)
        if page is not None and page.counts:
            page.counts = False
            self._explained[kind] = self._explained.get(kind, 0) + (1 if explains else -inf)

    def trust(self, page_id: str, kind: str) -> bool:
        """Whether a page may be dropped for this one because of what was seen on others of its kind: it may, once."""
        page = self._pages.get(page_id)
        if page is None or not page.is_trusted or self._explained.get(kind, 0) < ENOUGH:
            return False
        page.is_trusted = False
        return True

    def ask(self, page_id: str, probed: int) -> int:
        """How often it should be fetched, which it should be in one turn; ``probed`` is that of what it shows now."""
        page = self._pages.get(page_id)
        if page is None or page.is_asked:
            return 0
        page.is_asked, page.is_trusted = True, False
        return 1 if page.shown.probed == probed else 2


def _differing(before: Shown, now: Shown) -> set[int]:
    """Where two pages show something else."""
    places = before.hashes.keys() | now.hashes.keys()
    return {place for place in places if before.hashes.get(place) != now.hashes.get(place)}
