"""What a crawl has learned of a host, as it is noted beside the index: the next one begins with that."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from dedup.filter.noise.kinds import Learned
from dedup.index.hosts import packed, unpacked

#: Bytes that are noted of a host, compressed; of one that has shown more, nothing is.
MAX_NOTED = 1 << 16
#: Changes whenever what is noted would be read differently.
FORMAT = 6


class Change(Struct):
    """What is known of a change of address."""

    names: set[tuple[str, ...]] = set()  #: that pages with the same content had in common
    differs: bool = False  #: a pair had not the same content


class Notes(Struct):
    """What is known of a host."""

    kinds: dict[str, Learned] = {}
    changes: Sequence[tuple[tuple[str, str], Change]] = ()
    format: int = FORMAT

    def to_bytes(self) -> bytes:
        """Returns what is noted; nothing if that is too much."""
        octets = packed(msgspec.msgpack.encode(self))
        return octets if len(octets) <= MAX_NOTED else b""

    @classmethod
    def from_bytes(cls, octets: bytes) -> "Notes":
        """Returns what was noted; nothing if these are other bytes.

        >>> Notes.from_bytes(Notes({"a.org/view?id": Learned(asked=7)}).to_bytes()).kinds["a.org/view?id"].asked
        7
        >>> Notes.from_bytes(b"other bytes").kinds
        {}
        """
        try:
            found = msgspec.msgpack.decode(unpacked(octets), type=cls)
        except (ValueError, msgspec.MsgspecError):
            return cls()
        return found if found.format == FORMAT else cls()
