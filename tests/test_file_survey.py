"""Surveys of files: each damage is made once, and has to be named; what is left is exported into a sound index."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import xxhash

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.index.local.file import COLUMNS
from tests.support.coroutines import driven
from tests.support.stores import opened_at
from tests.support.surveys import TYPES, entry, restored, surveyed, unopened

FILE_DAMAGES: dict[str, tuple[str, str, str]] = {
    "a short simhash": ("UPDATE pages SET simhash = x'00' WHERE number = 3", TYPES, "row 3"),
    "a simhash that is text": ("UPDATE pages SET simhash = '12345678' WHERE number = 3", TYPES, "row 3"),
    "a long scope": ("UPDATE pages SET scope = x'000000000000000000' WHERE number = 3", TYPES, "row 3"),
    "a digest that is a number": ("UPDATE pages SET digest = 7 WHERE number = 3", TYPES, "row 3"),
    "a band too many": ("UPDATE pages SET bands = x'0000000000000000' WHERE number = 3", TYPES, "1 bands"),
    "half a band": ("UPDATE pages SET bands = x'00000000' WHERE number = 3", TYPES, "row 3"),
    "a short sketch": ("UPDATE pages SET sketch = x'5555' WHERE number = 3", TYPES, "2 bytes instead of 136"),
    "a page id of bytes": ("UPDATE pages SET page_id = x'00ff' WHERE number = 3", TYPES, "row 3"),
    "a URL of bytes": ("UPDATE pages SET url = x'00ff' WHERE number = 3", TYPES, "row 3"),
    "a URL that is no UTF-8": ("UPDATE pages SET url = CAST(x'ff' AS TEXT) WHERE number = 3", TYPES, "row 3"),
    "a time that is text": ("UPDATE pages SET filed = 'now' WHERE number = 3", TYPES, "row 3"),
    "a time before 1970": ("UPDATE pages SET filed = -1 WHERE number = 3", TYPES, "-1"),
    "no run": ("UPDATE pages SET run = '' WHERE number = 3", TYPES, "run"),
    "a page id twice": (
        """CREATE TABLE p AS SELECT * FROM pages; DROP TABLE pages; ALTER TABLE p RENAME TO pages;
        UPDATE pages SET page_id = 'id 1' WHERE number = 3""",
        "page ids filed twice",
        "'id 1': 2 times",
    ),
    "a segment of other keys": (
        "UPDATE segments SET keys = zeroblob(length(keys))",
        "packed keys",
        "segment 0",
    ),
    "no segment": ("DELETE FROM segments", "packed keys", "not those of the pages"),
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


@cache
def filled(pages: int) -> bytes:
    """The file of an index of so many pages."""

    async def fill(path: Path) -> None:
        async with opened_at(f"file:{path}") as index:
            await index.add([entry(number) for number in range(1, pages + 1)])

    with TemporaryDirectory() as folder, ThreadPoolExecutor() as outside:  # where no loop runs yet
        outside.submit(asyncio.run, fill(path := Path(folder, "index.sqlite"))).result()
        return path.read_bytes()


def filled_file(path: Path, pages: int = 20) -> None:
    path.write_bytes(filled(pages))


@pytest.mark.parametrize("damage", FILE_DAMAGES)
@driven
async def test_each_damage_of_a_file_is_named_and_the_rest_is_rebuilt(tmp_path: Path, damage: str) -> None:
    statements, kind, words = FILE_DAMAGES[damage]
    path = tmp_path / "index.sqlite"
    filled_file(path)
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
    filled_file(path)
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
    "no plan": ("UPDATE header SET value = '' WHERE name = 'tables'", IndexMismatchError, "tables is ''"),
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
    filled_file(path)
    change(path, statements)
    async with unopened(f"file:{path}") as index:
        with pytest.raises(error) as refusal:
            await surveyed(index)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 4)) for seed in range(20)]
)
@driven
async def test_of_a_file_with_a_spoilt_part_the_rest_is_read(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "index.sqlite"
    filled_file(path, pages=600)
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
async def test_whatever_is_done_to_a_file_is_found_or_our_error_and_left(tmp_path: Path, harm: str) -> None:
    right = filled(120)
    for seed in range(8):
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
