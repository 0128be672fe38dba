"""Disks that are full, read-only or failing, and files that vanish while a crawl has them open.

What was acknowledged stays; what could not be written is still looked up, and is written when that is
possible again.  Nothing is raised but errors of ours, and none of them drops a page.
"""

import asyncio
import logging
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from dedup.contrib.changes.file import History
from dedup.contrib.changes.validators import Held
from dedup.errors import DedupError, IndexMismatchError, IndexUnavailableError
from dedup.index import Index, batching
from dedup.texts.texts import Text
from tests.support.coroutines import driven
from tests.support.fingerprints import Claim
from tests.support.stores import fill, index_in, pages, try_to_open, twin_of, until_written
from tests.support.waiting import until

#: Seconds that a confirmation waits to be written; seconds after which it may have been.
PATIENCE, SOON = 0.05, 0.25


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PATIENCE", PATIENCE)


def mount(*arguments: object) -> bool:
    """Whether it could be done."""
    program = shutil.which("mount")
    command = [str(argument) for argument in (program, *arguments)]
    return program is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


class Disk:
    """A disk that can be full: a small one in memory, or else a limit to the size of files."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind
        self._ballast = folder / "ballast"
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """No byte more can be written."""
        if self.kind == "limit":
            size = max(file.stat().st_size for file in (*self.folder.iterdir(), self.folder / "."))
            resource.setrlimit(resource.RLIMIT_FSIZE, (min(size, 4096), self._limits[1]))
            return
        with self._ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def free(self) -> None:
        """Again there is room."""
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)
        self._ballast.unlink(missing_ok=True)


@pytest.fixture(params=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """Either kind in turn; a container may not let us have the first."""
    kind, folder = str(request.param), tmp_path / "disk"
    folder.mkdir()
    if kind == "tmpfs" and not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder):
        pytest.skip("we may not mount a small disk: only the limit to the size of files is tested")
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    disk = Disk(folder, kind)
    try:
        yield disk
    finally:
        disk.free()
        signal.signal(signal.SIGXFSZ, ignored)
        if kind == "tmpfs":
            subprocess.run(["umount", "-l", folder], check=True)


def whole(path: Path) -> int:
    """How many pages a closed file holds; asserts that it is sound."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (number,) = connection.execute("SELECT count(*) FROM pages").fetchone()
    return int(number)


async def process(index: Index, claims: list[Claim]) -> None:
    """New pages, claimed and confirmed."""
    for claim in claims:
        assert (await index.claim(*claim)).status == "new"
        await index.confirm(claim[0])


async def until_told(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Waits until a warning holds a text."""
    await until(
        lambda: any(text in record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    )


async def is_looked_up(index: Index, claims: list[Claim]) -> None:
    """Asserts that these are known, and their twins dropped."""
    for claim in claims:
        assert (await index.claim(*claim)).status == "same"
        assert (await index.claim(*twin_of(claim))).of == claim[1]


# --- No room ------------------------------------------------------------------------------------------


def test_no_room_for_a_new_index_is_an_error_and_there_is_none_afterwards(disk: Disk) -> None:
    path = disk.folder / "index.sqlite"
    disk.fill()
    with pytest.raises(IndexUnavailableError, match=str(path)):
        try_to_open(path)
    disk.free()
    assert not path.exists()
    try_to_open(path)
    assert whole(path) == 0


@pytest.mark.parametrize("trials", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_what_can_not_be_written_is_looked_up_and_written_when_there_is_room(
    disk: Disk, trials: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def crawl(path: Path, rng: random.Random) -> None:
        claims = pages(300, seed=rng.randrange(99))
        parts = [claims[:50], claims[50:100], claims[100:200], claims[200:]]
        await fill(path, parts[0])
        index = index_in(path)
        await process(index, parts[1])
        await asyncio.sleep(rng.choice([0, SOON]))
        disk.fill()
        await process(index, parts[2])
        await until_told(caplog, str(path))
        await is_looked_up(index, claims[:200:5])
        assert await index.count() == 200
        disk.free()
        await process(index, parts[3])
        await until_written(path, 300)
        await is_looked_up(index, claims[::10])
        await index.close()
        assert whole(path) == 300

    for trial in range(trials):
        caplog.clear()
        path = disk.folder / "index.sqlite"
        asyncio.run(crawl(path, random.Random(trial)))
        (warning,) = (text for _, level, text in caplog.record_tuples if level == logging.WARNING)
        assert str(path) in warning
        path.unlink()
    print(f"\n{disk.kind}: full {trials} times")


@driven
async def test_no_room_to_the_end_is_an_error_and_what_was_written_before_stays(disk: Disk) -> None:
    path = disk.folder / "index.sqlite"
    claims = pages(200)
    index = index_in(path)
    await process(index, claims[:100])
    await until_written(path, 100)
    disk.fill()
    await process(index, claims[100:])
    with pytest.raises(IndexUnavailableError, match=str(path)):
        await index.close()
    disk.free()
    index = index_in(path)
    assert await index.count() == 100
    await is_looked_up(index, claims[:100])
    await process(index, claims[100:])
    await index.close()
    assert whole(path) == 200


# --- Read-only ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", [True, False], ids=["an index", "a folder"])
def test_a_read_only_disk_is_an_error_that_names_the_file(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder):
        pytest.skip("we may not mount a disk: that a read-only one is refused is NOT tested")
    path = folder / "index.sqlite"
    try:
        if there:
            asyncio.run(fill(path, pages(20)))
        before = path.read_bytes() if there else b""
        assert mount("-o", "remount,ro", folder)
        with pytest.raises(IndexUnavailableError, match=str(path)):
            try_to_open(path)
        assert (path.read_bytes() if there else b"") == before
        assert mount("-o", "remount,rw", folder)
        try_to_open(path)
        assert whole(path) == 20 * there
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


# --- Files that change hands while they are open ----------------------------------------------------


@pytest.mark.parametrize("change", ["deleted", "moved", "replaced"])
@driven
async def test_a_file_that_is_no_longer_there_is_noticed_when_something_is_written(
    tmp_path: Path, change: Literal["deleted", "moved", "replaced"], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "index.sqlite"
    claims = pages(60)
    await fill(path, claims[:20])
    index = index_in(path)
    await process(index, claims[20:40])
    await until_written(path, 40)
    if change == "deleted":
        path.unlink()
    else:
        path.rename(tmp_path / "elsewhere")
    if change == "replaced":
        await fill(tmp_path / "another", pages(5, seed=2))
        (tmp_path / "another").rename(path)
    there = path.read_bytes() if path.exists() else None
    await is_looked_up(index, claims[:40])  # for as long as it is open, it answers
    await process(index, claims[40:])
    await until_told(caplog, "deleted or replaced")
    with pytest.raises(IndexMismatchError, match="deleted or replaced"):
        await index.close()
    assert there == (path.read_bytes() if path.exists() else None)


@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("size", [0, 4096, 3 * 4096])
@driven
async def test_a_file_that_is_cut_while_open_drops_none_wrongly(tmp_path: Path, end: str, size: int) -> None:
    path = tmp_path / "index.sqlite"
    claims = pages(60)
    await fill(path, claims[:40])
    index = index_in(path)
    await process(index, claims[40:])
    await until_written(path, 60)
    os.truncate(f"{path}{end}", size)
    for claim, stranger in zip(claims, pages(60, "stranger", seed=2), strict=True):
        with suppress(DedupError):
            assert (await index.claim(*stranger)).status == "new"
        with suppress(DedupError):
            assert (await index.claim(*twin_of(claim))).of in {claim[1], None}
        with suppress(DedupError):
            assert (await index.claim(*claim)).status in {"same", "new", "duplicate"}
    with suppress(DedupError):
        await index.close()


# --- The Nth call fails -------------------------------------------------------------------------------


class Failing(sqlite3.Connection):
    """A connection whose statements fail, from the Nth of all on: once, or for ever."""

    left = 0
    once = True

    def _fail(self) -> None:
        Failing.left -= 1
        if Failing.left == 0 or (Failing.left < 0 and not Failing.once):
            raise sqlite3.OperationalError("disk I/O error")

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._fail()
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._fail()
        return super().executemany(*arguments)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> Literal[False]:
        """A commit fails, and is rolled back."""
        try:
            if kind is None:
                self._fail()
        except sqlite3.OperationalError as error:
            super().__exit__(type(error), error, None)
            raise
        return super().__exit__(kind, *rest)


@pytest.mark.parametrize("once", [True, False], ids=["once", "for ever"])
@pytest.mark.parametrize("written", ["one by one", "at the end"])
def test_whichever_statement_fails_nothing_acknowledged_is_lost(
    tmp_path: Path, written: str, once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 60)  # however busy the machine is, nothing else writes
    claims, strangers = pages(4), pages(4, "stranger", seed=2)
    asyncio.run(fill(tmp_path / "filled", claims[:2]))
    connect = sqlite3.connect

    async def crawl(path: Path) -> int | None:
        """How many pages it has filed; None if it could not write them all."""
        index, filed = index_in(path), 2
        for claim, stranger in zip(claims, strangers, strict=True):
            with suppress(DedupError):
                verdict = await index.claim(*claim)
                assert verdict.status in {"new", "same"}
                filed += verdict.status == "new"
            await index.confirm(claim[0])
            with suppress(DedupError):
                assert (await index.claim(*twin_of(claim))).of in {claim[1], None}
            with suppress(DedupError):
                assert (await index.claim(*stranger)).status == "new"
            await index.release(stranger[0])
            if written == "one by one":
                with suppress(DedupError):
                    await index._confirmations.flush()  # type: ignore[attr-defined]
        try:
            await index.close()
        except DedupError:
            return None
        return filed

    for trial in count(1):
        path = tmp_path / str(trial)
        shutil.copy(tmp_path / "filled", path)
        Failing.left, Failing.once = trial, once
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Failing, **k))
            filed = asyncio.run(crawl(path))
        assert whole(path) >= 2 if filed is None else whole(path) == filed
        try_to_open(path)
        if Failing.left > 0:  # it did not come to that
            assert filed == 4
            break
    print(f"\nthe Nth statement fails {'once' if once else 'for ever'}: {trial - 1} trials")
    assert trial > 20


@pytest.mark.parametrize("once", [True, False], ids=["once", "for ever"])
def test_whichever_statement_of_a_history_fails_what_is_stored_is_right(
    tmp_path: Path, once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, rng = sqlite3.connect, random.Random(1)
    said = {f"http://a/{n}": [f"{rng.getrandbits(64):x}" for _ in range(50)] * 2 for n in range(6)}
    held = Held("1", '"7"', "", "", "", 1, 2, 3, "", b"")

    def crawl(path: Path) -> bool:
        """Whether all was written, but for the first page, which it takes back."""
        with closing(History(path)) as history:
            for number, (url, tokens) in enumerate(said.items()):
                with suppress(sqlite3.Error):
                    history.write(url, "new", 1, url, Text(tokens))
                    history.hold(url, held)
                    if number % 3 == 2:
                        history.flush()
                if number > 1:
                    with suppress(sqlite3.Error):
                        history.forget("http://a/0")
            history.flush()
        return True

    for trial in count(1):
        path = tmp_path / str(trial)
        Failing.left, Failing.once = trial, once
        with monkeypatch.context() as patch, suppress(sqlite3.Error):
            patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Failing, **k))
            is_written = False
            is_written = crawl(path)
        with History(path) as history:
            for version in history.versions("true"):
                assert (text := history.texts.read(version.text))
                assert text.tokens == said[version.url]
            urls = {version.url for version in history.versions("true")}
            assert urls == {*said} - {"http://a/0"} or not is_written
            assert not is_written or all(history.held(url) for url in said)
        if Failing.left > 0:  # it did not come to that
            assert is_written
            break
    print(f"\nthe Nth statement fails {'once' if once else 'for ever'}: {trial - 1} trials")
    assert trial > 20
