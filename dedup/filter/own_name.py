"""What a page says of its own address: its number, its month, and the links to the pages before and after it.

That is the name of a page and no content: of an endless calendar, all pages without entries say only which month they are.
"""

import calendar
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from dedup.page.ids import strip_session

_NUMBER = re.compile(r"\d+")
#: The number of each month, by its English names.
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}


def without_own_name(tokens: Iterable[str], url: str) -> list[str]:
    """Returns the tokens of a page but for numbers and months that its address has, and links to addresses that differ in numbers.

    >>> tokens = ["may", "2026", "7", "nights", "/06", "/2025/04", "/view?id=6", "/img/5.jpg"]
    >>> without_own_name(tokens, "http://a.org/calendar/2026/05")
    ['7', 'nights', '/view?id=6', '/img/5.jpg']
    """
    try:
        parts = urlsplit(strip_session(url))
    except ValueError:
        return list(tokens)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    numbers = {int(number) for number in _NUMBER.findall(path) if len(number) < 20}
    if not numbers:
        return list(tokens)
    own = _NUMBER.sub("0", path)

    def is_own(token: str) -> bool:
        if token in _MONTHS:
            return _MONTHS[token] in numbers
        if token.isdigit():
            return token.isascii() and len(token) < 20 and int(token) in numbers
        return token[:1] == "/" and bool(_NUMBER.search(token)) and own.endswith(_NUMBER.sub("0", token))

    left = list(tokens)
    names = set(filter(is_own, {*left}))
    return [token for token in left if token not in names]
