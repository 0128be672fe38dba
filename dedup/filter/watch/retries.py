"""Remembers what callbacks have asked for again: a ban, a captcha, or a page whose scripts did not run.

A callback may give up at last.  What it got then is the same as before, and is no page either.
"""

from dedup.fingerprint.simhash import distance
from dedup.latest import Latest


class Retries:
    """Remembers what pages showed when their callbacks asked for them again."""

    def __init__(self, max_distance: int) -> None:
        """``max_distance``: two answers are the same if their simhashes differ in at most this many bits."""
        self._max_distance = max_distance
        self._shown = Latest[str, int]()  # simhash by page id

    def add(self, page_id: str, simhash: int | None) -> None:
        """Notes that a page was asked for again."""
        self._shown.pop(page_id, None)
        if simhash is not None:
            self._shown[page_id] = simhash

    def shows(self, page_id: str, simhash: int | None) -> bool:
        """True if the page has not changed since its callback asked for it again.  If it has changed, forgets that it was asked for."""
        if page_id not in self._shown:
            return False
        if simhash is not None and distance(simhash, self._shown[page_id]) <= self._max_distance:
            return True
        del self._shown[page_id]
        return False
