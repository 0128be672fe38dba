"""A dictionary of bounded size, for what a crawl remembers: it may run for weeks, and no memory may grow with it."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


#: Items that are remembered where nothing else is said, and pages of a crawl.
REMEMBERED, PAGES = 10_000, 100_000


class Latest(OrderedDict[K, V]):
    """At most ``most`` items: those that were set last.  Each operation takes the same time, whatever the size.

    (A plain dict finds its first item ever more slowly once many before it are deleted: in .1 ms of 200,000.)

    >>> seen = Latest[str, int](2)
    >>> for name in ("a", "b", "a", "c"):
    ...     seen[name] = seen.get(name, 0) + 1
    >>> dict(seen)
    {'a': 2, 'c': 1}
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)  # step by step, none of which fails if another thread does the same
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.popitem(last=False)
