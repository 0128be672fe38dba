"""Everything that Redis can do to an index in mid-run: what is certain is answered, the rest is an error of ours.

An error is by class what ON_INDEX_FAILURE acts on: `IndexUnavailableError` passes, the others do not.
"""

import asyncio
import os
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from dedup.errors import DedupError, IndexMismatchError, IndexUnavailableError
from dedup.index import Index
from dedup.index.redis.client import deadline, pool_of
from dedup.index.redis.trips import Trips
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.redis import Line, Server
from tests.support.stores import opened, until_done
from tests.support.waiting import LIMIT, until, wait_until

SEED = 5


#: A call to a sound server gives up, and a lease ends, as late as a busy machine may need.
pytestmark = pytest.mark.usefixtures("patience", "long_leases")


@contextmanager
def impatience(seconds: float = 0.3) -> Iterator[None]:
    """Meanwhile calls give up sooner than they would: they can't succeed, and the tests shall not take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dedup.index.redis.client.DEADLINE", seconds)
        yield


def pages(count: int, seed: int = SEED) -> list[int]:
    """Simhashes that are far from one another."""
    rng = random.Random(seed)
    return [rng.getrandbits(64) for _ in range(count)]


async def file_all(index: Index, simhashes: list[int], start: int = 0) -> list[str]:
    """Claims and confirms pages; what each claim said."""
    said = []
    for number, simhash in enumerate(simhashes, start):
        said.append((await index.claim(f"{number}", f"http://{number}/", fingerprint_of(simhash))).status)
        await index.confirm(f"{number}")
    return said


# --- Another index than before, under the same name -------------------------------------------------


def emptied(server: Server, old: bytes) -> None:
    server.client.flushall()


def made_anew(server: Server, old: bytes) -> None:
    server.client.flushall()

    async def claim_something() -> None:
        async with opened(server.address) as other:
            await file_all(other, pages(50, seed=1))

    asyncio.run(claim_something())


def set_back(server: Server, old: bytes) -> None:
    """An older RDB file is put in the place of the data."""
    server.kill()
    for left in server.socket.parent.glob("appendonlydir/*"):
        left.unlink()
    (server.socket.parent / "dump.rdb").write_bytes(old)
    server.start("--appendonly", "no")


def without_counter(server: Server, old: bytes) -> None:
    server.client.delete("shingleback:{test}:sequence")


@pytest.mark.parametrize("fault", [emptied, made_anew, set_back, without_counter])
@driven
async def test_an_index_emptied_replaced_or_set_back_is_never_written_to(
    server: Server,
    fault: Callable[[Server, bytes], None],
) -> None:
    async with opened(server.address) as index:
        await file_all(index, pages(20))
        await until_done(index, [str(number) for number in range(20)])
        server.client.save()
        old = (server.socket.parent / "dump.rdb").read_bytes()
        await file_all(index, pages(40)[20:], 20)
        await until_done(index, [str(number) for number in range(40)])
        await asyncio.to_thread(fault, server, old)
        there = server.contents()
        for number, simhash in enumerate(pages(60)[40:], 40):
            with pytest.raises(IndexMismatchError, match=r"vanished|set back"):
                await index.claim(f"{number}", f"http://{number}/", fingerprint_of(simhash))
        await index.confirm("39")
        await index.release("39")
        assert server.contents() == there, "something was written into an index that is not ours"


@pytest.mark.parametrize("change", ["confirm", "release", "forget"])
@driven
async def test_a_server_that_has_lost_a_change_but_no_page_is_noticed(server: Server, change: str) -> None:
    """As a replica may have that lagged behind before it was promoted: copies of the page would be dropped for it."""
    async with opened(server.address) as index, opened(server.address) as other:
        await index.claim("a", "http://a/", fingerprint_of(1))
        server.client.save()
        old = (server.socket.parent / "dump.rdb").read_bytes()
        await getattr(index, change)(["a"] if change == "forget" else "a")
        if change == "confirm":
            await until_done(index, ["a"])
        await asyncio.to_thread(set_back, server, old)
        with pytest.raises(IndexMismatchError, match="set back"):
            await index.claim("b", "http://b/", fingerprint_of(1))
        assert (
            await other.claim("b", "http://b/", fingerprint_of(1))
        ).of == "http://a/"  # it has seen nothing else


@driven
async def test_a_crawl_that_starts_on_an_index_set_back_goes_on_with_what_it_holds(server: Server) -> None:
    async with opened(server.address) as index:
        await file_all(index, pages(20))
    server.client.save()
    old = (server.socket.parent / "dump.rdb").read_bytes()
    async with opened(server.address) as index:
        await file_all(index, pages(40)[20:], 20)
    set_back(server, old)
    async with opened(server.address) as index:
        assert await file_all(index, pages(40)) == ["same"] * 20 + ["new"] * 20


# --- A server that refuses --------------------------------------------------------------------------


def out_of_memory(server: Server) -> Callable[[], object]:
    server.client.config_set("maxmemory", "1")
    return lambda: server.client.config_set("maxmemory", "0")


def read_only(server: Server) -> Callable[[], object]:
    server.client.replicaof("127.0.0.1", "1")
    return lambda: server.client.replicaof("NO", "ONE")


def too_few_replicas(server: Server) -> Callable[[], object]:
    server.client.config_set("min-replicas-to-write", "1")
    return lambda: server.client.config_set("min-replicas-to-write", "0")


def can_not_save(server: Server) -> Callable[[], object]:
    """MISCONF: the last snapshot failed."""
    (server.socket.parent / "dump.rdb").mkdir()
    server.client.config_set("save", "3600 1")
    server.client.bgsave()
    wait_until(lambda: server.client.info("persistence")["rdb_last_bgsave_status"] == "err")

    def repair() -> None:
        server.client.config_set("save", "")
        (server.socket.parent / "dump.rdb").rmdir()
        server.client.bgsave()
        wait_until(lambda: server.client.info("persistence")["rdb_last_bgsave_status"] == "ok")

    return repair


def asleep(server: Server) -> Callable[[], object]:
    server.client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
    return lambda: server.client.execute_command("CLIENT", "UNPAUSE")


def busy(server: Server) -> Callable[[], object]:
    """A script of someone else runs for ever."""
    server.client.config_set("busy-reply-threshold", "50")
    other = server.client.connection_pool.make_connection()
    other.connect()
    other.send_command("EVAL", "while true do end", "0")
    wait_until(server.is_busy)

    def repair() -> None:
        server.client.script_kill()
        with suppress(redis.ResponseError):  # the script's own error
            other.read_response()
        other.disconnect()

    return repair


def gone(server: Server) -> Callable[[], object]:
    server.kill()
    return server.start


def frozen(server: Server) -> Callable[[], object]:
    """SIGSTOP: it accepts connections and never answers."""
    server.process.send_signal(19)
    return lambda: server.process.send_signal(18)


FAULTS = [out_of_memory, read_only, too_few_replicas, can_not_save, asleep, busy, gone, frozen]


@pytest.mark.parametrize("fault", FAULTS)
@driven
async def test_a_server_that_refuses_is_waited_for_and_nothing_is_half_done(
    server: Server,
    fault: Callable[[Server], Callable[[], object]],
) -> None:
    async with opened(server.address) as index:
        await file_all(index, pages(5))
        await until_done(index, [str(number) for number in range(5)])
        before = server.contents()
        repair = fault(server)
        with impatience():
            for number, simhash in enumerate(pages(7)[5:], 5):
                with pytest.raises(IndexUnavailableError):
                    await index.claim(f"{number}", f"http://{number}/", fingerprint_of(simhash))
        repair()
        if fault not in {asleep, frozen}:  # in which it may read what it was sent before, and late
            assert server.contents() == before
        said = await file_all(index, pages(10))
        assert said[:5] == ["same"] * 5
        assert set(said[5:7]) <= {"new", "same"}
        assert said[7:] == ["new"] * 3
        assert await index.count() == 10


@driven
async def test_a_stalled_server_does_not_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.index.redis.client.TIMEOUT", 3.0)
    async with opened(server.address) as index:
        await file_all(index, pages(2))
        repair = frozen(server)
        try:
            with pytest.raises(IndexUnavailableError, match="no answer for 3 seconds"):
                await index.claim("2", "http://2/", fingerprint_of(pages(3)[2]))
        finally:
            repair()


@driven
async def test_a_connection_that_is_cut_while_it_is_made_is_made_again_and_closed(server: Server) -> None:
    """As when a claim learns from another one's failure that the slot of its index is elsewhere."""
    pool = pool_of(server.address, Retry(NoBackoff(), 2))
    made = list[Any]()

    def connect() -> Any:
        made.append(pool.make_connection())
        return made[-1]

    trips = Trips([], connect, lambda: deadline(LIMIT))
    thaw = frozen(server)
    asked = asyncio.create_task(trips.ask("PING"))
    try:
        await until(lambda: made and made[0].is_connected)
        await trips.disconnect()
    finally:
        thaw()
    assert await asked == b"PONG"
    await trips.disconnect()
    assert [connection.is_connected for connection in made] == [False]


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.slow)])
@driven
async def test_scripts_flushed_and_connections_killed_change_nothing(server: Server, times: int) -> None:
    rng, simhashes, said = random.Random(SEED), list[int](), list[str]()

    def kill_connections() -> None:
        server.client.client_kill_filter(_type="normal", skipme=True)

    def has_gone_on(since: int) -> bool:
        return len(said) > since

    async def disturb() -> None:
        for harm in (server.client.script_flush, kill_connections) * times:
            # A claim that is cut off three times gives up, and on a busy machine it may last for long.
            await until(partial(has_gone_on, len(said)))
            await asyncio.sleep(rng.random() / 200)
            harm()

    async with opened(server.address) as index:
        disturbing = asyncio.create_task(disturb())
        while not disturbing.done():
            simhashes.append(rng.getrandbits(64))
            said += await file_all(index, simhashes[-1:], len(said))
        await disturbing
        assert set(said) <= {"new", "same"}  # same: the answer to its first claim was lost
        assert await file_all(index, simhashes) == ["same"] * len(simhashes)


@driven
async def test_a_server_that_is_loading_its_data_is_waited_for(server: Server) -> None:
    async with opened(server.address) as index:
        await file_all(index, pages(5))
        await until_done(index, [str(number) for number in range(5)])
        server.client.mset({f"ballast:{number}": os.urandom(1_500) for number in range(2_000)})
        server.client.save()
        server.kill()
        # Until it is told otherwise, it takes a twentieth of a second for each key of its file.
        slow = ("--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024")
        server.start("--appendonly", "no", *slow, loaded=False)
        with pytest.raises(IndexUnavailableError, match=r"(?i)loading"):
            await index.claim("5", "http://5/", fingerprint_of(pages(6)[5]))
        server.client.config_set("key-load-delay", "0")

        async def goes_on() -> bool:
            with suppress(IndexUnavailableError):
                assert await file_all(index, pages(6)) == ["same"] * 5 + ["new"]
                return True
            return False

        await until(goes_on)


# --- A line that garbles ----------------------------------------------------------------------------


class Garbler(Line):
    """Does something to replies, for as long as it is told to."""

    def __init__(self, server: Path) -> None:
        super().__init__(server)
        self.change: Callable[[bytes], list[bytes]] = lambda reply: [reply]
        self.garbled = 0

    async def reply(self, reply: bytes) -> list[bytes | None]:
        parts = self.change(reply)
        self.garbled += parts != [reply]
        return [*parts]


@asynccontextmanager
async def garbling(server: Path, namespace: str) -> AsyncIterator[tuple[Index, Garbler]]:
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        garbler = Garbler(server)
        proxy = Path(folder, "proxy.sock")
        async with garbler.listening(proxy), opened(f"unix://{proxy}", namespace) as index:
            await file_all(index, pages(1))
            yield index, garbler
            garbler.change = lambda reply: [reply]


GARBAGE: dict[str, Callable[[bytes, random.Random], list[bytes]]] = {
    "one byte at a time": lambda reply, rng: [reply[at : at + 1] for at in range(len(reply))],
    "a flipped bit": lambda reply, rng: [flip(reply, rng)],
    "a word that is no state": lambda reply, rng: [reply.replace(b"absent", b"abse.t")],
    "random bytes": lambda reply, rng: [rng.randbytes(len(reply)) + b"\r\n"],
    "nil": lambda reply, rng: [b"$-1\r\n"],
    "an empty list": lambda reply, rng: [b"*0\r\n"],
    "a number": lambda reply, rng: [b":1\r\n"],
    "an endless list": lambda reply, rng: [b"*10000000\r\n", b":1\r\n"],
    "an endless text": lambda reply, rng: [b"$536870912\r\n", b"x" * 1000],
    "a list in lists": lambda reply, rng: [b"*1\r\n" * 50 + b":1\r\n"],
    "the answer to another question": lambda reply, rng: [b"*3\r\n$1\r\n0\r\n:1\r\n$4\r\nsame\r\n"],
    "a duplicate of a foreign record": lambda reply, rng: [
        b"*7\r\n$1\r\n0\r\n:1\r\n$9\r\nduplicate\r\n:1\r\n:1\r\n:1\r\n$3\r\nabc\r\n"
    ],
    "an HTTP server": lambda reply, rng: [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    "an unknown error": lambda reply, rng: [b"-WHATEVER it is\r\n"],
}


def flip(reply: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(reply))
    return reply[:at] + bytes([reply[at] ^ 1 << rng.randrange(8)]) + reply[at + 1 :]


@pytest.mark.parametrize("trials", [2, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", GARBAGE)
@driven
async def test_garbled_answers_drop_none(redis_socket: Path, namespace: str, kind: str, trials: int) -> None:
    rng = random.Random(SEED)
    async with garbling(redis_socket, namespace) as (index, garbler):
        for number, simhash in enumerate(pages(trials + 1)[1:], 1):
            garbler.change = lambda reply: GARBAGE[kind](reply, rng)
            with suppress(DedupError), impatience():
                verdict = await index.claim(f"{number}", f"http://{number}/", fingerprint_of(simhash))
                assert verdict.status in {"new", "same"}, verdict
            garbler.change = lambda reply: [reply]
            await index._server.disconnect()  # type: ignore[attr-defined]
            try:
                verdict = await index.claim(f"{number}", f"http://{number}/", fingerprint_of(simhash))
                assert verdict.status in {"new", "same"}, verdict
            except IndexMismatchError:  # the bit was one of the number that says how far the index has come
                assert kind == "a flipped bit"
                index._session._seen = 0  # type: ignore[attr-defined]
        assert garbler.garbled >= trials


@driven
async def test_a_policy_set_right_again_is_noticed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.index.redis.session.LEASE_MS", 600)
    async with opened(server.address) as index:

        async def is_refused() -> bool:
            try:
                await index.states(["a"])
            except IndexMismatchError:
                return True
            return False

        async def is_served() -> bool:
            return not await is_refused()

        server.client.config_set("maxmemory-policy", "allkeys-lru")
        await until(is_refused)
        server.client.config_set("maxmemory-policy", "noeviction")
        await until(is_served)


@driven
async def test_a_release_that_fails_is_tried_again(server: Server) -> None:
    async with opened(server.address) as index, opened(server.address) as other:
        await index.claim("a", "http://a/", fingerprint_of(1))
        server.kill()
        with pytest.raises(IndexUnavailableError):
            await index.release("a")
        server.start()
        assert (await other.claim("b", "http://b/", fingerprint_of(1))).of == "http://a/"
        await index._releases.make_all()  # type: ignore[attr-defined]  # as every 20 seconds
        assert (await other.claim("b", "http://b/", fingerprint_of(1))).status == "new"
