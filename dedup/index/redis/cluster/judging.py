"""The verdict on a page by the records of the pages in its buckets: weighed as in the other stores.

A page that is only being tried is a rival if it would make this one a duplicate once it is kept.
"""

from collections.abc import Mapping

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.claiming import settle
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts
from dedup.index.lifecycle import State
from dedup.index.redis.cluster.protocol import Judgement
from dedup.index.redis.cluster.record import Leases, Phase, Record, state_of
from dedup.index.verdict import Verdict
from dedup.index.weighing import Weighing

#: The number of a claim, which says when it was made, and the name of its page.
Name = tuple[int, bytes]


class Judge:
    """Judges one page that is claimed."""

    def __init__(self, detector: Detector, hosts: Hosts | None, entry: Entry, page: Fingerprint) -> None:
        self._detector = detector
        self._hosts = hosts
        self._entry = entry
        self._page = page

    def __call__(self, met: Mapping[bytes, Record], leases: Leases) -> Judgement:
        """Returns what the pages that were met mean: those of other scopes, and the page itself, mean nothing."""
        filed: dict[Name, Record] = {}
        tried: dict[Name, Record] = {}
        for page, record in met.items():
            # What is dead is of no use to anybody.
            if (settled := record.settled) and state_of(settled, leases) is not State.DEAD:
                first = settled.before or settled  # a page that was met again has the place that it had
                filed[first.number, page] = settled
            if record.phase is Phase.TRYING and leases.are_alive(record.entry.run):
                tried[record.number, page] = record
        weighing = self._weigh(filed)
        answer = settle(
            weighing.order(),
            lambda page: state_of(filed[page], leases),
            lambda page: not leases.have_died(filed[page].entry.run),
        )
        if answer.of is not None:
            return Judgement(weighing.duplicate(answer.of, done=answer.done))
        order = self._weigh(tried).order()
        rivals = dict.fromkeys(page for _, page in (*order.equal, *order.like))
        verdict = Verdict.new(weighing.near(answer.near), known=answer.known)
        replaced = answer.replaced and filed[answer.replaced].entry.page_id
        return Judgement(None, tuple(rivals), (verdict, replaced))

    def equal(self, met: Mapping[bytes, Record], leases: Leases) -> Verdict | None:
        """Returns the verdict if a page of the very same content casts a shadow."""
        filed = {(record.number, page): record for page, record in met.items() if record.settled is record}
        weighing = Weighing[Name](self._detector, None, self._entry, self._page)
        weighing.see_equal(_entries(filed))
        answer = settle(weighing.order(), lambda page: state_of(filed[page], leases), lambda _: False)
        return None if answer.of is None else weighing.duplicate(answer.of, done=answer.done)

    def _weigh(self, others: Mapping[Name, Record]) -> Weighing[Name]:
        weighing = Weighing[Name](self._detector, self._hosts, self._entry, self._page)
        weighing.see_all(_entries(others))
        return weighing


def _entries(records: Mapping[Name, Record]) -> dict[Name, Entry]:
    """Returns the pages, those that were claimed first first."""
    return {page: records[page].entry for page in sorted(records)}
