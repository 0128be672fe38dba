"""Who may read what a crawl writes, and which files it refuses to write to."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dedup import Detector, IndexUnavailableError, SettingsError, open_index
from dedup.droplog.log import DropLog
from dedup.report.file import MARK, write_report
from tests.support import ROOT
from tests.support.crawls import TWINS, Run
from tests.support.waiting import LIMIT
from tests.support.warm import python

PAGE = " ".join(f"word{number}" for number in range(100))


def fill(path: Path, name: str = "a") -> None:
    """Files a page in an index, and closes it."""

    async def work() -> None:
        detector = Detector()
        index = open_index(f"file:{path}", detector)
        try:
            await index.claim(name, f"http://a.example/{name}", detector.fingerprint(f"<p>{name} {PAGE}"))
            await index.confirm(name)
        finally:
            await index.close()

    asyncio.run(work())


def log_a_drop(path: Path) -> None:
    drops = DropLog(str(path))
    drops.write({"url": "http://a.example/"})
    drops.close()


def modes(folder: Path) -> dict[str, str]:
    """The modes of the files in a folder, by name."""
    return {path.name: oct(path.stat().st_mode & 0o7777) for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def usual() -> Iterator[None]:
    """The umask that most users have."""
    before = os.umask(0o022)
    yield
    os.umask(before)


# --- Who may read what is written --------------------------------------------------------------------


@pytest.mark.usefixtures("usual")
def test_what_a_crawl_writes_can_be_read_by_its_owner_alone(crawl: Run, tmp_path: Path) -> None:
    settings = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite", "DEDUP_KEEP_TEXT": True}
    log = tmp_path / "duplicates.jsonl"
    crawl(TWINS, DEDUP_LOG=str(log), **settings)
    seen = modes(tmp_path)
    assert {
        "index.sqlite",
        "index.sqlite.lock",
        log.name,
        f"{log.name}.crawl",
        "index.sqlite.history",
    } <= seen.keys()
    assert set(seen.values()) == {"0o600"}


@pytest.mark.usefixtures("usual")
def test_so_can_the_files_that_sqlite_has_beside_an_open_index(tmp_path: Path) -> None:
    async def work() -> dict[str, str]:
        index = open_index(f"file:{tmp_path}/index.sqlite", Detector())
        await index.open()
        try:
            return modes(tmp_path)
        finally:
            await index.close()

    names = ["index.sqlite", "index.sqlite-shm", "index.sqlite-wal", "index.sqlite.lock"]
    assert asyncio.run(work()) == dict.fromkeys(names, "0o600")


@pytest.mark.usefixtures("usual")
def test_files_that_are_there_keep_the_modes_that_their_user_gave_them(tmp_path: Path) -> None:
    path, log = tmp_path / "index.sqlite", tmp_path / "drops.jsonl"
    for _ in range(2):
        fill(path)
        log_a_drop(log)
        for each in tmp_path.iterdir():
            each.chmod(0o664)
    fill(path, "b")
    DropLog(str(log)).close()
    assert set(modes(tmp_path).values()) == {"0o664"}


@pytest.mark.usefixtures("usual")
def test_in_a_folder_that_is_shared_with_a_group_the_group_may_read_and_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    fill(tmp_path / "index.sqlite")
    log_a_drop(tmp_path / "drops.jsonl")
    assert set(modes(tmp_path).values()) == {"0o660"}


@pytest.mark.parametrize(("umask", "expected"), [(0o022, "0o644"), (0o077, "0o600")])
def test_a_report_is_a_file_like_others_of_its_user(tmp_path: Path, umask: int, expected: str) -> None:
    before = os.umask(umask)
    try:
        write_report(tmp_path / "new.html", MARK)
    finally:
        os.umask(before)
    assert modes(tmp_path) == {"new.html": expected}
    (tmp_path / "new.html").chmod(0o640)
    write_report(tmp_path / "new.html", MARK)
    assert modes(tmp_path) == {"new.html": "0o640"}


# --- What is not written to --------------------------------------------------------------------------

HOLD = """
import asyncio, sys
from dedup import Detector, open_index

async def main():
    index = open_index("file:" + sys.argv[1], Detector())
    await index.open()
    print("open", flush=True)
    sys.stdin.read()
    await index.close()

asyncio.run(main())
"""


def refusal(path: Path) -> str:
    with pytest.raises(IndexUnavailableError) as refused:
        fill(path, "another")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_an_index_of_two_names_is_refused_by_either_while_a_crawl_has_it_and_after(tmp_path: Path) -> None:
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    fill(one)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(one)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        other.hardlink_to(one)
        assert "2 names" in refusal(other)
        holder.communicate(timeout=LIMIT)
    assert holder.returncode == 0
    for path in (one, other):
        said = refusal(path)
        assert said.startswith(f"the index file:{path} can't be opened: {path} is one file with 2 names")
        assert said.endswith("remove the other names, or make a copy and name that")
    other.unlink()
    fill(one, "another")


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to], ids=["symlink", "hardlink"])
def test_what_lies_in_place_of_the_lock_is_left(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    victim = tmp_path / "victim"
    victim.write_text("of another user")
    victim.chmod(0o604)
    make(tmp_path / "index.sqlite.lock", victim)
    assert f"{tmp_path}/index.sqlite.lock" in refusal(tmp_path / "index.sqlite")
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("of another user", 0o604)
    assert not (tmp_path / "index.sqlite").exists()


def test_the_installed_filelock_follows_no_symbolic_link_either(tmp_path: Path) -> None:
    from filelock import FileLock

    (tmp_path / "victim").write_text("of another user")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        FileLock(tmp_path / "lock").acquire(timeout=0)
    assert (tmp_path / "victim").read_text() == "of another user"


@pytest.mark.parametrize("setting", ["log", "parked"])
def test_a_pipe_is_no_log(setting: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError) as refused:
        DropLog(str(tmp_path / "pipe"), setting=setting)
    said = str(refused.value)
    assert said.startswith(
        f"{setting} is '{tmp_path}/pipe', which is a pipe, whose reader could hold up the crawl"
    )
    assert "\n" not in said
    assert ("scrapy duplicates" in said) == (setting == "log")  # which reads no other log


@pytest.mark.parametrize("stands_for", ["/dev/null", "/dev/full"])
def test_a_device_without_another_end_may_stand_for_a_log(stands_for: str) -> None:
    DropLog(stands_for).close()


def test_standard_output_may_be_a_log_in_a_file_but_not_in_a_pipe(tmp_path: Path) -> None:
    script = (
        "from dedup.droplog.log import DropLog; DropLog('/dev/stdout').write({'url': 'http://a.example/'})"
    )
    command = [python(), "-c", script]
    with (tmp_path / "out").open("w") as out:
        assert subprocess.run(command, stdout=out, cwd=ROOT, timeout=LIMIT, check=False).returncode == 0
    assert (tmp_path / "out").read_text() == '{"url": "http://a.example/"}\n'
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT, check=False)
    assert "which is a pipe" in done.stderr.splitlines()[-1]
