"""Is the verdict right?  Precision and recall on labelled pairs, by threshold.

Manku, Jain, Das Sarma 2007, section 4.1 (figure 1): precision and recall against k.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.methods import APART


class Scores(NamedTuple):
    """Precision and recall of a rule on labelled pairs."""

    found: int  #: near pairs that the rule calls duplicates (true positives)
    wrong: int  #: other pairs that it calls duplicates (false positives)
    missed: int  #: near pairs that it doesn't (false negatives)

    @property
    def precision(self) -> float:
        """Share of what was called duplicate that is; 1 if nothing was."""
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Share of near pairs that was called duplicate; 1 if there are none."""
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of the two.

        >>> Scores(found=8, wrong=2, missed=2).f1
        0.8
        """
        return 2 * self.found / (2 * self.found + self.wrong + self.missed) if self.found else 0.0


class Pairs(NamedTuple):
    """Labelled pairs, reduced to what a rule looks at; arrays of shape (n,)."""

    distance: npt.NDArray[np.int64]  #: of the keys (0 for a band shared); `APART` where a page can't be found
    resemblance: npt.NDArray[np.float64]  #: estimated by the sketches
    near: npt.NDArray[np.bool_]  #: the label

    def scores(self, max_distance: int, min_resemblance: float) -> Scores:
        """Returns how well the rule of these two thresholds does."""
        called = (self.distance <= max_distance) & (self.resemblance >= min_resemblance)
        pairs = called & self.near, called & ~self.near, ~called & self.near
        return Scores(*(int(some.sum()) for some in pairs))


def score_pairs(detector: Detector, pages: Sequence[tuple[Fingerprint, Fingerprint, bool]]) -> Pairs:
    """Distance, resemblance and label of each pair; a pair with a page that can't be judged is `APART`."""
    distance, resemblance = [], []
    for a, b, _ in pages:
        compared = detector.compare(a, b)
        judged = a.reason is None and b.reason is None
        distance.append(detector.distance(a, b) if judged else APART)
        resemblance.append(compared.resemblance or 0.0)
    near = [label for _, _, label in pages]
    return Pairs(np.array(distance), np.array(resemblance), np.array(near, np.bool_))
