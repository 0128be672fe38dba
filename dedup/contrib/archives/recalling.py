"""An index that writes down what it says of each page: a run that goes on after a kill need not ask it again.

The pages of one host have to be judged one after another, since what is chrome there is learned from those that are kept.
So a run that goes on replays the verdicts that it finds, by which it files and learns what it had filed and learned, and
looks for nothing.
"""

import os
from array import array
from dataclasses import replace
from pathlib import Path

from msgspec.msgpack import Decoder, Encoder

from dedup.contrib.archives.journal import Journal
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict
from dedup.index.entry import Entry, rare_keys
from dedup.index.local.index import LocalIndex
from dedup.index.weighing import Order
from dedup.settings import IndexSettings

_encode = Encoder().encode
_decode = Decoder(Verdict).decode


def address(folder: Path) -> str:
    """Returns where the index of a cleaning itself is, which can be made again at any time."""
    return f"file:{os.path.abspath(folder / 'index.sqlite')}"


class RecallingIndex(LocalIndex):
    """An index of a cleaning's own, which is empty at first.  The pages have to come in the same order each time."""

    def __init__(
        self,
        folder: Path,
        detector: Detector,
        plan: IndexSettings,
        journal: Journal,
        *,
        in_memory: bool = False,
    ) -> None:
        for old in folder.glob("index.sqlite*"):
            old.unlink()
        super().__init__("memory:" if in_memory else address(folder), "dedup", detector, **vars(plan))
        self._journal = journal
        self._said = journal.said()
        self.rare = array("Q")  #: the rare shingles by which pages were looked up

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        self.rare.extend({*entry.rare} - {*rare_keys((0,) * len(entry.rare), entry.digest)})
        said = next(self._said, None)
        if said is None:
            verdict = await super()._claim(entry, page)
            self._journal.say(_encode(verdict))
            return verdict
        verdict = _decode(said)
        if verdict.status == "new":
            await self.file(entry, Order(), None)
        return replace(verdict, of_run=verdict.of_run and self.run)
