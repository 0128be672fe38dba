"""What pages say, in lines of words: without markup, as a history and the report of an error page have it."""

from collections.abc import Iterator, Sequence

from xxhash import xxh3_64_hexdigest

from dedup.filter.noise.gaps import GAP, Gaps
from dedup.filter.noise.left import least_of
from dedup.filter.noise.lines import Line
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
