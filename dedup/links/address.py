"""Finds what a URL shares with others: its groups, its tails, and what is left of it without one of its parameters."""

import re
from functools import lru_cache
from typing import NamedTuple

from dedup.page.ids import MAX_URL, is_opaque
from dedup.page.urls import digest

#: How many folders of a path make groups, how many parameters, and how many of its last segments make tails.
MAX_FOLDERS, MAX_PARAMETERS, MAX_TAIL = 8, 12, 3
#: What a parameter is called that has no name, since it is a part of the path.
ID = "*"
#: A value of a parameter that many URLs have, so that it makes a group: a word.
_WORD = re.compile(r"[A-Za-z_-]{1,16}")
MASK = (1 << 64) - 1
_DIGITS = re.compile(r"\d+")
#: What may be the id of a session, or of anything: groups are counted alike for all of them, so a wrong guess costs
#: little, and shorter ids are believed to be some than in a fingerprint.
_MIXED = re.compile(r"(?=[0-9A-Za-z]{8})(?:[A-Za-z]+\d+[A-Za-z]+\d|\d+[A-Za-z]+\d+[A-Za-z])")
_LONG = re.compile(r"\d{10}|[^/]{16}")


class Address(NamedTuple):
    """The parts of a URL that the pages like it share."""

    host: str
    #: The host, its folders one below the other, then the name of the file with # for its numbers, or the script with
    #: the names of its parameters, and with those of their values that are words.  Each is a part of the one before; ids
    #: in the path are stars.
    groups: tuple[str, ...]
    tails: tuple[int, ...]  #: digests of its last segment, its last two and its last three, with the query
    script: str  #: it without its query
    #: For each parameter: a digest of the URL without it, which its other values share.  Ids in the path are one, too.
    others: dict[str, int]
    whole: int  #: a digest of the URL: to have no such parameter is like having another value of it


@lru_cache(maxsize=1 << 13)
def address(url: str) -> Address:
    """Returns the parts of a URL.  Takes time linear in its length.

    >>> found = address("http://a.org/v2/api/list.php?page=30&sort=up")
    >>> found.groups[:3]
    ('a.org', 'a.org/v2/', 'a.org/v2/api/')
    >>> found.groups[3:]
    ('a.org/v2/api/list.php?', 'a.org/v2/api/list.php?page&sort', 'a.org/v2/api/list.php?page&sort=up')
    >>> address("http://a.org/v2/news-17.html").groups[-1], address("http://a.org/s/9f86d081884c7d65/").groups[-1]
    ('a.org/v2/news-#.html', 'a.org/s/*/')
    >>> down, without = address("http://a.org/v2/api/list.php?sort=down&page=30"), address("http://a.org/v2/api/list.php?page=30")
    >>> found.others["sort"] == down.others["sort"] == without.whole
    True
    """
    rest = url[:MAX_URL].partition("#")[0].partition("://")[2]
    rest, _, query = rest.partition("?")
    host, _, path = rest.partition("/")
    host = host.lower()
    segments = path.split("/")
    name = segments[-1]
    groups, folder = [host], host + "/"
    starred = _starred(path, segments)
    for segment in starred[: min(len(segments) - 1, MAX_FOLDERS)]:
        folder += segment + "/"
        groups.append(folder)
    script, others = f"{host}/{path}", dict[str, int]()
    if starred != segments:
        script = f"{host}/{'/'.join(starred)}"
        others[ID] = digest(f"{script}??{query}")
    whole = digest(f"{script}?")
    if query:
        given = sorted(part.partition("=")[::2] for part in query.split("&")[:MAX_PARAMETERS] if part)
        digests = [digest(f"{each}={value}") for each, value in given]
        whole = (whole + sum(digests)) & MASK
        for (each, _), its_own in zip(given, digests, strict=True):
            others[each] = (whole - its_own) & MASK
        names = dict(given)
        groups += (script + "?", script + "?" + "&".join(names))
        words = "&".join(
            f"{each}={value}" if _WORD.fullmatch(value) else each for each, value in names.items()
        )
        if words != groups[-1].rpartition("?")[2]:
            groups.append(f"{script}?{words}")
    elif starred[-1] != name:
        groups.append(folder + "*")
    elif _DIGITS.search(name):
        groups.append(folder + _DIGITS.sub("#", name))
    named = [segment for segment in segments if segment] + ["/"] * (not name)
    tails = [
        digest("/".join(named[-length:]) + "?" + query) for length in range(1, MAX_TAIL + 1)[: len(named)]
    ]
    return Address(host, tuple(groups), tuple(tails), script, others, whole)


def _starred(path: str, segments: list[str]) -> list[str]:
    """Returns the segments of a path, with a star for each that looks like an id."""
    if not (_MIXED.search(path) or _LONG.search(path)):
        return segments
    return ["*" if is_opaque(each) or _MIXED.search(each) else each for each in segments]
