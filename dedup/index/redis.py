"""The shared index, in Redis or Valkey >= 6.2: one Lua script per verb, one round trip per page.

The keys are described at the top of lua/claim.lua.  Redis needs maxmemory-policy noeviction, else it
drops parts of the tables without a word; it should have appendonly on, else a crash loses the index.
"""

import asyncio
import hashlib
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any
from uuid import uuid4

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from dedup.detector import Detector
from dedup.errors import DedupError, IndexMismatchError, IndexUnavailableError, SettingsError
from dedup.index.base import ADDRESSES, Entry, Index, Verdict, redact
from dedup.index.confirmations import Confirmations
from dedup.index.packed import pack, unpack
from dedup.minhash import estimate
from dedup.tables import DIGESTS, MIN_PREFIX

__all__ = ["RedisIndex"]

logger = logging.getLogger(__name__)

#: A bucket is planned to hold this many pages: half of what a listpack holds, so that it stays one.
BUCKET_PAGES = 64
#: Connections of one crawler; further claims wait for one.
CONNECTIONS = 16
#: Seconds to wait for a connection, an answer, a free connection of the pool.
TIMEOUT = 2.0
#: Seconds for one call in all, retries included.
DEADLINE = 4.0
#: A run that has not been heard of for this long is dead: its pending claims don't count.
LEASE_MS = 60_000
#: Pages confirmed by one call of the script.
CONFIRM_PAGES = 500


class RedisIndex(Index):
    """`redis://`, `rediss://` and `unix://`: shared by any number of crawlers."""

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        try:
            self._pool = aioredis.BlockingConnectionPool.from_url(
                address,
                max_connections=CONNECTIONS,
                timeout=TIMEOUT,
                socket_timeout=TIMEOUT,
                socket_connect_timeout=TIMEOUT,
                retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 2),
                retry_on_error=[exceptions.ConnectionError, exceptions.TimeoutError],
            )
            if self._pool.connection_kwargs.get("decode_responses"):
                raise ValueError
            self._pool.make_connection()  # type: ignore[no-untyped-call]  # checks the options that the address names
        except (ValueError, TypeError, exceptions.RedisError):  # whose text may hold the password
            raise SettingsError(
                f"INDEX is {redact(address)!r}, which is wrong, or has wrong options; allowed: {ADDRESSES}"
            ) from None
        self._where = redact(address)
        self._prefix = f"shingleback:{{{namespace}}}:"
        self._namespace = namespace
        self._client = aioredis.Redis(connection_pool=self._pool)
        self._pending: dict[str, Entry] = {}  # this run's claims that are neither confirmed nor released
        self._confirmations = Confirmations(self._write)

    @property
    def where(self) -> str:
        return f"{self._where} ({self._namespace})"

    def _key(self, name: str) -> bytes:
        return f"{self._prefix}{name}".encode()

    def _id_key(self, page_id: str) -> bytes:
        digest = hashlib.blake2b(page_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return self._key("i:") + digest

    async def _open(self) -> None:
        self._scripts = {
            verb: self._client.register_script(files("dedup.index").joinpath(f"lua/{verb}.lua").read_bytes())
            for verb in ("open", "claim", "confirm", "release", "renew")
        }
        with self._errors():
            async with asyncio.timeout(2 * DEADLINE):
                await self._check_server()
                stored = await self._open_header()
        self.adopt(stored)
        self._digest = stored["digest"]
        self._bucket_bits = int(stored["bucket_bits"])
        await self._call("renew", [self._key("runs")], [self.run, LEASE_MS])
        self._lease = asyncio.create_task(self._keep_lease())

    async def _check_server(self) -> None:
        """Refuses a server that may lose parts of the index, warns of one that may lose all."""
        info: dict[str, Any] = {}
        for section in ("server", "memory", "persistence"):
            with suppress(exceptions.NoPermissionError):
                info |= await self._client.info(section)
        version = str(info.get("redis_version", "6.2"))
        if tuple(int(part) for part in version.split(".")[:2]) < (6, 2):
            raise IndexMismatchError(f"{self._where} is Redis {version}; 6.2 or newer is needed")
        policy = info.get("maxmemory_policy", "")
        if policy and policy != "noeviction":
            raise IndexMismatchError(
                f"{self._where} has maxmemory-policy {policy!r}, under which Redis silently drops parts of an "
                "index; set it to 'noeviction' (CONFIG SET maxmemory-policy noeviction)"
            )
        if not policy:
            logger.warning("Can't see the maxmemory-policy of %s; it has to be 'noeviction'", self._where)
        if info.get("aof_enabled") == 0:
            logger.warning("%s has appendonly off: the index is lost if that server crashes", self._where)

    async def _open_header(self) -> dict[str, str]:
        bits = math.ceil(math.log2(max(1, self.expected_pages / BUCKET_PAGES)))
        prefix = min(table.prefix for table in self.plan.tables)
        wanted = self.parameters | {
            "bucket_bits": str(min(max(MIN_PREFIX, bits), prefix)),
            "created": uuid4().hex,
        }
        digest = hashlib.blake2b(repr(sorted(wanted.items())).encode(), digest_size=8).hexdigest()
        flat = [text for item in (wanted | {"digest": digest}).items() for text in item]
        try:
            reply = await self._scripts["open"](keys=[self._key("header")], args=flat)
        except exceptions.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise IndexMismatchError(
                f"{self._key('header')!r} in {self._where} is not the header of an index"
            ) from None
        texts = [text.decode("utf-8", "replace") for text in reply]
        stored = dict(zip(texts[::2], texts[1::2], strict=True))
        if not {"digest", "bucket_bits", "tables"} <= stored.keys():
            raise IndexMismatchError(
                f"{self._key('header')!r} in {self._where} is not the header of an index"
            )
        return stored

    def _probes(self, entry: Entry) -> Iterator[tuple[bytes, int, int, int]]:
        """Per table: the bucket's key, the lowest and highest score of the prefix, the entry's own score."""
        below = 64 - self._bucket_bits
        rest = (1 << below) - 1
        keys = entry.keys
        for number, table in enumerate((DIGESTS, *self.plan.tables)):
            permuted = table.permute(keys[table.column])
            low, high = table.prefix_range(permuted)
            yield self._key(f"t:{number}:{permuted >> below:x}"), low & rest, high & rest, permuted & rest

    async def _claim(self, entry: Entry) -> Verdict:
        probes = list(self._probes(entry))
        names = ("sequence", "runs", "pending")
        keys = [self._key("header"), self._id_key(entry.page_id), *map(self._key, names)]
        detector = self.detector
        arguments: list[Any] = [
            self._digest,
            self.run,
            detector.radius,
            repr(float(detector.min_resemblance)),
            detector.features.bits,
            self._key("p:"),
            pack(entry),
        ]
        for _, low, high, own in probes:
            arguments += (low, high, own)
        reply = await self._call("claim", keys + [probe[0] for probe in probes], arguments)
        match reply:
            case [b"new"] | [b"same"]:
                if entry.page_id not in self._confirmations:
                    self._pending.setdefault(entry.page_id, entry)
                return Verdict("new" if reply == [b"new"] else "same")
            case [b"duplicate", int(either), int(both), int(equal), bytes(record)]:
                alike = estimate(either, both, equal, bits=detector.features.bits)
                return self._duplicate(entry, unpack(record), alike)
            case [b"gone"]:
                raise IndexMismatchError(
                    f"the index {self.where} has vanished or was replaced while it was in use"
                )
        raise IndexUnavailableError(f"{self._where} gave an answer that is none of an index")

    async def confirm(self, page_id: str) -> None:
        if self._pending.pop(page_id, None) is None:
            return
        self._confirmations.add(page_id)

    async def _write(self, batch: list[str]) -> None:
        for start in range(0, len(batch), CONFIRM_PAGES):
            some = batch[start : start + CONFIRM_PAGES]
            await self._call("confirm", [self._key("pending"), *map(self._id_key, some)])

    async def release(self, page_id: str) -> None:
        entry = self._pending.pop(page_id, None)
        if entry is None:
            return
        keys = [self._key("pending"), self._key("released"), self._id_key(page_id)]
        keys += [probe[0] for probe in self._probes(entry)]
        await self._call("release", keys, [self.run, self._key("p:")])

    async def find(self, page_id: str) -> Entry | None:
        await self.open()
        with self._errors():
            number = await self._client.get(self._id_key(page_id))
            record = await self._client.get(self._key(f"p:{int(number)}")) if number else None
        return unpack(bytes(record)) if isinstance(record, bytes) else None

    async def count(self) -> int:
        await self.open()
        with self._errors():
            given, released = await self._client.mget(self._key("sequence"), self._key("released"))
            return int(given or 0) - int(released or 0)

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(LEASE_MS / 3000)
            with suppress(DedupError):
                await self._call("renew", [self._key("runs")], [self.run, LEASE_MS])

    async def close(self) -> None:
        try:
            if self._opened:
                self._lease.cancel()
                await self._confirmations.close()
                for page_id in list(self._pending):
                    await self.release(page_id)
                await self._call("renew", [self._key("runs")], [self.run, 0])
        finally:
            self._opened = False
            await self._client.aclose()
            await self._pool.disconnect()

    async def _call(self, verb: str, keys: list[bytes], arguments: Sequence[Any] = ()) -> Any:
        """What a script answers; raises `IndexUnavailableError` if it doesn't in time."""
        with self._errors():
            async with asyncio.timeout(DEADLINE):
                return await self._scripts[verb](keys=keys, args=arguments)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the client raises, as ours; the texts hold no password."""
        try:
            yield
        except exceptions.AuthenticationError:
            raise IndexUnavailableError(f"{self._where} refuses the user or password") from None
        except (exceptions.RedisError, OSError) as error:
            what = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise IndexUnavailableError(f"the index {self._where} can't be reached: {what}") from None
