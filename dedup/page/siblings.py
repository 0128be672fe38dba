"""Siblings: pages that a site itself tells apart by their addresses, as the entries of a register or the items of a shop.

Whatever two addresses differ in names a page: a parameter, the last part of a path, a folder, the host.  But a folder or a
host can be called a version of another, as one for print, or a mirror: then not one pair of such pages is near each other,
but many.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from dedup.page.ids import MAX_URL, is_opaque, strip_session
from dedup.page.urls import host, origin

#: A folder that names a version, and no month or day, as 2024.11 and 24.12.2024 do.
_VERSION = re.compile(
    r"(?!(?:\d+\.\d+\.)?(?:19|20)\d\d(?:\.(?:0\d|1[0-2])(?:\.\d+)?)?$)v?\d+\.[\dx][\w.-]*"
    r"|current|latest|stable|master|main|dev|nightly"
)
#: What a folder is called that has versions of other pages, for print or for small screens, or a mirror of them.
_COPIES = (
    r"print(?:able|view|ed|-?version|-?friendly)?|printer-?friendly|druck(?:en|version|ansicht)?|imprim(?:er|ir|able)"
    r"|stampa|amp|wap|pda|mirrors?\d*"
)
#: A host may be called so, too, or by a short name, which as a folder may name what pages are of, such as men's shirts.
_COPY_FOLDER, _COPY_HOST = re.compile(_COPIES), re.compile(rf"{_COPIES}|m|mobile|ww+\d+|cdn\d*")
#: A parameter that only says from where a page was asked for, or how it is to be shown.
PASSING = re.compile(r"ref(?:err?er)?|print(?:able)?|amp")
#: Numbers of two releases, such as 38 and 39, or 9 and 10.  What is beside 1 in 2 may be its other part, or room; longer
#: numbers name what a folder is of, and years; 07 is a month.
_RELEASES = re.compile(r"[1-9]/[1-9]\d|[1-9]\d/[1-9]\d?")
#: Parameters of an address that are looked at, at most.
MAX_PARAMETERS = 32


class _Address(NamedTuple):
    host: str
    path: tuple[str, ...]  #: its parts
    parameters: dict[str, str]

    @property
    def kind(self) -> str:
        """What pages have in common that are named by their parameters, or by the last part of their paths."""
        path = self.path if self.parameters else self.path[:-1]
        return "/".join(path) + "?" + "&".join(sorted(self.parameters))

    def says_more_than(self, other: "_Address") -> bool:
        """Whether it has a parameter that the other has not, and that may say what is shown, as a long number may."""
        more = {name: self.parameters[name] for name in self.parameters.keys() - other.parameters.keys()}
        return any(
            not PASSING.fullmatch(name) and (value.isdecimal() or not is_opaque(value))
            for name, value in more.items()
        )


class Apart(NamedTuple):
    """In what two addresses differ."""

    #: The hosts, and the folders, that only one of the two has, of either, in the order of the alphabet; none if they can't be
    #: those of copies.
    parts: tuple[tuple[str, str], ...]
    where: str  #: what both have besides, or what names either page


@lru_cache(maxsize=1 << 8)  # a page and one near it are compared when it is weighed, and when it is kept
def apart(a: str, b: str) -> Apart | None:
    """In what two addresses differ that name different pages; None if they don't, but for versions and sessions.

    >>> [apart("http://example.org/view?id=7", f"http://example.org/{other}") is not None
    ...  for other in ("view?id=8", "view?id=7&room=2", "view?id=7&print=1", "view?id=7;jsessionid=1F", "story")]
    [True, True, False, False, True]
    >>> apart("http://example.org/lamp", "http://example.org/lamp?variant=41283719300001") is not None
    True
    >>> apart("http://a.org/docs/1.0/set/operator*", "https://www.a.org/docs/2.0/set/operator*")
    >>> [apart("http://a.org/p/7", url).parts for url in ("http://a.org/ritz/p/7", "http://b.org/p/7", "http://a.org/p/8")]
    [(), (), ()]
    >>> apart("http://a.org/p/7", "http://mirror.net/print/p/7")
    Apart(parts=(('a.org', 'mirror.net'), ('', 'print')), where='/p/7')
    >>> apart("http://a.org/p/7", "http://m.a.org/p/7").parts, apart("http://a.org/m/7", "http://a.org/w/7").parts
    ((('a.org', 'm.a.org'),), ())
    >>> [apart(f"http://a.org/menu/{one}/7", "http://a.org/menu/main/7").parts for one in ("dessert", "print")]
    [(), (('*', 'print'),)]
    >>> apart("http://a.org/view?id=7", "http://a.org/print/lamp").parts
    (('print?', 'view?id'),)
    """
    one, other = _parse(a), _parse(b)
    if one is None or other is None:
        return None
    both = one.parameters.keys() & other.parameters.keys()
    if any(one.parameters[name] != other.parameters[name] for name in both):
        return Apart((), "")
    parts, where = list[tuple[str, str]](), "/".join(("", *one.path))
    if one.host != other.host:
        if not any(map(_COPY_HOST.fullmatch, f"{one.host}.{other.host}".split("."))):
            return Apart((), "")
        parts.append(_sorted(one.host, other.host))
    first, second = one.path, other.path
    shorter = min(len(first), len(second))
    start = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    end = next((at for at in range(shorter - start) if first[-1 - at] != second[-1 - at]), shorter - start)
    if first == second or start + end == shorter or end:  # one has more parts, or the last ones are the same
        if one.says_more_than(other) or other.says_more_than(one):
            return Apart((), "")
        if first == second:
            return Apart(tuple(parts), where) if parts else None
        folders = _sorted(*("/".join(path[start : len(path) - end]) for path in (first, second)))
        where = "/".join((*first[:start], "", *first[len(first) - end :]))
    elif bool(one.parameters) != bool(other.parameters):
        folders = _sorted(one.kind, other.kind)
        where = f"{first} {second} {one.parameters or other.parameters}"
    else:
        return Apart((), "")
    return Apart((*parts, folders), where) if _are_versions(*folders, where) else Apart((), "")


def name_one_page(a: str, b: str) -> bool:
    """Returns whether two addresses name one page: all that differs is a session, a version, how it is shown, or a mirror's host.

    Numbers that may be those of releases may as well name pages.

    >>> [name_one_page("http://example.org/view?id=7", url) for url in
    ...  ("http://example.org/view?id=7&print=1", "http://mirror.net/view?id=7", "http://example.org/view?id=8")]
    [True, True, False]
    >>> name_one_page("http://example.org/film/7/rating", "http://example.org/film/12/rating")
    False
    """
    found = apart(a, b)
    if found is None or (found.parts and not any(map(_RELEASES.fullmatch, map("/".join, found.parts)))):
        return True
    return a.removeprefix(origin(a)) == b.removeprefix(origin(b))


@lru_cache(maxsize=64)
def one_address(url: str) -> str:
    """Returns an address without sessions, and without what only says how its page is shown, or from where it was asked for.

    >>> one_address("http://a.org/view?ref=home&id=7&sid=9f86d081884c7d65")
    'http://a.org/view?id=7'
    """
    address, _, query = strip_session(url).partition("?")
    pairs = [
        pair for pair in re.split("[&;]", query) if pair and not PASSING.fullmatch(pair.partition("=")[0])
    ]
    return f"{address}?{'&'.join(sorted(pairs))}" if pairs else address


def _are_versions(one: str, other: str, where: str) -> bool:
    """Whether one of two folders is called a copy, or is a version where the other address has no folder, or both are numbers of
    releases, and not of months or of days.

    >>> [_are_versions(*pair, "docs//a.html") for pair in (("", "print"), ("38", "39"), ("1", "2"), ("2023", "2024"), ("m", "w"))]
    [True, True, False, False, False]
    >>> _are_versions("11", "12", "2024//paris")
    False
    """
    if any(map(_COPY_FOLDER.fullmatch, re.split("[/?&]", f"{one}/{other}"))) or (one, other) == ("", "*"):
        return True
    return bool(_RELEASES.fullmatch(f"{one}/{other}")) and not any(map(str.isdigit, where.split("/")))


def _sorted(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


@lru_cache(maxsize=1 << 12)
def _parse(url: str) -> _Address | None:
    try:
        parts = urlsplit(strip_session(url[:MAX_URL]))
        path = [part for part in unquote(parts.path).casefold().split("/") if part]
    except ValueError:
        return None
    named = ["*" if _VERSION.fullmatch(folder) else folder for folder in path[:-1]] + path[-1:]
    pairs = (part.partition("=") for part in re.split("[&;]", parts.query)[:MAX_PARAMETERS])
    parameters = {name: value for name, _, value in pairs if value}
    return _Address(host(url).removeprefix("www."), tuple(named), parameters)
