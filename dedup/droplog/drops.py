"""Drops in a temporary database on disk, which gives their sums and groups, however many there are."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self, cast

from dedup.droplog.record import FIELDS, Record
from dedup.errors import DedupError
from dedup.page.patterns import pattern
from dedup.page.urls import host

_SCHEMA = f"""
PRAGMA journal_mode = OFF;
PRAGMA temp_store = FILE;
CREATE TABLE drops ({", ".join(FIELDS)}, host);
"""
_INSERT = f"INSERT INTO drops VALUES ({', '.join('?' * (len(FIELDS) + 1))})"
#: It has all that `_CLUSTERS` asks for, which so reads no row.
_INDEX = "CREATE INDEX clusters ON drops (duplicate_of, host, links, time, new)"
#: What was fetched again after all is no drop, nor was it one before.
_UNDONE = "CREATE TABLE undone AS SELECT url, duplicate_of, time FROM drops WHERE undone IS NOT NULL"
_TAKE_BACK = """
CREATE INDEX taken_back ON undone (url, duplicate_of, time);
DELETE FROM drops WHERE undone IS NOT NULL OR EXISTS (
    SELECT 1 FROM undone WHERE undone.url = drops.url AND undone.duplicate_of = drops.duplicate_of
        AND undone.time >= drops.time
);
"""
#: Different values are counted by sorting them, as GROUP BY does: a tree of them, as of count(DISTINCT), is slow on disk.
_TOTALS = """
SELECT count(*),
    (SELECT count(*) FROM (SELECT 1 FROM drops GROUP BY url)),
    (SELECT count(*) FROM (SELECT 1 FROM drops GROUP BY duplicate_of)),
    (SELECT count(*) FROM (SELECT 1 FROM drops GROUP BY host)),
    coalesce(min(time), ''), coalesce(max(time), ''),
    coalesce(sum(action = 'drop'), 0), coalesce(sum(action = 'nofollow'), 0), coalesce(sum(action = 'mark'), 0),
    coalesce(sum(links * (action != 'mark')), 0), coalesce(sum(links * (action = 'mark')), 0), sum(bytes),
    coalesce(sum(agrees), 0), coalesce(sum(agrees = 0), 0)
FROM drops
"""
_HOSTS = "SELECT host, count(*), sum(links), sum(bytes) FROM drops GROUP BY host ORDER BY 2 DESC, 1"
_DISTANCES = "SELECT distance, count(*) FROM drops GROUP BY distance ORDER BY distance"
_RULES = "SELECT rule, count(*) FROM drops GROUP BY rule ORDER BY 2 DESC, 1"
#: The share that two pages have in common: of their own shingles, that of the page that shares less; or of all shingles.
#: It is computed in whole numbers, since 0.55 * 20 is not 11.
_SHARE = """
CAST(round(10000 * CASE WHEN gone IS NULL OR new IS NULL OR matching IS NULL THEN resemblance
    ELSE matching * 1.0 / max(1, matching + max(new, gone)) END) AS INTEGER)
"""
_SHARES = f"SELECT {_SHARE} / 500 AS twentieths, count(*) FROM drops GROUP BY twentieths ORDER BY twentieths"
_CLUSTERS = """
SELECT duplicate_of, count(*), sum(links), min(time), max(time), count(DISTINCT host), max(new)
FROM drops GROUP BY duplicate_of ORDER BY 2 DESC, 1
"""

_MEMBERS = """
SELECT duplicate_of, url, canonical, new, gone FROM drops WHERE rule != 'soft_404' ORDER BY duplicate_of, time, url
"""
_GRID = f"""
SELECT distance, {_SHARE} / 100 AS hundredths, count(*), sum(links),
    CASE WHEN rule IN ('exact', 'probe', 'no_vary_search', 'soft_404') THEN 2 WHEN rule = 'rare' THEN 1 ELSE 0 END AS free
FROM drops GROUP BY 1, 2, 5 ORDER BY 1, 2, 5
"""
_TIMES = """
SELECT CAST((julianday(time) - 2440587.5) * 86400 / :width - :start / :width AS INTEGER) AS step, count(*)
FROM drops GROUP BY step ORDER BY step
"""
#: Half of them are the most doubtful of all drops; the others are the most doubtful of the largest clusters.
_PAIRS = f"""
WITH placed AS (
    SELECT rowid AS drop_id, row_number() OVER (ORDER BY resemblance, distance DESC, rowid) AS doubt,
        row_number() OVER (PARTITION BY duplicate_of ORDER BY resemblance, distance DESC, rowid) AS place,
        count(*) OVER (PARTITION BY duplicate_of) AS size
    FROM drops
), chosen AS (
    SELECT drop_id, size FROM placed ORDER BY doubt > :limit / 2, place > 20, size DESC, place LIMIT :limit
)
SELECT {", ".join(FIELDS)}
FROM drops JOIN chosen ON drops.rowid = drop_id ORDER BY size DESC, duplicate_of, resemblance, distance DESC, drop_id
"""

#: Lost and found (Barber): the other pages of the clusters that a URL belongs to.
_PLACES = """
WITH origins AS (SELECT :url AS origin UNION SELECT duplicate_of FROM drops WHERE url = :url),
    members AS (SELECT url, duplicate_of, time FROM drops WHERE duplicate_of IN origins)
SELECT url, max(kept), min(time), max(time) FROM (
    SELECT url, 0 AS kept, time FROM members UNION ALL SELECT duplicate_of, 1, time FROM members
) WHERE url != :url GROUP BY url ORDER BY 4 DESC, 1
"""


class Totals(NamedTuple):
    """Sums over all drops."""

    drops: int
    urls: int  # different ones
    clusters: int  # kept pages
    hosts: int
    first: str
    last: str
    dropped: int
    not_followed: int
    marked: int
    links: int  # not followed
    marked_links: int  # on the pages that were only marked
    bytes: int | None  # of the pages; None if no record tells it
    agrees: int  # pages whose canonical URL is that of the kept page
    differs: int  # pages whose canonical URL is their own


class Host(NamedTuple):
    """The drops of a host."""

    host: str
    drops: int
    links: int
    bytes: int | None


class Cluster(NamedTuple):
    """The drops that one kept page led to."""

    duplicate_of: str
    drops: int
    links: int
    first: str
    last: str
    hosts: int
    new: int | None  # the most new shingles that one of them has; None if no record tells it


class Member(NamedTuple):
    """A near-duplicate of a kept page."""

    kept: str
    url: str
    canonical: str | None
    new: int | None  # shingles that are its own, and not on the kept page
    gone: int | None  # shingles that are the kept page's own, and not on it


class Place(NamedTuple):
    """A URL at which some content was met."""

    url: str
    kept: bool
    first: str
    last: str


class Drops:
    """Records in a temporary database, which vanishes when it is closed.  Raises `DedupError` if it fails."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._database = sqlite3.connect("")  # in a file, where SQLite keeps temporary files
        self._database.create_function("pattern", 1, pattern, deterministic=True)
        try:
            with self._errors():
                self._database.executescript(_SCHEMA)
                for record in records:
                    self._insert(record)
                self._database.execute(_UNDONE)
                (self.undone,) = self._database.execute("SELECT count(*) FROM undone").fetchone()
                if self.undone:
                    self._database.executescript(_TAKE_BACK)
                self._database.execute(_INDEX)
        except BaseException:
            self._database.close()
            raise

    def _insert(self, record: Record) -> None:
        row = (*map(record.get, FIELDS), host(record["url"]))
        try:
            self._database.execute(_INSERT, row)
        except UnicodeEncodeError:  # a lone surrogate, which SQLite doesn't store
            self._database.execute(_INSERT, [*map(_escaped, row)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DedupError(
                f"the temporary database of drops failed: {error}; it is in the folder that TMPDIR names"
            ) from None

    def _rows(self, query: str, **values: Any) -> Iterator[Any]:
        with self._errors():
            for row in self._database.execute(query, values):  # noqa: UP028
                yield row  # `yield from` would close a cursor that may be gone with its database

    def totals(self) -> Totals:
        """Returns the sums over all drops."""
        (row,) = self._rows(_TOTALS)
        return Totals(*row)

    def hosts(self) -> Iterator[Host]:
        """Returns the hosts of dropped pages, those with the most drops first."""
        return (Host(*row) for row in self._rows(_HOSTS))

    def distances(self) -> dict[int, int]:
        """Returns the number of drops of each distance."""
        return dict(self._rows(_DISTANCES))

    def shares(self) -> dict[float, int]:
        """Returns the number of drops by how much both pages have in common, rounded down to twentieths."""
        return {twentieths / 20: drops for twentieths, drops in self._rows(_SHARES)}

    def rules(self) -> Iterator[tuple[str, int]]:
        """Returns the rules that decided, and their numbers of drops, most first."""
        return self._rows(_RULES)

    def clusters(self) -> Iterator[Cluster]:
        """Returns all clusters, the largest first."""
        return (Cluster(*row) for row in self._rows(_CLUSTERS))

    def members(self) -> Iterator[Member]:
        """Returns all drops but soft 404s, by their kept pages."""
        return (Member(*row) for row in self._rows(_MEMBERS))

    def grid(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Rows of distance, what is in common in hundredths (rounded down), number of drops, number of their links, and
        which thresholds don't bear on them: 0 none, 1 that of the distance, 2 both.
        """
        return self._rows(_GRID)

    def times(self, start: float, width: float) -> dict[int, int]:
        """Returns the number of drops in each step of time, by number of the step.

        ``start`` (since 1970) and ``width`` of the steps are in seconds.
        """
        return dict(self._rows(_TIMES, start=start, width=width))

    def pairs(self, limit: int) -> Iterator[Record]:
        """Returns the records of drops, the largest cluster first, and in a cluster the least alike pair first.

        A field that a record lacked is None.  If there are more than ``limit`` drops, half of those that are given
        are the least alike, and the others are from the largest clusters.
        """
        return (cast(Record, dict(zip(FIELDS, row, strict=True))) for row in self._rows(_PAIRS, limit=limit))

    def parts(self, cluster: Cluster) -> dict[str, Iterator[tuple[str, int]]]:
        """Returns the hosts and the patterns of a cluster's dropped pages, each with the number of drops, most first."""
        query = "SELECT {}, count(*) FROM drops WHERE duplicate_of = :of GROUP BY 1 ORDER BY 2 DESC, 1".format
        found = {"hosts": "host", "patterns": "pattern(url)"}
        return {name: self._rows(query(by), of=cluster.duplicate_of) for name, by in found.items()}

    def places(self, url: str) -> Iterator[Place]:
        """Returns the other URLs at which the content of a URL was met, last seen first: kept pages and their drops.

        The times of a kept page are those of its drops, as the log does not tell when the page was fetched.
        """
        return (Place(where, bool(kept), *times) for where, kept, *times in self._rows(_PLACES, url=url))


def _escaped(value: object) -> object:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
