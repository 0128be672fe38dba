"""Counts, for each host and each folder, how many pages were judged and how many of them were new."""

from msgspec import Struct

from dedup.latest import Latest
from dedup.page.ids import MAX_URL, is_opaque
from dedup.page.urls import host

#: Hosts and folders that are remembered: about 200 bytes each; the least recently used one goes.
MAX_COUNTS = 20_000
#: What is expected where nothing was judged, and how many pages that expectation counts for.
PRIOR, WEIGHT = 0.5, 4.0
#: Whenever this many pages have been counted, what was counted is multiplied by this share: older pages count for less.
WINDOW, FADING = 60, 0.75


def folder_of(url: str) -> str:
    """Returns the host and the folder of a URL, with a star for each segment that looks like an id.

    >>> folder_of("http://a.org/v2/api/list.php?page=30"), folder_of("http://a.org/s/9f86d081884c7d65/p.html")
    ('a.org/v2/api/', 'a.org/s/*/')
    """
    path = url[:MAX_URL].partition("#")[0].partition("?")[0].partition("://")[2]
    folders = path.split("/")[1:-1]
    return "/".join([host(url), *("*" if is_opaque(each) else each for each in folders), ""])


class Count(Struct, array_like=True):
    """Pages of a host or a folder, of late."""

    judged: float = 0.0
    new: float = 0.0  #: how many of them were new, or led to new ones

    def add(self, new: bool) -> None:
        """Counts one more judged page."""
        if self.judged >= WINDOW:
            self.judged *= FADING
            self.new *= FADING
        self.judged += 1
        self.new += new


class Rates(Latest[str, Count]):
    """Counts by hosts and by folders."""

    def __init__(self) -> None:
        super().__init__(MAX_COUNTS)

    def add(self, folder: str, new: bool) -> None:
        """Counts a judged page."""
        for name in _names(folder):
            count = self[name] = self.get(name) or Count()
            count.add(new)

    def credit(self, folder: str, share: float) -> None:
        """Credits a page that was not new, but has led to one that is."""
        for name in _names(folder):
            if count := self.get(name):
                count.new = min(count.new + share, count.judged)

    def rate(self, folder: str) -> float:
        """Returns the expected share of new pages in a folder, which begins with the rate of its host.

        >>> rates = Rates()
        >>> for _ in range(4):
        ...     rates.add("a.org/mirror/", new=False)
        >>> rates.rate("a.org/mirror/"), rates.rate("a.org/other/"), rates.rate("b.org/")
        (0.125, 0.25, 0.5)
        """
        rate = PRIOR
        for name in _names(folder):
            if count := self.get(name):
                rate = (count.new + WEIGHT * rate) / (count.judged + WEIGHT)
        return rate


def _names(folder: str) -> tuple[str, str]:
    return folder.partition("/")[0], folder
