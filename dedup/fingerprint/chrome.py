"""The chrome of a host: the menus, sidebars and footers around many pages.

A shingle is the chrome of a host if many pages that were kept there have it.  Each slot of the sketch keeps one
shingle of a page, and a table for each host counts, slot by slot, on how many kept pages it met that shingle;
nothing more than the sketch is stored of a page.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.sketch import Sketcher

__all__ = ["KNOWN", "Bools", "Chrome", "View"]

#: Shingles that a slot of a table counts; beyond them, the one that was met once the longest ago is forgotten.
DEPTH = 16
#: A shingle is chrome if this share of the kept pages has it, but at least and at most this many of them.
SHARE, LEAST, MOST = 0.05, 2.0, 8.0
#: And a heading that more than this share of the kept pages has tells nothing.
HEADING_SHARE, HEADING_LEAST = 0.1, 4.0
#: Kept pages from which on the chrome of a host is known.
KNOWN = 8
#: Own slots that have to be in a main view that says that it is the same page.
FEW_SHOWN = 2

Bools = npt.NDArray[np.bool_]
_PLACES = np.arange(DEPTH, dtype=np.uint8)[:, np.newaxis]


class View(NamedTuple):
    """Which slots of one page are its own, by what a host's table says: masks as sketches are laid out."""

    own_if_equal: bytes  #: of slots that are equal in a kept page, which the table has counted, too
    own_if_new: bytes  #: of slots that are not
    main: bytes  #: of slots outside marked chrome
    heading_tells: bool  #: whether an equal heading is rare enough to say that it is the same page
    shows_own: bool  #: whether enough of its main view is its own to say that it is the same page


class Chrome:
    """How often the shingles of a host's kept pages were met, by the slots of their sketches."""

    def __init__(self, slots: int) -> None:
        self.pages = 0  #: that were kept
        # A column for each slot, and the last for the headings; so numpy goes along many slots at once.
        self._ids = np.zeros((DEPTH, slots + 1), np.uint16)
        self._counts = np.zeros((DEPTH, slots + 1), np.uint8)
        self._next = np.zeros(slots + 1, np.uint8)  # the place after the newest

    @property
    def is_known(self) -> bool:
        """Whether enough pages were kept to tell chrome from content."""
        return self.pages >= KNOWN

    @property
    def few(self) -> float:
        """A shingle that is on this many other kept pages is chrome."""
        return max(LEAST, min(MOST, SHARE * self.pages))

    def add(self, page: Fingerprint, *, kept: bool = True) -> None:
        """Counts the shingles of a page.  O(slots)."""
        ids, filled = _ids(page)
        self.pages += kept
        met = (self._ids == ids) & (self._counts > 0) & filled
        np.add(self._counts, 1, out=self._counts, where=met & (self._counts < 255))
        fresh = np.flatnonzero(filled & ~met.any(axis=0))
        if not len(fresh):
            return
        # Newcomers go round: from the newest on, the first that was met once is the oldest of those.
        counts = np.maximum(self._counts[:, fresh], 1)
        age = (_PLACES - self._next[fresh]) % np.uint8(DEPTH)
        first = (counts * np.uint16(DEPTH) + age).min(axis=0)
        place = (self._next[fresh] + first % DEPTH) % DEPTH
        free = first < 2 * DEPTH
        places, slots = place[free], fresh[free]
        self._ids[places, slots] = ids[slots]
        self._counts[places, slots] = 1
        self._next[slots] = (places + 1) % DEPTH
        self._counts[place[~free], fresh[~free]] -= 1

    def view(self, page: Fingerprint, sketcher: Sketcher) -> View:
        """Which slots of a page are its own.  O(slots)."""
        assert page.own is not None
        ids, filled = _ids(page)
        met = ((self._ids == ids) * self._counts).max(axis=0)
        own = (filled & (met < self.few + 1))[:-1]
        if_equal, if_new, main = sketcher.masks(
            np.array([own, (filled & (met < self.few))[:-1], page.own.main])
        )
        rare = max(HEADING_LEAST, HEADING_SHARE * self.pages)
        shows_own = np.count_nonzero(own & page.own.view) >= FEW_SHOWN
        return View(if_equal, if_new, main, bool(filled[-1] and met[-1] < rare + 1), bool(shows_own))

    def to_bytes(self) -> bytes:
        """The table, to be stored; 25 kB for 512 slots."""
        return b"".join(
            (
                self.pages.to_bytes(4, "big"),
                self._ids.T.astype(">u2").tobytes(),
                self._counts.T.tobytes(),
                self._next.tobytes(),
            )
        )

    @classmethod
    def from_bytes(cls, octets: bytes, slots: int) -> Self:
        """The table that was stored.  Raises ValueError if it is not one for that number of slots."""
        chrome, cells = cls(slots), (slots + 1) * DEPTH
        if len(octets) != 4 + 3 * cells + slots + 1:
            raise ValueError(
                f"a table of {slots} slots has {4 + 3 * cells + slots + 1} bytes, not {len(octets)}"
            )
        chrome.pages = int.from_bytes(octets[:4], "big")
        chrome._ids[:] = np.frombuffer(octets, ">u2", cells, 4).reshape(-1, DEPTH).T
        chrome._counts[:] = np.frombuffer(octets, np.uint8, cells, 4 + 2 * cells).reshape(-1, DEPTH).T
        chrome._next[:] = np.frombuffer(octets, np.uint8, slots + 1, 4 + 3 * cells) % DEPTH
        return chrome

    def merge(self, other: "Chrome") -> None:
        """Takes over what another worker has counted of the same host: the higher count of each shingle.

        To merge a table again changes nothing.  O(slots).
        """
        self.pages = max(self.pages, other.pages)
        if not self._counts.any():
            self._ids[:], self._counts[:], self._next[:] = other._ids, other._counts, other._next
            return
        same = (self._ids[:, np.newaxis] == other._ids) & (other._counts > 0)
        theirs = np.where(same, other._counts, 0).max(axis=1)
        np.maximum(self._counts, np.where(self._counts > 0, theirs, 0), out=self._counts)
        met = (same & (self._counts > 0)[:, np.newaxis]).any(axis=0)
        # Of what only one of the two has met, the highest counts stay; those of this table at equal counts.
        ids = np.concatenate((self._ids, other._ids))
        counts = np.concatenate((self._counts, np.where(met, 0, other._counts).astype(np.uint8)))
        best = np.sort((-counts.astype(np.intp)).argsort(axis=0, kind="stable")[:DEPTH], axis=0)
        self._ids[:] = np.take_along_axis(ids, best, axis=0)
        self._counts[:] = np.take_along_axis(counts, best, axis=0)


def _ids(page: Fingerprint) -> tuple[npt.NDArray[np.uint16], Bools]:
    """What the rows of a table count of a page, and which of them have something to count."""
    assert page.own is not None
    heading = page.called.heading
    ids, filled = np.empty(len(page.own.ids) + 1, np.uint16), np.empty(len(page.own.ids) + 1, np.bool_)
    ids[:-1], ids[-1] = page.own.ids, heading & 0xFFFF
    filled[:-1], filled[-1] = page.own.filled, heading != 0
    return ids, filled
