"""What speaks for and against a page's being a near-duplicate of a kept one, once the chrome of its host is set aside.

Two pages in the same large chrome resemble each other, whatever they are about.  So sameness is shown by shingles of the
main view that both have and few other pages of the host, and difference by whatever one of the two has alone and few
pages have.  No difference is taken for noise.  A page is a near-duplicate if what is its own is nearly all on the kept
page, and the other way round: each contains the other (Broder 1997).

>>> from dedup.fingerprint.chrome import Chrome
>>> from dedup.fingerprint.detector import Detector
>>> detector, chrome = Detector(min_tokens=5), Chrome()
>>> menu = "".join(f"<li>menu item {n} of this shop" for n in range(50))
>>> def product(n, visitors=0):
...     text = " ".join(f"fact{n}x{k}" for k in range(60))
...     return detector.fingerprint(f"<title>Product</title>{menu}<p>{text}<p>Visitors {visitors}")
>>> for n in range(10):
...     chrome.add(product(n).own.main)
>>> part = Part(detector.sketcher, product(5, visitors=6), chrome)
>>> kept = [Part(detector.sketcher, page, chrome).sketch for page in (product(5), product(7))]
>>> [weighed.contains(0.85) for weighed in part.weigh(detector.sketcher.words(kept))]
[True, False]
"""

from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.chrome import LEAST, Chrome
from dedup.fingerprint.fingerprint import RARE, Called, Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.sketch import Sketcher
from dedup.page.siblings import apart
from dedup.printing import many

#: At least this many shingles have to match.
LEAST_MATCHING = 8.0
#: At least this share of what is a page's own has to be on a kept page, or else a crawl doesn't look whether the rest is noise.
LEAST_PROBED = 0.5
#: A sketch holds what was not common when its page was filed, and nobody knows any more what that was.  So it is
#: compared with the page at several levels: without what is on this many times as many pages as make chrome.
LEVELS = (1.0, 4.0, float("inf"))
#: Where the parts of the range of shingles begin.
_EDGES = np.arange(RARE, dtype=np.uint64) << np.uint64(64 - (RARE - 1).bit_length())

Floats = npt.NDArray[np.float64]


class Evidence(NamedTuple):
    """What speaks for and against a page's being a near-duplicate of a kept one, in shingles: estimated."""

    matching: float  #: of those that few pages of the host have: those that both pages have
    new: float  #: those that only the page has
    gone: float  #: those that only the kept page has
    same_name: bool = False  #: both are called the same by heading and address, or have the same path
    siblings: bool = False  #: the site tells them apart by their addresses

    @property
    def own(self) -> float:
        """How many shingles of the page are its own."""
        return self.matching + self.new

    @property
    def share(self) -> float:
        """How much of each part is in the other, of the one of which less is: 0 to 1."""
        return self.matching / max(1.0, self.matching + max(self.new, self.gone))

    @property
    def resemblance(self) -> float:
        """What both have, of what either has: 0 to 1."""
        return self.matching / max(1.0, self.matching + self.new + self.gone)

    def contains(self, least: float) -> bool:
        """Returns whether each part contains the other, but for a share."""
        return self.matching >= LEAST_MATCHING and self.share >= least

    def suffices(self, least: float) -> bool:
        """Returns whether it is a near-duplicate; ``least`` is the share of each part that the other has to contain."""
        return not self.siblings and self.contains(least)


class Part:
    """A page's own part: the shingles of its main view, without those that many pages of its host have."""

    def __init__(self, sketcher: Sketcher, page: Fingerprint, chrome: Chrome) -> None:
        assert page.own is not None
        self._page = page
        self._sketcher = sketcher
        self._few = chrome.few
        self._chrome = chrome
        self._is_known = chrome.is_known
        self._main = page.own.main
        self._counts = chrome.counts(self._main)

    @cached_property
    def sketch(self) -> bytes:
        """What is stored of it: a sketch of what few pages have."""
        return self._sketcher.select(self._main, self._counts, self._few)[0].tobytes()

    @cached_property
    def rare(self) -> Hashes:
        """The shingles that few pages have, if that can be told: values, ascending."""
        return self._main[self._counts < self._few + 1]

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """By what it is found: the least of its rare shingles in each of four parts of their range; 0 without any.

        None is given for a page of a host that is hardly known: one menu would be the key of many pages.
        """
        if not self._is_known:
            return (0,) * RARE
        own = self._main[self._counts < self._few]
        first = own.searchsorted(_EDGES).tolist()
        ends = [*first[1:], len(own)]
        return tuple(int(own[at]) if at < end else 0 for at, end in zip(first, ends, strict=True))

    def are_siblings(self, url: str, other: str) -> bool:
        """Returns whether the addresses of the page and of a kept one name two pages, and no copies, as far as the host is known."""
        found = apart(url, other)
        return found is not None and not (found.parts and all(map(self._chrome.has_copies, found.parts)))

    @cached_property
    def _levels(self) -> "_Levels":
        found = dict[int, tuple[Hashes, Hashes, int]]()
        at_most = np.bincount(self._counts, minlength=256).cumsum().tolist()

        def less_than(bound: float) -> int:
            return int(at_most[ceil(min(bound, 256.0)) - 1])

        # What was common when the kept page was filed may have half as many since the counts were halved, and no mark.
        halved = max(LEAST, (self._few - 1) // 2) if self._chrome.has_forgotten else self._few
        for most in (halved, *(factor * self._few for factor in LEVELS)):
            if (count := less_than(most + 1)) not in found:
                words, rare = self._sketcher.select(self._main, self._counts, most + 1, self._few + 1)
                found[count] = words, rare, less_than(most)
        sketches, slots, others = zip(*found.values(), strict=True)
        return _Levels(np.array(sketches), np.array(slots), np.array(others)[:, None])

    def beside(self, other: "Part") -> Evidence:
        """Returns the same of it and of a page of which all shingles are known: exactly."""
        both = np.isin(self._main, other._main, assume_unique=True)
        theirs = np.isin(other._main, self._main, assume_unique=True)
        matching, new = both & (self._counts < self._few + 1), ~both & (self._counts < self._few)
        gone = ~theirs & (other._counts < other._few)
        return Evidence(float(matching.sum()), float(new.sum()), float(gone.sum()))

    def evidence(self, shares: Evidence, url: str, kept: Called, kept_url: str) -> Evidence:
        """Returns the same of the page at ``url``, which shares so much with a kept one, with what both are called."""
        return shares._replace(
            same_name=is_same_name(self._page, kept),
            siblings=self.are_siblings(url, kept_url),
        )

    def weigh(self, stored: Hashes) -> list[Evidence]:
        """Returns how much of it and of each of n kept pages' parts match: see `measure`."""
        return [Evidence(*row) for row in self.measure(stored).T.tolist()]

    def measure(self, stored: Hashes) -> Floats:
        """Returns the shares of it and of n kept pages' parts, at the level where most matches: float64, shape (3, n).

        By their sketches, of shape (n, w).
        """
        levels, kinds = self._levels, self._sketcher.kinds
        sizes, own_sizes = stored[:, -1].astype(np.float64), levels.words[:, -1:].astype(np.float64)
        counts = self._sketcher.matches(stored, levels.words, levels.rare)
        filled, equal = counts[1::2], counts[2::2]  # of all, and of the rare ones
        alike = np.maximum(0.0, (kinds * equal - filled) / (kinds - 1)) / np.maximum(counts[0], 1)
        common, rarely = alike * ((own_sizes + sizes) / (1 + alike[0]))
        found: Floats = np.maximum(0.0, (rarely, levels.alone - common, sizes - common))
        if len(own_sizes) == 1:
            return found[:, 0]
        best = _shares(found).argmax(axis=0)
        return found[:, best, np.arange(len(sizes))]


class _Levels(NamedTuple):
    """A page's main view without what is more common than so much, for m such measures."""

    words: Hashes  #: its sketches, of shape (m, w); their shingles include those that are common only if a kept page has them
    rare: Hashes  #: the slots in which its rare shingles are, of shape (m, w - 1)
    alone: npt.NDArray[np.int64]  #: how many shingles there are without those, of shape (m, 1)


def contain(found: Floats, *least: float) -> npt.NDArray[np.bool_]:
    """Returns for each of n pages' shares, shape (3, n), whether each contains the other, but for each of m shares: (m, n)."""
    is_like: npt.NDArray[np.bool_] = (found[0] >= LEAST_MATCHING) & (
        _shares(found) >= np.array(least)[:, None]
    )
    return is_like


def _shares(found: Floats) -> Floats:
    """`Evidence.share` of each column."""
    matching, new, gone = found
    share: Floats = matching / np.maximum(1.0, matching + np.maximum(new, gone))
    return share


def in_words(own: float, new: float, gone: float) -> str:
    """Returns how much of a page's own shingles a kept page has, and how many others that has.

    >>> in_words(412, 3, 0), in_words(1, 0, 2)
    ('all of its own 412 shingles but 3 are on the kept page', 'its own shingle is on the kept page, which has 2 more')
    """
    own, new, gone = round(own), round(new), round(gone)
    all_of_it = "its own shingle is" if own == 1 else f"all of its own {own:,} shingles are"
    if new:
        all_of_it = f"all of its own {many(own, 'shingle')} but {new:,} are"
    return f"{all_of_it} on the kept page{f', which has {gone:,} more' if gone else ''}"


def is_same_name(page: Fingerprint, kept: Called) -> bool:
    """Returns whether two pages are called the same by heading and address, or have the same place in their sites."""
    own = page.called
    return bool((kept.names and kept.names == own.names) or (kept.place and kept.place == own.place))
