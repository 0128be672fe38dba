"""Counts, for each group of pages, how many were judged and how many of them were new."""

import math
from collections.abc import Iterable

from msgspec import Struct

from dedup.latest import Latest

#: Groups that are remembered: about 200 bytes each; the least recently used one goes.
MAX_GROUPS = 20_000
#: What is expected where nothing was judged, and how many pages that expectation counts for.
PRIOR, WEIGHT = 0.5, 4.0
#: Whenever this many pages have been counted, what was counted is multiplied by this share: older pages count for less.
WINDOW, FADING = 60, 0.75


class Count(Struct, array_like=True):
    """Pages of a group."""

    judged: float = 0.0  #: how many were judged, of late
    new: float = 0.0  #: how many of them were new, or led to new ones
    all_judged: int = 0  #: how many were judged since the crawl began
    all_new: int = 0  #: how many of them were new
    twins: int = 0  #: of a parameter: how many were near-duplicates of a page that differs in it alone

    def add(self, new: bool) -> None:
        """Counts one more judged page."""
        if self.judged >= WINDOW:
            self.judged *= FADING
            self.new *= FADING
        self.judged += 1
        self.new += new
        self.all_judged += 1
        self.all_new += new

    def credit(self, share: float) -> None:
        """Credits a page that was not new, but has led to one that is."""
        self.new = min(self.new + share, self.judged)


class Rates(Latest[str, Count]):
    """Counts by the names of groups."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)

    def add(self, names: Iterable[str], new: bool) -> None:
        """Counts a judged page in these groups."""
        for name in names:
            count = self[name] = self.get(name) or Count()
            count.add(new)

    def credit(self, names: Iterable[str], share: float) -> None:
        """Credits, in these groups, a page that was not new, but has led to one that is."""
        for name in names:
            if count := self.get(name):
                count.credit(share)

    def twin(self, names: Iterable[str]) -> None:
        """Counts a near-duplicate of a page whose URL differs only in the parameter of these names."""
        for name in names:
            if count := self.get(name):
                count.twins += 1

    def rate(self, names: Iterable[str], prior: float = PRIOR) -> float:
        """Returns the expected share of new pages in the last of these groups.  Each group begins with the rate of the one before.

        >>> rates = Rates()
        >>> for _ in range(4):
        ...     rates.add(["a.org", "a.org/mirror/"], new=False)
        >>> rates.rate(["a.org"]), rates.rate(["a.org", "a.org/mirror/"]), rates.rate(["a.org", "a.org/other/"])
        (0.25, 0.125, 0.25)
        """
        rate = prior
        for name in names:
            if count := self.get(name):
                rate = (count.new + WEIGHT * rate) / (count.judged + WEIGHT)
        return rate


def logit(share: float) -> float:
    """Returns the logarithm of the odds; shares very near to 0 or 1 are moved away from there."""
    share = min(max(share, 1e-4), 1 - 1e-4)
    return math.log(share / (1 - share))


def sigmoid(odds: float) -> float:
    """Returns the share that has these odds, given as a logarithm."""
    return 1 / (1 + math.exp(-odds))
