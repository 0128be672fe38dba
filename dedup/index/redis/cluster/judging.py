"""The verdict on a page, given the records of the pages that it has met: the same as in the other stores.

What casts a shadow is compared as `dedup.index.local.index` does it; a page that is only being tried is a rival if it
would make this one a duplicate once it is kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dedup.errors import IndexCorruptError
from dedup.fingerprint.chrome import View
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, is_same_name
from dedup.fingerprint.plans import EXACT
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts, Weighed
from dedup.index.lifecycle import State
from dedup.index.redis.cluster.protocol import Judgement
from dedup.index.redis.cluster.record import Leases, Phase, Record, state_of
from dedup.index.verdict import Near
from dedup.index.weighing import MAX_EQUAL, MAX_NEAR

__all__ = ["Found", "Judge", "Kept", "apart"]


class Found(NamedTuple):
    """The page that another duplicates."""

    of: Entry
    resemblance: float
    done: bool
    rule: str | None = None
    evidence: Evidence | None = None


class Kept(NamedTuple):
    """What is said of a page that is kept."""

    near: Near | None = None
    known: bool = False
    replaced: str | None = None  #: the page id of an earlier page whose place it takes


class _Other(NamedTuple):
    """A page that was met."""

    number: int
    page: bytes
    entry: Entry
    state: State
    is_known: bool = True  #: whether the run that has handed it over was closed


def apart(a: Entry, b: Entry) -> int:
    """In how many bits the keys of two pages differ, those that differ least."""
    both = zip(a.keys[len(EXACT) :], b.keys[len(EXACT) :], strict=True)
    return min((one ^ other).bit_count() for one, other in both)


class Judge:
    """Judges one page that is claimed."""

    def __init__(self, detector: Detector, hosts: Hosts | None, entry: Entry, page: Fingerprint) -> None:
        self._detector = detector
        self._hosts = hosts
        self._entry = entry
        self._page = page
        self._views: dict[str, View | None] = {}

    def __call__(self, met: Mapping[bytes, Record], leases: Leases) -> Judgement:
        """What the pages that were met mean: those of other scopes, and the page itself, mean nothing."""
        filed: list[_Other] = []
        tried: list[_Other] = []
        for page, record in met.items():
            if settled := record.settled:
                is_known = not leases.have_died(settled.entry.run)
                filed.append(_Other(settled.number, page, settled.entry, state_of(record, leases), is_known))
            if record.phase is Phase.TRYING and leases.are_alive(record.entry.run):
                tried.append(_Other(record.number, page, record.entry, State.PENDING))
        found, kept = self.compare(filed)
        rivals = () if found else tuple(other.page for other in tried if self.compare([other])[0])
        return Judgement(found, rivals, kept)

    def equal(self, met: Mapping[bytes, Record], leases: Leases) -> Found | None:
        """The first page of the very same content that casts a shadow."""
        filed = (
            _Other(record.number, page, record.entry, state_of(record, leases))
            for page, record in met.items()
            if record.settled is record
        )
        return self._equal(self._beside(filed))

    def compare(self, others: Sequence[_Other]) -> tuple[Found | None, Kept]:
        """The page that this one duplicates, if there is one; and what is said of it if there is none."""
        entry = self._entry
        others = self._beside(others)
        if equal := self._equal(others):
            return equal, Kept()
        same = [other for other in others if other.entry.content == entry.content]
        replaced = same[0].entry.page_id if same else None
        near: Near | None = None
        distances = {other.page: apart(entry, other.entry) for other in others}
        close = sorted(
            (other for other in others if distances[other.page] <= self._detector.radius),
            key=lambda other: (distances[other.page], other),
        )
        alike = self._resembling(close)
        likely = {at: other for at, other in enumerate(close) if at in alike}
        first = next((at for at, other in likely.items() if at < MAX_NEAR and other.state.casts_shadow), None)
        weighed = self._weighed({at: other.entry for at, other in likely.items()}, first)
        enough = [at for at in likely if weighed[at].suffices]
        for at in sorted(enough, key=lambda at: (distances[close[at].page], -alike[at], at)):
            other = close[at]
            if other.state.casts_shadow:
                return Found(other.entry, alike[at], other.state.is_done, None, weighed[at].evidence), Kept()
            replaced = replaced or other.entry.page_id
        if first is not None:
            kept = close[first].entry
            near = Near(kept.url, weighed[first].evidence, is_same_name(self._page, kept.called))
        for other, evidence in self._shown(others):
            if other.state.casts_shadow:
                resemblance = self._detector.sketcher.resemblance(entry.sketch, other.entry.sketch)
                return Found(other.entry, resemblance, other.state.is_done, "view", evidence), Kept()
            replaced = replaced or other.entry.page_id
        return None, Kept(near, any(other.is_known for other in same), replaced)

    def _beside(self, others: Iterable[_Other]) -> list[_Other]:
        """Other pages of this one's scope, the earliest first; what is dead is of no use to anybody."""
        entry = self._entry
        return sorted(
            other
            for other in others
            if other.entry.scope == entry.scope
            and other.entry.page_id != entry.page_id
            and (other.state.casts_shadow or other.state is State.EARLIER)
        )

    def _equal(self, others: Sequence[_Other]) -> Found | None:
        same = (other for other in others if other.entry.content == self._entry.content)
        shadow = next((other for other in same if other.state.casts_shadow), None)
        return Found(shadow.entry, 1.0, shadow.state.is_done) if shadow else None

    def _resembling(self, others: Sequence[_Other]) -> dict[int, float]:
        """The resemblances of those that resemble the page enough, by their places."""
        if not others:
            return {}
        sketcher, own = self._detector.sketcher, self._entry.sketch
        if any(len(other.entry.sketch) != len(own) for other in others):
            raise IndexCorruptError("the index is damaged: a sketch has a wrong length")
        alike = sketcher.resemblances(sketcher.words(other.entry.sketch for other in others), own).tolist()
        return {at: found for at, found in enumerate(alike) if found >= self._detector.min_resemblance}

    def _weighed(self, others: Mapping[int, Entry], near: int | None) -> dict[int, Weighed]:
        if self._hosts is None:
            return dict.fromkeys(others, Weighed(True, None))
        return self._hosts.weigh(self._page, self._entry.url, others, near, self._views)

    def _shown(self, others: Sequence[_Other]) -> Iterator[tuple[_Other, Evidence]]:
        """The pages whose main views are equal, and own."""
        equal = [other for other in others if other.entry.view == self._entry.view][:MAX_EQUAL]
        for other in equal:
            evidence = self._weighed({0: other.entry}, 0)[0].evidence
            if evidence and evidence.shows_same:
                yield other, evidence
