"""Decides which links of near-duplicates are worth a download, by the verdicts on pages in their folders.

The pages of a folder that were judged make its rate; a folder that is not known has that of its host.  A near-duplicate
that leads to new content was worth its download, and is credited with that content.

Links that are not worth a download are parked.  They come back when their folder is found to bring more.  Some are taken
as samples, since nothing else would show that a folder was misjudged.
"""

from typing import NamedTuple

from msgspec import Struct

from dedup.latest import Latest
from dedup.links.parking import Link, Lot, Parking
from dedup.links.rates import Count, Rates, folder_of
from dedup.page.urls import digest

#: Links are downloaded while this share of the downloads in their folder brings new content.
LEAST = 0.05
#: New content credits the near-duplicate that linked to it in full, and the one that linked to that with this share.
CREDITED, SHARE = 2, 0.5
#: How many downloads under way, and near-duplicates that may yet be credited, are remembered.
MAX_NOTES, MAX_HUBS = 10_000, 20_000
#: How many parked links of a folder come back together, and how many samples are taken when nothing else is left.
AT_ONCE, SAMPLES_AT_ONCE = 20, 8


class Doubt(NamedTuple):
    """Why a link is not worth a download."""

    folder: str  #: with its host
    judged: int  #: pages of it that were judged, of late
    new: int  #: how many of those were new, or led to new ones
    rate: float  #: the share of downloads that is expected to bring new content
    parked: int  #: links of it that were parked before
    sampled: int  #: how many of those were downloaded as samples


class _Note(Struct):
    """What was known when a page was downloaded, kept until its verdict is there."""

    folder: str
    found_on: str


class Links:
    """The links of one crawl.  For each that leaves the queue: `doubt`, then `park` or `note`; then `learn`.

    Memory is bounded: about 20 MB where everything is at its limit, links that wait not counted.
    """

    def __init__(self) -> None:
        self.rates = Rates()
        self.parking = Parking()
        self._notes = Latest[int, _Note](MAX_NOTES)
        self._hubs = Latest[int, _Note](MAX_HUBS)
        self._samples = set[int]()  # links that are downloaded whatever their rate

    def doubt(self, link: Link) -> Doubt | None:
        """Returns why a link is not to be downloaded now; None if it is."""
        if link.on_kept or (self._samples and digest(link.url) in self._samples):
            return None
        folder = folder_of(link.url)
        if (rate := self.rates.rate(folder)) >= LEAST:
            return None
        count, lot = self.rates.get(folder) or Count(), self.parking.lots.get(folder) or Lot()
        return Doubt(folder, round(count.judged), int(count.new), rate, lot.parked, lot.sampled)

    def park(self, link: Link) -> None:
        """Lets a link wait."""
        self.parking.add(link)

    def note(self, link: Link) -> None:
        """Notes that a link is downloaded."""
        self._notes[digest(link.url)] = _Note(folder_of(link.url), link.found_on)

    def learn(self, url: str, *, new: bool | None) -> list[Link]:
        """Learns from the verdict on a noted page; returns the parked links that are now worth a download.

        ``new`` is None if it could not be judged, which teaches nothing.
        """
        key = digest(url)
        note = self._notes.pop(key, None)
        self._samples.discard(key)
        if note is None or new is None:
            return []
        self.rates.add(note.folder, new)
        if not new:
            self._hubs[key] = note
            return []
        self.parking.found(note.folder)
        return [link for folder in self._credit(note) for link in self._worth(folder)]

    def _credit(self, note: _Note) -> list[str]:
        """Credits the near-duplicates through which new content was found; returns the folders that are better now."""
        folders, share = [note.folder], 1.0
        for _ in range(CREDITED):
            hub = self._hubs.pop(digest(note.found_on), None)
            if hub is None:
                break
            self.rates.credit(hub.folder, share)
            folders.append(hub.folder)
            note, share = hub, share * SHARE
        return folders

    def _worth(self, folder: str) -> list[Link]:
        return self.parking.take(folder, AT_ONCE) if self.rates.rate(folder) >= LEAST else []

    def idle(self) -> list[Link]:
        """Takes, when nothing else is left, parked links that are worth a download, or else samples of the others."""
        worth = [link for folder in self.parking.lots for link in self._worth(folder)]
        if worth:
            return worth
        taken = self.parking.sample(SAMPLES_AT_ONCE)
        self._samples.update(digest(link.url) for link in taken)
        return taken
