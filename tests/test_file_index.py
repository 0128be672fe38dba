"""What only the index in a file has: where it may be, its lock, and when it is written."""

import asyncio
import gc
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dedup.errors import DedupError, IndexMismatchError, IndexUnavailableError, SettingsError
from dedup.fingerprint.detector import Detector
from dedup.index import Index
from tests.support.coroutines import driven
from tests.support.fingerprints import Claim, fingerprint_of
from tests.support.processes import Forked
from tests.support.stores import (
    RUN,
    change,
    fill,
    in_file,
    index_in,
    open_and_close,
    opened_at,
    pages,
    try_to_open,
    twin_of,
)
from tests.support.waiting import LIMIT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where there is no index yet."""
    return tmp_path / "index.sqlite"


@pytest.fixture
def filled(path: Path) -> Path:
    """An index of 50 pages."""
    asyncio.run(fill(path, pages(50)))
    return path


# --- Where it may be -----------------------------------------------------------------------------------


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    path = tmp_path / "one" / "and another" / "index.sqlite"
    try_to_open(path)
    assert path.is_file()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="directory") as refusal:
        try_to_open(tmp_path)
    assert str(tmp_path) in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@driven
async def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    (claim,) = pages(1)
    for name in (
        "a b.sqlite",
        "what?mode=rw",
        "100%41#.sqlite",
        "päge 🕷",
        "-rf",
        "a\nb",
        os.fsdecode(b"\xff\xfe"),
    ):
        await fill(tmp_path / name, [claim])
        async with opened_at(f"file:{tmp_path / name}") as index:
            assert (await index.claim(*claim)).status == "same", ascii(name)
            assert "\n" not in index.where


def test_a_path_that_no_index_can_have_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a\ndirectory").mkdir()
    (tmp_path / "an\nempty\nfile").touch()
    (tmp_path / "some\ntext").write_text("text" * 1000)
    for name in "x" * 300, "a\0b", "file/below", "pipe", "a\ndirectory", "an\nempty\nfile", "some\ntext":
        with pytest.raises(DedupError) as refusal:
            try_to_open(tmp_path / name)
        assert "\n" not in str(refusal.value), ascii(name)


def test_a_symbolic_link_to_a_file_that_is_yet_to_be_made_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "index.sqlite")
    try_to_open(tmp_path / "link")
    assert (tmp_path / "elsewhere" / "index.sqlite").is_file()


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Skips the test for those who may write to anything."""
    mode = path.stat().st_mode
    path.chmod(mode & ~0o222)
    try:
        if os.access(path, os.W_OK):
            pytest.skip("root may write to what is read-only")
        yield
    finally:
        path.chmod(mode)


def test_a_file_that_is_read_only_is_refused(filled: Path) -> None:
    before = filled.read_bytes()
    with read_only(filled), pytest.raises(IndexUnavailableError, match=filled.name):
        try_to_open(filled)
    assert filled.read_bytes() == before


def test_a_folder_that_is_read_only_is_refused(path: Path) -> None:
    with read_only(path.parent), pytest.raises(IndexUnavailableError, match=path.name):
        try_to_open(path)


# --- One crawl at a time -------------------------------------------------------------------------------


def hold(path: Path, held: Path) -> None:
    """Opens an index, says by whom, and never ends."""
    asyncio.run(index_in(path).open())
    held.with_suffix(".new").write_text(f"{os.getpid()}")
    held.with_suffix(".new").rename(held)
    threading.Event().wait()


@contextmanager
def holder(path: Path) -> Iterator[str]:
    """Another process, which has the index open; killed at the end."""
    held = path.with_name("held")
    process = Forked(hold, path, held)
    try:
        process.wait(LIMIT, held.exists)
        yield held.read_text()
    finally:
        process.close()
        held.unlink()


NAMES = ["index.sqlite", "folder/../index.sqlite", "link to folder/index.sqlite", "link"]


@pytest.fixture
def named(path: Path) -> Path:
    """The folder where an index has all these names."""
    (path.parent / "folder").mkdir()
    (path.parent / "link to folder").symlink_to(path.parent)
    (path.parent / "link").symlink_to(path)
    return path.parent


def test_an_index_that_another_process_has_open_is_refused_by_any_name(path: Path, named: Path) -> None:
    with holder(path) as process:
        for name in NAMES:
            with pytest.raises(IndexUnavailableError) as refusal:
                try_to_open(named / name)
            text = str(refusal.value)
            assert f"(process {process})" in text
            assert f"file:{named / name}" in text
            assert "\n" not in text
    try_to_open(path)  # that process was killed


# --- Several runs in one process -----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@driven
async def test_runs_of_one_process_share_what_is_open_by_any_name(path: Path, named: Path, name: str) -> None:
    a, b, c = pages(3)
    async with opened_at(f"file:{path}") as one:
        await one.claim(*a)
        async with opened_at(f"file:{named / name}") as another:
            assert (await another.claim(*twin_of(a))).of == a[1]
            await another.release(a[0])
            await another.confirm(a[0])  # it is not its own
            assert await another.states([a[0]]) == ["pending"]
            await another.claim(*b)
            await another.confirm(b[0])
            await another.claim(*c)
        assert await one.states([a[0], b[0], c[0]]) == ["pending", "safe", "absent"]
        assert (await one.claim(*twin_of(b))).of == b[1]
        await one.confirm(a[0])
    assert in_file(path) == 2
    with holder(path):  # it was let go of
        pass


@driven
async def test_a_run_that_was_never_closed_and_is_gone_is_dead(path: Path) -> None:
    """As where a cell of a notebook is run twice."""
    (claim,) = pages(1)
    for _ in range(3):
        index = index_in(path)
        gc.collect()
        assert (await index.claim(*claim)).status == "new"
    await index.close()


@driven
async def test_a_run_may_be_collected_wherever_another_one_is(path: Path) -> None:
    """As in the midst of a claim, which makes objects, and so has the collector look."""
    a, b = pages(2)
    one, index = index_in(path), index_in(path)
    await one.claim(*a)
    await index.claim(*b)
    shelf = index._shelf  # type: ignore[attr-defined]
    with shelf.lock, shelf._writing:
        del one
        gc.collect()
    other = index_in(path)
    assert await other.states([a[0], b[0]]) == ["absent", "pending"]
    await other.close()
    await index.close()


@driven
async def test_what_is_known_of_hosts_is_shared_and_saved_by_each_run(path: Path) -> None:
    async with (
        opened_at(f"file:{path}", min_containment=0.7) as one,
        opened_at(f"file:{path}", min_containment=0.8) as another,
    ):
        assert one.hosts
        assert another.hosts
        assert one.hosts.table("a.example") is another.hosts.table("a.example")
        assert (one.hosts.settings.min_containment, another.hosts.settings.min_containment) == (0.7, 0.8)


@driven
async def test_a_file_is_opened_with_the_tables_that_are_wanted_now(path: Path) -> None:
    """They are made when it is opened.  Files of before have the plan of 28 tables in their header: '8'."""
    detector, claims = Detector(max_distance=6, min_resemblance=0.7), pages(40)
    for wanted, shown, stored in [(None, "4+1", "8"), (28, "8", "4+1"), (84, "9", "4+1"), (None, "4+1", "9")]:
        async with opened_at(f"file:{path}", detector, tables=wanted, run=RUN) as index:
            assert index.parameters.texts["tables"] == shown
            for page_id, url, page in claims:
                await index.claim(page_id, url, page)
                await index.confirm(page_id)
                near = replace(
                    page, simhash=(page.simhash or 0) ^ 0b11 << 15 ^ 0b11 << 31 ^ 0b11 << 47, digest=0
                )
                assert (await index.claim("near", "http://near/", near)).of == url
        change(path, f"UPDATE header SET value = '{stored}' WHERE name = 'tables'")


@driven
async def test_a_file_that_was_replaced_while_it_is_open_is_refused(path: Path) -> None:
    async with opened_at(f"file:{path}"):
        os.rename(path, f"{path} elsewhere")
        with pytest.raises(IndexMismatchError, match="deleted or replaced"):
            await open_and_close(path)
        os.rename(f"{path} elsewhere", path)


# --- What is written ----------------------------------------------------------------------------------


@driven
async def test_confirmations_are_written_even_while_the_caller_does_not_wait_for_anything(path: Path) -> None:
    index = index_in(path)
    rng = random.Random(1)
    async with asyncio.timeout(LIMIT):
        while in_file(path) == 0:
            for page_id in (f"{rng.getrandbits(64)}" for _ in range(50)):
                await index.claim(page_id, "http://example.org/", fingerprint_of(int(page_id)))
                await index.confirm(page_id)
    await index.close()


@pytest.mark.parametrize("method", ["simhash", "minhash", "supershingle"])
@driven
async def test_an_opened_file_has_each_page_under_the_keys_it_was_filed_by(path: Path, method: Any) -> None:
    detector = Detector(method=method, min_tokens=2)
    filed = {}
    for n in range(10):
        page = detector.fingerprint(f"<main><p>{n} little words</main><nav>and a menu</nav>")
        async with opened_at(f"file:{path}", detector, scope="host") as index:
            await index.claim(f"{n}", f"http://{n % 3}.example/{n}", page)
            await index.confirm(f"{n}")
            entry = await index.find(f"{n}")
            assert entry
            filed[n] = entry.keys
    async with opened_at(f"file:{path}", detector, scope="host") as index:
        assert {n: index._shelf.tables.keys(n) for n in filed} == filed  # type: ignore[attr-defined]


@driven
async def test_a_page_in_the_row_of_a_forgotten_one_is_compared_by_its_own_sketch(path: Path) -> None:
    async with opened_at(f"file:{path}") as index:
        await file_and_write(index, ("first", "http://a/", fingerprint_of(0)))
        unlike = replace(fingerprint_of(0, changed=200), digest=1)
        assert (await index.claim("unlike", "http://b/", unlike)).status == "new"  # the first one's was read
        await index.release("unlike")
        with index._shelf._writing:  # type: ignore[attr-defined]  # it is still in the file
            forgetting = asyncio.create_task(index.forget(["first"]))
            await asyncio.sleep(0)
            assert await index.find("first") is None
        assert await forgetting == 1
        await file_and_write(index, ("second", "http://c/", fingerprint_of(0, changed=400)))
        like = replace(fingerprint_of(0, changed=401), digest=2)
        assert (await index.claim("like", "http://d/", like)).of == "http://c/"


@driven
async def test_what_is_looked_up_between_two_writes_does_not_make_the_log_grow(path: Path) -> None:
    async with opened_at(f"file:{path}") as index:
        store = index._shelf.store  # type: ignore[attr-defined]
        store._writer.execute("PRAGMA wal_autocheckpoint = 10")
        sizes = []
        for claim in pages(60):
            await file_and_write(index, claim)
            sizes.append(size_of_log(path))
        assert sizes[-1] == sizes[29]


@driven
async def test_a_host_that_is_read_while_pages_are_written_does_not_hide_them(path: Path) -> None:
    async with opened_at(f"file:{path}") as index:
        await file_and_write(index, *pages(1))
        shelf = index._shelf  # type: ignore[attr-defined]
        shelf.write([], {"a": b"its table"})
        reader, begun, written = shelf.store._reader, threading.Event(), threading.Event()

        class Paused:
            """A reader that is between the first row of a host and the end of the query until pages were written."""

            def execute(self, query: str, *values: Any) -> Any:
                found = reader.execute(query, *values)
                if "FROM hosts" in query:
                    begun.set()
                    written.wait(1)
                return found

            def __getattr__(self, name: str) -> Any:
                return getattr(reader, name)

        shelf.store._reader = Paused()
        loading = threading.Thread(target=shelf._load_host, args=("a",))
        loading.start()
        begun.wait()
        await index.claim("x", "http://x/", page := fingerprint_of(99))
        await index.confirm("x")
        await index._confirmations.flush()  # type: ignore[attr-defined]
        written.set()
        loading.join()
        shelf.store._reader = reader
        like = replace(page, digest=2)
        assert (await index.claim("like", "http://y/", like)).of == "http://x/"


def size_of_log(path: Path) -> int:
    """Says how long SQLite's log beside a file is."""
    return os.path.getsize(f"{path}-wal")


async def file_and_write(index: Index, claim: Claim) -> None:
    """Files a page, waits until it is written, and looks it up."""
    await index.claim(*claim)
    await index.confirm(claim[0])
    await index._confirmations.flush()  # type: ignore[attr-defined]
    assert await index.find(claim[0])
