"""What is kept of a page, and what two of those say of each other."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from msgspec import Struct
from msgspec.structs import astuple

from dedup.fingerprint.shingles import Hashes
from dedup.printing import table


class Called(NamedTuple):
    """What a page is called, in 16 bytes."""

    names: int = (
        0  #: a Bloom filter, 64 bits, of the words that its address and its title or first h1 have in common
    )
    place: int = 0  #: 64 bits of BLAKE2b of its path, which mirrors and other versions share; 0: unknown

    def to_bytes(self) -> bytes:
        """Returns the two numbers, big-endian."""
        return b"".join(number.to_bytes(8, "big") for number in self)

    @classmethod
    def from_bytes(cls, octets: bytes) -> Self:
        """Returns what `to_bytes` gave."""
        return cls(*(int.from_bytes(octets[at : at + 8], "big") for at in (0, 8)))


#: What a page without a title, a heading and an address is called.
UNCALLED = Called()


#: A page is filed under this many of its rare shingles.
RARE = 4


class Own(Struct, frozen=True):
    """What a page's own shingles are found in."""

    main: Hashes  #: the values of the shingles outside marked chrome, or of all if too little is: ascending


class Fingerprint(Struct, frozen=True, eq=False):
    """What is kept of a page in order to judge it and others against it.

    >>> Fingerprint(0xC0FFEE, bytes(128), tokens=120, links=3)
    Fingerprint(simhash=0x0000000000c0ffee, tokens=120, links=3)
    """

    simhash: int | None  #: 64 bits; None when nothing could be made of the page
    sketch: bytes  #: of all its shingles, as a `Sketcher` makes it; empty when simhash is None
    tokens: int  #: words and URLs that were found
    links: int  #: different URLs among its HREFs
    reason: str | None = None  #: why it can't be judged: "short", or one of the reasons of `Page`
    digest: int = 0  #: 64 bits of BLAKE2b of the tokens; equal pages have equal digests
    bands: tuple[int, ...] = ()  #: 64 bits each: bands, or megashingles, where the method has them
    #: The same of its markup, which is all that a reader, a script or a link could see; the digest where there is none.
    markup: int = 0
    called: Called = UNCALLED  #: what it is called
    #: What tells its own shingles from the chrome of its host; only a page that was just read has it.  Not compared.
    own: Own | None = None

    @classmethod
    def unjudged(cls, reason: str, tokens: int = 0, links: int = 0) -> "Fingerprint":
        """Returns the fingerprint of a page that can't be compared.

        >>> Fingerprint.unjudged("binary")
        Fingerprint(simhash=None, tokens=0, links=0, reason='binary')
        """
        return cls(None, b"", tokens, links, reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and astuple(self)[:-2] == astuple(other)[:-2]

    def __hash__(self) -> int:
        return hash((self.simhash, self.digest))

    def __repr__(self) -> str:
        simhash = None if self.hex is None else f"0x{self.hex}"
        why = f", reason={self.reason!r}" if self.reason else ""
        return f"Fingerprint(simhash={simhash}, tokens={self.tokens}, links={self.links}{why})"

    @property
    def keys(self) -> tuple[int, ...]:
        """What the page is filed under beside its digest: the keys of the method, or else the simhash."""
        return self.bands if self.bands or self.simhash is None else (self.simhash,)

    @property
    def hex(self) -> str | None:
        """The simhash as 16 hex digits."""
        return None if self.simhash is None else f"{self.simhash:016x}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How near two pages are, and whether that makes them duplicates."""

    distance: int | None  #: bits in which the simhashes differ; None if a page has none
    resemblance: float | None  #: estimated share of common shingles, 0..1
    duplicate: bool

    def _repr_html_(self) -> str:
        return table((name, getattr(self, name)) for name in ("duplicate", "distance", "resemblance"))
