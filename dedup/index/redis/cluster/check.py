"""Which invariants of an index over a cluster don't hold: see `dedup.index.redis.check`."""

import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any

from dedup.index.parameters import Parameters
from dedup.index.redis.check import Check, Filed
from dedup.index.redis.cluster.keys import BUCKET, COMMON
from dedup.index.redis.cluster.reading import Reading, whole
from dedup.index.redis.keys import ID_OCTETS
from dedup.index.redis.reading import scores
from dedup.printing import octets as shown

_SCORE = struct.Struct(">d")


class Invariants(Check):
    """The check of a survey of a cluster, where an entry is a page, and then its score."""

    width = ID_OCTETS
    lacking = "export it, and import those pages again: they are then filed in all their tables"
    stray = "nothing has to be done: they are passed over"

    def __init__(self, reading: Reading, parameters: Parameters, header: Mapping[str, str]) -> None:
        super().__init__(reading.cluster, reading.common, reading.leases, parameters, header)
        self._reading = reading
        self._keys = reading.keys
        self.tables = [*map(str, range(len(reading.keys.tables)))]

    async def pages(self) -> AsyncIterator[tuple[bytes, bytes]]:
        async for key, octets in self._reading.records():
            name = key[len(self._keys.pages) :]
            if len(name) == self.width:
                yield name, octets

    def read(self, name: bytes, octets: bytes | None) -> Filed | None:
        record = whole(octets)
        settled = record and record.settled
        if record is None or (settled and self._keys.name(settled.entry.page_id) != name):
            return None
        spots = dict.fromkeys(
            (probe.bucket, name + _SCORE.pack(probe.own))
            for entry in record.contents()
            for probe in self._keys.probes(entry)
        )
        is_settled = record is settled and len(spots) == len(self.tables)
        return Filed(settled and settled.entry, list(spots), is_settled)

    def key(self, name: bytes) -> bytes:
        return self._keys.record(name)

    def name(self, entry: bytes) -> bytes:
        return entry[: self.width]

    def called(self, name: bytes) -> str:
        return f"page {shown(self.key(name))}"

    def keys(self) -> AsyncIterator[list[bytes]]:
        return self._reading.all_keys()

    def kind(self, key: bytes) -> tuple[bytes, bool]:
        if key.startswith(common := self.common.prefix):
            return next((kind for name, kind in COMMON if name.fullmatch(key, len(common))), b""), False
        if not key.startswith(self._keys.prefix):
            return b"", False
        if key.startswith(self._keys.pages):
            return b"string" if len(key) == len(self._keys.pages) + self.width else b"", False
        bucket = BUCKET.fullmatch(key, len(self._keys.prefix))
        is_ours = (
            bucket and int(bucket[1]) < len(self.tables) and not int(bucket[2], 16) >> self._keys.bucket_bits
        )
        return (b"zset", True) if is_ours else (b"", False)

    def content(self, bucket: bytes) -> tuple[Any, ...]:
        return "ZRANGE", bucket, 0, -1, "WITHSCORES"

    def entries(self, answer: Any) -> list[bytes]:
        return [
            page + _SCORE.pack(score) for page, score in scores(answer).items() if len(page) == self.width
        ]
