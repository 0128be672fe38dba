"""A cleaning may end at any time, and by any means: whoever runs it again gets what it would have got."""

import asyncio
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint

from dedup import Detector, open_index
from dedup.contrib.archives import Cleaning, journal, reading
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.outputs import WarcOutput
from dedup.droplog.log import DropLog
from dedup.errors import DedupError, IndexInUseError, OutputError, SettingsError
from dedup.index.lifecycle import State
from dedup.index.local.index import LocalIndex
from dedup.settings import IndexSettings
from tests.contrib.archives.test_archive import PAGES, read, record, rows, urls
from tests.support import ROOT
from tests.support.crawls import words
from tests.support.processes import Forked, running
from tests.support.waiting import LIMIT, wait_until

#: Pages with copies, near and exact ones, in no good order.
MANY = [
    (f"http://{'ab'[n % 2]}.example/{n}", f"<p>{words(n % 17)} {words(n, n % 5)}", f"2026-11-{1 + n % 28:02}")
    for n in range(60)
]


def source(path: Path) -> Path:
    records = [record(url, html, WARC_Date=f"{day}T00:00:00Z") for url, html, day in MANY]
    path.write_bytes(b"".join(records))
    return path


def cleaning(folder: Path, source: Path, name: str = "kept", **options: Any) -> Cleaning:
    folder.mkdir(exist_ok=True)
    kept, log = str(folder / f"{name}.warc.gz"), str(folder / f"{name}.drops")
    return Cleaning([str(source)], kept, log, plan=IndexSettings(chrome=False), **options)


def outcome(folder: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """All that a run has written, but for the times."""
    assert sorted(path.name for path in folder.iterdir()) == ["kept.drops", "kept.warc.gz"]
    drops = [drop | {"time": ""} for drop in read(folder / "kept.drops")]
    return (folder / "kept.warc.gz").read_bytes(), drops


#: What a cleaning does that outlives it.
DEEDS = [
    *((Journal, name) for name in ("add", "set", "begin_verdicts", "say", "drop", "end_verdicts")),
    *((DropLog, name) for name in ("write", "close")),
    *((WarcOutput, name) for name in ("keep", "drop")),
    *((os, name) for name in ("fsync", "replace")),
    *((shutil, name) for name in ("rmtree",)),
]


def run(folder: Path, path: Path, at: int) -> None:
    """Runs a cleaning, and kills it before the deed with this number."""
    reading.BATCH, journal.UNSAVED = 8, 4
    done = 0

    def deadly(deed: Any) -> Any:
        def do(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return deed(*arguments, **options)

        return do

    for owner, name in DEEDS:
        setattr(owner, name, deadly(getattr(owner, name)))
    cleaning(folder, path).run()
    (folder / "done").write_text(str(done))


@pytest.mark.parametrize("times", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_anywhere(times: int, tmp_path: Path) -> None:
    path = source(tmp_path / "pages.warc")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert Forked(run, whole, path, -1).wait(LIMIT) == 0
    deeds = int((whole / "done").read_text())
    (whole / "done").unlink()
    wanted = outcome(whole)
    assert len(wanted[1]) > 20
    chance = random.Random(times)
    for n in range(times):
        at = (
            deeds - n // 5
            if n % 5 == 4
            else 1 + chance.randrange(n * deeds // times, (n + 1) * deeds // times)
        )
        assert Forked(run, killed, path, at).wait(LIMIT) == -signal.SIGKILL
        if n % 2:  # and once more
            Forked(run, killed, path, at // 2).wait(LIMIT)
        if not (killed / "kept.warc.gz").exists() or (killed / "kept.warc.gz.part").exists():
            cleaning(killed, path).run()
        (killed / "done").unlink(missing_ok=True)
        assert outcome(killed) == wanted
        shutil.rmtree(killed)


def of_one_host(folder: Path, joined: str) -> Cleaning:
    """A cleaning of 40 pages of one host, a third of them copies, on its own or by another archive or index."""
    folder.mkdir(exist_ok=True)
    (folder / "pages.jsonl").write_text("".join(line(n, f"<p>{words(n % 27)}") for n in range(40)))
    (folder / "others.jsonl").write_text("".join(line(n, f"<p>{words(n)}") for n in range(3, 6)))
    if joined == "index":
        index_with(
            f"file:{folder}/index", "n", {f"http://example.net/{n}": f"<p>{words(n)}" for n in range(3)}
        )
    return Cleaning(
        [str(folder / "pages.jsonl")],
        str(folder / "kept.jsonl"),
        str(folder / "drops.jsonl"),
        against=str(folder / "others.jsonl") if joined == "against" else "",
        other=(lambda: open_index(f"file:{folder}/index", Detector())) if joined == "index" else None,
    )


def killed_at(number: int, folder: Path, joined: str) -> None:
    """Cleans, and is killed when the index is asked for this page."""
    journal.UNSAVED = 10
    asked = 0
    look = LocalIndex.look

    async def deadly(index: LocalIndex, entry: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return await look(index, entry)

    LocalIndex.look = deadly  # type: ignore[method-assign]
    of_one_host(folder, joined).run()


@pytest.mark.parametrize("joined", ["", "index", "against"])
def test_verdicts_outlive_a_kill(joined: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_one_host(tmp_path / "whole", joined).run()
    asked: list[str] = []
    look = LocalIndex.look
    monkeypatch.setattr(
        LocalIndex, "look", lambda index, entry: (asked.append(entry.url), look(index, entry))[1]
    )
    assert Forked(killed_at, 36, tmp_path / "killed", joined).wait(LIMIT) == -signal.SIGKILL
    of_one_host(tmp_path / "killed", joined).run()
    of_archives = [url for url in asked if "example.org" in url]
    assert len(of_archives) == 40 + 3 * (joined == "against") - 30  # which were written
    kept, drops = (
        [(folder / name).read_text() for folder in (tmp_path / "whole", tmp_path / "killed")]
        for name in ("kept.jsonl", "drops.jsonl")
    )
    assert kept[0] == kept[1]
    assert len(kept[0].splitlines()) == {"": 27, "index": 24, "against": 34}[joined]
    first, second = (re.sub('"time": "[^"]*"', "", log) for log in drops)
    assert first == second


def test_first_fetched_then_least_url(tmp_path: Path) -> None:
    same = f"<p>{words('same')}"
    pages = [
        ("http://b/", "2026-11-02"),
        ("http://c/", "2026-11-01"),
        ("http://a/", "2026-11-01"),
        ("http://0/", None),
    ]
    path = tmp_path / "pages.jsonl"
    path.write_text("\n".join(json.dumps({"url": u, "html": same, "fetched": d}) for u, d in pages))
    Cleaning([str(path)], str(tmp_path / "kept.jsonl")).run()
    assert urls(tmp_path / "kept.jsonl") == ["http://a/"]


def test_walls(tmp_path: Path) -> None:
    """No page is both kept and in the drop log, and each is judged once."""
    wall = f"<title>Log in</title><p>{words('wall')}"
    pages = {f"http://example.org/{words(n, 1)}": wall for n in range(9)}
    pages |= {f"http://example.org/s{n}/a": f"<title>{n // 2}</title><p>{words(n // 2)}" for n in range(8)}
    path, kept, log = tmp_path / "pages.jsonl", tmp_path / "kept.jsonl", tmp_path / "drops.jsonl"
    path.write_bytes(rows(pages))
    stats = Cleaning([str(path)], str(kept), str(log)).run().stats
    dropped = [drop["url"] for drop in read(log)]
    assert len(dropped) == 4
    assert sorted(urls(kept) + dropped) == sorted(pages)
    names = ("pages", "duplicate", "dropped", "alarms")
    assert [stats[f"dedup/{name}"] for name in names] == [17, 4, 4, 1]
    assert stats["dedup/new"] + stats["dedup/unjudged"] == 13


def test_interrupt(tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    with pages.open("w") as file:
        for n in range(2_000):
            text = " ".join(f"word{n * at}" for at in range(200))
            file.write(json.dumps({"url": f"http://example.org/{n}", "html": f"<p>{text}"}) + "\n")
    command = [sys.executable, "-m", "scrapy", "dedup", str(pages), "-o", str(tmp_path / "kept.jsonl")]
    journal = tmp_path / "kept.jsonl.part" / "journal-wal"
    with running(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as started:
        wait_until(
            lambda: started.poll() is not None or (journal.exists() and journal.stat().st_size > 100_000)
        )
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        os.killpg(started.pid, signal.SIGINT)  # as a terminal does
        said = started.communicate(timeout=LIMIT)[1]
    assert started.returncode == 130
    assert said == f"dedup: interrupted; the same command goes on from there ({tmp_path}/kept.jsonl.part)\n"
    assert children
    wait_until(lambda: not any(runs(child) for child in children))


def runs(process: str) -> bool:
    """Whether it has not ended, which it also has where nobody asks how."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_killed_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source(tmp_path / "pages.warc")
    cleaning(tmp_path / "whole", path).run()
    monkeypatch.setattr(reading, "SMALL", 0)
    monkeypatch.setattr(reading, "BATCH", 2)
    killing = progress(lambda *_: [child.kill() for child in multiprocessing.active_children()])
    with pytest.raises(
        DedupError, match=r"^a process that makes fingerprints was killed; is there too little memory"
    ):
        cleaning(tmp_path / "killed", path, workers=2).run(killing)
    cleaning(tmp_path / "killed", path, workers=2).run()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


def test_program_without_guard(tmp_path: Path) -> None:
    """The processes don't load the program, which would start more of them, and take as long as all of Scrapy does."""
    path = source(tmp_path / "pages.warc")
    program = tmp_path / "program.py"
    program.write_text(
        "from dedup.contrib.archives import Cleaning, reading\n"
        "print('begun')\n"
        "reading.SMALL, reading.BATCH = 0, 2\n"
        f"Cleaning([{str(path)!r}], {str(tmp_path / 'kept.jsonl')!r}, workers=2).run()\n"
    )
    done = subprocess.run(
        [sys.executable, program], check=False, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT
    )
    assert (done.stdout, done.stderr, done.returncode) == ("begun\n", "", 0)
    assert (tmp_path / "kept.jsonl").stat().st_size > 0


class EndError(Exception):
    """A run ends here."""


def progress(hear: Callable[[str, int], object]) -> Callable[[str, int], Any]:
    """What hears of each step of a run: the name of its part, and how many pages are done."""

    @contextmanager
    def begin(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
        def advance(done: int, pages: int) -> None:
            hear(what, pages)

        yield advance

    return begin


def stopping(part: str, after: int) -> Callable[[str, int], Any]:
    """Interrupts a run after some steps of one of its parts."""
    steps = 0

    def stop(what: str, pages: int) -> None:
        nonlocal steps
        steps += what == part
        if steps > after:
            raise EndError

    return progress(stop)


def line(number: int, html: str) -> str:
    return json.dumps({"url": f"http://example.org/{number}", "html": html, "fetched": number}) + "\n"


#: A page, its copy, another page, and what is none.
FOUR = [line(1, "<p>" + words(1)), line(2, "<p>" + words(1)), line(3, "<p>" + words(2)), '{"price": 7}   \n']
#: The same file in the same size, when something has happened to it.
CHANGES = {
    "lines changed places": FOUR[::-1],
    "a copy is another page": [FOUR[0], line(2, "<p>" + words(1)[::-1]), *FOUR[2:]],
    "a kept page is another one": [line(1, "<p>" + words(1)[::-1]), *FOUR[1:]],
    "a page is none": [*FOUR[:2], FOUR[2].replace('"html"', '"sold"'), FOUR[3]],
    "a line is a page": [*FOUR[:3], '{"html":"x"}   \n'],
    "a line is damaged": [*FOUR[:3], "{price: 007}   \n"],
    "a line is missing": [*FOUR[:3], " " * (len(FOUR[3]) - 1) + "\n"],
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_input(what: str, tmp_path: Path) -> None:
    path, kept = tmp_path / "pages.jsonl", tmp_path / "kept.jsonl"
    path.write_text("".join(FOUR))
    with pytest.raises(EndError):
        Cleaning([str(path)], str(kept)).run(stopping("Writing", 2))
    path.write_text("".join(CHANGES[what]))
    assert path.stat().st_size == len("".join(FOUR))
    with pytest.raises(SettingsError) as told:
        Cleaning([str(path)], str(kept)).run()
    remedy = f"delete {kept}.part, and begin anew"
    assert str(told.value) == f"the input {path} has changed since it was read; {remedy}"
    assert not kept.exists()
    path.write_text("".join(FOUR))  # or what it was is put back
    Cleaning([str(path)], str(kept)).run()
    assert kept.read_text() == "".join([FOUR[0], *FOUR[2:]])


def test_changed_input_while_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 2)
    path, kept = tmp_path / "pages.jsonl", tmp_path / "kept.jsonl"
    path.write_text("".join(FOUR))
    with pytest.raises(EndError):
        Cleaning([str(path)], str(kept)).run(stopping("Reading", 0))
    path.write_text("".join([FOUR[2], FOUR[1], FOUR[0], FOUR[3]]))
    with pytest.raises(SettingsError, match="has changed since it was read"):
        Cleaning([str(path)], str(kept)).run(stopping("Judging", 0))  # before anything is judged


def test_output_in_the_folder_read(tmp_path: Path) -> None:
    (tmp_path / "0.html").write_text("<p>" + words(0))
    for _ in range(2):
        kept = tmp_path / "kept.warc"
        assert Cleaning([str(tmp_path)], str(kept)).run().stats["dedup/new"] == 1
        kept.unlink()


@pytest.mark.parametrize("name", ["kept.jsonl", "kept.warc"])
def test_input_changes_while_written(name: str, tmp_path: Path) -> None:
    path = source(tmp_path / "pages.warc")

    def change(what: str, pages: int) -> None:
        if what == "Writing" and pages == 30:
            (tmp_path / "new").write_bytes(path.read_bytes()[::-1])
            os.replace(tmp_path / "new", path)

    with pytest.raises(SettingsError, match=rf"^the input {path} has changed since it was read; delete "):
        Cleaning([str(path)], str(tmp_path / name)).run(progress(change))
    assert not (tmp_path / name).exists()


def test_other_run_left_over(tmp_path: Path) -> None:
    path = source(tmp_path / "pages.warc")
    folder = tmp_path / "kept"
    assert Forked(run, folder, path, 20).wait(LIMIT) == -signal.SIGKILL
    with pytest.raises(
        SettingsError, match=r"an interrupted run with other settings has left; repeat that, or"
    ):
        cleaning(folder, path, types="text").run()
    path.write_bytes(path.read_bytes() + b"\r\n")
    with pytest.raises(
        SettingsError, match=r"an interrupted run with other inputs has left; repeat that, or"
    ):
        cleaning(folder, path).run()


# --- What is in the way


def test_folder_of_the_user(tmp_path: Path) -> None:
    mirror = tmp_path / "kept.part"
    mirror.mkdir()
    (mirror / "page.html").write_text("<p>mine")
    path = source(tmp_path / "x.warc")
    for inputs in ([str(mirror)], [str(path)]):
        with pytest.raises(SettingsError, match="has other files in it"):
            Cleaning(inputs, str(tmp_path / "kept")).run()
    assert (mirror / "page.html").read_text() == "<p>mine"
    assert not (tmp_path / "kept").exists()


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = source(tmp_path / "x.warc"), tmp_path / "kept.warc"
    close = WarcOutput.close

    def close_late(output: WarcOutput) -> None:
        kept.write_text("mine")
        close(output)

    monkeypatch.setattr(WarcOutput, "close", close_late)
    with pytest.raises(SettingsError, match="which exists; nothing is overwritten"):
        Cleaning([str(path)], str(kept)).run()
    assert kept.read_text() == "mine"
    kept.unlink()
    Cleaning([str(path)], str(kept)).run()
    assert kept.stat().st_size > 1000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that holds a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk(small_disk: Path, tmp_path: Path) -> None:
    path = source(tmp_path / "pages.warc")
    cleaning(tmp_path / "whole", path).run()
    stuffing = small_disk / "stuffing"
    failed = 0
    for free in range(10_000, 1 << 20, 25_000):
        stuffing.unlink(missing_ok=True)
        used = sum(file.stat().st_blocks * 512 for file in small_disk.rglob("*"))
        stuffing.write_bytes(bytes(max(0, (1 << 20) - used - free)))
        try:
            cleaning(small_disk, path).run()
            break
        except OutputError as error:
            assert re.search("can't be written: .*(full|No space|I/O)", str(error))  # noqa: PT017
            failed += 1
    assert failed > 3
    stuffing.unlink()
    assert outcome(small_disk) == outcome(tmp_path / "whole")


# --- Another index


def index_with(address: str, namespace: str, pages: dict[str, str]) -> None:
    async def crawl() -> None:
        async with open_index(address, Detector(), namespace=namespace) as index:
            for url, html in pages.items():
                page_id = fingerprint(Request(url)).hex()
                await index.claim(page_id, url, index.detector.fingerprint(html, url))
                await index.confirm(page_id)

    asyncio.run(crawl())


def joined(path: Path, kept: Path, address: str, namespace: str = "n") -> Cleaning:
    return Cleaning(
        [str(path)],
        str(kept),
        other=lambda: open_index(address, Detector(), namespace=namespace),
        page_id=lambda url: fingerprint(Request(url)).hex(),
    )


@pytest.mark.parametrize("store", ["file", "redis"])
def test_joined_index(store: str, address: str, namespace: str, tmp_path: Path) -> None:
    index_with(address, namespace, {url.replace("org", "net"): html for url, html in list(PAGES.items())[:2]})
    path = tmp_path / "pages.jsonl"
    path.write_bytes(rows())
    result = joined(path, tmp_path / "kept.jsonl", address, namespace).run()
    assert [url[-1] for url in urls(tmp_path / "kept.jsonl")] == list("2345")
    assert (result.known, result.filed) == (2, 4)

    async def states() -> list[State]:
        async with open_index(address, Detector(), namespace=namespace) as index:
            return await index.states([fingerprint(Request(url)).hex() for url in PAGES])

    assert [state.value for state in asyncio.run(states())] == ["absent"] * 2 + ["earlier"] * 4 + [
        "absent"
    ] * 4
    again = joined(path, tmp_path / "again.jsonl", address, namespace).run()
    assert urls(tmp_path / "again.jsonl") == []
    assert (again.known, again.filed) == (6, 0)


def test_index_in_use(tmp_path: Path) -> None:
    address = f"file:{tmp_path}/index.sqlite"
    namespace = "n"
    index_with(address, namespace, {})
    path, kept = tmp_path / "pages.jsonl", tmp_path / "kept.jsonl"
    path.write_bytes(rows())

    async def meanwhile() -> None:
        async with open_index(address, Detector(), namespace=namespace):
            assert Forked(_refused, path, kept, address).wait(LIMIT) == 0

    asyncio.run(meanwhile())
    assert len(urls(kept)) == 6
    assert joined(path, kept, address).run().filed == 6


def _refused(path: Path, kept: Path, address: str) -> None:
    with pytest.raises(IndexInUseError):
        joined(path, kept, address).run()
