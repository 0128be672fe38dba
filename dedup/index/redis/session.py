"""What one run has with one namespace, from its opening to its end: the header, its lease, and the scripts it calls."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import count
from typing import Any

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.batching import end
from dedup.index.lifecycle import State, run_of_crawl
from dedup.index.redis.client import Server
from dedup.index.redis.keys import LEASE_MS, Keys
from dedup.index.redis.record import header_digest
from dedup.index.redis.scripts import TRIPS
from dedup.printing import octets as shown

logger = logging.getLogger(__name__)

#: The fields of a header that every index has, beside those of its parameters.
FIELDS = {"created", "digest", "bucket_bits", "tables"}
#: How often a lease is renewed before it would end: a sign of life that others wait for (see `dedup.filter.watch.doubts`).
RENEWALS = 12


class Session:
    """The session of a run."""

    def __init__(self, server: Server, keys: Keys, namespace: str, run: str, lease: float) -> None:
        self.server = server
        self.keys = keys
        self.run = run
        self._lease = round(lease / 60 * LEASE_MS)  # in ms
        self.where = f"{server.where} ({namespace})"
        self.digest = ""  #: of the header
        self.began = 0  #: the last number that had been given out when the run began
        self._seen = 0  # the highest number that is known to have been given out
        self._nonces = count()
        self._refusal: IndexMismatchError | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._ending = False

    async def open(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Reads the header, or writes the one that is ``wanted`` if there is none, and returns what is there now."""
        info = await self.server.check()
        if info.get("role") == "slave":  # met in mid-run, it may become the master again
            raise IndexMismatchError(
                f"{self.server.where} is a replica, which can't be written; give the address of its master"
            )
        self._loop = asyncio.get_running_loop()
        stored = await self._header(dict(wanted))
        if "maxmemory_policy" not in info:
            logger.warning(
                "Can't see the maxmemory-policy of %s; it has to be 'noeviction'", self.server.where
            )
        if info.get("aof_enabled") == 0:
            logger.warning("%s has appendonly off: what it holds is lost if it crashes", self.server.where)
        self.digest = stored["digest"]
        return stored

    async def _header(self, wanted: dict[str, str]) -> dict[str, str]:
        wanted["digest"] = header_digest(wanted)
        flat = [text for item in wanted.items() for text in item]
        reply = None
        with suppress(IndexCorruptError):  # it is of another type
            reply = await self.server.run("open", [self.keys.header, self.keys.sequence], flat)
            if not isinstance(reply, list) or not all(isinstance(text, bytes) for text in reply):
                raise self.no_answer()
        texts = [text.decode("utf-8", "replace") for text in reply or []]
        stored = dict(zip(texts[::2], texts[1::2], strict=False))
        if not stored.keys() >= FIELDS:
            raise IndexMismatchError(
                f"{shown(self.keys.header)} in {self.server.where} is not the header of an index"
            )
        return stored

    async def begin(self, also: Callable[[], Awaitable[None]]) -> None:
        """Begins the run: its lease is renewed until it ends, and ``also`` done each time."""
        (self.began,) = await self.renew(self._lease)
        self._ending = False
        self._renewing = asyncio.create_task(self._keep_lease(also))

    async def stop(self) -> None:
        """Lets the lease run out, unless `renew` ends it."""
        self._ending = True
        if self._renewing is not None:
            with suppress(Exception):
                await end(self._renewing)

    async def renew(self, lease: int | str) -> list[Any]:
        """Prolongs the lease, by ms; 0 ends it, and "finished" notes that the run has come to its end."""
        return await self.call("renew", [self.keys.released], [lease])

    async def leases(self, runs: Sequence[str]) -> list[float]:
        """Returns when the leases of these runs end, in ms by the server's clock; see `Index.leases`."""
        self.check()
        async with self.server.turn():
            found = await self.server.ask([("ZSCORE", self.keys.runs, run) for run in runs])
        with self.server.errors():
            ends = [float(score or 0) for score in found]
        own = self.run, run_of_crawl(self.run)
        return [math.inf if run in own or end < 0 else end for run, end in zip(runs, ends, strict=True)]

    async def _keep_lease(self, also: Callable[[], Awaitable[None]]) -> None:
        while not self._ending:
            await asyncio.sleep(self._lease / 1000 / RENEWALS)
            for work in (self.watch, lambda: self.renew(self._lease), also):
                with suppress(DedupError):
                    await work()

    async def watch(self) -> None:
        """Notices a policy that was changed in mid-run; every call is refused for as long as it lasts."""
        try:
            async with self.server.turn():
                await self.server.check()
            self._refusal = None
        except IndexMismatchError as error:
            self._refusal = error

    async def call(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a script, and returns its answer.

        Raises `IndexUnavailableError` if no answer comes in time, or one to another question,
        `IndexMismatchError` if the index is no longer the one that was opened, and `IndexCorruptError` if it is
        damaged.
        """
        self.check()
        nonce = next(self._nonces)
        own = self.keys
        known = (self.digest, self._seen, nonce, f"{self.run} {LEASE_MS} {self.began}")
        async with nullcontext() if verb in TRIPS else self.server.turn():  # a claim has its turn
            reply = await self.server.run(
                verb, [own.header, own.sequence, own.runs, own.pending, *keys], [*known, *arguments]
            )
        match reply:
            case [echo, int(), b"gone"] if echo == nonce:
                raise IndexMismatchError(
                    f"the index {self.where} has vanished or was replaced while it was in use"
                )
            case [echo, int(last), b"older"] if echo == nonce:
                raise IndexMismatchError(
                    f"the index {self.where} was set back to an earlier state while it was in use: it has given "
                    f"out {max(last, 0):,} numbers and had given out {self._seen:,}; start the crawl anew to go on with it"
                )
            case [echo, int(last), *answer] if echo == nonce:
                self._seen = max(self._seen, last)
                return answer
        await self.server.disconnect()  # whatever else is on its way belongs to no question
        raise self.no_answer()

    def state(self, word: bytes) -> State:
        """Returns the state of a page in an answer.  Raises `IndexUnavailableError` if it is none."""
        try:
            return State(word.decode())
        except ValueError:
            raise self.no_answer() from None

    def check(self) -> None:
        """Raises what stands in the way of any call."""
        self.check_loop()
        if self._refusal is not None:
            raise self._refusal

    def check_loop(self) -> None:
        """Raises `IndexUnavailableError` if this is another event loop than the one it was opened in."""
        if asyncio.get_running_loop() is not self._loop:
            raise IndexUnavailableError(
                f"the index {self.where} was opened in another event loop, to which its connections belong; open "
                "one for each call of asyncio.run, and for each thread"
            )

    def no_answer(self) -> IndexUnavailableError:
        """Returns the error of an answer to another question."""
        return IndexUnavailableError(
            f"the index {self.server.where} sent a reply that could not be understood"
        )
