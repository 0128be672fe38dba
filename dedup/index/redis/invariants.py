"""Which invariants of an index on one server don't hold: see `dedup.index.redis.check`.  It has counters and claims, too."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import numpy as np

from dedup.index.parameters import Parameters
from dedup.index.redis.buckets import ENTRY, GAP
from dedup.index.redis.check import Check, Filed
from dedup.index.redis.keys import BUCKET, KINDS, PAGE
from dedup.index.redis.reading import RUN, Numbers, Reading, batches
from dedup.index.redis.record import whole
from dedup.index.survey import Finding
from dedup.printing import octets as shown

#: Claims that are read at once.
CLAIMS = 1000
#: Bytes of an entry, and of the number at its end.
SIZE, NUMBER = ENTRY.itemsize, 4
_GAP = GAP.to_bytes(NUMBER, "little")


class Invariants(Check):
    """The check of a survey of one server."""

    def __init__(self, reading: Reading, parameters: Parameters, header: Mapping[str, str]) -> None:
        super().__init__(reading.server, reading.keys, reading.leases, parameters, header)
        self._reading = reading
        self._buckets = reading.buckets
        self._listed: Numbers = np.empty(0, np.uint64)
        self.tables = ["page ids", *map(str, range(len(self._buckets.tables)))]

    async def pages(self) -> AsyncIterator[tuple[bytes, bytes]]:
        self._listed = await self._reading.numbers()
        for some in batches(self._listed.tolist()):
            for number, record in zip(some, await self._reading.records(some), strict=True):
                if record is not None:  # else taken out meanwhile, or of another type
                    yield number.to_bytes(self.width, "big"), record

    def read(self, name: bytes, octets: bytes | None) -> Filed | None:
        if (entry := whole(octets or b"")) is None:
            return None
        number = name[: -1 - NUMBER : -1]
        return Filed(entry, [(bucket, key + number) for bucket, key in self._buckets.places(entry)])

    def key(self, name: bytes) -> bytes:
        return self.common.page(int.from_bytes(name, "big"))

    def name(self, entry: bytes) -> bytes:
        return entry[: -1 - NUMBER : -1].rjust(self.width, b"\0")

    def called(self, name: bytes) -> str:
        return f"page {int.from_bytes(name, 'big')}"

    def keys(self) -> AsyncIterator[list[bytes]]:
        return self.server.scan(self.common.prefix)

    def kind(self, key: bytes) -> tuple[bytes, bool]:
        start = len(self.common.prefix)
        bucket = BUCKET.fullmatch(key, start)
        if bucket and (
            int(bucket[1] or 0) >= len(self._buckets.tables)
            or int(bucket[2], 16) >> self._buckets.bucket_bits
        ):
            return b"", False
        return next((kind for name, kind in KINDS if name.fullmatch(key, start)), b""), bool(bucket)

    def content(self, bucket: bytes) -> tuple[Any, ...]:
        return "GET", bucket

    def entries(self, answer: Any) -> list[bytes]:
        found = (answer[at : at + SIZE] for at in range(0, len(answer or b"") - SIZE + 1, SIZE))
        return [entry for entry in found if entry[-NUMBER:] != _GAP]

    def has(self, answer: Any, entry: bytes) -> bool:
        return any(found.start() % SIZE == 0 for found in re.finditer(re.escape(entry), answer or b""))

    def rest(self, answer: Any) -> int:
        return len(answer) % SIZE

    async def findings(self) -> AsyncIterator[Finding]:
        before = await self._reading.counters()
        async for finding in super().findings():
            yield finding
        for finding in self._counted(before, await self._reading.counters()):
            yield finding
        async for finding in self._claims():
            yield finding

    def _counted(self, before: list[int], after: list[int]) -> Iterator[Finding]:
        """Yields a finding if the counters do not say how many pages there are; while a crawl is running, they bound it."""
        kind, sequence, back = "the counters", shown(self.common.sequence), shown(self.common.released)
        if not before or not after:
            yield Finding(kind, f"{sequence} is missing, or it or {back} is not a number")
            return
        (given, released), (last, taken) = before, after
        filed, highest = len(self._listed), int(self._listed.max(initial=0))
        if last < highest:
            repair = f"SET {sequence} {highest}, before the next crawl overwrites pages"
            yield Finding(kind, f"{sequence} is {last}, but page {highest} is filed", repair)
        elif not given - taken <= filed <= last - released:
            what = f"{sequence} {last} less {back} {taken} is {last - taken}, but {filed} pages are filed"
            yield Finding(kind, what, f"SET {back} {last - filed}, while no crawl is running")

    async def _claims(self) -> AsyncIterator[Finding]:
        """Yields pending claims that are of no page or of no run, and leases that do not end in time."""
        pending, cursor = self.common.pending, 0
        repair = f"HDEL {shown(pending)} each of them"
        while True:
            (answer,) = await self.server.ask([("HSCAN", pending, cursor, "COUNT", CLAIMS)])
            if answer is None:
                break  # of another type
            cursor, owners = answer
            numbers = [number for number in owners if PAGE.fullmatch(b"p:" + number)]
            for number, run in owners.items():
                if number not in numbers or not RUN.fullmatch(run):
                    what = f"{shown(number)}: {shown(run)}"
                    yield Finding("pending claims without a number or a run", what, repair)
            there = await self.server.ask([("EXISTS", self.common.pages + number) for number in numbers])
            for number, exists in zip(numbers, there, strict=True):
                commands = [("HEXISTS", pending, number), ("EXISTS", self.common.pages + number)]
                if not exists and await self.server.ask(commands, together=True) == [1, 0]:
                    yield Finding("pending claims without a page", f"page {number.decode()}", repair)
            if cursor == 0:
                break
