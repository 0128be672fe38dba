"""A Redis server: its scripts, what it says of itself, and its errors as those of this library."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.redis.scripts import TRIPS, VERBS, source
from dedup.index.redis.trips import Trips
from dedup.printing import printable, redact
from dedup.settings import SETTINGS

#: Connections of one crawler: those of its claims, and those of all else, which so never waits for claims.
CLAIMS, OTHERS = 16, 4
#: Seconds to wait for a connection, or an answer.
TIMEOUT = 2.0
#: Seconds for one call in all, retries included.
DEADLINE = 4.0
#: That time passes in this many steps: see `deadline`.
STEPS = 8
#: Keys asked for by one SCAN.
SCAN = 1000
#: What Redis says of a user who may not do what an index needs.
LACKING = re.compile(r"no permissions|can't run this command|NOPERM")
#: The command that it names, and where in which script a command was.
COMMAND, PLACE = re.compile(r"the '([\w|]+)' command"), re.compile(r"([0-9a-f]{40}).*@user_script:(\d+)")
#: What a script says that finds no number for one more page.
FULL = "all numbers of this index are given out"
#: What Redis says of a key that holds something else than an index does.
DAMAGE = re.compile(r"WRONGTYPE|not an integer|attempt to |bad argument|too short")
T = TypeVar("T")


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

    def __init__(self, address: str, *, shown: str = "") -> None:
        """Raises `SettingsError` for an address that can't be one; ``shown`` is what the user has called it."""
        self.where = redact(shown or address)
        self._texts = dict[str, bytes]()  # of scripts, by their SHA-1
        self._claims, self._others = asyncio.Semaphore(CLAIMS), asyncio.Semaphore(OTHERS)
        self._answered = 0.0  # when a turn last ended well
        self._silent, self._trouble = 0.0, ""  # when one has shown that nobody answers, and why
        with self._well_formed(shown or address):
            self._pool = pool_of(address, Retry(ExponentialBackoff(cap=0.5, base=0.05), 2))
            database = "" if address.startswith("unix:") else urlsplit(address).path.strip("/")
        if database and not database.isdecimal():  # the client would take the database 0
            raise SETTINGS["index"].refusal(self.where, "whose database is not a number")
        self.client: Any = aioredis.Redis(connection_pool=self._pool)
        self._scripts = {verb: self.script(source(verb)) for verb in VERBS}
        scripts = [self._scripts[verb] for verb in TRIPS]
        self._trips = Trips(scripts, self._pool.make_connection, lambda: deadline(DEADLINE))

    @staticmethod
    @contextmanager
    def _well_formed(address: str) -> Iterator[None]:
        """Raises `SettingsError` for an address that can't be read."""
        try:
            yield
        except (ValueError, TypeError, exceptions.RedisError) as error:  # whose text may hold the password
            if isinstance(error, DedupError):
                raise
            refusal = SETTINGS["index"].refusal
            raise refusal(redact(address), "which is malformed or has an unknown option") from None

    def script(self, text: bytes) -> Any:
        """Returns a script that can be called."""
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

        A script that the server has forgotten is loaded again, and after a lost connection it is called again.
        """
        with self.errors():
            return await self._again(lambda: self._run(verb, keys, arguments))

    async def _again(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Makes a call; again if the server has become a replica: the address may lead to another master by now."""
        try:
            return await attempt()
        except exceptions.ReadOnlyError:
            await self.disconnect()
            return await attempt()

    async def _run(self, verb: str, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        if verb in TRIPS:
            return await self._trips.ask(b"EVALSHA", self._scripts[verb].sha, len(keys), *keys, *arguments)
        async with deadline(DEADLINE):
            while True:
                with suppress(exceptions.NoScriptError):  # flushed between its loading and its call
                    return await self._scripts[verb](keys=list(keys), args=list(arguments))

    async def settle(self) -> None:
        """Waits for the claims that are under way.  Cancelled ones, too, have then been made or never will be."""
        await self._trips.settle()

    async def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the texts at some keys, read on the trips of claims."""
        with self.errors():
            answer = list(await self._again(lambda: self._trips.ask(b"MGET", *keys)))
            if len(answer) != len(keys) or not all(isinstance(text, bytes | None) for text in answer):
                raise ValueError("an answer to another question")
            return answer

    async def ask(self, commands: Iterable[Sequence[Any]], *, together: bool = False) -> list[Any]:
        """Returns the answers to commands, None where a key is of another type; all of one moment if ``together``."""
        asked = list(commands)
        with self.errors():
            return await self._again(lambda: self._ask(asked, together))

    async def _ask(self, commands: Sequence[Sequence[Any]], together: bool) -> list[Any]:
        async with self.client.pipeline(transaction=together) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            answers = await pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
                raise answer
        return [None if isinstance(answer, Exception) else answer for answer in answers]

    async def scan(self, start: bytes) -> AsyncIterator[list[bytes]]:
        """Yields the names of all keys that begin with ``start``, in batches; some may come twice."""
        pattern = re.sub(rb"([*?\[\]\\^-])", rb"\\\1", start) + b"*"
        cursor = 0
        with self.errors():
            await self._again(self.client.ping)  # a cursor is of one server, so no later call is made again
        while True:
            with self.errors():
                cursor, keys = await self.client.scan(cursor, match=pattern, count=SCAN)
            yield keys
            if cursor == 0:
                return

    async def _says(self) -> dict[str, Any]:
        async with deadline(DEADLINE):
            try:
                return dict(await self.client.info())
            except exceptions.NoPermissionError:
                return {}

    async def check(self) -> dict[str, Any]:
        """Returns what the server says of itself; raises `IndexMismatchError` if it may lose parts of an index."""
        with self.errors():
            info = await self._again(self._says)
        version = str(info.get("redis_version", "6.2"))
        if tuple(int(part) for part in version.split(".")[:2]) < (6, 2):
            raise IndexMismatchError(f"{self.where} is Redis {version}; 6.2 or newer is needed")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise IndexMismatchError(
                f"{self.where} has maxmemory-policy {policy!r}, under which Redis silently drops parts of an "
                "index; set it to 'noeviction' (CONFIG SET maxmemory-policy noeviction)"
            )
        return info

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
        """Returns the right that is missing, as Redis says it: of a command in a script, it names the line only."""
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
