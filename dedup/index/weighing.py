"""Which pages make a claimed page a duplicate: the rule of the verdict, said once for all stores.

A page is a near-duplicate of a kept one if they are equal, or if what is own to each of them is nearly all on the other
(see `dedup.fingerprint.evidence`), unless the site tells them apart by their addresses.
Where the chrome of hosts counts like all else, it is one if the whole pages resemble each other enough.

What a store has found is weighed here, by contents alone: they never change under a number, so there is no lock, no
state, and no store in this module.  Whether a page casts a shadow does change; who files the page asks that last, in
the order that is given here (see `dedup.index.claiming`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from dedup.errors import IndexCorruptError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.evidence import Evidence, Part, contain, is_same_name
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.index.entry import Entry, original_id
from dedup.index.hosts import Hosts
from dedup.index.verdict import Near, Verdict
from dedup.page.urls import host

#: A claim looks at no more candidates than this.  It looks at the nearest first, if the store can tell which they are.
#: This bounds the cost of a flood of pages alike; a page that is kept among more of them is `Verdict.crowded`.
MAX_LOOKED = 1000
#: Of these, it compares the sketches of no more than this, the nearest first.
MAX_COMPARED = 500
#: ... of a page that is found by its rare shingles, too: those that share the rarest first, and then the nearest.
MAX_BESIDE_RARE = 100
#: How many pages are looked at that share one rare shingle; more have it only if it was forgotten that many have it.
MAX_RARE = 64
#: No more pages of one digest are looked at than this: only crashes and forgers leave more than one.
MAX_EQUAL = 16
#: The verdict on a new page names the first of this many nearest candidates that resembles it enough.
MAX_NEAR = 10
#: The verdict names a candidate only if this share of what is own matches.
NEAR_SHARE = 0.5
#: For a page of a host that is not known, this many candidates are weighed, since their hosts may be known.
MAX_UNKNOWN = 64


class Order(NamedTuple):
    """Pages in the order in which they are asked whether they cast a shadow; the first that does is duplicated."""

    equal: Sequence[int] = ()  #: of the very same content
    like: Sequence[int] = ()  #: near-duplicates, the nearest first
    nearest: Sequence[int] = ()  #: of the `MAX_NEAR` nearest, those that resemble the page enough
    is_all: bool = True  #: true if all candidates were weighed; else no verdict but "duplicate" can be given
    apart: Callable[[Mapping[str, Entry]], Collection[str]] = lambda _: ()  #: see `Weighing.apart`


class Weighing:
    """One page that is claimed, and what was made of its candidates so far."""

    def __init__(self, detector: Detector, hosts: Hosts | None, entry: Entry, page: Fingerprint) -> None:
        self.entry = entry
        self.hosts = None if page.own is None else hosts  #: None if the chrome of hosts counts like all else
        self.met = 0  #: how many candidates there are, as far as is known
        self._detector = detector
        self._page = page
        self._home = host(entry.url)
        is_known = self.hosts is not None and self.hosts.table(self._home).is_known
        self._most = MAX_BESIDE_RARE if is_known else MAX_COMPARED
        self._parts: dict[str, Part] = {}  # by the host whose table says what is own
        self._measured: dict[int, Evidence] = {}  # by the page's own host
        self._compared = 0
        self._entries: dict[int, Entry] = {}
        self._resemblances: dict[int, float] = {}
        self._evidence: dict[int, Evidence | None] = {}
        self._equal: list[int] = []
        self._like: list[tuple[int, float, int]] = []
        self._nearest: list[int] = []

    def order(self, *, is_all: bool = True) -> Order:
        """Returns the candidates that were weighed so far, as they are asked whether they cast a shadow."""
        like = [page for _, _, page in sorted(self._like)]
        nearest = [page for page in self._nearest if page in self._entries]
        return Order(sorted(self._equal), like, nearest, is_all, self.apart)

    @property
    def room(self) -> int:
        """How many more candidates' sketches are compared."""
        return self._most - self._compared

    @property
    def is_crowded(self) -> bool:
        """Whether a copy may be missed, since more pages are like it than are compared."""
        return self.met > MAX_COMPARED

    def see_equal(self, others: Mapping[int, Entry]) -> None:
        """Takes up those pages of the same digest, or with the same markup, that are equal."""
        for page, other in self._beside(others).items():
            if self.entry.equals(other):
                self._equal.append(page)
            elif other.content == self.entry.content:  # what differs may be noise
                self._nearest.insert(0, page)

    def see_near(self, numbers: Sequence[int], sketches: Hashes) -> list[int]:
        """Compares the next candidates, the nearest first, by sketches of shape (n, w), and returns those that resemble the page.

        They are to be weighed next.
        """
        room = self.room
        numbers = numbers[:room]
        if not numbers:
            return []
        first: int = self._compared
        self._compared += len(numbers)
        near: list[int]
        enough: list[int]
        if self.hosts is None:
            alike = self._detector.sketcher.resemblances(sketches[:room], self.entry.sketch)
            enough = (alike >= self._detector.min_resemblance).nonzero()[0].tolist()
            near = enough
            self._resemblances |= zip((numbers[at] for at in enough), alike[enough].tolist(), strict=True)
        else:
            found = self._part(self._home).measure(sketches[:room])
            is_near, is_like = contain(found, NEAR_SHARE, self.hosts.settings.min_containment)
            near = is_near.nonzero()[0].tolist()
            is_like[: max(0, MAX_NEAR - first)] = True
            enough = (is_near & is_like).nonzero()[0].tolist()
            if not self.hosts.table(self._home).is_known:  # then the hosts of the others may be
                enough = sorted({*enough, *range(max(0, MAX_UNKNOWN - first))} & {*range(len(numbers))})
            self._measured |= ((numbers[at], Evidence(*found[:, at].tolist())) for at in enough)
        self._nearest += [numbers[at] for at in near if first + at < MAX_NEAR]
        return [numbers[at] for at in enough]

    def weigh(self, others: Mapping[int, Entry]) -> bool:
        """Weighs pages that may be like the one here, and returns whether one of them makes it a duplicate."""
        like = [page for page in self._weigh(self._beside(others)) if self._suffices(page)]
        self._like += [
            (self.entry.apart(self._entries[page]), -self._resemblances[page], page) for page in like
        ]
        return bool(like)

    def see_all(self, others: Mapping[int, Entry]) -> None:
        """Weighs pages that may be equal or near, the nearest first; those that were weighed are passed over."""
        entry, radius = self.entry, self._detector.radius
        fresh = {page: other for page, other in others.items() if page not in self._entries}
        self._check(fresh)
        self.see_equal({page: other for page, other in fresh.items() if other.digest == entry.digest})
        rank = {page: (-entry.shares(other), entry.apart(other)) for page, other in fresh.items()}
        close = [page for page, (shared, apart) in rank.items() if shared or apart <= radius]
        close.sort(key=rank.__getitem__)
        self.met += len(close)
        words = self._detector.sketcher.words(fresh[page].sketch for page in close)
        self.weigh({page: fresh[page] for page in self.see_near(close, words)})

    def apart(self, others: Mapping[str, Entry]) -> Collection[str]:
        """Returns those of some pages that would not stand in the order if they were filed; none as long as the host is not known."""
        if self.hosts is not None and not self.hosts.table(self._home).is_known:
            return ()
        beside = Weighing(self._detector, self.hosts, self.entry, self._page)
        beside._parts = self._parts
        beside.see_all(dict(enumerate(others.values())))
        order = beside.order()
        listed = {*order.equal, *order.like, *order.nearest}
        return [name for number, name in enumerate(others) if number not in listed]

    def duplicate(self, of: int, *, done: bool) -> Verdict:
        """Returns the verdict if this page is the first that casts a shadow."""
        other = self._entries[of]
        if of in self._equal:
            return Verdict.duplicate(self.entry, other, 1.0, rule=self._detector.method, done=done)
        apart = next((apart for apart, _, page in self._like if page == of), None)
        rule = self._detector.method if apart is None or apart <= self._detector.radius else "rare"
        return Verdict.duplicate(
            self.entry,
            other,
            self._resemblances[of],
            rule=rule,
            done=done,
            evidence=self._evidence.get(of),
        )

    def near(self, page: int | None) -> Near | None:
        """Returns what the verdict on a new page says of a candidate that is near."""
        if page is None:
            return None
        other = self._entries[page]
        return Near(
            other.url,
            self._evidence.get(page),
            is_same_name(self._page, other.called),
            original_id(other.page_id),
            other.simhash,
            other.digest,
        )

    def _beside(self, others: Mapping[int, Entry]) -> dict[int, Entry]:
        """Returns the other pages in the scope of this one."""
        entry = self.entry
        self._check(others)
        beside = {
            page: other
            for page, other in others.items()
            if other.scope == entry.scope and other.page_id != entry.page_id
        }
        self._entries |= beside
        return beside

    def _check(self, others: Mapping[int, Entry]) -> None:
        if any(len(other.sketch) != len(self.entry.sketch) for other in others.values()):
            raise IndexCorruptError("the index is damaged: a sketch has a wrong length")

    def _weigh(self, others: Mapping[int, Entry]) -> Mapping[int, Entry]:
        """Finds what speaks for and against some pages; gives them back."""
        if self.hosts is None:
            self._evidence |= dict.fromkeys(others, None)
            return others
        by_table: dict[str | None, list[int]] = {}
        for page, other in others.items():
            by_table.setdefault(self.hosts.judge(self._home, host(other.url)), []).append(page)
        for name, pages in by_table.items():
            part = self._part(self._home if name is None else name)
            measured = self._measured if name in {None, self._home} else {}
            if lacking := [page for page in pages if page not in measured]:
                stored = self._detector.sketcher.words(others[page].sketch for page in lacking)
                measured = measured | dict(zip(lacking, part.weigh(stored), strict=True))
            for page in pages:
                self._resemblances[page] = measured[page].resemblance
                other = others[page]
                self._evidence[page] = (
                    None
                    if name is None
                    else part.evidence(measured[page], self.entry.url, other.called, other.url)
                )
        return others

    def _suffices(self, page: int) -> bool:
        if self.hosts is None:
            return True
        evidence = self._evidence[page]  # None where no host is known
        return evidence is not None and evidence.suffices(self.hosts.settings.min_containment)

    def _part(self, name: str) -> Part:
        """Returns what of the page is its own, by the table of a host."""
        if name not in self._parts:
            assert self.hosts is not None
            self._parts[name] = self.hosts.part(self._page, name)
        return self._parts[name]
