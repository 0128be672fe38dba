"""The counts of a crawl: the protocol of what keeps them, and a dictionary that does.

Every name begins with ``dedup/``.
"""

from typing import Any, Protocol


class Stats(Protocol):
    """Keeps values by name; Scrapy's StatsCollector does."""

    def get_value(self, key: str, default: Any = None) -> Any:
        """Returns the value of that name, or the default."""

    def set_value(self, key: str, value: Any) -> None:
        """Sets the value of that name."""

    def inc_value(self, key: str, count: Any = 1) -> None:
        """Adds to the value of that name, which begins at 0."""


class Counts(dict[str, Any]):
    """Keeps stats in a dictionary, for use without Scrapy."""

    def get_value(self, key: str, default: Any = None) -> Any:
        """Returns the value of that name, or the default."""
        return self.get(key, default)

    def set_value(self, key: str, value: Any) -> None:
        """Sets the value of that name."""
        self[key] = value

    def inc_value(self, key: str, count: Any = 1) -> None:
        """Adds to the value of that name, which begins at 0."""
        self[key] = self.get(key, 0) + count


def count(stats: Stats, name: str, reason: str | None = None) -> None:
    """Counts one more of something, and of its reason if it has one.

    >>> stats = Counts()
    >>> count(stats, "pages")
    >>> count(stats, "unjudged", "short")
    >>> stats
    {'dedup/pages': 1, 'dedup/unjudged': 1, 'dedup/unjudged/short': 1}
    """
    stats.inc_value(f"dedup/{name}")
    if reason is not None:
        stats.inc_value(f"dedup/{name}/{reason}")


def spend(stats: Stats, name: str, seconds: float) -> None:
    """Adds to the seconds that something has taken."""
    stats.inc_value(f"dedup/seconds/{name}", seconds)
