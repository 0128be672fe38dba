"""What a page says of its own address: its number, its month, and the links to the pages before and after it.

That is the name of a page and no content, where pages stand in a row, such as the months of an endless calendar: all without
entries say only which month they are.  A page that leads to none beside it has been linked for what it says, be it a number.
"""

import calendar
import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urlsplit

from dedup.page.ids import strip_session

_NUMBER = re.compile(r"\d+")
#: Numbers of more digits are not read.
MOST_DIGITS = 19
#: The number of each month, by its English names.
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}


def without_name_in_row(tokens: Sequence[str], url: str) -> list[str]:
    """Returns the tokens of a page in a row `without_own_name`, and how far the pages beside it are; else all of its tokens.

    >>> without_name_in_row(["ticket", "17", "/view?id=16", "/view?id=18"], "http://a.org/view?id=17")
    ['ticket', '[-1] [1]']
    >>> without_name_in_row(["ticket", "17", "see", "/view?id=16"], "http://a.org/view?id=17")
    ['ticket', '17', 'see', '/view?id=16']
    """
    path = _path(url)
    own = _NUMBER.sub("0", path)
    links = [numbers for token in {*tokens} if _is_like(own, token) and (numbers := _numbers(token))]
    steps = _beside(_numbers(path), links)
    return [*without_own_name(tokens, url), "{} {}".format(*steps)] if steps else [*tokens]


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


def _beside(numbers: Sequence[int], links: Collection[Sequence[int]]) -> tuple[list[int], list[int]] | None:
    """Returns by how much the nearest links before and after a page differ from its numbers; None if these are no neighbours.

    Each is one step away, or both are as far.  The numbers may be a year and a month, or a month and a year.

    >>> _beside([2026, 12], [[11], [2027, 1]]), _beside([12, 2026], [[11, 2026], [1, 2027]]), _beside([20], [[0], [40]])
    (([0, -1], [1, -11]), ([0, -1], [1, -11]), ([-20], [20]))
    >>> _beside([17], [[16]]), _beside([17], [[16], [31]])
    (None, None)
    """
    here = [0] * len(numbers)
    steps = [
        [its - own for its, own in zip([*numbers[: -len(link)], *link], numbers, strict=True)]
        for link in links
        if len(link) <= len(numbers)
    ]
    for ordered in (steps, [step[::-1] for step in steps]):
        before = max((step for step in ordered if step < here), default=None)
        after = min((step for step in ordered if step > here), default=None)
        if before and after and ((_is_one(before) and _is_one(after)) or before == [-way for way in after]):
            return before, after
    return None


def _is_one(step: Iterable[int]) -> bool:
    return next(abs(way) for way in step if way) == 1
