"""What a page says of its own address: its number, its month, and the links to the pages before and after it.

That is the name of a page and no content, where pages stand in a row, such as the months of an endless calendar: all without
entries say only which month they are.  A page that leads to none beside it has been linked for what it says, be it a number.
"""

import calendar
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from dedup.page.ids import strip_session

_NUMBER = re.compile(r"\d+")
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


def without_name_in_row(tokens: Sequence[str], url: str) -> list[str]:
    """Returns the tokens of a page that leads to one beside it `without_own_name`; all tokens of any other.

    >>> without_name_in_row(["ticket", "17", "next", "/view?id=18"], "http://a.org/view?id=17")
    ['ticket', 'next']
    >>> without_name_in_row(["ticket", "17", "see", "/view?id=31"], "http://a.org/view?id=17")
    ['ticket', '17', 'see', '/view?id=31']
    """
    path = _path(url)
    own, numbers = _NUMBER.sub("0", path), _numbers(path)
    links = [its for token in {*tokens} if _is_like(own, token) and (its := _numbers(token))]
    return without_own_name(tokens, url) if _is_beside(numbers, links) else [*tokens]


def without_own_name(tokens: Iterable[str], url: str) -> list[str]:
    """Returns the tokens of a page but for numbers and months that its address has, and links to addresses that differ in numbers.

    >>> tokens = ["may", "2026", "7", "nights", "/06", "/2025/04", "/view?id=6", "/img/5.jpg"]
    >>> without_own_name(tokens, "http://a.org/calendar/2026/05")
    ['7', 'nights', '/view?id=6', '/img/5.jpg']
    """
    path = _path(url)
    numbers = {int(number) for number in _NUMBER.findall(path) if len(number) <= MOST_DIGITS}
    if not numbers:
        return list(tokens)
    own = _NUMBER.sub("0", path)

    def is_own(token: str) -> bool:
        if token in _MONTHS:
            return _MONTHS[token] in numbers
        if token.isdigit():
            return token.isascii() and len(token) <= MOST_DIGITS and int(token) in numbers
        return _is_like(own, token)

    left = list(tokens)
    names = set(filter(is_own, {*left}))
    return [token for token in left if token not in names]


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
