"""What a crawl has learned of a host's noise is noted beside the index, and the next crawl begins with it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.living import ALL
from dedup.errors import IndexMismatchError
from dedup.filter.noise.gaps import hashed
from dedup.filter.noise.notes import MAX_NOTED, Notes
from dedup.index.local import sqlite
from tests.support.coroutines import driven
from tests.support.living import NOISES, crawl, pages_of, shuffled
from tests.support.redis import Server
from tests.support.stores import PERSISTENT, change, fill, opened, opened_at, pages


@PERSISTENT
@driven
async def test_notes_outlive_a_crawl(address: str) -> None:
    async with opened_at(address) as index:
        assert await index.recall("a.org") == b""
        await index.remember({"a.org": b"first", "b.org": b"\0\xff"})
    async with opened_at(address) as index:
        await index.remember({"a.org": b"second"})
        assert [await index.recall(host) for host in ("a.org", "b.org", "c.org")] == [
            b"second",
            b"\0\xff",
            b"",
        ]


@driven
async def test_memory_notes_nothing() -> None:
    async with opened_at("memory:") as index:
        await index.remember({"a.org": b"noted"})
        assert await index.recall("a.org") == b""


@driven
async def test_an_emptied_index_gets_no_notes(server: Server) -> None:
    async with opened(server.address) as index:
        server.client.flushall()
        with pytest.raises(IndexMismatchError):
            await index.remember({"a.org": b"noted"})
        assert server.client.keys() == []


@driven
async def test_the_oldest_notes_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_SAVED", 2)
    async with opened_at(f"file:{tmp_path / 'index'}") as index:
        for host in ("a.org", "b.org", "a.org", "c.org"):
            await index.remember({host: b"noted"})
        noted = [await index.recall(host) for host in ("a.org", "b.org", "c.org")]
    assert noted == [b"noted", b"", b"noted"]


@driven
async def test_a_file_without_the_table_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "index"
    await fill(path, pages(2))
    change(path, "DROP TABLE notes")
    async with opened_at(f"file:{path}") as index:
        await index.remember({"a.org": b"noted"})
        assert (await index.count(), await index.recall("a.org")) == (2, b"noted")


def test_a_hash_is_the_same_in_every_process() -> None:
    assert hashed(("brass", "lamp")) == 6235288671084398175


@driven
async def test_the_next_crawl_asks_for_less_and_loses_nothing(tmp_path: Path) -> None:
    site = pages_of("reviews", ALL["reviews"], "words", NOISES["shuffled"])
    index = f"file:{tmp_path / 'index'}"
    crawls = [await crawl(shuffled(site, order), seed=order, at_once=8, index=index) for order in (7, 8, 9)]
    first, *later = crawls
    for fates in later:
        assert fates.lost() == set()
        assert 2 * fates.requests <= first.requests
        assert len(fates.drops) > len(first.drops)


@driven
async def test_damaged_notes_are_no_notes(tmp_path: Path) -> None:
    path, site = tmp_path / "index", pages_of("reviews", ALL["reviews"], "words", NOISES["shuffled"])
    await crawl(shuffled(site, 1), index=f"file:{path}")
    with closing(sqlite3.connect(path)) as connection:
        noted = dict(connection.execute("SELECT host, octets FROM notes"))
    octets = noted["www.example.org"]
    assert Notes.from_bytes(octets).kinds
    assert len(octets) < MAX_NOTED / 8
    for at in range(0, len(octets), 97):
        flipped = octets[:at] + bytes([octets[at] ^ 0x10]) + octets[at + 1 :]
        assert not Notes.from_bytes(flipped).kinds
        assert not Notes.from_bytes(octets[:at]).kinds
