"""What was met before: tails of URLs, with what their repeats brought, and URLs without one of their parameters."""

from collections.abc import Iterable, Iterator

__all__ = ["Memory"]

#: How many digests are remembered, about 140 bytes each; most pages have three.  The least recently met one goes.
MAX_MET = 200_000


class Memory:
    """Digests, and for some of them two numbers."""

    def __init__(self, most: int = MAX_MET) -> None:
        self._met: dict[int, list[float] | None] = {}  # judged and new among the repeats, if there are any
        self._most = most

    def __contains__(self, digest: int) -> bool:
        return digest in self._met

    def __len__(self) -> int:
        return len(self._met)

    def items(self) -> Iterator[tuple[int, list[float] | None]]:
        """The digests, the least recently met first, and what is known of their repeats."""
        return iter(self._met.items())

    def put(self, met: dict[int, list[float] | None]) -> None:
        """Takes what an earlier part of the crawl has met."""
        self._met |= met

    def add(self, digests: Iterable[int]) -> None:
        """Notes that these were met."""
        met = self._met
        for digest in digests:
            met[digest] = met.pop(digest, None)
        while len(met) > self._most:
            del met[next(iter(met))]

    def repeats(self, digest: int) -> tuple[float, float]:
        """How many repeats of a tail were judged, and how many of them were new."""
        judged, new = self._met.get(digest) or (0.0, 0.0)
        return judged, new

    def learn(self, digest: int, judged: int, new: float) -> None:
        """Adds to the numbers of a tail that is still remembered."""
        if digest in self._met:
            before = self.repeats(digest)
            self._met[digest] = [before[0] + judged, min(before[1] + new, before[0] + judged)]
