"""What is stored, looked at without opening it: surveys, their findings, and pages added and forgotten in bulk.

Each invariant is damaged once, and has to be named; what is left is then exported into a sound index.
"""

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import xxhash

from dedup.errors import (
    DedupError,
    IndexCorruptError,
    IndexMismatchError,
    IndexUnavailableError,
    SettingsError,
)
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.plans import DIGESTS, plan_for
from dedup.index import Entry, Index, Verdict, open_index
from dedup.index.entry import scope_mask, storable_id
from dedup.index.local.file import COLUMNS
from dedup.index.redis.record import pack, unpack
from dedup.index.survey import Filed, Finding
from dedup.lab.distributions import expected_leading_bits, fill, leading_bits, skew
from tests.support.coroutines import driven
from tests.support.fingerprints import ALL_BITS, fingerprint_of
from tests.support.model import crawl_of_verbs
from tests.support.stores import DETECTOR, ODD_IDS, PERSISTENT, opened_at, until_done

RUN = "0f" * 16
NAMESPACE = "test"
PREFIX = f"shingleback:{{{NAMESPACE}}}:"


def entry(number: int, **changes: Any) -> Entry:
    """A page of an index; pages of different numbers are unrelated."""
    rng = random.Random(number)
    simhash, digest = rng.getrandbits(64), rng.getrandbits(64)
    url = f"http://example.org/{number}"
    filed = Entry(
        f"id {number}", url, simhash, 0, digest, (), rng.randbytes(128), 1_800_000_000 + number, RUN
    )
    return filed._replace(**changes)


def claim_of(filed: Entry) -> tuple[str, str, Fingerprint]:
    """The claim that has been filed so."""
    fingerprint = Fingerprint(filed.simhash, filed.sketch, 100, 0, None, filed.digest, filed.bands)
    return filed.page_id, filed.url, fingerprint


async def surveyed(index: Index) -> tuple[list[Filed], list[Finding]]:
    """The pages and findings of an index."""
    survey = await index.survey()
    assert survey is not None
    try:
        return [filed async for filed in survey.pages()], [found async for found in survey.findings()]
    finally:
        await survey.close()


@asynccontextmanager
async def unopened(address: str, detector: Detector = DETECTOR, **options: Any) -> AsyncIterator[Index]:
    """An index that is only looked at."""
    index = open_index(address, detector, **options)
    try:
        yield index
    finally:
        await index.close()


# --- The contract --------------------------------------------------------------------------------------


@PERSISTENT
@driven
async def test_of_nothing_there_is_no_survey_and_looking_makes_nothing(
    address: str, namespace: str, store: str, tmp_path: Path
) -> None:
    async with unopened(address, namespace=namespace) as index:
        assert await index.survey() is None
    assert os.listdir(tmp_path) == []
    if store == "redis":
        with redis.Redis(unix_socket_path=address.removeprefix("unix://")) as client:
            assert client.keys(f"shingleback:{{{namespace}}}:*") == []


@driven
async def test_an_index_in_memory_is_not_surveyed() -> None:
    async with unopened("memory:") as index:
        with pytest.raises(SettingsError, match="memory"):
            await index.survey()


@PERSISTENT
@driven
async def test_a_survey_gives_what_was_claimed_in_the_order_of_claims_and_finds_nothing(
    address: str, namespace: str
) -> None:
    async with opened_at(address, namespace=namespace) as index:
        for number in range(1234):  # more than are read at once
            await index.claim(
                f"{number}", f"http://{number}/", fingerprint_of(random.Random(number).getrandbits(64))
            )
            await index.confirm(f"{number}")
        run = index.run
    async with unopened(address, namespace=namespace) as index:
        pages, findings = await surveyed(index)
    assert findings == []
    assert {state for _, state in pages} == {"done"}
    entries = [filed for filed, _ in pages if filed]
    assert [filed.page_id for filed in entries] == [f"{number}" for number in range(1234)]
    assert {filed.run for filed in entries} == {run}
    assert [filed.simhash for filed in entries] == [
        random.Random(number).getrandbits(64) for number in range(1234)
    ]


@PERSISTENT
@pytest.mark.parametrize("scope", ["all", "host", "site"])
@driven
async def test_a_survey_of_any_crawl_finds_nothing(address: str, namespace: str, scope: str) -> None:
    async with opened_at(address, namespace=namespace, scope=scope) as index:
        for number, page_id in enumerate(ODD_IDS.values()):
            await index.claim(page_id, "http://odd/", fingerprint_of(random.Random(number).getrandbits(64)))
            await index.confirm(page_id)
        for verb, *arguments in crawl_of_verbs(seed=11, claims=300):
            await getattr(index, verb)(*arguments)
        async with unopened(address, namespace=namespace, scope=scope) as beside:  # while it is open
            pages, findings = await surveyed(beside)
    assert findings == []
    assert all(filed for filed, _ in pages)
    async with unopened(address, namespace=namespace, scope=scope) as index:
        pages, findings = await surveyed(index)
        assert (len(pages), findings) == (len({filed.page_id for filed, _ in pages if filed}), [])
        assert len(pages) > 50


@pytest.mark.parametrize("method", ["minhash", "supershingle"])
@PERSISTENT
@driven
async def test_a_survey_of_methods_with_bands_finds_nothing(
    address: str, namespace: str, method: str
) -> None:
    detector = Detector(method=method, min_tokens=3)
    async with opened_at(address, detector, namespace=namespace) as index:
        for number in range(50):
            words = " ".join(f"word{number}-{place}" for place in range(40))
            await index.claim(f"{number}", f"http://{number}/", detector.fingerprint(f"<p>{words}"))
            await index.confirm(f"{number}")
    async with unopened(address, detector, namespace=namespace) as index:
        pages, findings = await surveyed(index)
    assert findings == []
    assert {len(filed.bands) for filed, _ in pages if filed} == {
        len(detector.fingerprint("<p>a b c d").bands)
    }


@driven
async def test_a_survey_tells_the_states_of_pages(redis_socket: Path, namespace: str) -> None:
    address = f"unix://{redis_socket}"
    async with opened_at(address, namespace=namespace) as one, opened_at(address, namespace=namespace) as two:
        for number, index in enumerate((one, one, two)):
            await index.claim(f"{number}", f"http://{number}/", fingerprint_of(0xFFFF << 16 * number))
        await one.confirm("0")
        await until_done(one, ["0"])
        with redis.Redis(unix_socket_path=str(redis_socket)) as client:
            client.zadd(f"shingleback:{{{namespace}}}:runs", {two.run: 1})
        pages, findings = await surveyed(one)
        assert [(filed and filed.page_id, state) for filed, state in pages] == [
            ("0", "done"),
            ("1", "pending"),
            ("2", "dead"),
        ]
        assert findings == []


@driven
async def test_added_pages_are_done_as_if_they_had_been_claimed(address: str, namespace: str) -> None:
    entries = [entry(number) for number in range(200)]
    async with opened_at(address, namespace=namespace) as index:
        await index.claim("own", "http://own/", fingerprint_of(0))
        assert await index.add(entries[:120]) == 120
        assert await index.add(entries) == 80
        assert await index.add([entry(0, page_id="own"), entry(1)]) == 0
        assert await index.add([]) == 0
        assert await index.count() == 201
        for filed in entries:
            assert await index.find(filed.page_id) == filed
            page_id, url, fingerprint = claim_of(filed)
            assert await index.claim(page_id, url, fingerprint) == Verdict("same")
            verdict = await index.claim(f"twin of {page_id}", "http://twin/", fingerprint)
            assert (verdict.status, verdict.of, verdict.rule) == ("duplicate", url, "exact")
            near = replace(fingerprint, simhash=filed.simhash ^ 0b111, digest=0)
            assert (await index.claim(f"near {page_id}", "http://near/", near)).of == url
        await index.release("id 0")  # done: it stays
        assert await index.find("id 0") is not None


@driven
async def test_of_pages_added_together_with_one_id_the_first_is_filed(address: str, namespace: str) -> None:
    async with opened_at(address, namespace=namespace) as index:
        assert await index.add([entry(1), entry(2, page_id="id 1"), entry(3)]) == 2
        assert await index.find("id 1") == entry(1)


@driven
async def test_forgotten_pages_are_claimed_as_new(address: str, namespace: str, store: str) -> None:
    entries = [entry(number) for number in range(150)]
    async with opened_at(address, namespace=namespace) as index:
        await index.add(entries)
        await index.claim("pending", "http://pending/", fingerprint_of(0))
        await index.claim("confirmed", "http://confirmed/", fingerprint_of(ALL_BITS))
        await index.confirm("confirmed")
        forgotten = [filed.page_id for filed in entries[50:]] + [
            "pending",
            "confirmed",
            "never there",
            "id 0",
        ]
        assert await index.forget(forgotten) == 103
        assert await index.forget(forgotten) == 0
        assert await index.forget([]) == 0
        assert await index.count() == 49
        for filed in entries:
            expected = "same" if filed in entries[1:50] else "new"
            assert (await index.claim(*claim_of(filed))).status == expected
            await index.confirm(filed.page_id)
        await index.confirm("pending")  # its claim is gone
        assert (await index.claim("a", "http://a/", fingerprint_of(0))).status == "new"
        assert (await index.claim("b", "http://b/", fingerprint_of(ALL_BITS))).status == "new"
        assert await index.count() == 152
        if store != "memory":
            assert (await surveyed(index))[1] == []
    if store != "memory":
        async with opened_at(address, namespace=namespace) as index:
            assert await index.count() == 150
            assert (await index.claim("c", "http://c/", fingerprint_of(0))).status == "new"


@driven
async def test_a_page_forgotten_and_filed_again_is_compared_as_what_it_is_now(
    address: str, namespace: str
) -> None:
    async with opened_at(address, namespace=namespace) as index:
        await index.add([entry(1), entry(2)])
        await index.forget(["id 2"])
        await index.add([entry(3, page_id="id 2")])
        assert (await index.claim("a", "http://a/", claim_of(entry(2))[2])).status == "new"
        assert (await index.claim("b", "http://b/", claim_of(entry(3))[2])).of == entry(3).url
        assert (await index.claim("c", "http://c/", claim_of(entry(1))[2])).of == entry(1).url


@PERSISTENT
@driven
async def test_what_a_survey_reads_gives_the_same_verdicts_in_the_other_store(
    store: str, address: str, namespace: str, tmp_path: Path, redis_socket: Path
) -> None:
    rng = random.Random(5)
    others = {"file": f"unix://{redis_socket}", "redis": f"file:{tmp_path / 'other.sqlite'}"}
    pages = [
        fingerprint_of(centre ^ rng.getrandbits(3) << rng.randrange(60), changed=rng.choice([0, 60, 99, 120]))
        for centre in (rng.getrandbits(64) for _ in range(60))
        for _ in range(5)
    ]
    async with opened_at(address, namespace=namespace, scope="host") as index:
        for number, fingerprint in enumerate(pages):
            await index.claim(f"{number}", f"http://{number % 3}/{number}", fingerprint)
            await index.confirm(f"{number}")
    options = {"namespace": f"{namespace}-copy", "scope": "host", "tables": 10}
    async with (
        opened_at(address, namespace=namespace, scope="host") as index,
        opened_at(others[store], **options) as copy,
    ):
        entries = [filed for filed, _ in (await surveyed(index))[0] if filed]
        assert await copy.add(entries) == len(entries) == await index.count()
        assert (await surveyed(copy))[1] == []
        for number, fingerprint in enumerate(pages):
            for page_id, url in ((f"{number}", "http://0/"), (f"twin {number}", f"http://{number % 3}/")):
                assert await copy.claim(page_id, url, fingerprint) == await index.claim(
                    page_id, url, fingerprint
                )


@pytest.mark.parametrize("surveys", [2, pytest.param(20, marks=pytest.mark.slow)])
@PERSISTENT
@driven
async def test_a_survey_during_a_crawl_finds_nothing(address: str, namespace: str, surveys: int) -> None:
    """Pages come, are confirmed, released and forgotten while each of many surveys is taken."""
    stop = asyncio.Event()

    async def write(index: Index) -> int:
        rng, number = random.Random(3), 0
        while not stop.is_set():
            number += 1
            await index.claim(f"{number}", f"http://{number}/", fingerprint_of(rng.getrandbits(64)))
            await getattr(index, rng.choice(["confirm", "release"]))(f"{number - rng.randrange(5)}")
            if number % 5 == 0:
                await index.forget([f"{rng.randrange(number)}"])
            await asyncio.sleep(0)
        return number

    async with opened_at(address, namespace=namespace) as index:
        await index.add([entry(number) for number in range(300)])
        writers = [asyncio.create_task(write(index))]
        async with unopened(address, namespace=namespace) as beside:
            for _ in range(surveys):
                pages, findings = await surveyed(beside)
                assert findings == []
                assert len(pages) >= 300
                await asyncio.sleep(0.02)
        stop.set()
        assert sum(await asyncio.gather(*writers)) > 10 * surveys


# --- Damages: files ------------------------------------------------------------------------------------

TYPES = "unreadable pages"
FILE_DAMAGES: dict[str, tuple[str, str, str]] = {
    "a short simhash": ("UPDATE pages SET simhash = x'00' WHERE number = 3", TYPES, "row 3"),
    "a simhash that is text": ("UPDATE pages SET simhash = '12345678' WHERE number = 3", TYPES, "row 3"),
    "a long scope": ("UPDATE pages SET scope = x'000000000000000000' WHERE number = 3", TYPES, "row 3"),
    "a digest that is a number": ("UPDATE pages SET digest = 7 WHERE number = 3", TYPES, "row 3"),
    "a band too many": ("UPDATE pages SET bands = x'0000000000000000' WHERE number = 3", TYPES, "1 bands"),
    "half a band": ("UPDATE pages SET bands = x'00000000' WHERE number = 3", TYPES, "row 3"),
    "a short sketch": ("UPDATE pages SET sketch = x'5555' WHERE number = 3", TYPES, "2 bytes instead of 128"),
    "a page id of bytes": ("UPDATE pages SET page_id = x'00ff' WHERE number = 3", TYPES, "row 3"),
    "a URL of bytes": ("UPDATE pages SET url = x'00ff' WHERE number = 3", TYPES, "row 3"),
    "a URL that is no UTF-8": ("UPDATE pages SET url = CAST(x'ff' AS TEXT) WHERE number = 3", TYPES, "row 3"),
    "a time that is text": ("UPDATE pages SET filed = 'now' WHERE number = 3", TYPES, "row 3"),
    "a time before 1970": ("UPDATE pages SET filed = -1 WHERE number = 3", TYPES, "-1"),
    "no run": ("UPDATE pages SET run = '' WHERE number = 3", TYPES, "run"),
    "another scope": (
        "UPDATE pages SET scope = x'0000000000000001' WHERE number = 3",
        "pages of a wrong scope",
        "row 3",
    ),
    "a page id twice": (
        """CREATE TABLE p AS SELECT * FROM pages; DROP TABLE pages; ALTER TABLE p RENAME TO pages;
        UPDATE pages SET page_id = 'id 1' WHERE number = 3""",
        "page ids filed twice",
        "'id 1': 2 times",
    ),
    "a lost place in SQLite's own index": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 2 WHERE name LIKE 'sqlite_auto%pages%'",
        "SQLite's integrity check",
        "",
    ),
}


def change(path: Path, statements: str, *, sealed: bool = False) -> None:
    """Changes a database behind the back of the index; ``sealed`` sets the checksums right."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(statements)
        if sealed:
            connection.text_factory = lambda octets: octets.decode("utf-8", "surrogateescape")
            for number, *row in connection.execute(f"SELECT number, {COLUMNS} FROM pages").fetchall():
                checksum = xxhash.xxh3_64_digest(ascii(tuple(row[:-1])).encode())
                connection.execute("UPDATE pages SET checksum = ? WHERE number = ?", (checksum, number))


async def filled_file(path: Path, pages: int = 20) -> None:
    async with opened_at(f"file:{path}") as index:
        await index.add([entry(number) for number in range(1, pages + 1)])


async def restored(address: str, path: Path) -> int:
    """Files in a fresh index what is readable in a damaged one, by the advice given; how many pages."""
    async with unopened(address, namespace=NAMESPACE) as index:
        entries = [filed for filed, _ in (await surveyed(index))[0] if filed]
    async with opened_at(f"file:{path}") as fresh:
        await fresh.add([filed._replace(scope=0) for filed in entries])
        assert (await surveyed(fresh))[1] == []
        return await fresh.count()


@pytest.mark.parametrize("damage", FILE_DAMAGES)
@driven
async def test_each_damage_of_a_file_is_named_and_the_rest_is_rebuilt(tmp_path: Path, damage: str) -> None:
    statements, kind, words = FILE_DAMAGES[damage]
    path = tmp_path / "index.sqlite"
    await filled_file(path)
    change(path, statements, sealed="sqlite_master" not in statements)
    before = path.read_bytes()
    async with unopened(f"file:{path}") as index:
        pages, findings = await surveyed(index)
    assert {finding.kind for finding in findings} == {kind}
    assert any(words in finding.what for finding in findings), findings
    assert all("export" in finding.repair for finding in findings)
    assert path.read_bytes() == before
    lost = kind == TYPES
    assert [number for number, (filed, _) in enumerate(pages, 1) if filed is None] == [3] * lost
    doubled = kind == "page ids filed twice"
    assert await restored(f"file:{path}", tmp_path / "fresh.sqlite") == 20 - lost - doubled


@pytest.mark.parametrize("column", COLUMNS.split(", "))
@driven
async def test_a_bit_changed_in_any_column_is_noticed(tmp_path: Path, column: str) -> None:
    path = tmp_path / "index.sqlite"
    await filled_file(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        (value,) = connection.execute(f"SELECT {column} FROM pages WHERE number = 3").fetchone()
        changed = value + (1 if isinstance(value, int) else value[:1] or type(value)())
        if column == "bands":
            changed = bytes(8)
        connection.execute(f"UPDATE pages SET {column} = ? WHERE number = 3", (changed,))
    async with unopened(f"file:{path}") as index:
        pages, findings = await surveyed(index)
    assert [finding.what for finding in findings] == ["row 3: it is not as it was written"]
    assert [number for number, (filed, _) in enumerate(pages, 1) if filed is None] == [3]


HEADER_DAMAGES: dict[str, tuple[str, type[Exception], str]] = {
    "another parameter": (
        "UPDATE header SET value = '9' WHERE name = 'max_distance'",
        IndexMismatchError,
        "max_distance is '9'",
    ),
    "a parameter lost": (
        "DELETE FROM header WHERE name = 'scheme'",
        IndexMismatchError,
        "scheme is not stored",
    ),
    "a newer format": (
        "UPDATE header SET value = '99' WHERE name = 'format'",
        IndexMismatchError,
        "a newer version of this program: its format is 99",
    ),
    "no plan": (
        "UPDATE header SET value = '' WHERE name = 'tables'",
        IndexMismatchError,
        "tables is ''",
    ),
    "a plan that is none": (
        "UPDATE header SET value = '3.1' WHERE name = 'tables'",
        IndexCorruptError,
        "table plan is '3.1'",
    ),
    "no header": ("DROP TABLE header", IndexCorruptError, "no such table: header"),
    "no pages": ("DROP TABLE pages", IndexCorruptError, "no such table: pages"),
    "another application": ("PRAGMA application_id = 1", IndexMismatchError, "not an index;"),
}


@pytest.mark.parametrize("damage", HEADER_DAMAGES)
@driven
async def test_a_file_that_nobody_can_make_sense_of_is_refused(tmp_path: Path, damage: str) -> None:
    statements, error, words = HEADER_DAMAGES[damage]
    path = tmp_path / "index.sqlite"
    await filled_file(path)
    change(path, statements)
    async with unopened(f"file:{path}") as index:
        with pytest.raises(error) as refusal:
            await surveyed(index)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("seed", range(20))
@driven
async def test_of_a_file_with_a_spoilt_part_the_rest_is_read(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "index.sqlite"
    await filled_file(path, pages=600)
    octets = bytearray(path.read_bytes())
    start = rng.randrange(8192, len(octets) - 4096) // 4096 * 4096  # not the schema and the header
    octets[start : start + 4096] = rng.randbytes(4096)
    path.write_bytes(octets)
    async with unopened(f"file:{path}") as index:
        try:
            pages, findings = await surveyed(index)
        except (IndexCorruptError, IndexUnavailableError):  # the part that leads to all others
            return
    assert findings
    right = {entry(number) for number in range(1, 601)}
    assert {filed for filed, _ in pages if filed} <= right
    assert len(pages) >= 300


HARM: dict[str, Callable[[bytearray, random.Random], object]] = {
    "bytes changed": lambda octets, rng: octets.__setitem__(rng.randrange(len(octets)), rng.randrange(256)),
    "a run of zeros": lambda octets, rng: _overwrite(octets, rng.randrange(len(octets)), bytes(3000)),
    "random bytes": lambda octets, rng: _overwrite(octets, rng.randrange(len(octets)), rng.randbytes(64)),
    "a part twice": lambda octets, rng: _overwrite(octets, rng.randrange(6) * 4096, octets[8192:12288]),
    "cut": lambda octets, rng: octets.__delitem__(slice(rng.randrange(len(octets)), None)),
}


def _overwrite(octets: bytearray, at: int, by: bytes) -> None:
    octets[at : at + len(by)] = by[: len(octets) - at]


@pytest.mark.parametrize("harm", HARM)
@driven
async def test_whatever_is_done_to_a_file_is_found_or_an_error_of_ours_and_left(
    tmp_path: Path, harm: str
) -> None:
    await filled_file(tmp_path / "right.sqlite", pages=120)
    right = (tmp_path / "right.sqlite").read_bytes()
    for seed in range(25):
        octets, rng = bytearray(right), random.Random(seed)
        for _ in range(rng.choice([1, 4])):
            if octets:
                HARM[harm](octets, rng)
        path = tmp_path / f"{seed}.sqlite"
        path.write_bytes(octets)
        start = time.process_time()
        with suppress(DedupError):
            async with unopened(f"file:{path}") as index:
                await surveyed(index)
        assert time.process_time() - start < 5
        assert path.read_bytes() == octets


def test_a_file_of_random_bytes_is_refused(tmp_path: Path) -> None:
    for name, octets, error in (
        ("random", random.Random(1).randbytes(10_000), IndexMismatchError),
        ("empty", b"", IndexCorruptError),
    ):
        (tmp_path / name).write_bytes(octets)

        async def look(address: str) -> None:
            async with unopened(address) as index:
                await index.survey()

        with pytest.raises(error):
            asyncio.run(look(f"file:{tmp_path / name}"))


# --- Damages: Redis ------------------------------------------------------------------------------------


class Stored:
    """The keys of 20 pages, numbered from 1."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.entries = {number: entry(number) for number in range(1, 21)}

    def key(self, name: str) -> str:
        return PREFIX + name

    def id_key(self, number: int) -> bytes:
        keys = self.client.keys(f"{PREFIX}i:*")
        (found,) = (key for key in keys if self.client.get(key) == b"%d" % number)
        return found

    def bucket(self, number: int, table: int) -> bytes:
        keys = self.client.keys(f"{PREFIX}t:{table}:*")
        (found,) = (key for key in keys if self.client.zscore(key, number) is not None)
        return found

    def rewrite(self, number: int, **changes: Any) -> None:
        self.client.set(self.key(f"p:{number}"), pack(self.entries[number]._replace(**changes)))


MISSING, WRONG = "pages missing from tables", "members of a wrong bucket or score"
REDIS_DAMAGES: dict[str, tuple[Callable[[Stored], object], set[str], str, set[int]]] = {
    "a field added to the header": (
        lambda at: at.client.hset(at.key("header"), "more", "1"),
        {"the header"},
        "digest",
        set(),
    ),
    "a list in the place of a bucket": (
        lambda at: (key := at.bucket(3, 2), at.client.delete(key), at.client.rpush(key, "3")),
        {"keys of another type", MISSING},
        "page 3: 2 of 5",
        set(),
    ),
    "a hash in the place of a page": (
        lambda at: (at.client.delete(at.key("p:3")), at.client.hset(at.key("p:3"), "a", "b")),
        {"keys of another type", "members without a page", "page ids that do not lead to their pages"},
        "p:3 is not a string",
        {3},
    ),
    "a list in the place of the pending claims": (
        lambda at: at.client.rpush(at.key("pending"), "3"),
        {"keys of another type"},
        "pending is not a hash",
        set(),
    ),
    "a string in the place of the runs": (
        lambda at: at.client.set(at.key("runs"), "3"),
        {"keys of another type"},
        "runs is not a zset",
        set(),
    ),
    "a list in the place of the sequence": (
        lambda at: (at.client.delete(at.key("sequence")), at.client.rpush(at.key("sequence"), "3")),
        {"keys of another type", "the counters"},
        "sequence is not a string",
        set(),
    ),
    "a bucket that will expire": (
        lambda at: at.client.expire(at.bucket(3, 1), 1000),
        {"keys that will expire"},
        "t:1:",
        set(),
    ),
    "a header that will expire": (
        lambda at: at.client.expire(at.key("header"), 1000),
        {"keys that will expire"},
        "header",
        set(),
    ),
    "a torn record": (
        lambda at: at.client.set(at.key("p:3"), pack(at.entries[3])[:60]),
        {TYPES, "page ids that do not lead to their pages"},
        "page 3",
        {3},
    ),
    "an empty record": (
        lambda at: at.client.set(at.key("p:3"), b""),
        {TYPES, "page ids that do not lead to their pages", "members without a page"},
        "page 3",
        {3},
    ),
    "a record with a URL that is no UTF-8": (
        lambda at: at.client.append(at.key("p:3"), b"\xff"),
        {TYPES, "page ids that do not lead to their pages"},
        "page 3",
        {3},
    ),
    "a sketch of another length": (
        lambda at: at.rewrite(3, sketch=b"\x55" * 64),
        {TYPES},
        "64 bytes instead of 128",
        {3},
    ),
    "a band too many": (lambda at: at.rewrite(3, bands=(1,)), {TYPES}, "1 bands instead of 0", {3}),
    "another scope": (
        lambda at: at.rewrite(3, scope=1),
        {"pages of a wrong scope", WRONG},
        "page 3",
        set(),
    ),
    "another simhash": (
        lambda at: at.rewrite(3, simhash=at.entries[3].simhash ^ 1),
        {WRONG, MISSING},
        "page 3: ",
        set(),
    ),
    "another page id": (
        lambda at: at.rewrite(3, page_id="else"),
        {"pages that their ids do not lead to", "page ids that do not lead to their pages"},
        "page 3",
        set(),
    ),
    "a page id deleted": (
        lambda at: at.client.delete(at.id_key(3)),
        {"pages that their ids do not lead to"},
        "page 3",
        set(),
    ),
    "a page id that leads to another page": (
        lambda at: at.client.set(at.id_key(3), "4"),
        {"pages that their ids do not lead to", "page ids that do not lead to their pages"},
        "page 3",
        set(),
    ),
    "a page id that leads nowhere": (
        lambda at: at.client.set(at.key("i:0123456789abcdef"), "77"),
        {"page ids that do not lead to their pages"},
        "i:0123456789abcdef",
        set(),
    ),
    "a page id that leads to a word": (
        lambda at: at.client.set(at.key("i:0123456789abcdef"), "x\r\n"),
        {"page ids that do not lead to their pages"},
        "p:x\\r\\n",
        set(),
    ),
    "a page deleted": (
        lambda at: at.client.delete(at.key("p:3")),
        {"members without a page", "page ids that do not lead to their pages", "the counters"},
        "3 in ",
        {3},
    ),
    "a member deleted": (lambda at: at.client.zrem(at.bucket(3, 4), 3), {MISSING}, "page 3: 4 of 5", set()),
    "a table deleted": (
        lambda at: at.client.delete(*at.client.keys(f"{PREFIX}t:2:*")),
        {MISSING},
        "page 20: 2 of 5",
        set(),
    ),
    "another score": (
        lambda at: at.client.zincrby(at.bucket(3, 0), 1, 3),
        {WRONG, MISSING},
        "page 3 in bucket ",
        set(),
    ),
    "a score that is not finite": (
        lambda at: at.client.zadd(at.bucket(3, 0), {3: float("inf")}),
        {WRONG, MISSING},
        "page 3: 0 of 5",
        set(),
    ),
    "a page in two buckets": (
        lambda at: at.client.zadd(at.bucket(4, 1), {3: 5}),
        {WRONG},
        "of table 1",
        set(),
    ),
    "a member that is no number": (
        lambda at: at.client.zadd(at.bucket(3, 1), {"\x1b[2J": 5, "03": 6, "-1": 7, "1" * 40: 8}),
        {"members without a page"},
        "\\x1b[2J",
        set(),
    ),
    "a sequence that went back": (
        lambda at: at.client.set(at.key("sequence"), 5),
        {"the counters"},
        "sequence is 5, but page 20 is filed",
        set(),
    ),
    "a sequence lost": (
        lambda at: at.client.delete(at.key("sequence")),
        {"the counters"},
        "is missing",
        set(),
    ),
    "a sequence that is no number": (
        lambda at: at.client.set(at.key("sequence"), "many"),
        {"the counters"},
        "is not a number",
        set(),
    ),
    "a sequence that is too large": (
        lambda at: at.client.set(at.key("sequence"), 10**15 - 1),
        {"the counters"},
        "but 20 pages are filed",
        set(),
    ),
    "releases that never were": (
        lambda at: at.client.set(at.key("released"), 7),
        {"the counters"},
        "is 13, but 20 pages are filed",
        set(),
    ),
    "a pending claim without a page": (
        lambda at: at.client.hset(at.key("pending"), "77", RUN),
        {"pending claims without a page"},
        "page 77",
        set(),
    ),
    "a pending claim of no run": (
        lambda at: at.client.hset(at.key("pending"), "3", "somebody"),
        {"pending claims without a number or a run"},
        "3: somebody",
        set(),
    ),
    "a pending claim of no number": (
        lambda at: at.client.hset(at.key("pending"), "three", RUN),
        {"pending claims without a number or a run"},
        "three",
        set(),
    ),
    "a lease of no run": (
        lambda at: at.client.zadd(at.key("runs"), {"somebody": 5}),
        {"leases that no crawl can have"},
        "somebody",
        set(),
    ),
    "a lease without end": (
        lambda at: at.client.zadd(at.key("runs"), {RUN: float("inf")}),
        {"leases that no crawl can have"},
        "inf",
        set(),
    ),
    "a key that nobody knows": (
        lambda at: (at.client.set(at.key("note"), "x"), at.client.set(at.key("p:03"), "x")),
        {"unknown keys"},
        "note",
        set(),
    ),
    "a bucket of a table that is not in the plan": (
        lambda at: at.client.zadd(at.key("t:5:0"), {3: 1}),
        {"unknown keys"},
        "t:5:0",
        set(),
    ),
    "a bucket beyond the last": (
        lambda at: at.client.zadd(at.key("t:1:fffffffff"), {3: 1}),
        {"unknown keys"},
        "t:1:fffffffff",
        set(),
    ),
}


@pytest.fixture
def stored(redis_socket: Path) -> Iterator[Stored]:
    """A namespace of its own, emptied at the end."""
    with redis.Redis(unix_socket_path=str(redis_socket)) as client:
        client.flushall()
        yield Stored(client)
        client.flushall()


@pytest.mark.parametrize("damage", REDIS_DAMAGES)
@driven
async def test_each_damage_of_an_index_in_redis_is_named_and_the_rest_is_rebuilt(
    redis_socket: Path, tmp_path: Path, stored: Stored, damage: str
) -> None:
    harm, kinds, words, lost = REDIS_DAMAGES[damage]
    address = f"unix://{redis_socket}"
    async with opened_at(address, namespace=NAMESPACE) as index:
        await index.add(list(stored.entries.values()))
        assert (await surveyed(index))[1] == []
    harm(stored)
    before = {key: stored.client.dump(key) for key in stored.client.scan_iter()}
    async with unopened(address, namespace=NAMESPACE) as index:
        pages, findings = await surveyed(index)
    assert {finding.kind for finding in findings} == kinds, findings
    assert any(words in finding.what for finding in findings), findings
    assert all(finding.what.isprintable() and finding.repair for finding in findings)
    assert {key: stored.client.dump(key) for key in stored.client.scan_iter()} == before
    read = {filed for filed, _ in pages if filed}
    assert {filed for number, filed in stored.entries.items() if number not in {3, *lost}} <= read
    assert await restored(address, tmp_path / "fresh.sqlite") == len(read)
    assert len(read) == 20 - len(lost)


@driven
async def test_counters_are_repaired_as_advised(redis_socket: Path, stored: Stored) -> None:
    for key, value in (("sequence", 5), ("released", 7), ("released", 0)):
        async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
            await index.add(list(stored.entries.values()))
            await index.forget(["id 1"])
            stored.client.set(PREFIX + key, value)
            for _ in range(2):
                for finding in (await surveyed(index))[1]:
                    stored.client.execute_command(*finding.repair.partition(",")[0].split(" "))
            assert (await surveyed(index))[1] == []
            assert await index.count() == 19


HEADERS: dict[str, tuple[Callable[[Stored], object], type[Exception], str]] = {
    "deleted": (lambda at: at.client.delete(at.key("header")), IndexCorruptError, "no header"),
    "a string": (
        lambda at: (at.client.delete(at.key("header")), at.client.set(at.key("header"), "x")),
        IndexMismatchError,
        "is not the header",
    ),
    "another parameter": (
        lambda at: at.client.hset(at.key("header"), "scheme", "9"),
        IndexMismatchError,
        "scheme is '9'",
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
        await index.add([entry(number) for number in range(700)])
        stored.client.delete(*stored.client.keys(f"{PREFIX}t:2:*"))
        findings = (await surveyed(index))[1]
    assert [finding.what for finding in findings if finding.kind == "pages not looked at any closer"] == [
        "490 from 11 on",
        "200 from 501 on",
    ]
    assert len(findings) == 12


@pytest.mark.parametrize("name", ["*", "[a]", "a\\b", "a?c^d-e"])
@driven
async def test_a_namespace_of_odd_characters_is_surveyed_alone(
    redis_socket: Path, stored: Stored, name: str
) -> None:
    address = f"unix://{redis_socket}"
    async with opened_at(address, namespace=name) as index, opened_at(address, namespace="abc") as other:
        await index.add([entry(1)])
        await other.add([entry(2), entry(3)])
        pages, findings = await surveyed(index)
        assert ([filed and filed.page_id for filed, _ in pages], findings) == (["id 1"], [])


@pytest.mark.parametrize("memory", ["+memory|usage", "-memory|usage"])
@driven
async def test_a_user_who_may_only_read_can_take_a_survey(
    redis_socket: Path, stored: Stored, memory: str
) -> None:
    async with opened_at(f"unix://{redis_socket}", namespace=NAMESPACE) as index:
        await index.add(list(stored.entries.values()))
    rights = "on >tiptoe ~shingleback:* -@all +@read +@connection +@transaction +evalsha +script|load +time"
    stored.client.execute_command("ACL", "SETUSER", "reader", *rights.split(), memory)
    try:
        async with unopened(f"unix://reader:tiptoe@{redis_socket}", namespace=NAMESPACE) as index:
            pages, findings = await surveyed(index)
            assert (len(pages), findings) == (20, [])
            survey = await index.survey()
            assert survey
            octets, _ = await survey.stored()
            assert (octets is None) == (memory == "-memory|usage")
            with pytest.raises(IndexUnavailableError):
                await index.add([entry(99)])
    finally:
        stored.client.execute_command("ACL", "DELUSER", "reader")


@driven
async def test_a_server_that_is_away_is_an_error() -> None:
    async with unopened("unix:///no/such/socket") as index:
        with pytest.raises(IndexUnavailableError):
            await index.survey()


# --- Records -------------------------------------------------------------------------------------------


def test_a_record_is_whole_or_none() -> None:
    from dedup.index.redis.record import whole

    record = pack(entry(1, bands=(1, 2)))
    assert whole(record) == entry(1, bands=(1, 2)) == unpack(record)
    rng = random.Random(6)
    for _ in range(3000):
        spoilt = bytearray(record)
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        found = whole(bytes(spoilt[: rng.randrange(30, 2 * len(spoilt))]))
        assert found is None or isinstance(found, Entry)
    for cut in range(len(record) - len(entry(1).url.encode())):
        assert whole(record[:cut]) is None
    for page_id in map(storable_id, ODD_IDS.values()):
        assert whole(pack(entry(1, page_id=page_id))) == entry(1, page_id=page_id)


# --- Distributions -------------------------------------------------------------------------------------


def test_leading_bits_are_those_of_the_neighbours_in_sorted_order() -> None:
    rng = random.Random(2)
    simhashes = [rng.getrandbits(64) for _ in range(500)] + [0, 0, ALL_BITS, ALL_BITS, ALL_BITS]
    counts = [0] * 65
    ordered = sorted(simhashes)
    for one, another in pairwise(ordered):
        counts[(one ^ another).bit_length()] += 1
    assert leading_bits(np.array(simhashes, np.uint64)).tolist() == counts
    assert leading_bits(np.empty(0, np.uint64)).sum() == leading_bits(np.array([7], np.uint64)).sum() == 0


def test_random_fingerprints_are_spread_as_expected() -> None:
    rng = np.random.default_rng(4)
    found = sum(leading_bits(rng.integers(0, 2**64, 1000, np.uint64)) for _ in range(200)) / 200
    expected = expected_leading_bits(1000)
    assert abs(float(expected.sum()) - 999) < 0.01
    assert np.abs(found - expected).max() < 3 * np.sqrt(expected.max() / 200)


def test_fill_counts_equal_intervals() -> None:
    assert fill(np.array([0, 1, 2**57, ALL_BITS], np.uint64)).tolist() == [2, 1, *[0] * 125, 1]


def test_skew_is_how_many_pages_share_a_prefix() -> None:
    plan = plan_for(4, max_distance=3)
    rng = random.Random(8)
    keys = [(rng.getrandbits(64), rng.choice([5, 6 << 40, rng.getrandbits(64)])) for _ in range(400)]
    for one in skew(np.array(keys, np.uint64), plan, limit=100):
        table = (DIGESTS, *plan.tables)[one.table]
        shared: dict[int, int] = {}
        for key in keys:
            prefix = table.permute(key[table.column]) >> (64 - table.prefix)
            shared[prefix] = shared.get(prefix, 0) + 1
        assert one.largest == max(shared.values())
        assert one.over == sum(size > 100 for size in shared.values())
        assert one.mean == pytest.approx(sum(size * size for size in shared.values()) / 400)


def test_scope_masks_are_still_those_of_the_contract() -> None:
    assert scope_mask("host", "http://a/") != scope_mask("host", "http://b/")
