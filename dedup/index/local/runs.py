"""The runs on a local index, all of this process: which are open, and which have finished, by a clock that counts."""

from collections import Counter
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

from dedup.index.lifecycle import of_one_crawl


class Leases(NamedTuple):
    """What a run knows of the others, by when they began or have finished."""

    run: str
    began: Mapping[str, int]
    ended: Mapping[str, int]

    def are_alive(self, run: str) -> bool:
        return run == self.run or run in self.began

    def have_finished(self, run: str) -> bool:
        since = 0 if of_one_crawl(run, self.run) else self.began.get(self.run, 0)
        return self.ended.get(run, 0) > since


class Runs:
    """The runs that are open, each any number of times, and those that have finished.

    >>> runs = Runs()
    >>> for run in ("a", "b", "b"):
    ...     runs.begin(run)
    >>> [runs.end(run, finished=True) for run in ("b", "a")], runs.leases("b").have_finished("a"), runs.are_over
    ([False, True], True, False)
    """

    def __init__(self) -> None:
        self._clock = count(1)
        self._times = Counter[str]()  # that each is open
        self._began: dict[str, int] = {}
        self._ended: dict[str, int] = {}

    def begin(self, run: str) -> None:
        """Opens a run, once more if it is open."""
        self._times[run] += 1
        self._began.setdefault(run, next(self._clock))

    def end(self, run: str, *, finished: bool) -> bool:
        """Closes a run once, and returns whether it is no longer open."""
        self._times[run] -= 1
        if self._times[run]:
            return False
        del self._times[run], self._began[run]
        if finished:
            self._ended[run] = next(self._clock)
        return True

    @property
    def are_over(self) -> bool:
        """True if no run is open."""
        return not self._began

    def leases(self, run: str) -> Leases:
        """Returns what a run knows of the others."""
        return Leases(run, self._began, self._ended)
