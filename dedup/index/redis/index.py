"""The shared index, in Redis or Valkey >= 6.2: one Lua script per verb, one round trip per page.

The keys are described in `dedup.index.redis.keys`.  Redis needs maxmemory-policy noeviction, else it
drops parts of the tables without a word; it should have appendonly on, else a crash loses the index.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import count
from typing import Any
from uuid import uuid4

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, is_same_name
from dedup.index.batching import Confirmations
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.redis.buckets import Buckets, bucket_bits
from dedup.index.redis.bulk import Bulk
from dedup.index.redis.claim import ROUNDS, Claim
from dedup.index.redis.client import Server
from dedup.index.redis.hosts import SharedHosts
from dedup.index.redis.keys import LEASE_MS, Keys
from dedup.index.redis.reading import filed_as
from dedup.index.redis.record import header_digest, unpack
from dedup.index.redis.releases import Releases
from dedup.index.redis.survey import survey_redis
from dedup.index.survey import Survey
from dedup.index.verdict import Near, Verdict
from dedup.printing import octets as shown

__all__ = ["FORMAT", "RedisIndex"]

logger = logging.getLogger(__name__)

#: Changes whenever its keys would be read differently.
FORMAT = 5

#: Pages that one call of a script confirms, or tells the states of.
PAGES = 500


class RedisIndex(Index):
    """`redis://`, `rediss://` and `unix://`: shared by any number of crawlers."""

    format = FORMAT
    reads_many = True

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        self._server = Server(address)
        self._namespace = namespace
        self._keys = Keys(namespace)
        self._pending: dict[str, Entry] = {}  # this run's claims that are neither confirmed nor released
        self._releases = Releases(
            self._release_claim
        )  # and those to be released as soon as the server answers
        self._replacing: dict[str, str] = {}  # pages of earlier runs, by those in whose place these were met
        self._began = 0  # the last number that the server had given out then
        self._nonces = count()
        self._seen = 0  # the highest number that the server has said it gave out
        self._refusal: IndexMismatchError | None = None
        self._confirmations = Confirmations(self._write)
        self._hosts: SharedHosts | None = None
        if self.hosts is not None:
            self._hosts = SharedHosts(
                detector.sketcher, self.hosts.min_own, self._server, self._keys, self._call
            )
            self.hosts = self._hosts

    @property
    def where(self) -> str:
        return f"{self._server.where} ({self._namespace})"

    async def _open(self) -> None:
        info = await self._server.check()
        if info.get("role") == "slave":  # met in mid-run, it may become the master again
            raise IndexMismatchError(
                f"{self._server.where} is a replica, which can't be written; give the address of its master"
            )
        self._loop = asyncio.get_running_loop()
        stored = await self._open_header()
        if "maxmemory_policy" not in info:
            logger.warning(
                "Can't see the maxmemory-policy of %s; it has to be 'noeviction'", self._server.where
            )
        if info.get("aof_enabled") == 0:
            logger.warning(
                "%s has appendonly off: the index is lost if that server crashes", self._server.where
            )
        self.parameters = self._adopt(stored)
        self._digest = stored["digest"]
        self._buckets = Buckets(self._keys, self.plan, int(stored["bucket_bits"]), stored["created"])
        self._bulk = Bulk(self._server, self._buckets, self._call)
        (self._began,) = await self._renew(LEASE_MS)
        self._lease = asyncio.create_task(self._keep_lease())
        if self._hosts is not None:
            self._hosts.start()

    async def _open_header(self) -> dict[str, str]:
        wanted = self.parameters.texts | {
            "bucket_bits": str(bucket_bits(self.plan, self.expected_pages)),
            "created": uuid4().hex,
        }
        wanted["digest"] = header_digest(wanted)
        flat = [text for item in wanted.items() for text in item]
        reply = None
        with suppress(IndexCorruptError):  # it is of another type
            reply = await self._server.run("open", [self._keys.header, self._keys.sequence], flat)
            if not isinstance(reply, list) or not all(isinstance(text, bytes) for text in reply):
                raise self._no_answer()
        texts = [text.decode("utf-8", "replace") for text in reply or []]
        stored = dict(zip(texts[::2], texts[1::2], strict=False))
        fields = {"created", "digest", "bucket_bits", "tables"}
        if not fields <= stored.keys() or not stored["bucket_bits"].isdecimal():
            raise IndexMismatchError(
                f"{shown(self._keys.header)} in {self._server.where} is not the header of an index"
            )
        return stored

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        async with self._server.turn(claiming=True):
            unknown = await self._releases.forget(entry.page_id)
            try:
                return await self._judge(entry, page)
            except BaseException as error:
                is_answer = isinstance(error, IndexMismatchError | IndexCorruptError)
                if unknown or not (is_answer or self._is_claimed(entry.page_id)):
                    self._releases.add(entry)
                raise

    def _is_claimed(self, page_id: str) -> bool:
        return page_id in self._pending or page_id in self._confirmations

    async def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        claim = Claim(entry, page, self.detector, self._buckets, self._hosts)
        await claim.prepare()
        for _ in range(3 * ROUNDS):
            match await self._call("claim", claim.keys, claim.arguments):
                case [b"same", int(known), int(crowded)]:
                    self._note(entry)
                    return Verdict.same(known=bool(known), crowded=bool(crowded))
                case [b"new", int(known), int(crowded), bytes(replaced), *found]:
                    self._note(entry)
                    if replaced:
                        self._replacing[entry.page_id] = replaced.decode()
                    near: Near | None = None
                    if found:
                        other, evidence = self._weighed(claim, found)
                        near = Near(other.url, evidence, is_same_name(page, other.called))
                    return Verdict.new(near, known=bool(known), crowded=bool(crowded))
                case [b"many", int(last), bytes(entries), int(is_all)]:
                    with self._server.errors():
                        claim.bring_near(last, entries, is_all=bool(is_all))
                case [b"changed", int(number), bytes(record)]:
                    with self._server.errors():
                        claim.bring_outdated(number, record)
                case [b"duplicate" | b"shown" as word, int(either), int(both), int(equal), int(done), *found]:
                    of, evidence = self._weighed(claim, found)
                    alike = self.detector.sketcher.estimate(either, both, equal)
                    rule = "view" if word == b"shown" else None
                    return self._duplicate(entry, of, alike, done=bool(done), evidence=evidence, rule=rule)
                case [b"hosts", *names]:
                    if not await claim.bring_hosts(names):
                        break
                case _:
                    break
        raise self._no_answer()

    def _weighed(self, claim: Claim, found: Sequence[Any]) -> tuple[Entry, Evidence | None]:
        with self._server.errors():
            return claim.weighed(found)

    def _note(self, entry: Entry) -> None:
        """A page was claimed, and is pending unless it was confirmed before."""
        if entry.page_id not in self._confirmations:
            self._pending[entry.page_id] = entry

    async def _confirm(self, page_id: str) -> None:
        if self._pending.pop(page_id, None) is None:
            return
        self._confirmations.add(page_id)

    async def _write(self, batch: list[str]) -> None:
        for start in range(0, len(batch), PAGES):
            some = batch[start : start + PAGES]
            places = [*map(self._buckets.id_place, some)]
            keys = [self._keys.released, *(place.bucket for place in places)]
            run, hashes = bytes.fromhex(self.run), b"".join(place.key for place in places)
            await self._call("confirm", keys, [self._keys.pages, run, hashes])
            replaced = [self._replacing[page_id] for page_id in some if page_id in self._replacing]
            await self._bulk.forget(replaced, State.EARLIER)
            for page_id in some:
                self._replacing.pop(page_id, None)

    async def _release(self, page_id: str) -> None:
        self._replacing.pop(page_id, None)
        if entry := self._pending.pop(page_id, None):
            self._releases.add(entry)
        await self._releases.make(page_id)

    async def _release_claim(self, claimed: Entry) -> None:
        # A dead run may have filed it otherwise.  A cancelled claim has reached the server before this answer.
        places = self._buckets.places(await self._find(claimed.page_id) or claimed)
        keys = [self._keys.released, *(place.bucket for place in places)]
        await self._call("release", keys, [self._keys.pages, places[0].key])

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        found: list[State] = []
        for start in range(0, len(page_ids), PAGES):
            places = [*map(self._buckets.id_place, page_ids[start : start + PAGES])]
            hashes = b"".join(place.key for place in places)
            keys = [place.bucket for place in places]
            states = await self._call("state", keys, [self._keys.pages, hashes])
            found += [State(state.decode()) for state in states]
        return found

    async def _find(self, page_id: str) -> Entry | None:
        async with self._server.turn():
            ((_, record),) = await filed_as(self._server, self._buckets, [page_id])
        return unpack(record) if record else None

    async def _count(self) -> int:
        async with self._server.turn():
            given, released = await self._server.values([self._keys.sequence, self._keys.released])
        with self._server.errors():
            return int(given or 0) - int(released or 0)

    async def survey(self) -> Survey | None:
        return await survey_redis(self._server, self._keys, self.where, self._adopt)

    async def _add(self, entries: Sequence[Entry]) -> int:
        return await self._bulk.add(entries)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        if self._hosts is not None:
            self._hosts.merge(tables)
            await self._hosts.flush()

    async def _forget(self, page_ids: Sequence[str]) -> int:
        await self._confirmations.flush()
        for page_id in page_ids:
            self._pending.pop(page_id, None)
        self._releases.drop(page_ids)
        return await self._bulk.forget(page_ids)

    async def _renew(self, lease: int | str) -> list[Any]:
        return await self._call("renew", [self._keys.released], [lease])

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(LEASE_MS / 3000)
            with suppress(DedupError):
                await self._renew(LEASE_MS)
                await self._releases.make_all()
                await self._watch_server()

    async def _watch_server(self) -> None:
        """Notices a policy that was changed in mid-run; claims are refused for as long as it lasts."""
        try:
            async with self._server.turn():
                await self._server.check()
            self._refusal = None
        except IndexMismatchError as error:
            self._refusal = error

    async def close(self, *, finished: bool = True) -> None:
        if self._opened:
            self._check_loop()
        try:
            if self._opened:
                self._lease.cancel()
                await self._confirmations.close()
                self._releases.add_all(self._pending.values())
                self._pending.clear()
                await self._releases.make_all()
                if self._hosts is not None:
                    await self._hosts.close()
                await self._renew("finished" if finished else 0)
        finally:
            self._opened = False
            await self._server.close()

    async def _call(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a script, and returns its answer.

        Raises `IndexUnavailableError` if no answer comes in time, or one to another question,
        `IndexMismatchError` if the index is no longer the one that was opened, and `IndexCorruptError` if it is
        damaged.
        """
        self._check_loop()
        if self._refusal is not None:
            raise self._refusal
        nonce = str(next(self._nonces)).encode()
        own = self._keys
        known = (self._digest, self._seen, nonce, f"{self.run} {LEASE_MS} {self._began}")
        async with nullcontext() if verb == "claim" else self._server.turn():  # a claim has its turn
            reply = await self._server.run(
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
        await self._server.disconnect()  # whatever else is on its way belongs to no question
        raise self._no_answer()

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise IndexUnavailableError(
                f"the index {self.where} was opened in another event loop, to which its connections belong; open "
                "one for each call of asyncio.run, and for each thread"
            )

    def _no_answer(self) -> IndexUnavailableError:
        return IndexUnavailableError(f"the index {self._server.where} gave an answer that no index gives")
