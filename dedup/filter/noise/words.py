"""What pages say, in lines of words: without markup, as a history and the report of an error page have it.

>>> from dedup.page.read import read
>>> pages = [read(f"<h1>A story</h1><p>seen {seen} times") for seen in (17, 18)]
>>> noise = WordGaps()
>>> noise.hear("http://a.org/view?id=1", *pages)
>>> noise.left("http://a.org/view?id=2", words_of(read("<h1>Another</h1><p>seen 4 times")))
['another', 'seen', 'times']
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from xxhash import xxh3_64_hexdigest

from dedup.filter.noise.gaps import GAP, Gaps, least_of
from dedup.filter.noise.kinds import kind_of
from dedup.filter.noise.lines import Line
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.tokens import Breaks, Tokens

#: With what breaks and signs begin, which no token does; stands between the tokens of a page and those of its data.
_BREAK, _SIGNS, DATA = "\n", "\t", ""


def words_of(page: Page) -> list[str]:
    """Returns all tokens of a page with breaks between blocks, the signs of each block, and those of its data behind all else."""
    breaks = page.tokens.find_breaks() if isinstance(page.tokens, Tokens) else ()
    tokens = with_breaks([*page.tokens], breaks)
    if page.signs and not breaks:
        tokens.append(_signs(page.signs))
    return [*tokens, DATA, *page.data]


def with_breaks(tokens: list[str], breaks: Breaks) -> list[str]:
    """Returns these tokens with such breaks between them: a line feed, and how deep each is.

    >>> with_breaks(["one", "story", "next"], [(0, 1, b""), (2, 2, b"!")])
    ['\\n1', 'one', 'story', '\\t...', '\\n2', 'next']
    """
    found: list[str] = []
    last = 0
    for at, depth, signs in breaks:
        found += tokens[last:at]
        if signs:
            found.append(_signs(signs))
        found.append(f"{_BREAK}{depth}")
        last = at
    return found + tokens[last:]


def _signs(signs: bytes) -> str:
    return f"{_SIGNS}{xxh3_64_hexdigest(signs)}"


def is_signs(token: str) -> bool:
    """Returns whether a token stands for signs."""
    return token[:1] == _SIGNS


def lines_of_words(tokens: Sequence[str]) -> list[Line]:
    """Returns the lines of tokens that have breaks among them; how deep one is stands for the blocks that it is in."""
    return [*_lines(tokens)]


def _lines(tokens: Sequence[str]) -> Iterator[Line]:
    path, line = "", list[str]()
    for token in tokens:
        if token[:1] == _BREAK or token == DATA:
            if line:
                yield Line(path, tuple(line), path)
            path, line = token, []
        else:
            line.append(token)
    if line:
        yield Line(path, tuple(line), path)


def left_of_words(tokens: Sequence[str], gaps: Gaps) -> list[str]:
    """Returns the tokens without breaks and without gaps."""
    return [
        token for line in least_of(lines_of_words(tokens), gaps) for token in line.tokens if token is not GAP
    ]


class _Known(Struct):
    """What is known of a kind of page."""

    gaps: Gaps = field(default_factory=Gaps)
    asked: int = 0
    signs_change: bool = False


class WordGaps:
    """The gaps in what the pages of a crawl say, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, _Known]()

    def hear(self, url: str, a: Page, b: Page) -> None:
        """Learns from two answers to one request."""
        name = kind_of(url)
        known = self._kinds[name] = self._kinds.get(name) or _Known()
        first, second = words_of(a), words_of(b)
        known.gaps.learn(url, lines_of_words(first), lines_of_words(second))
        known.asked += 1
        known.signs_change |= [*filter(is_signs, first)] != [*filter(is_signs, second)]

    def is_met(self, url: str) -> bool:
        """Returns whether pages like this one have shown any gap."""
        return bool(self._known(url).gaps)

    def signs_change(self, url: str) -> bool:
        """Returns whether signs were other ones when a page like this one was fetched again."""
        return self._known(url).signs_change

    def probed(self, url: str) -> int:
        """Returns how many pages like this one were fetched again: what is known of their gaps has changed if that has."""
        return self._known(url).asked

    def left(self, url: str, tokens: Sequence[str]) -> list[str]:
        """Returns the tokens of a page without breaks and without gaps."""
        return left_of_words(tokens, self._known(url).gaps)

    def _known(self, url: str) -> _Known:
        return self._kinds.get(kind_of(url)) or _Known()
