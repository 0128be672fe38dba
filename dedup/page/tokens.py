"""The tokens of a page, kept as octets until somebody asks for one of them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

from dedup.compiled import fast

__all__ = ["Tokens", "join", "without"]

Ranges = tuple[tuple[int, int], ...]


class Tokens(Sequence[str]):
    """Tokens in document order, none of which has a NUL in it; equal to a list of the same.

    >>> tokens = Tokens(b"reads\\0/docs/", 2)
    >>> tokens, len(tokens), tokens == ["reads", "/docs/"]
    (['reads', '/docs/'], 2, True)
    """

    __slots__ = ("_count", "_each", "octets")

    def __init__(self, octets: bytes, count: int, each: list[str] | None = None) -> None:
        """``octets``: the tokens in UTF-8, joined by NULs; ``each``: one by one, if they are there already."""
        self.octets, self._count, self._each = octets, count, each

    @property
    def each(self) -> list[str]:
        """One by one."""
        if self._each is None:
            self._each = self.octets.decode().split("\0") if self._count else []
        return self._each

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self.each[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.each)

    def __eq__(self, other: object) -> bool:
        return self.each == (other.each if isinstance(other, Tokens) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.each)

    def __reduce__(self) -> tuple[type["Tokens"], tuple[bytes, int]]:
        return Tokens, (self.octets, self._count)


def join(tokens: Sequence[str]) -> bytes:
    """Tokens in UTF-8, joined by NULs."""
    return tokens.octets if isinstance(tokens, Tokens) else "\0".join(tokens).encode()


def without(tokens: Sequence[str], ranges: Ranges) -> bytes:
    """The same without some ranges of the tokens.

    >>> without(["home", "news", "a", "story"], ((0, 2),))
    b'a\\x00story'
    """
    if fast and isinstance(tokens, Tokens):
        octets: bytes = fast.without(tokens.octets, ranges)
        return octets
    left: list[str] = []
    for (_, start), (end, _) in pairwise(((0, 0), *ranges, (len(tokens), 0))):
        left += tokens[start:end]
    return join(left)
