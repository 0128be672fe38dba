"""The contract of an index: what claim, confirm and release promise, whatever the store.

An index knows pages and their fingerprints; whether a candidate counts comes from the `Detector`.

* `claim` is atomic: of two workers with the same page at once, exactly one is told "new".
* A page is never its own duplicate: its page id again gets "same".
* A claim is *pending*, owned by its run, until `confirm` makes it *done* or `release` takes it back.
  A pending claim of a run that is no longer alive shadows nothing, and neither does any other page of a run
  that died before it had *finished*, until it is claimed again: what it linked to may be lost.
* The nearest page wins: least distance, then most resemblance, then the earlier page.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import uuid4

from dedup.errors import IndexCorruptError
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.plans import possible_plans
from dedup.fingerprint.simhash import distance
from dedup.index.parameters import FORMAT, check_format, check_parameters
from dedup.index.scopes import SCOPES, scope_mask
from dedup.page.urls import strip_user
from dedup.values import check_choice, check_number

if TYPE_CHECKING:
    from dedup.index.survey import Survey

__all__ = [
    "ADDRESSES",
    "FORMAT",
    "SCOPES",
    "Entry",
    "Index",
    "State",
    "Status",
    "Verdict",
    "check_format",
    "check_parameters",
    "nearest",
    "redact",
    "scope_mask",
]

#: Candidates whose sketches are compared per page at most, the nearest first: bounds what a flood of
#: pages alike can cost.
MAX_COMPARED = 500
#: Pages of one digest that are looked at: more than one is left by crashes, or forged.
MAX_EQUAL = 16
#: What an index can be, for messages.
ADDRESSES = "'memory:', 'file:PATH', 'redis://HOST:PORT/DB', 'rediss://...', 'unix:///SOCKET'"

Status = Literal["new", "same", "duplicate", "unjudged"]
#: Of a filed page; None: it is not filed, or only by a run that is dead.
State = Literal["pending", "done"] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim."""

    status: Status  #: new: kept and filed; same: its own earlier claim; duplicate: of another page
    of: str | None = None  #: URL of the kept page that it duplicates
    distance: int | None = None  #: bits in which the two simhashes differ
    resemblance: float | None = None  #: estimated, 0..1
    reason: str | None = None  #: why it is unjudged
    of_simhash: int | None = None  #: simhash of the kept page
    rule: str | None = None  #: what found it: "exact" (equal tokens), or the detector's method
    of_id: str | None = field(default=None, compare=False)  #: page id of the kept page
    #: Whether the kept page has been processed; if not, it may yet be released.
    done: bool = field(default=True, compare=False)


class Entry(NamedTuple):
    """A page as it is filed."""

    page_id: str
    url: str
    simhash: int
    scope: int
    digest: int
    bands: tuple[int, ...]  #: () where pages are found by their simhashes
    sketch: bytes
    filed: int  #: when, in seconds since 1970
    run: str  #: by which run, 32 hex digits

    @property
    def keys(self) -> tuple[int, ...]:
        """What the tables hold, by column.  With the scope mixed in, pages of one scope keep their
        distances, and pages of different scopes are as far apart as unrelated ones."""
        return tuple(key ^ self.scope for key in (self.digest, *(self.bands or (self.simhash,))))


class Match(NamedTuple):
    """A filed page that a claim duplicates; the nearest one has the least (distance, -resemblance, number)."""

    distance: int  #: of the keys; 0 for exact ones
    resemblance: float
    number: int

    @property
    def order(self) -> tuple[int, float, int]:
        """Sorts the nearest first."""
        return self.distance, -self.resemblance, self.number


def nearest(matches: Iterable[Match], min_resemblance: float) -> Match | None:
    """The match that a verdict names; None if none is near enough.

    >>> nearest([Match(2, 0.8, 5), Match(1, 0.6, 6), Match(2, 0.9, 7)], min_resemblance=0.7)
    Match(distance=2, resemblance=0.9, number=7)
    """
    near = (match for match in matches if match.resemblance >= min_resemblance)
    return min(near, key=lambda match: match.order, default=None)


class Index(ABC):
    """Where kept pages are filed.  Open it with `dedup.open_index`."""

    def __init__(
        self,
        detector: Detector,
        *,
        scope: str = "all",
        expected_pages: int = 1_000_000,
        tables: int | None = None,
    ) -> None:
        check_choice("SCOPE", scope, SCOPES)
        scope_mask(scope, "")  # loads what it needs now, not in the event loop
        check_number("EXPECTED_PAGES", expected_pages, 1, 10**12)
        if tables is not None:
            check_number("TABLES", tables, 1, 10**12)
        self.detector = detector
        self.scope = scope
        self.expected_pages = expected_pages
        self.run = uuid4().hex
        self.plan = detector.plan(expected_pages, tables)
        self._tables_asked = tables is not None
        self._opened = False
        self._opening = asyncio.Lock()

    @property
    @abstractmethod
    def where(self) -> str:
        """The address of the store, fit to be printed (no secrets)."""

    async def open(self) -> None:
        """Reaches the store and checks that it is ours; claims do so by themselves.

        Raises `IndexUnavailableError`, `IndexMismatchError` or `IndexCorruptError`.
        """
        async with self._opening:
            if not self._opened:
                await self._open()
                self._opened = True

    async def claim(self, page_id: str, url: str, fingerprint: Fingerprint) -> Verdict:
        """Judges a page and, if it is new, files it as pending, in one step.

        Raises `IndexUnavailableError` if the store can't answer; then nothing is known of the page.
        """
        if fingerprint.simhash is None or fingerprint.reason is not None:
            return Verdict("unjudged", reason=fingerprint.reason)
        await self.open()
        url = strip_user(url).encode("utf-8", "replace").decode()  # lone surrogates can't be stored
        return await self._claim(
            Entry(
                page_id,
                url,
                fingerprint.simhash,
                scope_mask(self.scope, url),
                fingerprint.digest,
                fingerprint.bands,
                fingerprint.sketch,
                int(time.time()),
                self.run,
            )
        )

    def _duplicate(self, entry: Entry, of: Entry, resemblance: float, *, done: bool) -> Verdict:
        """The verdict that names a filed page."""
        equal = (of.digest, of.sketch) == (entry.digest, entry.sketch)
        rule = "exact" if equal else self.detector.method
        apart = distance(entry.simhash, of.simhash)
        return Verdict(
            "duplicate",
            of.url,
            apart,
            resemblance,
            of_simhash=of.simhash,
            rule=rule,
            of_id=of.page_id,
            done=done,
        )

    @abstractmethod
    async def confirm(self, page_id: str) -> None:
        """The page's output has been handed over: its claim is done.  Written within a second."""

    @abstractmethod
    async def release(self, page_id: str) -> None:
        """The page was not processed: this run's pending claim of it is as if it had never been made."""

    @abstractmethod
    async def close(self, *, finished: bool = True) -> None:
        """Writes what is confirmed, releases what is still pending, lets go of the store.

        A run that has not ``finished`` is one that is dead: see above.
        """

    @abstractmethod
    async def find(self, page_id: str) -> Entry | None:
        """A page as it is filed, pending ones included; None if it is not."""

    @abstractmethod
    async def states(self, page_ids: Sequence[str]) -> list[State]:
        """How each page is filed."""

    @abstractmethod
    async def count(self) -> int:
        """How many pages are filed, pending ones included."""

    @abstractmethod
    async def add(self, entries: Sequence[Entry]) -> int:
        """Files pages as they are, as done, without judging them; how many were not filed before."""

    @abstractmethod
    async def forget(self, page_ids: Sequence[str]) -> int:
        """Takes pages out, done or pending: they will be claimed as new.  How many were filed."""

    @abstractmethod
    async def survey(self) -> "Survey | None":
        """What is stored, to be looked at without opening the index; None if nothing has been filed there yet.

        Raises `IndexMismatchError` if it was built with other parameters.
        """

    @abstractmethod
    async def _open(self) -> None: ...

    @abstractmethod
    async def _claim(self, entry: Entry) -> Verdict: ...

    def describe(self) -> str:
        """How pages are found here, in one line."""
        return self.detector.finder.describe(self.plan, self.expected_pages, self.detector.min_resemblance)

    @property
    def parameters(self) -> dict[str, str]:
        """What an index is built with and can't be mixed: stored in it, compared at every start."""
        levels = ".".join(map(str, self.plan.levels))
        return {"format": str(FORMAT), "scope": self.scope, "tables": levels, **self.detector.parameters}

    def adopt(self, stored: Mapping[str, str]) -> None:
        """Takes over the table plan of an existing index, after checking that everything else is alike.

        Raises `IndexMismatchError` that names the first field that differs, and both values.
        """
        wanted = self.parameters
        check_format(self.where, stored.get("format"))
        if not self._tables_asked and stored.get("tables"):
            wanted["tables"] = stored["tables"]
        check_parameters(f"the index {self.where}", stored, wanted)
        for found in (self.plan, *possible_plans(self.plan.max_distance)):
            if ".".join(map(str, found.levels)) == wanted["tables"]:
                self.plan = found
                return
        raise IndexCorruptError(f"the index {self.where} is damaged: its table plan is {wanted['tables']!r}")


def redact(address: str) -> str:
    """An address without user, password and options, fit to be printed.

    >>> redact("redis://user:secret@host:6379/0?password=secret"), redact(":secret@host")
    ('redis://host:6379/0', 'host')
    """
    before, at, after = address.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    shown = f"{scheme}{slashes}{after}" if at and slashes else after
    return shown.partition("?")[0]
