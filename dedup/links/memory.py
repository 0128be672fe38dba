"""Remembers tails of URLs, with what their repeats brought, and URLs without one of their parameters."""

from collections.abc import Iterable

from dedup.latest import Latest

#: How many digests are remembered, about 190 bytes each; most pages have three.  The least recently met one goes.
MAX_MET = 200_000


class Memory(Latest[int, list[float] | None]):
    """Digests, and for some of them how many of their repeats were judged, and how many of those were new."""

    def __init__(self) -> None:
        super().__init__(MAX_MET)

    def add(self, digests: Iterable[int]) -> None:
        """Notes that these were met."""
        for digest in digests:
            self[digest] = self.get(digest)

    def repeats(self, digest: int) -> tuple[float, float]:
        """Returns how many repeats of a tail were judged, and how many of them were new."""
        judged, new = self.get(digest) or (0.0, 0.0)
        return judged, new

    def learn(self, digest: int, judged: int, new: float) -> None:
        """Adds to the numbers of a tail that is still remembered."""
        if digest in self:
            before = self.repeats(digest)
            self[digest] = [before[0] + judged, min(before[1] + new, before[0] + judged)]
