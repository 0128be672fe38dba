"""Decides which links are worth a download, by the verdicts on pages like theirs.

A link belongs to groups, from its host down.  The pages of a group that were judged make its rate; an unknown group
begins with the rate of the one above it.  Links whose tail was met before, on another release or mirror, have rates
of their own.  So has a parameter, once links with other values of it were met.  A near-duplicate that leads to new
content was worth its download, and is credited with that content.

Links that are not worth a download are parked.  They come back when their group is found to bring more.  Some are taken
as samples, since nothing else would show that a group was misjudged.
"""

import math
from typing import Any, NamedTuple

from msgspec import Struct

from dedup.latest import Latest
from dedup.links.address import Address, address
from dedup.links.parking import Link, Lot, Parking
from dedup.links.rates import logit
from dedup.links.yields import Yields, lot_of, name_of, names_of, names_of_parameter, repeats_of
from dedup.page.urls import digest
from dedup.settings import LinkSettings

#: A link on a kept page whose name was met in another folder, and nothing else of it, needs no higher yield than this.
LEAST_OF_NAMES = 0.02
#: New content credits the near-duplicate that linked to it in full, and the one that linked to that with this share.
CREDITED, SHARE = 2, 0.5
#: How many downloads under way, and near-duplicates that may yet be credited, are remembered.
MAX_NOTES, MAX_HUBS = 10_000, 20_000
#: Each time that a host has had this many new contents, one parked link is taken as a sample.
SAMPLE_EVERY = 20
#: How many samples are taken when nothing else is left.
SAMPLES_AT_ONCE = 8
#: After new content is found, this many lots, and links in each, are checked again, if the lot's rate has risen by this factor.
LOTS_AT_ONCE, LINKS_AT_ONCE, RISEN = 8, 200, 1.1


class Doubt(NamedTuple):
    """Why a link is not worth a download."""

    group: str  #: the group that decided, or the scripts whose parameter did
    parameter: str  #: the parameter that decided, "*" for an id in the path; "" if the group did
    tail: int  #: how many of its last segments were met before, together
    judged: int  #: pages of that group that were judged
    new: int  #: how many of those were new, or led to new ones
    rate: float  #: the share of downloads that is expected to bring new content
    least: float  #: the share that is asked for
    parked: int  #: links of its group that were parked before
    sampled: int  #: how many of those were downloaded as samples


class _Note(Struct):
    """What was known when a page was downloaded, kept until its verdict is there."""

    groups: list[str]
    parameters: list[str]
    tail: int | None  #: the digest of the longest tail that was met before
    found_on: str


class Links:
    """The links of one crawl.  For each that leaves the queue: `doubt`, then `park` or `note`; then `learn`.

    Memory is bounded: about 90 MB where everything is at its limit, links that wait not counted.
    """

    def __init__(self, **settings: Any) -> None:
        """The keywords are `LinkSettings`."""
        self.settings = LinkSettings(**settings)
        self.yields = Yields()
        self.parking = Parking(self.settings.explore)
        self._notes = Latest[int, _Note](MAX_NOTES)
        self._hubs = Latest[int, _Note](MAX_HUBS)
        self._has_found = True  # new content, since nothing else was left
        self._samples: dict[int, Lot] = {}  # links that are downloaded whatever their rate

    def rate(self, url: str) -> float:
        """Returns the share of downloads like this that is expected to bring new content."""
        return self.yields.rate(address(url))[0]

    def priority(self, url: str) -> int:
        """Returns what is added to a request's priority, so that what brings the most comes first: -13 to 18, in half logits."""
        return math.floor(2 * logit(max(self.rate(url), 0.002)))

    # --- Decisions

    def _least(self, link: Link, parts: Address) -> float | None:
        """Returns the rate that a link must have; None if it may have any."""
        if not link.on_kept:
            return self.settings.min_yield
        if not self.settings.skip:
            return None
        if any(rest in self.yields.met for rest in parts.others.values()):
            return self.settings.min_yield
        return (
            min(LEAST_OF_NAMES, self.settings.min_yield)
            if any(tail in self.yields.met for tail in parts.tails[1:])
            else None
        )

    def doubt(self, link: Link) -> Doubt | None:
        """Returns why a link is not to be downloaded now; None if it is."""
        parts = address(link.url)
        least = self._least(link, parts)
        if least is None or (self._samples and digest(link.url) in self._samples):
            return None
        rate, parameter = self.yields.rate(parts)
        return self._doubt(parts, rate, parameter, least) if rate < least else None

    def _doubt(self, parts: Address, rate: float, parameter: str, least: float) -> Doubt:
        tail = self.yields.tail(parts)
        lot = self.parking.lot(lot_of(parts, tail, parameter))
        if parameter:
            on_host, in_script = names_of_parameter(parts, parameter)
            named = [(f"{parts.script}?{parameter}=", in_script), (f"{parts.host}/*?{parameter}=", on_host)]
        else:
            named = [(group, name_of(group, tail)) for group in reversed(parts.groups)]
        known = ((group, self.yields.rates.get(name)) for group, name in named)
        group, count = next(((group, count) for group, count in known if count), (named[-1][0], None))
        judged, new = (round(count.judged), int(count.new)) if count else (0, 0)
        waiting = (lot.parked, lot.sampled) if lot else (0, 0)
        return Doubt(group, parameter, tail, judged, new, rate, least, *waiting)

    def park(self, link: Link, doubt: Doubt) -> None:
        """Lets a link wait."""
        parts, parameter = address(link.url), doubt.parameter
        on_host = names_of_parameter(parts, parameter)[:1]
        names = on_host if parameter else tuple(names_of(parts.groups, doubt.tail))
        lot = lot_of(parts, doubt.tail, parameter)
        self.parking.add(lot, link, names, doubt.rate, on_host=bool(parameter))

    def note(self, link: Link) -> None:
        """Notes that a link is downloaded: what its verdict will teach depends on what is known now."""
        parts = address(link.url)
        tail = self.yields.tail(parts)
        groups = list(names_of(parts.groups, tail))
        if tail:
            groups.append(repeats_of(parts.host, tail))
        parameters = [
            key
            for name, rest in parts.others.items()
            if rest in self.yields.met
            for key in names_of_parameter(parts, name)
        ]
        key = digest(link.url)
        self._notes[key] = _Note(groups, parameters, parts.tails[tail - 1] if tail else None, link.found_on)
        self.yields.met.add((*parts.others.values(), parts.whole))
        self.yields.met.add(parts.tails)

    # --- Verdicts

    def learn(self, url: str, *, new: bool | None, of: str = "") -> list[Link]:
        """Learns from the verdict on a noted page; returns the parked links that are now worth a download.

        ``new`` is None if it could not be judged, which teaches nothing.  ``of`` is the page that it duplicates.
        """
        key = digest(url)
        note, lot = self._notes.pop(key, None), self._samples.pop(key, None)
        if note is None or new is None:
            return []
        self.yields.rates.add(note.groups, new)
        self.yields.rates.add(note.parameters, new)
        if of and note.parameters:
            self._note_twin(address(url), address(of))
        if note.tail is not None:
            self.yields.met.learn(note.tail, 1, float(new))
        if not new:
            self._hubs[key] = note
            return []
        self._has_found = True
        if lot is not None:
            lot.found += 1
        back = self._credit(note)
        found = self.parking.found(address(url).host)
        if len(self.parking):
            back += self._reopen(url)
            if lot is not None or found % SAMPLE_EVERY == 0:
                back += self._sample(1)
        return back

    def _note_twin(self, parts: Address, of: Address) -> None:
        for name, rest in parts.others.items():
            if rest in (of.others.get(name), of.whole):
                self.yields.rates.twin(names_of_parameter(parts, name))

    def _credit(self, note: _Note) -> list[Link]:
        """Credits the near-duplicates through which new content was found: they were worth their downloads."""
        back: list[Link] = []
        share = 1.0
        for _ in range(CREDITED):
            url = note.found_on
            hub = self._hubs.pop(digest(url), None)
            if hub is None:
                break
            note = hub
            # The links of a twin are the same: that is no merit of its parameter.
            self.yields.rates.credit(note.groups, share)
            if note.tail is not None:
                self.yields.met.learn(note.tail, 0, share)
            share *= SHARE
            back += self._reopen(url)
        return back

    def _reopen(self, url: str) -> list[Link]:
        """Takes the parked links near a URL that are worth a download now."""
        near = self.parking.near(url, LOTS_AT_ONCE)
        return [link for lot in near for link in self._worth(lot, LINKS_AT_ONCE)]

    def _worth(self, lot: Lot, most: int | None = None) -> list[Link]:
        rate = self.yields.rates.rate(lot.names)
        if rate <= lot.checked * RISEN:
            lot.checked = min(lot.checked, rate)
            return []
        if most is None or len(lot.links) <= most:
            lot.checked = rate
        return self.parking.take(lot, lambda link: self.doubt(link) is None, most)

    def idle(self) -> list[Link]:
        """Takes, when nothing else is left, the parked links that are worth a download, or else samples of the others."""
        worth: list[Link] = []
        if self._has_found:  # else no rate has risen
            self._has_found = False
            worth = [link for lot in self.parking.all() for link in self._worth(lot)]
        return worth or self._sample(SAMPLES_AT_ONCE)

    def _sample(self, most: int) -> list[Link]:
        taken = self.parking.sample(most)
        self._samples |= {digest(link.url): lot for link, lot in taken}
        return [link for link, _ in taken]
