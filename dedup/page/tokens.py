"""The tokens of a page, kept as octets until somebody asks for one of them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import overload

from dedup.compiled import fast

Ranges = tuple[tuple[int, int], ...]
#: Before which token a block begins or ends; how many blocks it is in, itself included; and the signs since the break before.
Breaks = Sequence[tuple[int, int, bytes]]


def no_breaks() -> Breaks:
    """Returns none: where blocks are is not known, or there are none."""
    return ()


class Tokens(Sequence[str]):
    """Tokens in document order, none of which has a NUL in it; equal to a list of the same.

    >>> tokens = Tokens(b"reads\\0/docs/", 2)
    >>> tokens, len(tokens), tokens == ["reads", "/docs/"]
    (['reads', '/docs/'], 2, True)
    """

    __slots__ = ("_count", "_each", "find_breaks", "octets")

    def __init__(self, octets: bytes, count: int, find_breaks: Callable[[], Breaks] = no_breaks) -> None:
        """``octets``: the tokens in UTF-8, joined by NULs.  ``find_breaks`` finds where blocks begin and end among them."""
        self.octets, self._count, self.find_breaks = octets, count, find_breaks
        self._each: list[bytes] | None = None

    @property
    def each(self) -> list[bytes]:
        """One by one, in UTF-8."""
        if self._each is None:
            self._each = self.octets.split(b"\0") if self._count else []
        return self._each

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        found = self.each[place]
        return found.decode() if isinstance(found, bytes) else [token.decode() for token in found]

    def __iter__(self) -> Iterator[str]:
        return iter(self.octets.decode().split("\0") if self._count else [])

    def __eq__(self, other: object) -> bool:
        return self.each == other.each if isinstance(other, Tokens) else list(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[type["Tokens"], tuple[bytes, int]]:
        return Tokens, (self.octets, self._count)


def join(tokens: Sequence[str]) -> bytes:
    """Tokens in UTF-8, joined by NULs."""
    return tokens.octets if isinstance(tokens, Tokens) else "\0".join(tokens).encode()


def each_of(tokens: Sequence[str]) -> list[bytes]:
    """Tokens one by one, in UTF-8."""
    return tokens.each if isinstance(tokens, Tokens) else [token.encode() for token in tokens]


def without(tokens: Sequence[str], ranges: Ranges) -> bytes:
    """Returns the same without some ranges of the tokens.

    >>> without(["home", "news", "a", "story"], ((0, 2),))
    b'a\\x00story'
    """
    if fast and isinstance(tokens, Tokens):
        octets: bytes = fast.without(tokens.octets, ranges)
        return octets
    each = each_of(tokens)
    left: list[bytes] = []
    for (_, start), (end, _) in pairwise(((0, 0), *ranges, (len(tokens), 0))):
        left += each[start:end]
    return b"\0".join(left)
