"""The contract of an index: what claim, confirm and release promise, whatever the store.

An index knows pages and their fingerprints; whether a candidate counts comes from the `Detector`.

* `claim` is atomic: of two workers with the same page at once, exactly one is told "new".
* A page is never its own duplicate: its page id again gets "same", or "new" if it has other content than an
  earlier run has filed.
* Pages of earlier runs count once this run has met them (see `dedup.index.lifecycle`): a run keeps every content
  once, whatever earlier ones have kept.
* What becomes of a page after its claim is said in `dedup.index.lifecycle`, which defines the words, too.
* The nearest page wins: least distance, then most resemblance, then the earlier page.
"""

import asyncio
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from dedup.errors import IndexUnavailableError, SettingsError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import Plan
from dedup.index.batching import Confirmations
from dedup.index.entry import NONE_RARE, Entry, rare_keys, scope_mask, storable, storable_id, storable_url
from dedup.index.hosts import Hosts
from dedup.index.lifecycle import State, run_of_crawl
from dedup.index.parameters import FORMAT, Parameters
from dedup.index.verdict import Verdict
from dedup.page.urls import host
from dedup.printing import inert
from dedup.settings import IndexSettings

if TYPE_CHECKING:  # no crawl takes a survey
    from dedup.index.survey import Survey


class Index(ABC):
    """Where kept pages are filed.  Open it with `dedup.open_index`.

    ``async with`` opens it, and closes it at the end of the block: as finished, unless an exception ended the block.

    A store implements the methods whose names begin with an underscore, and ``where``, ``close`` and
    ``survey``: it is open when they are called, and gets page ids and URLs that UTF-8 can hold.
    """

    #: True if what is filed outlives the run.
    persistent = True
    #: True if other processes file pages there, which may die unnoticed.
    is_shared = False
    #: True if its tables are made in memory when it is opened; then any plan goes with what is stored.
    in_memory = False
    #: True if a look-up may read many prefixes of a table; then four tables are enough.
    reads_many = False
    #: Changes whenever what is stored would be read differently.
    format = FORMAT
    #: What gathers confirmations, in a store that writes many at once.
    _confirmations: Confirmations[Any] | None = None

    def __init__(self, detector: Detector, *, run: str | None = None, **settings: Any) -> None:
        """The keywords are `IndexSettings`."""
        self.settings = own = IndexSettings(**settings)
        scope_mask(own.scope, "")  # loads what it needs now, not in the event loop
        self.parameters = Parameters(
            detector,
            own.scope,
            detector.plan(own.expected_pages, own.tables, in_memory=self.reads_many),
            self.format,
        )
        self.detector = detector
        if run is not None and not re.fullmatch("[0-9a-f]{32}", run):
            raise SettingsError(name="run", value=run, allowed="32 hex digits")
        #: What this run is called.  One that has finished goes on if it is opened again by its name.
        self.run = run or uuid4().hex
        #: Asked before confirmed pages are written: whether others of the crawl go on from them if this run dies.
        self.is_inherited: Callable[[], bool] = bool
        #: What is learned of hosts; None if the chrome of a host counts like all else.
        self.hosts = Hosts(detector.sketcher, own) if own.chrome else None
        self._opened = False
        self._opening = asyncio.Lock()
        self._failed, self._trouble = 0, ""  # how often the store could not be reached, and why last

    def is_own(self, run: str | None) -> bool:
        """Returns whether the pages of a run can't be lost while this one lives: it is this one, or stands for its crawl."""
        return run in (self.run, run_of_crawl(self.run))

    @property
    def plan(self) -> Plan:
        """The tables in which pages are filed: of an open index those that it was built with."""
        return self.parameters.plan

    def describe(self) -> str:
        """Returns how pages are found here, in one line."""
        return self.parameters.describe(self.settings.expected_pages)

    @property
    @abstractmethod
    def where(self) -> str:
        """The address of the store, fit to be printed (no secrets)."""

    async def open(self) -> None:
        """Reaches the store and checks that an index of these parameters is there, or makes a new one.

        All other methods open the index by themselves.  Raises `IndexUnavailableError`, `IndexMismatchError`
        or `IndexCorruptError`; the first, if the store can't be reached, at once to all who wait for that.
        """
        if not self._opened:
            await self._open_unless(failed=self._failed)

    async def _open_unless(self, failed: int) -> None:
        """Opens the index, unless it has been opened, or found away once more, while this waited."""
        async with self._opening:
            if self._opened:
                return
            if self._failed > failed:
                raise IndexUnavailableError(self._trouble)
            try:
                await self._open()
            except IndexUnavailableError as error:
                self._failed, self._trouble = self._failed + 1, str(error)
                raise
            self._opened = True

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(finished=kind is None)

    async def claim(self, page_id: str, url: str, fingerprint: Fingerprint, carried: int = 0) -> Verdict:
        """Judges a page and, if it is new, files it as pending, in one step.

        ``carried`` is a number of 64 bits that stands for whatever else is handed over with the page: pages are compared
        only where it is equal.

        Raises `IndexUnavailableError` if the store can't answer; then nothing is known of the page.  Raises ValueError for
        a fingerprint of another kind than the detector of this index makes.
        """
        if fingerprint.simhash is None or fingerprint.reason is not None:
            return Verdict.unjudged(fingerprint.reason)
        await self.open()
        url = storable_url(url)
        sketch, rare = fingerprint.sketch, NONE_RARE
        if self.hosts is not None and fingerprint.own is not None:
            await self.hosts.bring((url,))
            part = self.hosts.part(fingerprint, host(url))
            sketch, rare = part.sketch, part.keys
        entry = Entry(
            storable_id(page_id),
            url,
            fingerprint.simhash,
            scope_mask(self.settings.scope, url) ^ carried,
            fingerprint.digest,
            fingerprint.bands,
            sketch,
            int(time.time()),
            self.run,
            fingerprint.markup or fingerprint.digest,
            fingerprint.called,
            rare_keys(rare, fingerprint.digest),
        )
        verdict = await self._claim(self._checked(entry), fingerprint)
        if self.hosts is not None and verdict.status == "new":
            near = verdict.near
            is_alike = near is not None and near.digest == fingerprint.digest
            is_copy = bool(near and not near.evidence and near.same_name and not is_alike)
            self.hosts.learn_kept(fingerprint, url, is_copy=is_copy, refiled=verdict.refiled)
            if near and near.evidence:
                self.hosts.learn_near(url, near.url, near.evidence)
        elif self.hosts is not None and verdict.status == "duplicate" and verdict.rule != "exact":
            self.hosts.learn_dropped(fingerprint, url, verdict.of_id or "", verdict.evidence)
            if verdict.of and verdict.evidence:
                self.hosts.learn_near(url, verdict.of, verdict.evidence)
        return verdict

    async def confirm(self, page_id: str) -> None:
        """The page was processed, items and all: its claim is done.  This is written within a second."""
        await self._confirm(storable_id(page_id))

    async def flush(self) -> None:
        """Writes at once what was confirmed.  Raises as `confirm` does."""
        if self._confirmations is not None:
            await self._confirmations.flush()

    async def release(self, page_id: str) -> None:
        """The page was not processed: this run's pending claim of it is as if it had never been made."""
        await self._release(storable_id(page_id))

    async def annul(self, page_id: str) -> bool:
        """Takes a claim back whose run says neither, whichever run that is, and returns whether there was one.

        What that run says of it later is not heard.
        """
        await self.open()
        return await self._annul(storable_id(page_id))

    async def find(self, page_id: str) -> Entry | None:
        """Returns a page as it is filed, whatever its state; None if it is absent."""
        await self.open()
        return await self._find(storable_id(page_id))

    async def states(self, page_ids: Sequence[str]) -> list[State]:
        """Returns the state of each page."""
        await self.open()
        return await self._states([*map(storable_id, page_ids)])

    async def leases(self, runs: Sequence[str]) -> list[float]:
        """Returns when the lease of each run ends: a number that is greater each time the run has given a sign of life.

        Infinity for a run that has finished, and for one that can't die unnoticed; 0 for one that is not known.
        """
        await self.open()
        return await self._leases(runs)

    async def count(self) -> int:
        """Returns how many pages are filed, whatever their state."""
        await self.open()
        return await self._count()

    async def entries(self) -> AsyncIterator[Entry]:
        """Yields the pages that are filed and written, in the order of their filing, but for those of runs that have died."""
        if (survey := await self.survey()) is not None:
            async with survey:
                async for entry, state in survey.pages():
                    if entry is not None and state is not State.DEAD:
                        yield entry

    async def add(self, entries: Sequence[Entry]) -> int:
        """Files pages as they are, as done, without judging them, and returns how many were not filed before.

        Raises ValueError for a page whose fingerprint is of another kind than the detector of this index makes.
        """
        await self.open()
        return await self._add([storable(self._checked(entry)) for entry in entries])

    def _checked(self, entry: Entry) -> Entry:
        if wrong := self.parameters.flaw(entry):
            raise ValueError(
                f"the page {inert(entry.page_id, 99)} can't be filed: {wrong}; make its fingerprint with the detector of this index"
            )
        return entry

    async def add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        """Merges tables of hosts, by their names, into what is known of those hosts, and stores that."""
        await self.open()
        await self._add_hosts(tables)

    async def remember(self, notes: Mapping[str, bytes]) -> None:
        """Stores what a crawl notes of hosts, by their names, for the crawls after it, in place of what was stored before."""
        await self.open()
        await self._remember(notes)

    async def recall(self, host: str) -> bytes:
        """Returns what was last noted of a host; b"" if nothing was."""
        await self.open()
        return await self._recall(host)

    async def forget(self, page_ids: Sequence[str]) -> int:
        """Takes pages out, whatever their state.  How many were filed."""
        await self.open()
        return await self._forget([*map(storable_id, page_ids)])

    @abstractmethod
    async def close(self, *, finished: bool = True) -> None:
        """Writes what is confirmed, releases what is still pending, and lets go of the store.

        A run that is closed without having ``finished`` is dead (see `dedup.index.lifecycle`).
        """

    @abstractmethod
    async def survey(self) -> "Survey | None":
        """Returns what is stored, to be looked at without opening the index; None if nothing has been filed there yet.

        Raises `IndexMismatchError` if it was built with other parameters.
        """

    @abstractmethod
    async def _open(self) -> None: ...

    @abstractmethod
    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict: ...

    @abstractmethod
    async def _confirm(self, page_id: str) -> None: ...

    @abstractmethod
    async def _release(self, page_id: str) -> None: ...

    @abstractmethod
    async def _annul(self, page_id: str) -> bool: ...

    @abstractmethod
    async def _find(self, page_id: str) -> Entry | None: ...

    @abstractmethod
    async def _states(self, page_ids: Sequence[str]) -> list[State]: ...

    async def _leases(self, runs: Sequence[str]) -> list[float]:
        return [math.inf] * len(runs)

    @abstractmethod
    async def _count(self) -> int: ...

    @abstractmethod
    async def _add(self, entries: Sequence[Entry]) -> int: ...

    @abstractmethod
    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None: ...

    async def _remember(self, notes: Mapping[str, bytes]) -> None:
        return None  # such a store is gone when its crawl ends

    async def _recall(self, host: str) -> bytes:
        return b""

    @abstractmethod
    async def _forget(self, page_ids: Sequence[str]) -> int: ...

    def _adopt(self, stored: Mapping[str, str]) -> Parameters:
        """Returns the parameters of an existing index, which are those wanted here; raises if they are not."""
        any_plan = self.in_memory or self.settings.tables is None
        adopted = self.parameters.adopt(self.where, stored, any_plan=any_plan)
        return self.parameters if self.in_memory else adopted
