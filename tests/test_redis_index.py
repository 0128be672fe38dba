"""What only the index in Redis has: servers it refuses, replies that get lost, runs that die, its keys."""

import asyncio
import math
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
import redis

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.detector import Detector
from dedup.index import Index, Verdict, open_index
from dedup.index.lifecycle import State
from dedup.index.redis.keys import LEASE_MS
from dedup.index.redis.record import PLACES
from tests.support.coroutines import driven
from tests.support.fingerprints import ALL_BITS, fingerprint_of
from tests.support.pages.shops import Shop, ShopPage
from tests.support.redis import Line, Server
from tests.support.stores import RUN, end_lease, opened
from tests.support.waiting import LIMIT, until


async def try_to_open(address: str) -> None:
    """Raises what opening raises."""
    async with opened(address):
        pass


@pytest.fixture
def address(redis_socket: Path) -> str:
    """The address of the server that is shared with all tests."""
    return f"unix://{redis_socket}"


# --- Servers that are refused --------------------------------------------------------------------------


@driven
async def test_a_server_that_may_evict_keys_is_refused(server: Server) -> None:
    for policy in "allkeys-lru", "volatile-ttl":
        server.client.config_set("maxmemory-policy", policy)
        with pytest.raises(IndexMismatchError) as refusal:
            await try_to_open(server.address)
        text = str(refusal.value)
        assert all(
            part in text for part in ("maxmemory-policy", repr(policy), "noeviction", str(server.socket))
        )
        assert "\n" not in text
        assert server.contents() == {}
    server.client.config_set("maxmemory-policy", "noeviction")
    await try_to_open(server.address)


@pytest.mark.parametrize(
    "address", ["redis://127.0.0.1:1/0", "unix:///no/such/socket"], ids=["closed port", "missing socket"]
)
@driven
async def test_a_server_that_is_not_there_is_not_waited_for(address: str) -> None:
    async with asyncio.timeout(LIMIT):
        with pytest.raises(IndexUnavailableError) as failure:
            await try_to_open(address)
    assert address in str(failure.value)
    assert "\n" not in str(failure.value)


@driven
async def test_a_wrong_password_is_an_error_that_does_not_show_it(server: Server) -> None:
    server.client.config_set("requirepass", "tiptoe")
    users = (":flatfoot@", "somebody:flatfoot@", "")
    refusals = (try_to_open(f"unix://{user}{server.socket}") for user in users)
    for refusal in await asyncio.gather(*refusals, return_exceptions=True):
        assert isinstance(refusal, IndexUnavailableError)
        assert str(server.socket) in str(refusal)
        assert "\n" not in str(refusal)
        assert "flatfoot" not in str(refusal)
    async with opened(f"unix://:tiptoe@{server.socket}") as index:
        assert (await index.claim("a", "http://a/", fingerprint_of(0))).status == "new"
        assert "tiptoe" not in index.where


@driven
async def test_options_in_an_address_never_raise_what_is_not_an_error_of_ours(server: Server) -> None:
    for option in "foo=1", "decode_responses=True", "db=99", "max_connections=0", "protocol=7", "timeout=x":
        with suppress(DedupError):
            async with opened(f"{server.address}?{option}") as index:
                assert (await index.claim("a", "http://a/", fingerprint_of(0))).status == "new", option
                assert (await index.claim("b", "http://b/", fingerprint_of(0))).of == "http://a/", option


FOREIGN: dict[str, Callable[[redis.Redis, str], object]] = {
    "string": lambda client, key: client.set(key, "text"),
    "list": lambda client, key: client.rpush(key, "format", "1"),
    "set": lambda client, key: client.sadd(key, "format"),
    "sorted set": lambda client, key: client.zadd(key, {"format": 1}),
    "another hash": lambda client, key: client.hset(key, "format", "1"),
    "a hash of bytes": lambda client, key: client.hset(key, b"\xff\xfe", b"\xff"),
}


@driven
async def test_another_key_in_the_place_of_the_header_is_refused_and_left(server: Server) -> None:
    for kind, put in FOREIGN.items():
        server.client.flushall()
        put(server.client, "shingleback:{test}:header")
        before = server.contents()
        with pytest.raises(IndexMismatchError) as refusal:
            await try_to_open(server.address)
        assert "shingleback:{test}:header" in str(refusal.value), kind
        assert server.contents() == before, kind


@driven
async def test_a_server_hiding_its_policy_is_told(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.client.execute_command("ACL", "SETUSER", "crawler", "on", ">tiptoe", "~*", "+@all", "-info")
    async with opened(f"unix://crawler:tiptoe@{server.socket}") as index:
        assert (await index.claim("a", "http://a/", fingerprint_of(0))).status == "new"
    assert "maxmemory-policy" in caplog.text
    assert "tiptoe" not in caplog.text


@driven
async def test_a_server_that_forgets_is_warned_of(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.client.config_set("appendonly", "no")
    await try_to_open(server.address)
    assert "appendonly" in caplog.text


# --- Servers that change in mid-run --------------------------------------------------------------------


@driven
async def test_of_pages_in_one_chrome_claimed_at_once_with_copies_each_is_kept_once(server: Server) -> None:
    """They are weighed against each other before they are filed; else each is told of one more again and again, and kept at last."""
    detector, rng = Detector(), random.Random(7)
    shop = Shop("shop.example", 300, 60, 1, 56)
    first, rest = [shop.page(number, rng) for number in range(20)], list[ShopPage]()
    for number in range(20, 28):
        rest += [shop.page(number, rng), *(shop.copy(number, kind, rng) for kind in ("count", "track"))]

    async def claim(page: ShopPage) -> str:
        return (await index.claim(page.url, page.url, detector.fingerprint(page.html, page.url))).status

    async with open_index(server.address, detector) as index:
        assert [await claim(page) for page in first] == ["new"] * len(first)
        statuses = await asyncio.gather(*map(claim, rest))
    kept = Counter(page.content for page, status in zip(rest, statuses, strict=True) if status == "new")
    assert [*kept.values()] == [1] * 8


@driven
async def test_confirmations_that_could_not_be_written_are_written_when_the_server_is_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(server.address, run=RUN) as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        server.kill()
        await index.confirm("a")
        await until(lambda: any(record.levelname == "WARNING" for record in caplog.records))
        server.start()
    async with opened(server.address, run=RUN) as index:
        assert (await index.claim("twin", "http://twin/", fingerprint_of(0))).of == "http://a/"


#: Where in a record the length of its sketch is, if it has no bands.
SKETCH_AT = PLACES["band_count"] + 1


@driven
async def test_a_key_of_another_type_gives_an_error_or_keeps_the_page(server: Server) -> None:
    for key in "pending", "runs", "sequence", "t:0:0", "t:3:0", "p:1":
        server.client.flushall()
        async with opened(server.address) as index:
            await index.claim("a", "http://a/", fingerprint_of(0))
            await index.confirm("a")
        async with opened(server.address) as index:
            server.client.delete(f"shingleback:{{test}}:{key}")
            server.client.rpush(f"shingleback:{{test}}:{key}", "x")
            before = server.contents()
            try:
                assert (await index.claim("b", "http://b/", fingerprint_of(0))).of in (None, "http://a/"), key
            except IndexCorruptError:
                assert server.contents() == before, f"half of a page was filed: {key}"


@driven
async def test_a_damaged_record_gives_an_error_of_ours_or_keeps_the_page(server: Server) -> None:
    async with opened(server.address) as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        await index.confirm("a")
        await index.flush()
        right, record = server.contents(), server.client.get("shingleback:{test}:p:1")
        sizes = SKETCH_AT, SKETCH_AT + 2
        for damaged in (
            *(b"", record[:17], record[: SKETCH_AT + 60]),
            record[:-3] + b"\xff\xfe\xfd",  # a URL that is not UTF-8
            *(record[: sizes[0]] + size + record[sizes[1] :] for size in (b"\xff\xff", b"\0\0")),
        ):
            server.client.flushall()
            for key, value in right.items():
                server.client.restore(key, 0, value)
            server.client.set("shingleback:{test}:p:1", damaged)
            with suppress(DedupError):
                assert (await index.claim("b", "http://b/", fingerprint_of(0))).distance in (None, 0)
            for verb in (index.find, index.annul):
                with suppress(DedupError):
                    assert not await verb("a")


@driven
async def test_a_page_whose_id_was_lost_is_not_its_own_duplicate(server: Server) -> None:
    async with opened(server.address) as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        await index.confirm("a")
        server.client.delete(*server.client.keys("shingleback:{test}:i:*"))
        assert (await index.claim("a", "http://a/", fingerprint_of(0))).status in ("same", "new")


# --- Replies that are lost -----------------------------------------------------------------------------


class Proxy(Line):
    """Passes on what client and server say, or cuts the connection instead, at one of two moments."""

    def __init__(self, server: Path, socket: Path) -> None:
        super().__init__(server)
        self.socket = socket
        self.requests_before_loss: int | None = (
            None  # how many still pass before one is lost; None if none will be
        )
        self.replies_before_loss: int | None = None
        self.reply_bytes = 0  # how many bytes of a lost reply still arrive

    def vanish(self) -> None:
        """Lets no more connections in."""
        self.socket.rename(self.socket.with_suffix(".away"))

    def reappear(self) -> None:
        self.socket.with_suffix(".away").rename(self.socket)

    async def ask(self, request: bytes) -> list[bytes | None]:
        if self.requests_before_loss == 0:
            self.requests_before_loss = None
            return [None]
        if self.requests_before_loss:
            self.requests_before_loss -= 1
        return [request]

    async def reply(self, reply: bytes) -> list[bytes | None]:
        if self.replies_before_loss == 0:
            self.replies_before_loss = None
            return [reply[: self.reply_bytes], None]
        if self.replies_before_loss:
            self.replies_before_loss -= 1
        return [reply]


@asynccontextmanager
async def cut_off(server: Path, namespace: str) -> AsyncIterator[tuple[Index, Proxy]]:
    """An index that talks to the server through a proxy."""
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        proxy = Proxy(server, Path(folder, "proxy.sock"))
        async with proxy.listening(proxy.socket), opened(f"unix://{proxy.socket}", namespace) as index:
            await index.claim("first", "http://first/", fingerprint_of(0x0F0F0F0F))  # loads the script
            await index.release("first")
            yield index, proxy


@pytest.mark.usefixtures("patience", "long_leases")  # else it may be another reply that is lost
@pytest.mark.parametrize("crawls", [2, pytest.param(100, marks=pytest.mark.slow)])
@driven
async def test_lost_replies_make_no_duplicates(redis_socket: Path, namespace: str, crawls: int) -> None:
    """Each reply to a claim is lost in turn, after ten numbers of bytes; when the last is, the page has been filed."""

    async def claim_and_lose_each_reply(crawl: int) -> None:
        rng = random.Random(crawl)
        async with cut_off(redis_socket, f"{namespace}-{crawl}") as (index, proxy):
            for trial in range(10):
                verdicts = []
                for before in count():
                    page, simhash = f"{trial}-{before}", rng.getrandbits(64)
                    proxy.replies_before_loss, proxy.reply_bytes = before, 2 * trial  # of 24 or more
                    verdict = await index.claim(page, f"http://{page}/", fingerprint_of(simhash))
                    if proxy.replies_before_loss is not None:  # a claim has no more replies than these
                        break
                    verdicts.append(verdict)
                    twin = await index.claim(f"twin of {page}", "http://twin/", fingerprint_of(simhash))
                    assert twin.of == f"http://{page}/"
                proxy.replies_before_loss = None
                assert verdicts[-1] == Verdict("same")
                assert all(verdict in (Verdict("same"), Verdict("new")) for verdict in verdicts)
            for trial in range(10):  # not before: their reply could be the one that is lost
                await index.confirm(f"{trial}-0")

    for start in range(0, crawls, 5):
        await asyncio.gather(
            *(claim_and_lose_each_reply(crawl) for crawl in range(start, min(start + 5, crawls)))
        )


@driven
async def test_a_claim_whose_request_was_lost_is_new(redis_socket: Path, namespace: str) -> None:
    async with cut_off(redis_socket, namespace) as (index, proxy):
        for before in count():
            proxy.requests_before_loss = before
            verdict = await index.claim(f"{before}", "http://a/", fingerprint_of(0xFF << 8 * before))
            assert verdict == Verdict("new")
            if proxy.requests_before_loss is not None:
                break
        assert before > 0


@driven
async def test_a_page_whose_claim_was_unanswered_is_the_same(redis_socket: Path, namespace: str) -> None:
    """Whichever reply is lost; when it is the last, the page has been filed."""
    rng, statuses = random.Random(1), []
    async with cut_off(redis_socket, namespace) as (index, proxy):
        for before in count():
            page, content = f"{before}", fingerprint_of(rng.getrandbits(64))
            proxy.replies_before_loss = before
            proxy.vanish()
            try:
                await index.claim(page, f"http://{page}/", content)
                break
            except IndexUnavailableError:
                proxy.reappear()
            statuses.append((await index.claim(page, f"http://{page}/", content)).status)
            await index.release(page)
            assert (await index.claim("twin", "http://twin/", content)).status == "new"
            await index.release("twin")
        proxy.reappear()
        proxy.replies_before_loss = None
    assert statuses[-1] == "same"
    assert set(statuses) <= {"same", "new"}


@driven
async def test_a_release_or_confirmation_whose_reply_was_lost_happens_once(
    redis_socket: Path, namespace: str
) -> None:
    async with cut_off(redis_socket, namespace) as (index, proxy):
        await index.claim("b", "http://b/", fingerprint_of(ALL_BITS))
        for before in count():
            await index.claim("a", "http://a/", fingerprint_of(0))
            proxy.replies_before_loss = before
            await index.release("a")
            is_lost = proxy.replies_before_loss is None
            proxy.replies_before_loss = None
            assert await index.count() == 1
            if not is_lost:
                break
        assert before > 0
        await index.confirm("b")
        proxy.replies_before_loss = 0
    async with opened(f"unix://{redis_socket}", namespace) as index:
        assert await index.count() == 1
        assert await index.states(["b"]) == ["earlier"]


# --- Runs that live and die ----------------------------------------------------------------------------


@driven
async def test_what_is_done_is_the_crawl_s_where_others_go_on_from_it(address: str, namespace: str) -> None:
    runs = (f"{RUN[:16]}{digit * 16}" for digit in "12")
    async with (
        opened(address, namespace, run=next(runs)) as dying,
        opened(address, namespace, run=next(runs)) as other,
        opened(address, namespace) as foreign,
    ):
        for page_id, simhash in ("a", 0), ("b", ALL_BITS):
            dying.is_inherited = lambda page_id=page_id: page_id == "a"
            await dying.claim(page_id, f"http://{page_id}/", fingerprint_of(simhash))
            await dying.confirm(page_id)
            await dying.flush()
        end_lease(address, namespace, dying.run)
        assert await other.states(["a", "b"]) == await foreign.states(["a", "b"]) == ["done", "earlier"]
        filed = await other.find("a")
        assert filed is not None
        assert await other.leases([filed.run]) == [math.inf]
        end_lease(address, namespace, filed.run)  # as if all workers had died
        assert await foreign.states(["a"]) == ["earlier"]
        assert (await other.claim("twin", "http://twin/", fingerprint_of(0))).of == "http://a/"


@driven
async def test_a_run_that_claims_nothing_for_longer_than_its_lease_stays_alive(
    redis_socket: Path, address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dedup.index.redis.session.LEASE_MS", 2_000)
    with redis.Redis(unix_socket_path=str(redis_socket)) as client:

        def end_of_lease(index: Index) -> float:
            return client.zscore(f"shingleback:{{{namespace}}}:runs", index.run)

        def is_over() -> bool:
            seconds, microseconds = client.time()
            return seconds * 1000 + microseconds / 1000 > first

        async with opened(address, namespace) as one, opened(address, namespace) as another:
            await one.claim("a", "http://a/", fingerprint_of(0))
            first = end_of_lease(one)
            await until(is_over)
            assert (await another.claim("twin", "http://twin/", fingerprint_of(0))).of == "http://a/"


HOUR = 3_600_000


@driven
async def test_no_lease_outlasts_a_clock_set_back(redis_socket: Path, address: str, namespace: str) -> None:
    """The lease of a run ends an hour ahead then; if the run lives, it renews it by the new clock."""
    async with opened(address, namespace) as one, opened(address, namespace) as another:
        await one.claim("a", "http://a/", fingerprint_of(0))
        with redis.Redis(unix_socket_path=str(redis_socket)) as client:
            client.zincrby(f"shingleback:{{{namespace}}}:runs", HOUR, one.run)
        assert await another.states(["a"]) == [State.DEAD]
        assert await one.states(["a"]) == [State.PENDING]
        await one._session.renew(LEASE_MS)  # type: ignore[attr-defined]  # as every 20 seconds
        assert await another.states(["a"]) == [State.PENDING]


@driven
async def test_no_clock_tells_whether_a_run_is_over(redis_socket: Path, address: str, namespace: str) -> None:
    key = f"shingleback:{{{namespace}}}:runs"
    async with opened(address, namespace) as early:
        async with opened(address, namespace) as index:
            await index.claim("a", "http://a/", fingerprint_of(0))
            await index.confirm("a")
        async with opened(address, namespace) as late:
            assert await early.states(["a"]) == [State.SAFE]
            assert await late.states(["a"]) == [State.EARLIER]
            with redis.Redis(unix_socket_path=str(redis_socket)) as client:
                client.zadd(key, {index.run: -time.time() * 1000})  # as older versions have noted it
            assert await early.states(["a"]) == await late.states(["a"]) == [State.EARLIER]


# --- Keys ----------------------------------------------------------------------------------------------

DOCUMENTED = re.compile(
    rb"shingleback:\{test\}:(header|sequence|released|pending|notes|began|runs|i:[0-9a-f]+|p:\d+|t:\d+:[0-9a-f]+)",
    re.DOTALL,
)


@driven
async def test_every_key_is_a_documented_one_and_foreign_keys_are_left(server: Server) -> None:
    for number in range(20):
        server.client.set(f"foreign:{number}", number)
        server.client.zadd(f"t:{number}", {f"{number}": number})
        server.client.hset(f"shingleback:{{other}}:{number}", "name", "value")
    server.client.set("shingleback:test:header", "not ours")
    server.client.set("shingleback:{test", "not ours")
    before = server.contents()
    async with opened(server.address) as index:
        for number in range(64):
            await index.claim(f"page\n{number}", "http://a/", fingerprint_of(0x5F << number & ALL_BITS))
            await (index.confirm if number % 2 else index.release)(f"page\n{number}")
        during = server.contents()
    after = server.contents()
    assert {key: during[key] for key in before} == {key: after[key] for key in before} == before
    ours = (during.keys() | after.keys()) - before.keys()
    assert len(ours) > 64
    assert [key for key in ours if not DOCUMENTED.fullmatch(key)] == []
    assert len({redis.crc.key_slot(key) for key in ours}) == 1, "a cluster has them in several slots"
    assert {server.client.ttl(key) for key in after} == {-1}


@driven
async def test_namespaces_are_separate_indexes(address: str, namespace: str) -> None:
    async with opened(address, namespace) as one, opened(address, f"{namespace}:2") as another:
        await one.claim("a", "http://a/", fingerprint_of(0))
        assert await another.count() == 0
        assert (await another.claim("twin", "http://twin/", fingerprint_of(0))).status == "new"
        assert (await another.claim("a", "http://a/", fingerprint_of(0))).of == "http://twin/"


@driven
async def test_a_release_leaves_no_key_of_its_page(server: Server) -> None:
    async with opened(server.address) as index:
        await index.claim("kept", "http://kept/", fingerprint_of(0xFFFF0000))
        await index.confirm("kept")
    async with opened(server.address) as index:
        before = server.contents().keys()
        for contents in (0,), (0, 0), (0, ALL_BITS):
            for content in contents:
                await index.claim("a", "http://a/", fingerprint_of(content))
            await index.release("a")
            assert server.contents().keys() == before, contents
