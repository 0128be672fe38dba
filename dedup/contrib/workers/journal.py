"""What a worker has scheduled in its shards, and what of it is done: noted in Redis, for whoever takes its place.

A request that the scheduler takes gets a ticket, which holds until nothing depends on it any more: the engine is done with
it, links and items, and no drop of its page may be undone.  A request that can't be packed shares the ticket of the page
that it was found on, so that page would be fetched again.  Notes are written in their order, and the links of a
page before its end: whatever the last one is that was written, the others can crawl what is left from there.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from math import inf
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.extensions.feedexport import FeedExporter

from dedup.contrib.workers.handover import KEY, MOST, Delivery, Note
from dedup.contrib.workers.outbox import Outbox
from dedup.filter.stats import count
from dedup.scrapy.requests.packing import Packing, named
from dedup.scrapy.signals import logger_for


@dataclass(slots=True, eq=False)
class _Ticket:
    """What a request is known by.  The request is not done as long as ``users`` depend on it."""

    shard: int
    name: bytes = b""  #: empty for what is in the log of its shard anyway
    key: bytes = b""  #: empty if nobody has to know that it is done
    users: float = 0


class _QueuedNote(NamedTuple):
    note: Note
    links: int  #: how many were found for other shards before


class Journal:
    """The notes of a worker, until they have been written."""

    def __init__(self, crawler: Crawler, packing: Packing, outbox: Outbox, *, is_kept: bool) -> None:
        """Without ``is_kept`` nothing is noted."""
        self._crawler = crawler
        self._packing = packing
        self._outbox = outbox
        self.is_kept = is_kept
        self._filters_alike = False
        self._me = uuid4().bytes[:8]
        self._made = 0  # tickets
        self._tickets: WeakKeyDictionary[Request, _Ticket] = WeakKeyDictionary()
        self._parents: WeakKeyDictionary[Request, Request] = WeakKeyDictionary()
        self._notes: deque[_QueuedNote] = deque()
        self.has_done = asyncio.Event()  #: something is done since `first` was asked
        self._past: set[bytes] = set()  # keys of what was done before
        self._inherited: set[bytes] = set()  # tickets
        self._logger = logger_for(crawler, __name__)

    def begin(self, scheduler: Any) -> None:
        """The spider is open.  Another filter of duplicate requests than Scrapy's own may let some pass that are done."""
        filter = getattr(scheduler, "df", None)
        self._filters_alike = isinstance(filter, RFPDupeFilter) and (
            type(filter).request_seen is RFPDupeFilter.request_seen
        )

    # --- Requests

    def found(self, request: Request, parent: Request) -> None:
        """Notes on which page a request was found, or which request was redirected to it."""
        if self.is_kept:
            self._parents[request] = parent

    def begins(self, request: Request) -> None:
        """The crawl of every worker begins with this request, which can't be packed."""
        self._tickets[request] = _Ticket(0, users=inf)

    def taken(self, taken: Delivery, request: Request) -> None:
        """A request was read from the log of its shard, and is about to be scheduled."""
        if not self.is_kept:
            return
        place = b"log" + taken.shard.to_bytes(1, "big") + taken.place.to_bytes(KEY - 4, "big")
        self._tickets[request] = _Ticket(taken.shard, key=self._key(request) or place)

    def inherited(self, shard: int, ticket: bytes, request: Request) -> bool:
        """Notes a request that the last worker has left.  Returns whether it is to be scheduled."""
        if ticket in self._inherited or ticket.startswith(self._me):
            return False
        self._inherited.add(ticket)
        self._tickets[request] = _Ticket(shard, ticket, self._key(request))
        return True

    def remember(self, keys: Collection[bytes]) -> None:
        """These are done."""
        self._past.update(keys)

    def is_past(self, request: Request) -> bool:
        """Returns whether a request was done before this worker had the shard."""
        if not self._past:
            return False
        if request.dont_filter:
            ticket = self._tickets.get(request)
            return ticket is not None and ticket.key in self._past
        return self._filters_alike and self._key(request) in self._past

    def scheduled(self, request: Request, shard: int | None) -> None:
        """The scheduler has taken a request."""
        parent = self._parents.pop(request, None)
        ticket = self._tickets.get(request) or self._new(request, parent, shard)
        if ticket is not None:
            self._tickets[request] = ticket
            ticket.users += 1

    def _new(self, request: Request, parent: Request | None, shard: int | None) -> _Ticket | None:
        packed = self._packing.pack(request) if self.is_kept and shard is not None else None
        if packed is not None and shard is not None:
            self._made += 1
            name = self._me + self._made.to_bytes(4, "big")
            ticket = _Ticket(shard, name, self._key(request))
            self._note(Note(shard, ticket.name, packed))
            return ticket
        if parent is not None and parent in self._tickets:
            return self._tickets[parent]
        if self.is_kept:
            self._give_up(request)
        return None

    def refused(self, request: Request) -> None:
        """The scheduler has not taken a request, which it knows already."""
        ticket = self._tickets.get(request)
        if ticket is not None and not ticket.users:
            del self._tickets[request]
            if ticket.name and self.is_kept:  # but another one like it may not be done
                self._note(Note(ticket.shard, ticket.name))

    def hold(self, request: Request) -> None:
        """Something may want a request to be sent once more; `let_go` is its end."""
        if (ticket := self._tickets.get(request)) is not None:
            ticket.users += 1

    def let_go(self, request: Request) -> None:
        """Nothing here depends on a request any more, or one thing less."""
        ticket = self._tickets.get(request)
        if ticket is None:
            return
        ticket.users -= 1
        if not ticket.users:
            del self._tickets[request]
            if self.is_kept:
                self._note(Note(ticket.shard, ticket.name, b"", ticket.key))
                self.has_done.set()

    def _key(self, request: Request) -> bytes:
        """Returns the key by which a request is known when it is met again; b"" if it is sent each time that it is met."""
        if request.dont_filter:
            return b""
        assert self._crawler.request_fingerprinter is not None
        return blake2b(self._crawler.request_fingerprinter.fingerprint(request), digest_size=KEY).digest()

    def _note(self, note: Note) -> None:
        self._notes.append(_QueuedNote(note, self._outbox.put))

    def _give_up(self, request: Request) -> None:
        self.is_kept = False
        count(self._crawler.stats, "shard/not_noted")
        self._logger.warning(
            "From here on, a worker that takes the place of this one has to crawl everything again: %s can't be noted, and no "
            "page is known to lead to it. Its callback is not a method that the spider's code names, its class is not one "
            "of Scrapy's, or its meta is not plain data; see docs/workers.md",
            named(request),
        )

    # --- Notes

    def __len__(self) -> int:
        """Returns how many notes wait."""
        return len(self._notes)

    def first(self, links: int) -> list[Note]:
        """Returns the notes that the next beat takes, given how many links have been handed over with it and before.

        What is noted as done has been written to the feeds by then.  If a feed can't be written, there are no notes.
        """
        self.has_done.clear()
        notes = list[Note]()
        for waiting in islice(self._notes, MOST):
            if waiting.links > links:
                break
            notes.append(waiting.note)
        return notes if notes and self._has_written() else []

    def is_inherited(self) -> bool:
        """Returns whether the next worker has all that pages gave which are done by now: their items, and what they lead to."""
        return self.is_kept and self._has_written()

    def _has_written(self) -> bool:
        """Has what was exported written to the files of the feeds."""
        exporter = self._crawler.get_extension(FeedExporter)
        files = (slot.file for slot in (exporter.slots if exporter else ()))
        try:
            for file in files:
                if file is not None and not file.closed:
                    file.flush()
        except OSError as error:
            self._logger.error(
                "What is done can't be noted for now, since a feed can't be written: %s", error
            )
            return False
        return True

    def written(self, notes: int) -> None:
        """The first ``notes`` ones have been written."""
        for _ in range(notes):
            self._notes.popleft()
