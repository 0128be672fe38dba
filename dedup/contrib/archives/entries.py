"""What the journal of a cleaning holds of a page: where it is, what it is judged by, and what became of it."""

from typing import Any, NamedTuple

from dedup.contrib.archives.capture import Capture

#: A digest of the bytes of a page; its fingerprint, packed; how many tokens it has; and 64 bits each that it is found by.
Imprint = tuple[bytes, bytes, int, bytes]


class Place(NamedTuple):
    """Where a page is."""

    position: int  #: which item it is, of all inputs
    input: int  #: the rank of its input by name; -1 if that is one that the others are cleaned against


class Batch(NamedTuple):
    """Pages that go to a process at once."""

    places: list[Place]
    pages: list[Capture]
    facts: dict[str, Any]  #: what the journal says when they are done
    done: int  #: bytes of the inputs that are read by then


class Row(NamedTuple):
    """A page that is to be judged."""

    position: int
    url: str  #: or its name
    size: int
    fingerprint: bytes
    is_other: bool = False  #: true if it is of what the others are cleaned against


class Original(NamedTuple):
    """The page for which another was dropped."""

    url: str
    fetched: int  #: microseconds since 1970; `NEVER` if it is not known
    record_id: str
    is_identical: bool  #: true if both have the same bytes


class Verdict(NamedTuple):
    """What became of a page."""

    position: int
    url: str
    payload: bytes  #: a digest of its bytes
    kept: Original | None  #: for which page it was dropped; None if it is kept, or not judged yet

    def is_of(self, page: Capture, payload: bytes) -> bool:
        """Returns whether this is the verdict on a page with this digest."""
        return self.payload == payload and self.url == storable(page.url)


def storable(text: str) -> str:
    """Returns a text without lone surrogates, which SQLite can't store."""
    return text.encode("utf-8", "replace").decode()
