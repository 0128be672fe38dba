"""A Redis server: its scripts, what it says of itself, and its errors as those of this library."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint import fingerprint
from dedup.index import weighing
from dedup.index.redis import buckets
from dedup.index.redis.record import layout
from dedup.index.redis.trips import Trips
from dedup.printing import printable, redact
from dedup.settings import SETTINGS

__all__ = ["Server"]

#: Connections of one crawler: those of its claims, and those of all else, which so never waits for claims.
CLAIMS, OTHERS = 16, 4
#: Seconds to wait for a connection, or an answer.
TIMEOUT = 2.0
#: Seconds for one call in all, retries included.
DEADLINE = 4.0
#: In how many steps that time passes: see `deadline`.
STEPS = 8
#: Keys asked for by one SCAN.
SCAN = 1000
#: The scripts of a claim, whose calls share round trips.
TRIPS = ("look", "file")
#: The scripts, each in a file under lua/.  Before the text of each stands what it needs: the layout of a
#: record, the limits of a claim, and known.lua, which tells whether the index is still the one that was opened;
#: tables.lua looks pages up and files them; bits.lua compares simhashes.
VERBS = {
    "open": (),
    **dict.fromkeys(("renew", "learn"), ("layout", "known")),
    **dict.fromkeys(
        ("confirm", "release", "state", "add", "forget"), ("layout", "limits", "known", "tables")
    ),
    "look": ("layout", "limits", "known", "tables", "bits", "apart"),
    "file": ("layout", "limits", "known", "tables", "bits"),
}
#: Numbers that the scripts have from here, by the modules that define them.
LIMITS = {
    buckets: ("MAX_EXACT", "MAX_HERE", "MAX_WHOLE"),
    weighing: ("MAX_EQUAL", "MAX_LOOKED", "MAX_RARE"),
    fingerprint: ("RARE",),
}
#: What Redis says of a user who may not do what an index needs.
LACKING = re.compile(r"no permissions|can't run this command|NOPERM")
#: The command that it names, and where in which script a command was.
COMMAND, PLACE = re.compile(r"the '([\w|]+)' command"), re.compile(r"([0-9a-f]{40}).*@user_script:(\d+)")
#: What a script says that finds no number for one more page.
FULL = "all numbers of this index are given out"
#: What Redis says of a key that holds something else than an index does.
DAMAGE = re.compile(r"WRONGTYPE|not an integer|attempt to |bad argument|too short")


@asynccontextmanager
async def deadline(seconds: float) -> AsyncIterator[None]:
    """Raises TimeoutError if what is within takes longer.

    The time passes in steps, and for as long as the event loop is busy with other pages, no further step is taken:
    an answer that has come meanwhile is read before it counts as missing.
    """
    loop, timer = asyncio.get_running_loop(), None
    async with asyncio.timeout(None) as limit:

        def step(left: int) -> None:
            nonlocal timer
            if left:
                timer = loop.call_later(seconds / STEPS, step, left - 1)
            else:
                limit.reschedule(loop.time())

        step(STEPS)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()


class Server:
    """A server at an address.  Nothing is connected before the first call."""

    def __init__(self, address: str) -> None:
        """Raises `SettingsError` for an address that can't be one."""
        try:
            self._pool = pool_of(address, Retry(ExponentialBackoff(cap=0.5, base=0.05), 2))
            database = "" if address.startswith("unix:") else urlsplit(address).path.strip("/")
        except (ValueError, TypeError, exceptions.RedisError):  # whose text may hold the password
            refusal = SETTINGS["index"].refusal
            raise refusal(redact(address), "which is malformed or has an unknown option") from None
        if database and not database.isdecimal():  # the client would take the database 0
            raise SETTINGS["index"].refusal(redact(address), "whose database is not a number")
        self.where = redact(address)
        self.client: Any = aioredis.Redis(connection_pool=self._pool)
        self._texts = dict[str, bytes]()  # of scripts, by their SHA-1
        self._scripts = {verb: self.script(source(verb)) for verb in VERBS if verb not in TRIPS}
        scripts = {verb: self.script(source(verb)).script for verb in TRIPS}
        self._trips = Trips(scripts, self._pool.make_connection, lambda: deadline(DEADLINE))
        self._claims, self._others = asyncio.Semaphore(CLAIMS), asyncio.Semaphore(OTHERS)
        self._answered = 0.0  # when a turn last ended well
        self._silent, self._trouble = 0.0, ""  # when one has shown that nobody answers, and why

    def script(self, text: bytes) -> Any:
        """A script that can be called."""
        script = self.client.register_script(text)
        self._texts[script.sha] = text
        return script

    @asynccontextmanager
    async def turn(self, *, claiming: bool = False) -> AsyncIterator[None]:
        """Waits for one of our connections: first come, first served, for as long as the server answers others.

        Whatever an open index asks, it asks within a turn; no turn is asked for within another.  Raises
        `IndexUnavailableError` if meanwhile a whole turn of another has failed, and none has ended well since
        that began: then all who wait are told at once.
        """
        asked = time.monotonic()
        async with self._claims if claiming else self._others:
            if self._silent > max(asked, self._answered):
                raise IndexUnavailableError(self._trouble)
            began = time.monotonic()
            try:
                yield
            except IndexUnavailableError as error:
                if self._answered < began:
                    self._silent, self._trouble = time.monotonic(), str(error)
                raise
            self._answered = time.monotonic()

    async def run(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        """Runs a script, and returns its answer; claims share trips.

        A script that the server has forgotten is loaded again; after a lost connection it is called again, and so it is
        once if the server has become a replica: the address may lead to another master by now.
        """
        with self.errors():
            try:
                return await self._run(verb, keys, arguments)
            except exceptions.ReadOnlyError:
                await self.disconnect()
                return await self._run(verb, keys, arguments)

    async def _run(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        if verb in TRIPS:
            return await self._trips.call(verb, keys, arguments)
        async with deadline(DEADLINE):
            while True:
                with suppress(exceptions.NoScriptError):  # flushed between its loading and its call
                    return await self._scripts[verb](keys=list(keys), args=list(arguments))

    async def settle(self) -> None:
        """Waits for the claims that are under way: cancelled ones, too, have then been made, or never will be."""
        await self._trips.settle()

    async def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The texts at some keys, read on the trips of claims."""
        with self.errors():
            answer = list(await self._trips.ask(b"MGET", *keys))
            if len(answer) != len(keys) or not all(isinstance(text, bytes | None) for text in answer):
                raise ValueError("an answer to another question")
            return answer

    async def ask(self, commands: Iterable[Sequence[Any]], *, together: bool = False) -> list[Any]:
        """Answers to commands, None where a key is of another type; all of one moment if ``together``."""
        with self.errors():
            async with self.client.pipeline(transaction=together) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                answers = await pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
                    raise answer
        return [None if isinstance(answer, Exception) else answer for answer in answers]

    async def scan(self, start: bytes) -> AsyncIterator[list[bytes]]:
        """The names of all keys that begin with ``start``, in batches; some may come twice."""
        async for keys in self._scan(self.client, start):
            yield keys

    async def _scan(self, client: Any, start: bytes) -> AsyncIterator[list[bytes]]:
        pattern = re.sub(rb"([*?\[\]\\^-])", rb"\\\1", start) + b"*"
        cursor = 0
        while True:
            with self.errors():
                cursor, keys = await client.scan(cursor, match=pattern, count=SCAN)
            yield keys
            if cursor == 0:
                return

    async def check(self) -> dict[str, Any]:
        """What the server says of itself; raises `IndexMismatchError` if it may lose parts of an index."""
        info: dict[str, Any] = {}
        with self.errors():
            async with deadline(DEADLINE):
                for section in ("server", "memory", "persistence", "replication"):
                    with suppress(exceptions.NoPermissionError):
                        info |= await self.client.info(section)
        self.accept(info)
        return info

    def accept(self, info: Mapping[str, Any]) -> None:
        """Raises `IndexMismatchError` if a server that says this of itself may lose parts of an index."""
        version = str(info.get("redis_version", "6.2"))
        if tuple(int(part) for part in version.split(".")[:2]) < (6, 2):
            raise IndexMismatchError(f"{self.where} is Redis {version}; 6.2 or newer is needed")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise IndexMismatchError(
                f"{self.where} has maxmemory-policy {policy!r}, under which Redis silently drops parts of an "
                "index; set it to 'noeviction' (CONFIG SET maxmemory-policy noeviction)"
            )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what the client raises into errors of this library, whose texts hold no password."""
        try:
            yield
        except DedupError:
            raise
        except exceptions.MovedError:
            raise IndexMismatchError(
                f"{self.where} is a node of a cluster; the address of an index over a cluster begins with redis+cluster://"
            ) from None
        except exceptions.AuthenticationError:
            raise IndexUnavailableError(f"{self.where} refuses the user or password") from None
        except Exception as error:  # noqa: BLE001 (garbage from the network makes the client raise anything)
            what = printable(str(error).splitlines()[0]) if str(error) else type(error).__name__
            if DAMAGE.search(what):
                raise IndexCorruptError(f"the index in {self.where} is damaged: {what}") from None
            if FULL in what:
                raise IndexUnavailableError(
                    f"the index {self.where} is full: {FULL}; start another one"
                ) from None
            if LACKING.search(what):
                raise IndexUnavailableError(
                    f"the user for {self.where} lacks the right {self._lacking(what)}; docs/reliability.md has the lines "
                    "that give what each feature needs"
                ) from None
            raise IndexUnavailableError(f"the index {self.where} can't be reached: {what}") from None

    def _lacking(self, what: str) -> str:
        """The right that is missing, as Redis says it: of a command in a script, it names the line only."""
        if named := COMMAND.search(what):
            return f"+{named[1]}"
        if "key" in what or not (place := PLACE.search(what)):
            return f"to these keys: {what.partition(' script: ')[0]}"
        lines = self._texts.get(place[1], b"").decode().splitlines()
        calls = re.findall(r"call\('(\w+)'", "".join(lines[int(place[2]) - 1 : int(place[2])]))
        return " ".join(f"+{call.lower()}" for call in calls) or what

    async def disconnect(self) -> None:
        """Lets go of all connections; the next call makes new ones."""
        await self._trips.disconnect()
        await self._pool.disconnect()

    async def close(self) -> None:
        """Lets go of the server."""
        await self.settle()
        await self.client.aclose()
        await self.disconnect()


@cache
def bits_apart() -> str:
    """In how many bits any two octets differ, as digits: 64 KB, which a script has at hand and can't compute in time."""
    return "".join(str((a ^ b).bit_count()) for a in range(256) for b in range(256))


def pool_of(address: str, retry: Retry) -> aioredis.BlockingConnectionPool:
    """Connections to a server; none is made yet.

    Raises an error of the client, ValueError or TypeError for an address that can't be one.
    """
    # Older clients check only who signed a certificate, not whose it is.
    secure = {"ssl_check_hostname": True} if address.startswith("rediss:") else {}
    pool = aioredis.BlockingConnectionPool.from_url(
        address,
        max_connections=CLAIMS + OTHERS,
        timeout=TIMEOUT,
        socket_timeout=TIMEOUT,
        socket_connect_timeout=TIMEOUT,
        retry=retry,
        retry_on_error=[exceptions.ConnectionError, exceptions.TimeoutError],
        **secure,
    )
    if pool.connection_kwargs.get("decode_responses"):
        raise ValueError
    pool.make_connection()  # type: ignore[no-untyped-call]  # checks the options that the address names
    return pool


def limits() -> str:
    """The limits of a look, as Lua; the same as in the other stores."""
    numbers = (
        f"local {name} = {getattr(module, name)!r}\n" for module, names in LIMITS.items() for name in names
    )
    return "".join(numbers)


def source(verb: str) -> bytes:
    """The text of a script, with what it needs before it."""
    lua = files("dedup.index.redis") / "lua"
    generated = {"layout": layout(), "limits": limits(), "apart": f"local BITS_APART = '{bits_apart()}'\n"}
    texts = (generated.get(part) or (lua / f"{part}.lua").read_text("utf-8") for part in (*VERBS[verb], verb))
    return "".join(texts).encode()
