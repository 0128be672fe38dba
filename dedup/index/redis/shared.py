"""What an index over one server and one over a cluster share: whose claims are pending, and what becomes of them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from dedup.errors import IndexCorruptError, IndexMismatchError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.batching import Confirmations
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import SharedHosts
from dedup.index.redis.keys import Keys
from dedup.index.redis.releases import Releases
from dedup.index.redis.session import Session
from dedup.index.redis.survey import read_header
from dedup.index.survey import Survey
from dedup.index.verdict import Verdict


class SharedIndex(Index):
    """An index that any number of crawlers share; all they share is stored, but for what one has claimed itself."""

    is_shared = True
    hosts: SharedHosts | None
    _confirmations: Confirmations[int]

    def __init__(
        self, server: Server, keys: Keys, namespace: str, detector: Detector, **options: Any
    ) -> None:
        super().__init__(detector, **options)
        self._session = Session(server, keys, namespace, self.run, self.settings.lease)
        # Numbers of this run's claims that are neither confirmed nor released, by page id.
        self._pending: dict[str, int] = {}
        self._confirmations = Confirmations(self._write)  # of such numbers
        self._releases = Releases(self._release_claim)  # claims to be released as soon as there is an answer
        self._replacing: dict[str, str] = {}  # pages of earlier runs, by those in whose place these were met
        if self.hosts is not None:
            self.hosts = SharedHosts(detector.sketcher, self.settings, self._session)

    @property
    def where(self) -> str:
        return self._session.where

    async def _open(self) -> None:
        stored = await self._session.open(self.parameters.texts | self._made_up())
        self.parameters = self._adopt(stored)
        self._lay_out(stored)
        await self._session.begin(self._releases.make_all)
        if self.hosts is not None:
            self.hosts.start()

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        self._session.check()
        async with self._session.server.turn(claiming=True):
            unknown = await self._releases.forget(entry.page_id)
            try:
                return await self._judge(entry, page)
            except BaseException as error:
                is_answer = isinstance(error, IndexMismatchError | IndexCorruptError)
                if unknown or not (is_answer or self._is_claimed(entry.page_id)):
                    self._releases.add(entry.page_id)
                raise

    def _is_claimed(self, page_id: str) -> bool:
        return page_id in self._pending or page_id in self._confirmations

    def _note(self, page_id: str, number: int) -> None:
        """A page was claimed, and is pending unless it was confirmed before."""
        if page_id not in self._confirmations:
            self._pending[page_id] = number

    async def _confirm(self, page_id: str) -> None:
        if number := self._pending.pop(page_id, None):
            self._confirmations.add(page_id, number)

    async def _release(self, page_id: str) -> None:
        self._replacing.pop(page_id, None)
        if self._pending.pop(page_id, None):
            self._releases.add(page_id)
        await self._releases.make(page_id)

    async def _leases(self, runs: Sequence[str]) -> list[float]:
        return await self._session.leases(runs)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        if self.hosts is not None:
            self.hosts.merge(tables)
            await self.hosts.flush()

    async def _forget(self, page_ids: Sequence[str]) -> int:
        await self._confirmations.flush()
        for page_id in page_ids:
            self._pending.pop(page_id, None)
            await self._releases.forget(page_id)
        return await self._take_out(page_ids)

    async def survey(self) -> Survey | None:
        header = await read_header(self._session.server, self._session.keys, self.where)
        return self._survey(header) if header else None

    async def close(self, *, finished: bool = True) -> None:
        if self._opened:
            self._session.check_loop()
        try:
            if self._opened:
                await self._session.stop()
                await self._confirmations.close()
                self._releases.add_all(self._pending)
                self._pending.clear()
                await self._releases.make_all()
                if self.hosts is not None:
                    await self.hosts.close()
                await self._session.renew("finished" if finished else 0)
        finally:
            self._opened = False
            await self._session.server.close()

    @abstractmethod
    def _made_up(self) -> dict[str, str]:
        """Returns what the header of a new index has beside its parameters: bucket_bits, and created, which tells it from others."""

    @abstractmethod
    def _lay_out(self, header: Mapping[str, str]) -> None:
        """Makes what pages are filed with, of an index with this header."""

    @abstractmethod
    def _survey(self, header: Mapping[str, str]) -> Survey:
        """Returns the survey of an index with this header."""

    @abstractmethod
    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        """Claims a page, within its turn."""

    @abstractmethod
    async def _write(self, batch: dict[str, int]) -> None:
        """Confirms claims of pages, by their numbers."""

    @abstractmethod
    async def _release_claim(self, page_id: str) -> None:
        """Releases a page, whether or not its claim has come to anything."""

    @abstractmethod
    async def _take_out(self, page_ids: Sequence[str]) -> int:
        """Takes pages out, and returns how many were filed."""
