"""Siblings: pages that a site itself tells apart by their addresses, as the entries of a register or the items of a shop."""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from dedup.page.ids import MAX_URL, is_opaque, strip_session

__all__ = ["are_siblings"]

_NUMBERS = re.compile(r"\d+")
#: Parameters of an address that are looked at, at most.
MAX_PARAMETERS = 32


class _Address(NamedTuple):
    folder: str  #: with a 0 for each number: of a version, or a date
    last: str  #: the last part of the path
    parameters: dict[str, str]


def are_siblings(a: str, b: str) -> bool:
    """Whether two addresses name different pages of one folder, whatever its versions and dates, or of one path.

    They do if the last parts of their paths differ, or a parameter that both have has another value.  Values that look
    like nothing but an id tell nothing: they may be those of a session.

    >>> [are_siblings("http://example.org/view?id=7", f"http://example.org/{other}")
    ...  for other in ("view?id=8", "view?id=7&print=1", "view?id=7&sid=9f86d081884c7d65", "story", "print/7")]
    [True, False, False, True, False]
    >>> [are_siblings("http://a.org/1.0/set/operator*", f"http://a.org/{other}")
    ...  for other in ("1.0/set/operator=", "2.0/set/operator=", "2.0/set/operator*", "print/operator*")]
    [True, True, False, False]
    """
    one, other = _parse(a), _parse(b)
    if one is None or other is None or one.folder != other.folder:
        return False
    if one.last != other.last:
        return _differ(one.last, other.last)
    both = one.parameters.keys() & other.parameters.keys()
    return any(_differ(one.parameters[name], other.parameters[name]) for name in both)


def _differ(a: str, b: str) -> bool:
    return a != b and not (_may_be_session(a) and _may_be_session(b))


def _may_be_session(value: str) -> bool:
    return is_opaque(value) and not value.isdigit()


@lru_cache(maxsize=1 << 12)
def _parse(url: str) -> _Address | None:
    try:
        parts = urlsplit(strip_session(url[:MAX_URL]))
        path = unquote(parts.path).rstrip("/").casefold()
    except ValueError:
        return None
    folder, _, last = path.rpartition("/")
    folder = _NUMBERS.sub("0", folder)
    pairs = (part.partition("=") for part in re.split("[&;]", parts.query)[:MAX_PARAMETERS])
    return _Address(folder, last, {name: value for name, _, value in pairs if value})
