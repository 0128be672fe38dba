"""A claim on its way: what the script is told of a page, and what its answers mean.

The script may ask for more before it judges: tables of hosts, what is near among very many entries, or where the page
was filed with other content.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, weigh
from dedup.index.entry import Entry
from dedup.index.redis.buckets import Buckets, nearest
from dedup.index.redis.copies import Copies
from dedup.index.redis.hosts import Brought, SharedHosts
from dedup.index.redis.record import pack, unpack
from dedup.index.weighing import MAX_LOOKED
from dedup.page.urls import host

__all__ = ["ROUNDS", "Claim"]

#: How many hosts a claim may ask for at once, and how often; then others are looked at as the page's own host is.
ASKED, ROUNDS = 32, 4


class Claim:
    """One claim, and what was brought for it so far."""

    def __init__(
        self, entry: Entry, page: Fingerprint, detector: Detector, buckets: Buckets, hosts: SharedHosts | None
    ) -> None:
        self.entry = entry
        self.page = page
        self.hosts = hosts if page.own is not None else None
        self.home = host(entry.url) if self.hosts is not None else ""
        self.views = dict[str, Brought]()
        self._detector = detector
        self._buckets = buckets
        self._places = buckets.places(entry)
        self._asked = [ASKED] * ROUNDS + [0]
        self._near: tuple[bytes, int | str, int] = b"", "", 1
        self._number: bytes | int = b""
        self._outdated: list[bytes] = []

    async def prepare(self) -> None:
        """Gets what is known of the page's host."""
        if self.hosts is not None:
            self.views |= await self.hosts.views(self.page, self.home)

    @property
    def keys(self) -> list[bytes]:
        """What the script is given as KEYS."""
        return [*(place.bucket for place in self._places), *self._outdated]

    @property
    def arguments(self) -> list[Any]:
        """What it is given as ARGV."""
        detector, buckets = self._detector, self._buckets
        return [
            detector.radius,
            repr(float(detector.min_resemblance)),
            detector.sketcher.bits,
            detector.sketcher.values,
            buckets.keys.pages,
            pack(self.entry),
            b"".join(place.key for place in self._places),
            buckets.flipped,
            buckets.bucket_bits,
            *self._near,
            *(self._brought() if self.hosts is not None else ()),
            self._number,
            len(self._outdated),
        ]

    async def bring_near(self, last: int, names: bytes, sizes: bytes, copies: Copies) -> None:
        """Finds what is near in buckets that were of these sizes when that number was the last given out."""
        parts, is_all = await copies.read(names.split(b"\n"), np.frombuffer(sizes, "<u4").tolist(), last)
        tables = len(self._places) - 1
        found, all_told = nearest(parts, self._places[-1].key, self._detector.radius, MAX_LOOKED, tables)
        self._near = found, last, int(is_all and all_told)

    def bring_outdated(self, number: int, record: bytes) -> None:
        """Notes where the page was filed with other content."""
        keys = self._buckets.keys
        self._number = number
        self._outdated = [keys.released, *(place.bucket for place in self._buckets.places(unpack(record)))]

    async def bring_hosts(self, names: Sequence[bytes]) -> bool:
        """Gets what is known of these hosts; not if the script has asked for too many."""
        if self.hosts is None or not self._asked[0]:
            return False
        self._asked.pop(0)
        lacking = [bytes(name).decode() for name in names]
        self.views |= await self.hosts.more_views(self.page, self.home, lacking)
        return True

    def weighed(self, found: Sequence[Any]) -> tuple[Entry, Evidence | None]:
        """A page whose record the server gave, and the evidence that the counts behind the record are."""
        record, *counts = found
        of = unpack(record)
        views: Mapping[str, Brought] = self.views
        beside = [views[name] for name in (host(of.url), self.home) if name in views]
        view = max(beside, key=lambda brought: brought.pages).view if beside else None
        if not counts or view is None:
            return of, None
        return of, weigh(self._detector.sketcher, self.page, counts, of.called, view)

    def _brought(self) -> list[Any]:
        """What the script is told of the page's own, and of hosts; see claim.lua."""
        page, hosts = self.page, self.hosts
        assert hosts is not None
        assert page.own is not None
        main = next((view.main for _, view in self.views.values() if view), b"")
        brought = [
            repr(float(hosts.settings.min_own)),
            page.own.shingles,
            int(np.count_nonzero(page.own.filled)),
        ]
        brought += [page.said.to_bytes(8, "big"), main, self.home, self._asked[0], int(page.own.has_data)]
        for name, (pages, view) in self.views.items():
            tells = (int(view.heading_tells), int(view.shows_own)) if view else (0, 0)
            masks = (view.own_if_equal, view.own_if_new) if view else (b"", b"")
            brought += (name, pages, *masks, *tells)
        return brought
