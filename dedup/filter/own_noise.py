"""Own noise: what was seen to change on a kept page itself, beside what changes on other pages of its kind.

Two kinds of page may have addresses of one pattern, and what changes on the ones, such as a quote of the day, may be
all that the others have of their own.  So one page may be dropped for a kept one because of what was seen on others of its
kind; but before a second one is, the kept page is asked for, and has to show something else at those places itself.

>>> pages = OwnNoise()
>>> pages.met("a", [17, 4])
>>> pages.met("a", [18, 4])
>>> pages.explains("a", [19, 4]), pages.explains("a", [19, 5])
(True, False)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from dedup.latest import Latest

#: Kept pages of which it is remembered what they showed.
MAX_SHOWN = 100_000


@dataclass(slots=True)
class _Shown:
    """What a kept page showed at places of noise, and what of that has changed."""

    hashes: tuple[int, ...]
    changed: set[int] = field(default_factory=set)
    is_trusted: bool = True  #: nothing was dropped for it without having been seen to change on it
    is_asked: bool = False


class OwnNoise:
    """What the kept pages of one crawl have shown at places of noise."""

    def __init__(self) -> None:
        self._pages = Latest[str, _Shown](MAX_SHOWN)

    def met(self, page_id: str, hashes: Sequence[int]) -> None:
        """Notes what a kept page shows, by `Noise.shown`; what differs from what it has shown before is its own noise."""
        page = self._pages.get(page_id)
        if page is None:
            self._pages[page_id] = _Shown(tuple(hashes))
        else:
            page.changed |= {
                number for number in _differing(page.hashes, hashes) if number < len(page.hashes)
            }
            page.hashes += tuple(hashes[len(page.hashes) :])  # of places that were learned since

    def explains(self, page_id: str, hashes: Sequence[int]) -> bool:
        """Whether a page that shows this differs from the kept one only where that was seen to change."""
        page = self._pages.get(page_id)
        return page is not None and _differing(page.hashes, hashes) <= page.changed

    def trust(self, page_id: str) -> bool:
        """Whether a page may be dropped for this one because of what was seen on others: it may, once."""
        page = self._pages.get(page_id)
        is_trusted = page is not None and page.is_trusted
        if page is not None:
            page.is_trusted = False
        return is_trusted

    def ask(self, page_id: str) -> bool:
        """Whether it should be asked for, which it should be once."""
        page = self._pages.get(page_id)
        if page is None or page.is_asked:
            return False
        page.is_asked, page.is_trusted = True, False
        return True


def _differing(before: Sequence[int], now: Sequence[int]) -> set[int]:
    """The numbers of the places at which two pages show something else."""
    return {number for number, (old, new) in enumerate(zip_longest(before, now, fillvalue=0)) if old != new}
