"""Texts, and values of attributes -> tokens: words, numbers, ids and signs.  The page's own address is one token, however it is spelled."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlsplit

from dedup.page.urls import origin

#: Ids, which have letters of either case and digits; numbers in groups, times of day, hashes, and words.  A number may be
#: live, so what it counts is apart: "37kg", "IMG_1001".
_ID = r"[A-Za-z0-9_+=-]"
_WORDS = (
    rf"(?={_ID}{{0,63}}[A-Z])(?={_ID}{{0,63}}[a-z])(?={_ID}{{0,63}}[0-9]){_ID}{{16,}}"
    r"|\d{1,3}(?:[.,']\d{3})+(?![^\W_])|\d{1,2}(?::\d\d){1,2}(?!\d)"
    r"|[A-Za-z]+[0-9][A-Za-z0-9]*|[0-9]+[A-Za-z]+[0-9][A-Za-z0-9]*|[^\W\d_]+|\d+"
)
_TOKENS = re.compile(rf"{_WORDS}|\S")
_ALL = re.compile(rf"{_WORDS}|\s|\S")
_DIGITS = re.compile(r"\d+")
#: Stands for the page's own address; for one that differs from it in numbers alone, with how many follow.
SELF, LIKE = "@", "<@"


class Values:
    """Values of attributes -> tokens, of which the page's own address is one, however it is spelled."""

    def __init__(self, url: str, *, marks_like: bool) -> None:
        self._own, self._name, self.quoted = spellings(url)
        self.own = self._own | {self._name} - {""}  #: what may be the page's address
        self.like = {_DIGITS.sub("0", own) for own in self.own if marks_like and _DIGITS.search(own)}

    def tokens(self, value: str, name: str) -> list[str]:
        """Returns the tokens of the value of an attribute; the last part of an address is one in a link alone."""
        address, _, fragment = value.partition("#")
        if address and (address in self._own or (address == self._name and name == "href")):
            return [SELF, *tokens_in(fragment)]
        if self.like and _DIGITS.sub("0", value) in self.like:
            numbers = numbers_in(value)
            return [f"{LIKE}{len(numbers)}", *numbers]
        if len(value) > len(self.quoted[0]):
            for own in filter(None, self.quoted):  # a row of an archive may have no URL
                value = _with_self(value, own)
        return tokens_in(value)


def tokens_in(text: str, *, with_spaces: bool = False) -> list[str]:
    """Returns the tokens of a text.

    >>> tokens_in("1,234 x 37kg at 12:30pm, lamp-7.jpg")
    ['1,234', 'x', '37', 'kg', 'at', '12:30', 'pm', ',', 'lamp', '-', '7', '.', 'jpg']
    """
    return (_ALL if with_spaces else _TOKENS).findall(text)


def values_in(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields where the values of attributes begin and end, each behind the token of its name.

    >>> [*values_in(("<a", " href=", "@", "<>", "up", "</a"))]
    [(2, 3)]
    """
    for start, name in enumerate(tokens, 1):
        if name[:1] == " " and len(name) > 1:
            ends = (end for end in range(start, len(tokens)) if tokens[end][:1] in " <")
            yield start, next(ends, len(tokens))


def may_link(markup: str, url: str) -> bool:
    """Whether there may be a link to a URL in markup.

    >>> may_link("<a href='../view?id=7&amp;at=1'>", "http://a.org/view?id=7&at=1"), may_link("<p>", "http://a.org/view")
    (True, False)
    """
    return url.rstrip("/").rpartition("/")[2].partition("&")[0] in markup


def numbers_in(url: str) -> list[str]:
    """Returns the numbers in the path and the query of an address.

    >>> numbers_in("http://a1.org:8080/2026/05")
    ['2026', '05']
    """
    return _DIGITS.findall(url.removeprefix(origin(url)))


def _with_self(value: str, own: str) -> str:
    """Returns a value in which the page's address is `SELF`, unless it goes on, as ``?id=7`` does in ``?id=71``."""
    first, *rest = value.split(own)
    return first + "".join(f"{own if part[:1].isalnum() else SELF}{part}" for part in rest)


def spellings(url: str) -> tuple[frozenset[str], str, tuple[str, ...]]:
    """Returns how a page may spell its own address, how a link beside it may, and what may stand within other addresses."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return frozenset(), "", (url,)
    query = f"?{parts.query}" if parts.query else ""
    name = parts.path.rpartition("/")[2]
    own = {url, f"//{parts.netloc}{parts.path}{query}", f"{parts.path}{query}", query}
    return frozenset(own - {"", "/"}), f"{name}{query}", (url, quote(url, ""), quote(url))
