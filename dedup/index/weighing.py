"""Which pages make a claimed page a duplicate: the rule of the verdict, said once for all stores.

What a store has found is weighed here, by contents alone: they never change under a number, so there is no lock, no
state, and no store in this module.  Whether a page casts a shadow does change; who files the page asks that last, in
the order that is given here (see `dedup.index.claiming`).
"""

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from dedup.errors import IndexCorruptError
from dedup.fingerprint.chrome import View
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, is_same_name
from dedup.fingerprint.shingles import Hashes
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts, Weighed
from dedup.index.verdict import Near, Verdict

__all__ = ["MAX_COMPARED", "MAX_EQUAL", "MAX_LOOKED", "MAX_NEAR", "Order", "Weighing"]

#: A claim looks at no more candidates than this.  It looks at the nearest first, if the store can tell which they are.
#: This bounds the cost of a flood of pages alike; a page that is kept among more of them is `Verdict.crowded`.
MAX_LOOKED = 1000
#: Of these, how many candidates' sketches are compared, the nearest first.
MAX_COMPARED = 500
#: How many pages of one digest are looked at: only crashes and forgers leave more than one.
MAX_EQUAL = 16
#: The verdict on a new page names the first of this many nearest candidates that resembles it enough.
MAX_NEAR = 10

#: What a store calls a page: its number, or that and a name.
K = TypeVar("K", int, tuple[int, bytes])


class Order(NamedTuple, Generic[K]):
    """Pages in the order in which they are asked whether they cast a shadow; the first that does is duplicated."""

    equal: Sequence[K] = ()  #: of the very same content
    like: Sequence[K] = ()  #: near-duplicates, the nearest first
    shown: Sequence[K] = ()  #: whose main views are the same, and own
    nearest: Sequence[K] = ()  #: of the `MAX_NEAR` nearest, those that resemble the page enough
    is_all: bool = (
        True  #: whether all candidates were weighed; if not, no verdict but "duplicate" can be given yet
    )


class Weighing(Generic[K]):
    """One page that is claimed, and what was made of its candidates so far."""

    def __init__(self, detector: Detector, hosts: Hosts | None, entry: Entry, page: Fingerprint) -> None:
        self.entry = entry
        self.hosts = hosts
        self.is_crowded = False  #: whether more pages are like it than are compared
        self._detector = detector
        self._page = page
        self._views: dict[str, View | None] = {}
        self._compared = 0
        self._entries: dict[K, Entry] = {}
        self._resemblances: dict[K, float] = {}
        self._evidence: dict[K, Evidence | None] = {}
        self._equal: list[K] = []
        self._like: list[tuple[int, float, K]] = []
        self._shown: list[K] = []
        self._nearest: list[K] = []

    def order(self, *, is_all: bool = True) -> Order[K]:
        """The candidates that were weighed so far, as they are asked whether they cast a shadow."""
        like = [page for _, _, page in sorted(self._like)]
        nearest = [page for page in self._nearest if page in self._entries]
        return Order(sorted(self._equal), like, sorted(self._shown), nearest, is_all)

    def has_met(self, page: K) -> bool:
        """Whether a page was weighed already."""
        return page in self._entries

    def see_equal(self, others: Mapping[K, Entry]) -> None:
        """Takes up those pages of the same digest that have the very same content."""
        content = self.entry.content
        self._equal += (page for page, other in self._beside(others).items() if other.content == content)

    def see_near(self, numbers: Sequence[K], sketches: Hashes) -> list[K]:
        """Compares the next candidates, the nearest first, by sketches of shape (n, w); those that resemble the page.

        They are to be weighed next.
        """
        room = MAX_COMPARED - self._compared
        self.is_crowded = self.is_crowded or len(numbers) > room
        numbers = numbers[:room]
        if not numbers:
            return []
        alike = self._detector.sketcher.resemblances(sketches[:room], self.entry.sketch)
        enough = (alike >= self._detector.min_resemblance).nonzero()[0].tolist()
        found = [numbers[place] for place in enough]
        self._nearest += [numbers[place] for place in enough if self._compared + place < MAX_NEAR]
        self._compared += len(numbers)
        self._resemblances |= zip(found, alike[enough].tolist(), strict=True)
        return found

    def weigh(self, others: Mapping[K, Entry], apart: Mapping[K, int]) -> bool:
        """Weighs pages that resemble the one here enough; whether one of them makes it a duplicate.

        ``apart`` are their distances.
        """
        weighed = self._weighed(self._beside(others), None)
        self._evidence |= {page: evidence for page, (_, evidence) in weighed.items()}
        like = [page for page, (suffices, _) in weighed.items() if suffices]
        self._like += [(apart[page], -self._resemblances[page], page) for page in like]
        return bool(like)

    def see_views(self, others: Mapping[K, Entry]) -> None:
        """Weighs pages with the same main view."""
        for page, other in self._beside(others).items():
            evidence = self._evidence_of(page)
            if evidence and evidence.shows_same:
                self._shown.append(page)
                self._evidence[page] = evidence
                if page not in self._resemblances:
                    sketcher = self._detector.sketcher
                    self._resemblances[page] = sketcher.resemblance(self.entry.sketch, other.sketch)

    def duplicate(self, of: K, *, done: bool) -> Verdict:
        """The verdict if this page is the first that casts a shadow."""
        other = self._entries[of]
        if of in self._equal:
            return Verdict.duplicate(self.entry, other, 1.0, rule=self._detector.method, done=done)
        is_like = any(page == of for _, _, page in self._like)
        return Verdict.duplicate(
            self.entry,
            other,
            self._resemblances[of],
            rule=self._detector.method if is_like else "view",
            done=done,
            evidence=self._evidence.get(of),
        )

    def near(self, page: K | None) -> Near | None:
        """What the verdict on a new page says of a candidate that is near."""
        if page is None:
            return None
        other = self._entries[page]
        return Near(other.url, self._evidence_of(page), is_same_name(self._page, other.called))

    def page_id(self, page: K | None) -> str | None:
        """The page id of a candidate."""
        return None if page is None else self._entries[page].page_id

    def _beside(self, others: Mapping[K, Entry]) -> dict[K, Entry]:
        """The other pages in the scope of this one."""
        entry = self.entry
        if any(len(other.sketch) != len(entry.sketch) for other in others.values()):
            raise IndexCorruptError("the index is damaged: a sketch has a wrong length")
        beside = {
            page: other
            for page, other in others.items()
            if other.scope == entry.scope and other.page_id != entry.page_id
        }
        self._entries |= beside
        return beside

    def _evidence_of(self, page: K) -> Evidence | None:
        """What speaks for and against a candidate, weighed to the end."""
        return self._weighed({page: self._entries[page]}, page)[page].evidence

    def _weighed(self, others: Mapping[K, Entry], near: K | None) -> Mapping[K, Weighed]:
        if self.hosts is None:
            return dict.fromkeys(others, Weighed(True, None))
        return self.hosts.weigh(self._page, self.entry.url, others, near, self._views)
