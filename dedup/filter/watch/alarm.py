"""The alarm: if pages with more than a few names are dropped for one kept page, that page is a wall.

Login walls, captchas and error pages with status 200 look alike at every URL.  Copies do not: each page of a mirror
or of another version is a copy of a page of its own, which has the same name, and a trap is one page under many
queries.  So the names of what a page absorbs tell a wall from a page.  What looks like a wall is kept.

Where stories are numbered in queries, as in ``article?sid=17``, a wall looks like a trap: it stays dropped, since a trap
never ends, but somebody is told.
"""

import logging
import re

from dedup.filter.stats import Stats, count
from dedup.latest import Latest
from dedup.page.ids import strip_ids, strip_session
from dedup.page.urls import host, origin
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: Paths of one name count as well, such as /1/reviews, /2/reviews, and queries of one path: as many as this for each
#: name that is allowed.
PATHS = 20
_VERSION = re.compile(r"v?\d+(?:\.\d+)+(?:-\w+)?")
_INDEX = re.compile(r"(?:index|default|home)\.\w+")


class Alarm:
    """Counts the names and the paths of the near-duplicates of each kept page, by host."""

    def __init__(self, limit: int, stats: Stats) -> None:
        """``limit``: how many names the near-duplicates of a page may have on one host; 0 allows any number."""
        self._limit = limit
        self._stats = stats
        # By kept page and host: names and paths.
        self._absorbed = Latest[tuple[str, str], tuple[set[str], set[str]]]()
        self._queries = Latest[str, set[str]]()  # of the path of a kept page

    def rings(self, url: str, of: str, asked: str = "") -> bool:
        """Returns whether a near-duplicate is one too many; ``asked`` is the URL that was redirected to it, if one was.

        Where another page was asked for, one that leads to the path of the kept page is one too many: so is one
        sent to log in.
        """
        if not self._limit or not host(url):  # a row without a URL has a name of its own
            return False
        if asked and _path(url) == _path(of) and name_of(asked) != name_of(url):
            return True
        key, path = (of, host(url)), _path(url)
        if path == _path(of):
            self._add_query(of, url)
        names, paths = self._absorbed[key] = self._absorbed.get(key) or (set(), set())
        if self._is_wall(names, paths):
            return True
        paths.add(path)
        if (name := _name(path)) != name_of(of):
            names.add(name)
        if not self._is_wall(names, paths):
            return False
        count(self._stats, "alarms")
        logger.warning(
            "Alarm: %s looks like %s different pages of %s. Is that a login wall, a captcha, an error page, or one without content, such as a day without events? "
            "What was dropped for it is taken back, and from now on what looks like it is kept (the setting max_cluster)",
            inert(of),
            f"{max(len(names), len(paths)):,}",
            inert(key[1]),
        )
        return True

    def _add_query(self, of: str, url: str) -> None:
        queries = self._queries[of] = self._queries.get(of, set())
        if len(queries) > PATHS * self._limit:  # it was told
            return
        queries.add(_query(url))
        if len(queries) > PATHS * self._limit:
            count(self._stats, "alarms/queries")
            logger.warning(
                "%s is shown under %s other queries of its path, which are dropped. Is that a login wall, a captcha or an "
                "error page, or a trap, one page under queries without end?",
                inert(of),
                f"{len(queries):,}",
            )

    def _is_wall(self, names: set[str], paths: set[str]) -> bool:
        return len(names) > self._limit or len(paths) > PATHS * self._limit


def name_of(url: str) -> str:
    """Returns what a page is called: the last part of its path, but for versions, session ids and the name of an index.

    >>> name_of("http://example.org/docs/News.html?page=2"), name_of("http://example.org/docs/2.0.1/index.html")
    ('news.html', '*')
    """
    return _name(_path(url))


def _path(url: str) -> str:
    """Returns the path of a URL without session ids, and without the name of a folder's index.

    >>> _path("http://example.org/s/9f86d081884c7d65/news/index.html;jsessionid=1F?page=2")
    '/s/*/news'
    """
    path = strip_session(url).partition("?")[0]
    folder, _, name = path.removeprefix(origin(path)).rstrip("/").rpartition("/")
    folder = strip_ids(folder)
    return folder if _INDEX.fullmatch(name) else f"{folder}/{name.partition(';')[0]}"


def _query(url: str) -> str:
    """Returns the query of a URL without session ids, which are known by their values, too, and not only by their names.

    >>> _query("http://example.org/article?sid=17"), _query("http://example.org/article?sid=9f86d081&page=2")
    ('sid=17', 'page=2')
    """
    return strip_ids(strip_session(url)).partition("?")[2]


def _name(path: str) -> str:
    """Returns the last part of a path; * stands for any version number.

    >>> _name("/docs/News.html"), _name("/docs/2.0.1"), _name("/docs/v3.1-rc1")
    ('news.html', '*', '*')
    """
    name = path.rpartition("/")[2].lower()
    return "*" if _VERSION.fullmatch(name) else name
