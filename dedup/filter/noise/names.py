"""What a page says of its own address: its number, its month, and the links to the pages before and after it.

That is the name of a page and no content, where pages stand in a row, such as the months of an endless calendar: all without
entries say only which month they are.  A page that leads to none beside it has been linked for what it says, be it a number.

>>> may = "<h1>May</h1><a href=/2026/4>back</a><a href=/2026/6>on</a>"
>>> [[line.tokens for line in nameless(may, url)[:1]] for url in ("http://a.org/2026/5", "http://a.org/2026/9")]
[[('<h1', '@')], []]
"""

import calendar
import re
from collections.abc import Iterable, Iterator, Sequence

from dedup.filter.noise.lines import Line, lines_of
from dedup.filter.noise.tokens import LIKE, SELF, numbers_in
from dedup.page.siblings import MAX_PARAMETERS

_NUMBER = re.compile(r"\d+")
#: The number of each month, by its English names.
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}


def nameless(markup: str, url: str) -> list[Line]:
    """Returns the lines of a page at a URL but for its name, if it leads to a page beside it; or else none.  O(characters)."""
    if not (own := _read(numbers_in(url))) or not _may_be_in_row(markup, url):
        return []
    lines = lines_of(markup, url, marks_like=True)
    links = {tuple(link) for line in lines for link in _links(line.tokens)}
    if not _is_beside(own, filter(None, map(_read, links))):
        return []
    return [line._replace(tokens=tuple(_without(line.tokens, {*own}))) for line in lines]


def _may_be_in_row(markup: str, url: str) -> bool:
    """Whether a page may name an address that differs from the end of its own in numbers alone."""
    name = url.partition("#")[0].rstrip("/").rpartition("/")[2]
    parts = _NUMBER.split(name)
    if len(parts) == 1:
        return False
    if len(parts) > MAX_PARAMETERS:  # looking for so many takes longer than reading the page
        return True
    like = r"(?<!\d)\d++".join(map(re.escape, parts))
    return any(found[0] != name for found in re.finditer(like, markup.replace("&amp;", "&")))


def _links(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields the numbers of each link to an address that differs from the page's own in numbers alone."""
    for at, token in enumerate(tokens):
        if token.startswith(LIKE):
            yield tokens[at + 1 : at + 1 + int(token[len(LIKE) :])]


def _without(tokens: Sequence[str], own: set[int]) -> Iterator[str]:
    skipped, is_inside = 0, False
    for token in tokens:
        if token == "<>" or (len(token) > 1 and token[0] == " "):
            is_inside = token != "<>"  # of a tag, where other links are, which lead elsewhere
        if skipped:
            skipped -= 1
        elif token.startswith(LIKE):
            skipped = int(token[len(LIKE) :])
            yield SELF
        elif not is_inside and (
            _MONTHS.get(token.lower()) in own or (token.isdecimal() and [*own & {*_read([token])}])
        ):
            yield SELF
        else:
            yield token


def _read(numbers: Iterable[str]) -> list[int]:
    """Returns numbers as such; none if Python takes one of them for too long."""
    try:
        return [*map(int, numbers)]
    except ValueError:
        return []


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
        and (abs(_first(step)) == 1 or abs(_first(step[::-1])) == 1 or tuple(-way for way in step) in steps)
        for step in steps
    )


def _first(step: Iterable[int]) -> int:
    """Returns the first number that differs."""
    return next(way for way in step if way)
