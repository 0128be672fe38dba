"""Is the verdict right about which page a page is?  The measure of a filter by identity.

Two pages are *the same* if they are at the same path of a site, of its mirror or of another version of it, and
their main texts have a resemblance of .9 or more.  A drop is *false* if the pages are not at the same path and their
main texts differ, *far* if these have a resemblance below .9, too.  A kept page is a *miss* if the same page was
kept before.  The main texts come from another extractor than that of this package.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from dedup.lab.evaluation import NEAR, Truth

__all__ = ["Identity", "measure_identity"]


class Identity(NamedTuple):
    """The measure by identity of a filter on a collection."""

    pages: int
    drops: int
    false: int  #: drops of a page whose main text no page of that path has, and the kept page hasn't either
    far: int  #: those of them whose main texts have a resemblance below .9
    could: int  #: pages of which the same page was kept before
    missed: int  #: those of them that were kept

    @property
    def recall(self) -> float:
        """Share of the pages whose like was kept before that was dropped."""
        return 1 - self.missed / self.could if self.could else 1.0


def measure_identity(
    of: Sequence[int], order: Sequence[int], names: Sequence[str], alike: Truth, judged: Sequence[bool]
) -> Identity:
    """The measure of what a filter did with pages that it met in an ``order``.

    ``of`` is, per page, the kept page that it duplicates, or -1; ``names`` are the paths that tell which page it is,
    and ``alike`` the resemblance of main texts; only ``judged`` pages could have been dropped.

    >>> of, names = [-1, 0, 0, -1], ["a", "a", "b", "a"]
    >>> measure_identity(of, range(4), names, {0: {1: 1.0, 3: 0.95}, 1: {0: 1.0}, 3: {0: 0.95}}, [True] * 4)
    Identity(pages=4, drops=2, false=1, far=1, could=2, missed=1)
    """
    drops = false = far = could = missed = 0
    kept: dict[str, list[int]] = defaultdict(list)
    for page in order:
        if not judged[page]:
            continue
        likes = alike.get(page, {})
        same = any(likes.get(other, 0.0) >= NEAR for other in kept[names[page]])
        could += same
        if of[page] < 0:
            missed += same
            kept[names[page]].append(page)
            continue
        drops += 1
        if names[page] != names[of[page]]:
            false += likes.get(of[page], 0.0) < 1
            far += likes.get(of[page], 0.0) < NEAR
    return Identity(len(of), drops, false, far, could, missed)
