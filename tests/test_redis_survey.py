"""Surveys of Redis: each damage is made once, and has to be named; what is left is exported into a sound index."""

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index import Entry
from dedup.index.entry import storable_id
from dedup.index.redis.record import pack, unpack, whole
from tests.support.coroutines import driven
from tests.support.stores import ODD_IDS, opened_at
from tests.support.surveys import NAMESPACE, PREFIX, RUN, TYPES, entry, restored, surveyed, unopened


class Stored:
    """The keys of 10 pages, numbered from 1."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.entries = {number: entry(number) for number in range(1, 11)}

    def key(self, name: str) -> str:
        return PREFIX + name

    def bucket(self, number: int, table: int | None) -> bytes:
        """Finds the bucket of a table, or of that of page ids, that has a page."""
        keys = self.client.keys(f"{PREFIX}i:*" if table is None else f"{PREFIX}t:{table}:*")
        (found,) = (key for key in keys if number in self.entries_in(key))
        return found

    def entries_in(self, bucket: bytes) -> dict[int, bytes]:
        """Reads the keys of pages in a bucket, by their numbers."""
        octets = self.client.get(bucket) or b""
        entries = (octets[at : at + 12] for at in range(0, len(octets), 12))
        return {int.from_bytes(entry[8:], "little"): entry[:8] for entry in entries}

    def write(self, bucket: bytes, entries: dict[int, bytes]) -> None:
        """Writes the entries of a bucket."""
        octets = (key + number.to_bytes(4, "little") for number, key in entries.items())
        self.client.set(bucket, b"".join(octets))

    def take_out(self, number: int, table: int | None) -> None:
        """Takes the entry of a page out of a table."""
        bucket = self.bucket(number, table)
        entries = self.entries_in(bucket)
        del entries[number]
        self.write(bucket, entries)

    def rewrite(self, number: int, **changes: Any) -> None:
        self.client.set(self.key(f"p:{number}"), pack(self.entries[number]._replace(**changes)))


MISSING, STRAY = "pages missing from tables", "entries that do not belong there"
REDIS_DAMAGES: dict[str, tuple[Callable[[Stored], object], set[str], str]] = {
    "a field added to the header": (
        lambda at: at.client.hset(at.key("header"), "more", "1"), {"the header"}, "digest",
    ),
    "a list in the place of a bucket": (
        lambda at: (key := at.bucket(3, 6), at.client.delete(key), at.client.rpush(key, "3")),
        {"keys of another type", MISSING}, "page 3: 6 of 11",
    ),
    "a hash in the place of a page": (
        lambda at: (at.client.delete(at.key("p:3")), at.client.hset(at.key("p:3"), "a", "b")),
        {"keys of another type", STRAY}, "p:3 is not a string",
    ),
    "a list in the place of the pending claims": (
        lambda at: at.client.rpush(at.key("pending"), "3"), {"keys of another type"}, "pending is not a hash",
    ),
    "a bucket that will expire": (
        lambda at: at.client.expire(at.bucket(3, 1), 1000), {"keys that will expire"}, "t:1:",
    ),
    "a torn record": (lambda at: at.client.set(at.key("p:3"), pack(at.entries[3])[:120]), {TYPES}, "page 3"),
    "a sketch of another length": (
        lambda at: at.rewrite(3, sketch=b"\x55" * 64), {TYPES}, "64 bytes instead of 136",
    ),
    "another scope": (lambda at: at.rewrite(3, scope=1), {STRAY, MISSING}, "page 3"),
    "another page id": (lambda at: at.rewrite(3, page_id="else"), {MISSING, STRAY}, "page 3"),
    "a page id deleted": (lambda at: at.take_out(3, None), {MISSING}, "page 3"),
    "a page id that leads nowhere": (
        lambda at: at.write(at.key("i:7").encode(), {77: b"01234567"}), {STRAY}, "page 77 in ",
    ),
    "a page deleted": (lambda at: at.client.delete(at.key("p:3")), {STRAY, "the counters"}, "page 3 in "),
    "an entry deleted": (lambda at: at.take_out(3, 8), {MISSING}, "page 3: 8 of 11"),
    "a table deleted": (
        lambda at: at.client.delete(*at.client.keys(f"{PREFIX}t:6:*")), {MISSING}, "page 10: 6 of 11",
    ),
    "a page in two buckets": (
        lambda at: at.client.append(at.bucket(4, 1), bytes(8) + b"\3\0\0\0"), {STRAY}, "t:1:",
    ),
    "an entry with a number that no page has": (
        lambda at: at.client.append(at.bucket(3, 1), bytes(8) + b"\x4d\0\0\0"), {STRAY}, "page 77 in ",
    ),
    "a bucket that is torn": (
        lambda at: at.client.append(at.bucket(3, 1), b"\x1b[2J"), {"torn buckets"}, "has 16 bytes",
    ),
    "a sequence that went back": (
        lambda at: at.client.set(at.key("sequence"), 5), {"the counters"},
        "sequence is 5, but page 10 is filed",
    ),
    "a sequence lost": (lambda at: at.client.delete(at.key("sequence")), {"the counters"}, "is missing"),
    "a sequence that is no number": (
        lambda at: at.client.set(at.key("sequence"), "many"), {"the counters"}, "is not a number",
    ),
    "releases that never were": (
        lambda at: at.client.incrby(at.key("released"), 7), {"the counters"}, "is 3, but 10 pages are filed",
    ),
    "a pending claim without a page": (
        lambda at: at.client.hset(at.key("pending"), "77", RUN), {"pending claims without a page"}, "page 77",
    ),
    "a pending claim of no run": (
        lambda at: at.client.hset(at.key("pending"), "3", "somebody"),
        {"pending claims without a number or a run"}, "3: somebody",
    ),
    "a lease of no run": (
        lambda at: at.client.zadd(at.key("runs"), {"somebody": 5}), {"leases that no crawl can have"},
        "somebody",
    ),
    "a lease without end": (
        lambda at: at.client.zadd(at.key("runs"), {RUN: float("inf")}), {"leases that no crawl can have"},
        "inf",
    ),
    "a key that nobody knows": (
        lambda at: (at.client.set(at.key("note"), "x"), at.client.set(at.key("p:03"), "x")), {"unknown keys"},
        "note",
    ),
    "a bucket of a table that is not in the plan": (
        lambda at: at.client.set(at.key("t:10:0"), "x"), {"unknown keys"}, "t:10:0",
    ),
}  # fmt: skip
#: Those after which page 3 can't be read.
LOST = {
    "a hash in the place of a page",
    "a torn record",
    "a sketch of another length",
    "a page deleted",
}


@pytest.fixture
def stored(redis_socket: Path) -> Iterator[Stored]:
    """A namespace of its own, emptied at the end."""
    with redis.Redis(unix_socket_path=str(redis_socket)) as client:
        client.flushall()
        yield Stored(client)
        client.flushall()


def contents(client: redis.Redis) -> dict[bytes, bytes]:
    """Reads every key with its value, byte for byte, in one round trip."""
    keys = sorted(client.scan_iter(count=1000))
    with client.pipeline() as asked:
        for key in keys:
            asked.dump(key)
        return dict(zip(keys, asked.execute(), strict=True))


@pytest.fixture(scope="module")
def sound(redis_socket: Path) -> dict[bytes, bytes]:
    """What Redis has of a sound index of these pages."""

    async def fill(stored: Stored) -> None:
        async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
            await index.add(list(stored.entries.values()))
            assert (await surveyed(index))[1] == []

    with redis.Redis(unix_socket_path=str(redis_socket)) as client:
        client.flushall()
        asyncio.run(fill(Stored(client)))
        return contents(client)


@pytest.mark.parametrize("damage", REDIS_DAMAGES)
@driven
async def test_each_damage_of_an_index_in_redis_is_named_and_the_rest_is_rebuilt(
    redis_socket: Path, tmp_path: Path, sound: dict[bytes, bytes], stored: Stored, damage: str
) -> None:
    harm, kinds, words = REDIS_DAMAGES[damage]
    lost = {3} if damage in LOST else set()
    address = f"unix://{redis_socket}"
    with stored.client.pipeline() as filling:
        for key, value in sound.items():
            filling.restore(key, 0, value)
        filling.execute()
    harm(stored)
    before = contents(stored.client)
    async with unopened(address, namespace=NAMESPACE) as index:
        pages, findings = await surveyed(index)
    assert {finding.kind for finding in findings} == kinds, findings
    assert any(words in finding.what for finding in findings), findings
    assert all(finding.what.isprintable() and finding.repair for finding in findings)
    assert contents(stored.client) == before
    read = {filed for filed, _ in pages if filed}
    assert {filed for number, filed in stored.entries.items() if number not in {3, *lost}} <= read
    assert len(read) == 10 - len(lost)
    if lost:
        assert await restored(address, tmp_path / "fresh.sqlite") == len(read)


@driven
async def test_counters_are_repaired_as_advised(redis_socket: Path, stored: Stored) -> None:
    for key, value in (("sequence", 5), ("released", 7), ("released", 0)):
        async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
            await index.add(list(stored.entries.values()))
            await index.forget(["id 1"])
        stored.client.set(PREFIX + key, value)
        async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
            for _ in range(2):
                for finding in (await surveyed(index))[1]:
                    stored.client.execute_command(*finding.repair.partition(",")[0].split(" "))
            assert (await surveyed(index))[1] == []
            assert await index.count() == 9


HEADERS: dict[str, tuple[Callable[[Stored], object], type[Exception], str]] = {
    "deleted": (lambda at: at.client.delete(at.key("header")), IndexCorruptError, "no header"),
    "a string": (
        lambda at: (at.client.delete(at.key("header")), at.client.set(at.key("header"), "x")),
        IndexMismatchError,
        "is not the header",
    ),
    "no plan": (
        lambda at: at.client.hset(at.key("header"), "tables", "9.9.9"),
        IndexCorruptError,
        "table plan is '9.9.9'",
    ),
    "no bits": (lambda at: at.client.hdel(at.key("header"), "bucket_bits"), IndexCorruptError, "bucket_bits"),
    "odd bits": (lambda at: at.client.hset(at.key("header"), "bucket_bits", "99"), IndexCorruptError, "'99'"),
}


@pytest.mark.parametrize("damage", HEADERS)
@driven
async def test_an_index_in_redis_that_nobody_can_make_sense_of_is_refused(
    redis_socket: Path, stored: Stored, damage: str
) -> None:
    harm, error, words = HEADERS[damage]
    async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
        await index.add(list(stored.entries.values()))
    harm(stored)
    async with unopened(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
        with pytest.raises(error, match=words.replace("[", r"\[")) as refusal:
            await index.survey()
    assert "\n" not in str(refusal.value)


@driven
async def test_a_lost_table_of_many_pages_is_not_looked_at_page_by_page(
    redis_socket: Path, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dedup.index.redis.check.SUSPECTS", 10)
    async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
        await index.add([entry(number) for number in range(100)])
        stored.client.delete(*stored.client.keys(f"{PREFIX}t:6:*"))
        findings = (await surveyed(index))[1]
    assert [finding.what for finding in findings if finding.kind == "pages not looked at any closer"] == [
        "90 from page 11 on"
    ]
    assert len(findings) == 11


@driven
async def test_a_namespace_of_odd_characters_is_surveyed_alone(redis_socket: Path, stored: Stored) -> None:
    address = f"unix://{redis_socket}"
    async with opened_at(address, namespace="abc") as other:
        await other.add([entry(2), entry(3)])
        for name in ("*", "[a]", "a\\b", "a?c^d-e"):
            async with opened_at(address, namespace=name) as index:
                await index.add([entry(1)])
                pages, findings = await surveyed(index)
            assert ([filed and filed.page_id for filed, _ in pages], findings) == (["id 1"], [])


@pytest.mark.parametrize("memory", ["+memory|usage", "-memory|usage"])
@driven
async def test_who_may_only_read_can_take_a_survey(redis_socket: Path, stored: Stored, memory: str) -> None:
    async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
        await index.add(list(stored.entries.values()))
    rights = "on >tiptoe ~shingleback:* -@all +@read +@connection +@transaction +evalsha +script|load +time"
    stored.client.execute_command("ACL", "SETUSER", "reader", *rights.split(), memory)
    try:
        async with unopened(f"unix://reader:tiptoe@{redis_socket}", namespace=NAMESPACE) as index:
            pages, findings = await surveyed(index)
            assert (len(pages), findings) == (10, [])
            survey = await index.survey()
            assert survey
            octets, _ = await survey.stored()
            assert (octets is None) == (memory == "-memory|usage")
            with pytest.raises(IndexUnavailableError):
                await index.add([entry(99)])
    finally:
        stored.client.execute_command("ACL", "DELUSER", "reader")


def test_a_record_is_whole_or_none() -> None:
    record = pack(entry(1, bands=(1, 2)))
    assert whole(record) == entry(1, bands=(1, 2)) == unpack(record)
    rng = random.Random(6)
    for _ in range(800):
        spoilt = bytearray(record)
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        found = whole(bytes(spoilt[: rng.randrange(30, 2 * len(spoilt))]))
        assert found is None or isinstance(found, Entry)
    for cut in range(len(record) - len(entry(1).url.encode())):
        assert whole(record[:cut]) is None
    for page_id in map(storable_id, ODD_IDS.values()):
        assert whole(pack(entry(1, page_id=page_id))) == entry(1, page_id=page_id)
