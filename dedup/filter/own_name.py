"""What a page says of its own address: its number, its month, and the links to the pages before and after it.

That is the name of a page and no content, where pages stand in a row, such as the months of an endless calendar: all without
entries say only which month they are.  A page that leads to none beside it has been linked for what it says, be it a number.
"""

import calendar
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from dedup.page.ids import strip_session

_NUMBER = re.compile(r"\d+")
#: A token that is a URL or a number, and the NUL before it.
_NUMBERED = re.compile(rb"\0(/[^\0]*|[0-9]+(?![^\0]))")
#: Numbers of more digits are not read.
MOST_DIGITS = 19
#: The number that differs first between a page and one beside it differs by this.
ONE = {-1, 1}
#: The number of each month, by its English names.
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}


class OwnName(NamedTuple):
    """What a page says of its own address."""

    tokens: AbstractSet[str]  #: all that it may have of it
    is_in_row: bool  #: true if it leads to a page beside it


_NAMELESS = OwnName(frozenset(), is_in_row=False)


@lru_cache(maxsize=1)
def own_name(octets: bytes, url: str) -> OwnName:
    """Returns what a page with these tokens, joined by NULs, says of its own address: numbers and months that are in that, and links
    to addresses that differ in numbers.

    >>> tokens = b"may\\x002026\\x007\\x00nights\\x00/06\\x00/2025/04\\x00/view?id=6\\x00/img/5.jpg"
    >>> own = own_name(tokens, "http://a.org/calendar/2026/05")
    >>> sorted(own.tokens), own.is_in_row
    (['/06', '/2025/04', '2026', 'may'], True)
    >>> own_name(b"ticket\\x0017\\x00see\\x00/view?id=31", "http://a.org/view?id=17").is_in_row
    False
    """
    path = _path(url)
    its = _NUMBER.findall(path)
    numbers = {int(number) for number in its if len(number) <= MOST_DIGITS}
    if not numbers:
        return _NAMELESS
    own = _NUMBER.sub("0", path)
    tokens = {name for name, month in _MONTHS.items() if month in numbers}
    links = list[list[int]]()
    for each in {*_NUMBERED.findall(b"\0" + octets)}:
        token = each.decode("utf-8", "surrogatepass")
        if token[0] != "/":
            if len(token) <= MOST_DIGITS and int(token) in numbers:
                tokens.add(token)
        elif _is_like(own, token):
            tokens.add(token)
            links.append(_numbers(token))
    return OwnName(tokens, _is_beside(_numbers(path), filter(None, links)))


def without_name_in_row(tokens: Sequence[str], url: str) -> list[str]:
    """Returns the tokens of a page without what they say of its own address, if it leads to a page beside it; or else all.

    >>> without_name_in_row(["ticket", "17", "next", "/view?id=18"], "http://a.org/view?id=17")
    ['ticket', 'next']
    >>> without_name_in_row(["ticket", "17", "see", "/view?id=31"], "http://a.org/view?id=17")
    ['ticket', '17', 'see', '/view?id=31']
    """
    own = own_name(joined(tokens), url)
    return [token for token in tokens if not own.is_in_row or token not in own.tokens]


def joined(tokens: Sequence[str]) -> bytes:
    """Tokens as bytes, to be hashed."""
    return "\0".join(tokens).encode("utf-8", "surrogatepass")


def _path(url: str) -> str:
    """Returns the path and the query of an address; nothing if it is none."""
    try:
        parts = urlsplit(strip_session(url))
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _is_like(own: str, token: str) -> bool:
    """Returns whether a token is a link to an address that differs in numbers from a page's own, of which each number is a zero."""
    return token[:1] == "/" and bool(_NUMBER.search(token)) and own.endswith(_NUMBER.sub("0", token))


def _numbers(path: str) -> list[int]:
    """Returns the numbers in a path; none if one of them is too long."""
    found = _NUMBER.findall(path)
    return [] if any(len(number) > MOST_DIGITS for number in found) else [*map(int, found)]


def _is_beside(numbers: Sequence[int], links: Iterable[Sequence[int]]) -> bool:
    """Returns whether a link leads from a page with these numbers to one a step away, or two lead equally far to either side.

    The numbers may be a year and a month, or a month and a year.

    >>> [_is_beside(*two) for two in (([2026, 12], [[2027, 1]]), ([12, 2026], [[1, 2027]]), ([20], [[0], [40]]))]
    [True, True, True]
    >>> [_is_beside([17], links) for links in ([[31]], [[12], [31]])]
    [False, False]
    """
    steps = {
        tuple(its - own for its, own in zip([*numbers[: -len(link)], *link], numbers, strict=True))
        for link in links
        if len(link) <= len(numbers)
    }
    return any(
        any(step)
        and (_first(step) in ONE or _first(step[::-1]) in ONE or tuple(-way for way in step) in steps)
        for step in steps
    )


def _first(step: Iterable[int]) -> int:
    """Returns the first number that differs."""
    return next(way for way in step if way)
