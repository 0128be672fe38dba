"""The pages that a crawler has read from Redis: contents under a number never change, so most are read once."""

import struct
from collections.abc import Collection, Sequence

import numpy as np

from dedup.errors import IndexCorruptError
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.sketch import Sketcher
from dedup.index.entry import Entry
from dedup.index.redis.client import Server
from dedup.index.redis.keys import Keys
from dedup.index.redis.record import unpack
from dedup.index.sketches import Sketches
from dedup.latest import Latest

#: No more pages are held than this, of 900 bytes each: pages in one chrome meet the same ones again.
MAX_HELD = 4096


class Pages:
    """Pages by number."""

    def __init__(self, server: Server, keys: Keys, sketcher: Sketcher) -> None:
        self._server = server
        self._keys = keys
        self._sketcher = sketcher
        self._sketches = Sketches(sketcher.size)
        self._held = Latest[int, Entry](MAX_HELD)

    def hold(self, number: int, record: bytes) -> Entry:
        """Returns the page of a record, which need not be read again."""
        try:
            entry = unpack(record)
        except (struct.error, ValueError):
            raise self._damaged("the record of a page is torn") from None
        if len(entry.sketch) != self._sketcher.size:
            raise self._damaged("a sketch has a wrong length")
        self.put(number, entry)
        return entry

    def put(self, number: int, entry: Entry) -> None:
        """Holds a page that is filed here."""
        self._held[number] = entry

    async def read(self, numbers: Collection[int]) -> dict[int, Entry]:
        """Returns those of some pages that were not taken out; one that is held may have been, too."""
        held = self._held
        lacking = [number for number in numbers if number not in held]
        read = await self._read(lacking) if lacking else {}
        found = {number: held.get(number) or read.get(number) for number in numbers}
        return {number: entry for number, entry in found.items() if entry is not None}

    async def sketches(self, numbers: Sequence[int]) -> tuple[list[int], Hashes]:
        """Returns those numbers, and the sketches of these pages: uint64, shape (n, w)."""
        rows = np.array(numbers, np.uint32)
        words, unheld = self._sketches.get(rows)
        if not len(unheld):
            return list(numbers), words
        lacking = [numbers[place] for place in unheld.tolist()]
        read = await self.read(lacking)
        kept = np.ones(len(rows), np.bool_)
        for place, number in zip(unheld.tolist(), lacking, strict=True):
            if number in read:
                words[place] = self._sketcher.words([read[number].sketch])[0]
            else:
                kept[place] = False
        self._sketches.put(rows[kept], words[kept])
        return rows[kept].tolist(), words[kept]

    def _damaged(self, what: str) -> IndexCorruptError:
        return IndexCorruptError(
            f"the index in {self._server.where} is damaged: {what}; see scrapy index check"
        )

    async def _read(self, numbers: Sequence[int]) -> dict[int, Entry]:
        records = await self._server.values([*map(self._keys.page, numbers)])
        pairs = zip(numbers, records, strict=True)
        return {number: self.hold(number, record) for number, record in pairs if record is not None}
