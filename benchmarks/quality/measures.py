"""Is the verdict right?  The inline filter, measured on a collection of pages.

Pages are fed in one shuffled order; a drop is *false* when no page kept until then has a resemblance of .7 with it
(*grey* from .7 to .9); a kept page is a *miss* when an earlier kept page has .9 or more.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes, resemblance

#: Resemblance of pages that are surely near-duplicates, and below which they surely are not.
NEAR, FAR = 0.9, 0.7

#: Per page, the pages that resemble it and how much (only those of .6 or more need be there).
Truth = Mapping[int, Mapping[int, float]]


class Stream:
    """Fingerprints of pages in the order in which a crawl meets them."""

    def __init__(self, fingerprints: Sequence[Fingerprint], detector: Detector) -> None:
        self.size = len(fingerprints)
        self._detector = detector
        self._fingerprints = fingerprints
        judged = [fp.reason is None and fp.simhash is not None for fp in fingerprints]
        self.judged = np.array(judged, np.bool_)
        self.simhashes: Hashes = np.array([fp.simhash or 0 for fp in fingerprints], np.uint64)
        self._digests: Hashes = np.array([fp.digest for fp in fingerprints], np.uint64)
        nothing, none = bytes(detector.sketcher.size), (0,) * max(1, detector.finder.own_keys)
        self._sketches = detector.sketcher.words(fp.sketch or nothing for fp in fingerprints)
        self._keys: Hashes = np.array([fp.keys or none for fp in fingerprints], np.uint64)

    def filter(self, max_distance: int, min_resemblance: float) -> npt.NDArray[np.int64]:
        """What the filter does with each page, by brute force: int64, shape (n,).

        It is the position of the kept page that a dropped one duplicates, or -1 for a page that is kept.  This
        takes O(n^2) very cheap steps and no tables, so any ``max_distance`` is possible; it does not matter where
        the method has keys that are shared.
        """
        of = np.full(self.size, -1, np.int64)
        filed = np.empty(self.size, np.int64)
        count = 0
        for page in range(self.size):
            if not self.judged[page]:
                continue
            kept = filed[:count]
            apart = self._detector.finder.distances(self._keys[kept], self._keys[page])
            close = np.flatnonzero(apart <= max_distance)
            if len(close):
                sketch = self._fingerprints[page].sketch
                alike = self._detector.sketcher.resemblances(self._sketches[kept[close]], sketch)
                good = alike >= min_resemblance
                if good.any():
                    # Equal pages first, whatever else is as near.
                    other = self._digests[kept[close]] != self._digests[page]
                    order = np.lexsort((kept[close], other, -alike, apart[close], ~good))
                    of[page] = kept[close[order[0]]]
                    continue
            filed[count] = page
            count += 1
        return of


class Inline(NamedTuple):
    """The inline measure of a filter on a collection."""

    pages: int
    drops: int
    false: int  #: drops that no kept page resembles (< .7)
    grey: int  #: drops whose nearest kept page resembles them by .7 to .9
    could: int  #: pages that an earlier kept page resembles (>= .9)
    missed: int  #: those of them that were kept

    @property
    def false_rate(self) -> float:
        """False drops as a share of drops."""
        return self.false / self.drops if self.drops else 0.0

    @property
    def recall(self) -> float:
        """Share of the near-duplicates of kept pages that was dropped."""
        return 1 - self.missed / self.could if self.could else 1.0


def measure(of: npt.NDArray[np.int64], truth: Truth) -> Inline:
    """The inline measure of what a filter did (see `Stream.filter`) by the truth, by position.

    >>> truth = {1: {0: 0.95}, 2: {0: 0.95, 1: 0.8}}
    >>> measure(np.array([-1, 0, -1, 0]), truth)
    Inline(pages=4, drops=2, false=1, grey=0, could=2, missed=1)
    """
    drops = false = grey = could = missed = 0
    for page, kept in enumerate(of.tolist()):
        earlier = (alike for other, alike in truth.get(page, {}).items() if other < page and of[other] < 0)
        best = max(earlier, default=0.0)
        could += best >= NEAR
        if kept < 0:
            missed += best >= NEAR
        else:
            drops += 1
            false += best < FAR
            grey += FAR <= best < NEAR
    return Inline(len(of), drops, false, grey, could, missed)


class SketchError(NamedTuple):
    """How far the sketches are from the truth, on pairs of an exact resemblance of at least .5."""

    pairs: int
    error: float  #: mean of |estimated - exact|
    bias: float  #: mean of estimated - exact
    agreement: float  #: share of pairs on which both are on the same side of the threshold


def sketch_error(
    sketches: Sequence[bytes],
    shingles: Sequence[Hashes],
    pairs: Sequence[tuple[int, int]],
    detector: Detector,
) -> SketchError:
    """Compares the estimated with the exact resemblance of pairs of pages, which are given by position.

    >>> detector = Detector()
    >>> sets = [np.arange(start, start + 900, dtype=np.uint64) for start in (0, 100)]
    >>> made = [detector.sketcher.make(some) for some in sets]
    >>> sketch_error(made, sets, [(0, 1)], detector)
    SketchError(pairs=1, error=0.0..., bias=..., agreement=1.0)
    """
    differences, agreed = [], 0
    for a, b in pairs:
        exact = resemblance(shingles[a], shingles[b])
        if exact < 0.5:
            continue
        estimated = detector.sketcher.resemblance(sketches[a], sketches[b])
        differences.append(estimated - exact)
        agreed += (estimated >= detector.min_resemblance) == (exact >= detector.min_resemblance)
    errors = np.array(differences or [0.0])
    count = len(differences)
    agreement = agreed / count if count else 1.0
    return SketchError(count, float(abs(errors).mean()), float(errors.mean()), agreement)
