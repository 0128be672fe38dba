"""Siblings: pages that a site itself tells apart by their addresses, as the entries of a register or the items of a shop.

Whatever two addresses differ in names a page: a parameter, the last part of a path, a folder.  But folders, and whole kinds
of address, can be those of copies, as of versions for print: then not one pair of such pages is near each other, but many.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from dedup.page.ids import MAX_URL, strip_session

__all__ = ["Apart", "apart"]

#: A folder that names a version.
_VERSION = re.compile(r"v?\d+\.[\dx][\w.-]*|current|latest|stable|master|main|dev|nightly")
#: A language or a country, with which a path begins.
_TONGUE = re.compile(r"[a-z]{2}(?:[-_][a-z]{2,4})?")
#: Parameters of an address that are looked at, at most.
MAX_PARAMETERS = 32


class _Address(NamedTuple):
    path: tuple[str, ...]  #: its parts
    parameters: dict[str, str]

    @property
    def kind(self) -> str:
        """What pages have in common that are named by their parameters, or by the last part of their paths."""
        path = self.path if self.parameters else self.path[:-1]
        return "/".join(path) + "?" + "&".join(sorted(self.parameters))


class Apart(NamedTuple):
    """In what two addresses differ."""

    #: What only one of them has, of either, in the order of the alphabet; None if that can't be copies.
    parts: tuple[str, str] | None
    where: str  #: what both have besides, or what names either page


def apart(a: str, b: str) -> Apart | None:
    """In what two addresses differ that name different pages; None if they don't, but for hosts, versions and sessions.

    >>> [apart("http://example.org/view?id=7", f"http://example.org/{other}") is not None
    ...  for other in ("view?id=8", "view?id=7&print=1", "view?id=7;jsessionid=1F", "story", "1.0/view?id=7")]
    [True, False, False, True, True]
    >>> apart("http://a.org/docs/1.0/set/operator*", "http://a.org/docs/2.0/set/operator*")
    >>> [apart("http://a.org/docs/set", f"http://a.org/{other}").parts for other in ("docs/map", "print/docs/set")]
    [None, ('', 'print')]
    >>> [apart("http://a.org/en/p/7", f"http://a.org/{other}").parts for other in ("de-at/p/7", "p/7")]
    [None, None]
    >>> apart("http://a.org/hilton/room", "http://a.org/ritz/room")
    Apart(parts=('hilton', 'ritz'), where='/room')
    >>> apart("http://a.org/view?id=7", "http://a.org/print/lamp").parts
    ('print?', 'view?id')
    """
    one, other = _parse(a), _parse(b)
    if one is None or other is None:
        return None
    both = one.parameters.keys() & other.parameters.keys()
    if any(one.parameters[name] != other.parameters[name] for name in both):
        return Apart(None, "")
    first, second = one.path, other.path
    if first == second:
        return None
    shorter = min(len(first), len(second))
    start = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    end = next((at for at in range(shorter - start) if first[-1 - at] != second[-1 - at]), shorter - start)
    if start + end == shorter or end:  # one has more parts, or the last ones are the same
        less, more = sorted("/".join(path[start : len(path) - end]) for path in (first, second))
        if not start and _TONGUE.fullmatch(more) and (not less or _TONGUE.fullmatch(less)):
            return Apart(None, "")  # a translation, of which a few labels may be all that differs
        return Apart((less, more), "/".join((*first[:start], "", *first[len(first) - end :])))
    if bool(one.parameters) == bool(other.parameters):
        return Apart(None, "")
    less, more = sorted((one.kind, other.kind))
    return Apart((less, more), f"{first} {second} {one.parameters or other.parameters}")


@lru_cache(maxsize=1 << 12)
def _parse(url: str) -> _Address | None:
    try:
        parts = urlsplit(strip_session(url[:MAX_URL]))
        path = [part for part in unquote(parts.path).casefold().split("/") if part]
    except ValueError:
        return None
    named = ["*" if _VERSION.fullmatch(folder) else folder for folder in path[:-1]] + path[-1:]
    pairs = (part.partition("=") for part in re.split("[&;]", parts.query)[:MAX_PARAMETERS])
    return _Address(tuple(named), {name: value for name, _, value in pairs if value})
