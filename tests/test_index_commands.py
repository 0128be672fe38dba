"""`scrapy index info`, `check`, `forget`, `export` and `import`, over files and Redis; and `plan`, over none."""

import argparse
import asyncio
import base64
import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis
from filelock import FileLock
from scrapy import Request
from scrapy.cmdline import execute
from scrapy.commands import ScrapyHelpFormatter
from scrapy.settings import Settings
from scrapy.utils.request import fingerprint

from dedup import Detector
from dedup.errors import IndexCorruptError, IndexMismatchError, SettingsError
from dedup.fingerprint.fingerprint import Called
from dedup.index import Entry, Index, open_index
from dedup.index.entry import storable
from dedup.index.export import header_line, page_line, read_line
from dedup.index.hosts import packed
from dedup.index.redis.record import PLACES
from dedup.scrapy.commands.index.exchange import MAX_LINE, export_pages, import_pages
from tests.support import ROOT, surveys
from tests.support.processes import options
from tests.support.stores import PERSISTENT
from tests.support.surveys import RUN
from tests.support.waiting import LIMIT, wait_until
from tests.support.warm import python

OTHER_RUN = "1e" * 16
#: What could harm a terminal.
HOSTILE = "http://a.example/\x1b[2J\x1b]0;pwned\x07\u202e\u2028\x9b"


def entry(number: int, **changes: Any) -> Entry:
    """A page of an index, as a crawl has filed it before 2024."""
    page_id = fingerprint(Request(f"http://example.org/{number}")).hex()
    return surveys.entry(number, **{"page_id": page_id, "filed": 1_700_000_000 + number, **changes})


@pytest.fixture
def index(address: str, namespace: str) -> Callable[[], Index]:
    """Gives the index of the test, unopened, with the default settings."""
    return lambda: open_index(address, Detector(), namespace=namespace)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> "Command":
    """`scrapy index`, in this process, which is quicker than one of its own."""
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "crawler.settings")
    monkeypatch.chdir(ROOT)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            execute(["scrapy", "index", *map(str, arguments)])
        return subprocess.CompletedProcess("scrapy", int(end.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def command(run: "Command", address: str, namespace: str) -> "Command":
    """`scrapy index` on the index of the test."""
    settings = options({"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace})
    return lambda *arguments: run(*arguments, *settings)


def sql(address: str, statement: str) -> None:
    """Changes the file of an index behind its back."""
    with closing(sqlite3.connect(address.removeprefix("file:"))) as connection, connection:
        connection.execute(statement)


Make, Command = Callable[[], Index], Callable[..., subprocess.CompletedProcess[str]]


def filled(index: Make, entries: list[Entry]) -> None:
    """Files pages in the index of the test."""

    async def add() -> None:
        async with index() as opened:
            await opened.add(entries)

    asyncio.run(add())


def entries_in(index: Make) -> list[Entry | None]:
    """What the index of the test holds."""

    async def read(unopened: Index) -> list[Entry | None]:
        survey = await unopened.survey()
        pages = [] if survey is None else [filed async for filed, _ in survey.pages()]
        if survey is not None:
            await survey.close()
        await unopened.close()
        return pages

    return asyncio.run(read(index()))


# --- Usage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("steal",),
        ("info", "more"),
        ("check", "--dry-run"),
        ("forget",),
        ("forget", "http://a/", "--run", RUN),
        ("forget", "--run", RUN, "--older-than", "3d"),
        ("export",),
        ("export", "a", "b"),
        ("import",),
        ("export", "a", "--dry-run"),
        ("moved",),
        ("plan",),
        ("plan", "1e6", "--pages", "1e6"),
        ("info", "--pages", "1e6"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_answered_with_the_right_one(arguments: tuple[str, ...], run: Command) -> None:
    done = run(*arguments)
    known = arguments and arguments[0] != "steal"
    right = f"usage: scrapy index {arguments[0]}" if known else "index takes one of: info, check, forget"
    assert done.returncode == 2
    assert right in done.stdout + done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "contrib.archives.commands",
        "contrib.changes.commands",
        *(f"scrapy.commands.{name}" for name in ("compare", "duplicates", "evaluate", "index")),
    ],
)
def test_no_line_of_help_looks_like_a_heading(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set[tuple[str, ...]]()
    for columns in range(60, 130, 9):
        monkeypatch.setenv("COLUMNS", str(columns))
        parser = argparse.ArgumentParser(formatter_class=ScrapyHelpFormatter)
        command = import_module(f"dedup.{module}").Command()
        command.settings = Settings()
        command.add_options(parser)
        lines = parser.format_help().splitlines()
        found.add(tuple(line for line, below in pairwise(lines) if line and {*below} == {"="}))
    assert len(found) == 1


@PERSISTENT
def test_no_index_is_made(command: Command, store: str, tmp_path: Path) -> None:
    for arguments in ("info",), ("check",), ("forget", "http://a/"), ("export", "x.jsonl"):
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (3, "")
        assert re.fullmatch(r"index: no index at .*: nothing has been filed there yet\n", done.stderr)
        assert list(tmp_path.iterdir()) == []


def test_an_index_in_memory_and_wrong_settings_are_refused(run: Command) -> None:
    done = run("info", "-s", "DEDUP_INDEX=memory:")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"index: DEDUP_INDEX is 'memory:'.*allowed here: file:PATH, redis://.*\n$", done.stderr)
    done = run("check", "-s", "DEDUP_INDEX=redis://:tiptoe@127.0.0.1:1/0")
    assert done.returncode == 3
    assert "tiptoe" not in done.stderr
    assert done.stderr.count("\n") == 1


# --- info and check ------------------------------------------------------------------------------------


@PERSISTENT
def test_info_shows_pages_and_runs(index: Make, command: Command, store: str) -> None:
    pages = [entry(number) for number in range(30)]
    alike = [entry(1000 + n, simhash=0x1234 << 40, run=OTHER_RUN, filed=1_800_000_000) for n in range(4)]
    filled(index, pages + alike)
    done = command("info")
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout
    assert shown.splitlines()[0] == index().where
    assert "  pages       34: 34 done\n" in shown
    assert re.search(r"\n  stored      [\d.]+ [kM]B, [\d,]+ bytes a page \(", shown)
    assert f"\n  plan        {index().describe()}\n" in shown
    assert "max_distance 6" in shown
    assert "hash_key" not in shown
    runs = re.search(r" last filed  run\n(.*)\n(.*)\n", shown)
    assert runs
    assert runs[1].split() == ["4", "4", "0", "0", *["2027-01-15", "08:00"] * 2, OTHER_RUN]
    assert runs[2].split()[0] == "30"
    assert shown.isascii()


@pytest.mark.parametrize("store", ["redis"])
def test_info_tells_pending_pages(index: Make, command: Command, namespace: str, redis_socket: Path) -> None:
    runs = [RUN, OTHER_RUN, OTHER_RUN, RUN, RUN, RUN]
    filled(index, [entry(number)._replace(run=run) for number, run in enumerate(runs)])
    with redis.Redis(unix_socket_path=str(redis_socket)) as client:
        prefix = f"shingleback:{{{namespace}}}:"
        pending = {"1": RUN, "2": OTHER_RUN, "3": OTHER_RUN}
        client.hset(
            f"{prefix}pending", mapping=pending | {"4": OTHER_RUN}
        )  # the last is done: it was met again
        client.zadd(f"{prefix}runs", {RUN: 1000 * client.time()[0] + 50_000})
        client.set(f"{prefix}p:6", "torn")
    done = command("info")
    assert done.returncode == 0
    expected = (
        "5: 2 done, 1 pending, 2 pending of runs that died, which shadow nothing, and 1 that can't be read"
    )
    assert expected in done.stdout


@PERSISTENT
def test_an_index_without_pages_is_sound_and_shown(index: Make, command: Command, store: str) -> None:
    filled(index, [])
    done = command("info")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  pages       0: 0 done\n" in done.stdout
    done = command("check")
    assert (done.returncode, done.stdout) == (0, f"{index().where}: sound, 0 pages\n")


@PERSISTENT
def test_check_tells_damage(index: Make, command: Command, store: str, address: str, namespace: str) -> None:
    filled(index, [entry(number, page_id=f"id {number}") for number in range(20)])
    done = command("check")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{index().where}: sound, 20 pages\n", "")
    if store == "file":
        sql(address, "UPDATE pages SET sketch = x'00' WHERE number > 3")
    else:
        with redis.Redis(unix_socket_path=address.removeprefix("unix://")) as client:
            for number in range(4, 21):
                key = f"shingleback:{{{namespace}}}:p:{number}"
                record = client.get(key)
                at = PLACES["band_count"] + 1  # where the sketch begins: there are no bands
                client.set(key, record[:at] + b"\0" * 2 + record[at + 2 + 136 :])
    done = command("check")
    assert (done.returncode, done.stderr) == (5, "")
    heading, kind, *some, more, repair = done.stdout.splitlines()
    assert heading == f"{index().where}: damaged"
    assert kind == "  unreadable pages: 17"
    assert len(some) == 5
    wrong = "it is not as it was written" if store == "file" else "its sketch has 0 bytes instead of 136"
    assert all(wrong in line for line in some)
    assert more == "    ... and 12 more"
    assert repair.startswith("    -> rebuild it: scrapy index export FILE")


@PERSISTENT
def test_other_parameters_are_refused(index: Make, command: Command, store: str) -> None:
    filled(index, [entry(1)])
    for arguments in ("info",), ("check",), ("export", "-"), ("forget", "http://a/"):
        done = command(*arguments, "-s", "DEDUP_MIN_RESEMBLANCE=0.5")
        assert (done.returncode, done.stdout) == (4, "")
        assert "min_resemblance is '0.75' there and '0.5' here" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("store", ["file"])
def test_a_file_in_use_is_only_read(index: Make, command: Command, address: str) -> None:
    filled(index, [entry(1), entry(2)])
    with FileLock(f"{address.removeprefix('file:')}.lock"):
        verbs = [("info",), ("check",), ("export", "-"), ("forget", entry(1).url), ("import", "/dev/null")]
        info, check, export, forget, imported = (command(*verb) for verb in verbs)
    assert (info.returncode, check.returncode, export.returncode) == (0, 0, 0)
    assert export.stdout.count("\n") == 3
    assert (forget.returncode, forget.stdout) == (6, "")
    assert "in use by another crawl" in forget.stderr
    assert (imported.returncode, imported.stderr) == (4, "index: the export /dev/null is empty\n")
    assert entries_in(index) == [entry(1), entry(2)]


# --- forget --------------------------------------------------------------------------------------------


@PERSISTENT
def test_pages_are_forgotten_by_url_run_and_age(index: Make, command: Command, store: str) -> None:
    redirected = entry(1, page_id="requested elsewhere")
    requested = entry(2, page_id=fingerprint(Request("http://example.org/1")).hex())
    pages = [
        redirected,
        requested,
        entry(3, url=HOSTILE, run=OTHER_RUN, filed=2_000_000_000),
        entry(4, run=OTHER_RUN, filed=2_000_000_001),
        entry(5, filed=1_600_000_000),
        entry(6, filed=2_000_000_002),
    ]
    filled(index, pages)
    done = command("forget", "--run", OTHER_RUN, "--dry-run")
    shown = done.stdout.splitlines()
    assert (done.returncode, len(shown)) == (0, 3)
    assert shown[0].startswith(f"2033-05-18 03:33  done     {OTHER_RUN}  http://a.example/\\x1b[2J")
    assert shown[2] == f"would forget 2 pages of {index().where}"
    assert done.stdout.isascii()
    assert entries_in(index) == pages

    def forget(*arguments: str) -> str:
        done = command("forget", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert forget("http://example.org/1", "http://example.org/none") == f"forgot 2 pages of {index().where}\n"
    assert entries_in(index) == pages[2:]
    assert forget("--run", OTHER_RUN) == f"forgot 2 pages of {index().where}\n"
    assert entries_in(index) == pages[4:]
    assert forget("--older-than", "2021-01-01") == f"forgot 1 page of {index().where}\n"
    assert forget("--older-than", "30d") == f"forgot 0 pages of {index().where}\n"
    assert entries_in(index) == pages[5:]
    assert command("check").returncode == 0


@pytest.mark.parametrize("store", ["file"])
def test_wrong_words_are_told(index: Make, command: Command) -> None:
    filled(index, [entry(1)])
    for arguments, words in (
        (("--older-than", "soon"), "--older-than is 'soon'; allowed: a date"),
        (("--run", "abc"), "--run is 'abc'; allowed: 32 hex digits"),
        (("example.org",), "URL is 'example.org'; allowed: an absolute URL"),
    ):
        done = command("forget", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
    assert entries_in(index) == [entry(1)]


# --- export and import ---------------------------------------------------------------------------------


def exported(make: Make, path: Path) -> list[str]:
    """The lines of an export."""
    assert asyncio.run(export_pages(make(), str(path))) == 0
    return path.read_text().splitlines()


@PERSISTENT
def test_an_export_is_imported_once(
    index: Make,
    command: Command,
    run: Command,
    store: str,
    namespace: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    pages = [entry(number, url=f"http://example.org/{number}#é\n{'=' * number}") for number in range(50)]
    filled(index, pages)
    done = command("export", tmp_path / "pages.jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"exported 50 pages of {index().where}\n"
    lines = (tmp_path / "pages.jsonl").read_text().splitlines()
    assert len(lines) == 51
    assert json.loads(lines[0])["parameters"]["max_distance"] == "6"
    assert json.loads(lines[1]).keys() == set(Entry._fields)
    assert os.listdir(tmp_path) == [name for name in os.listdir(tmp_path) if not name.endswith(".part")]
    socket = request.getfixturevalue("redis_socket")
    other = f"unix://{socket}" if store == "file" else f"file:{tmp_path}/other.sqlite"

    def into(*arguments: str) -> subprocess.CompletedProcess[str]:
        settings = f"-s DEDUP_INDEX={other} -s DEDUP_NAMESPACE={namespace}-2 -s DEDUP_TABLES=49"
        return run(*arguments, *settings.split())

    where = open_index(other, Detector(), namespace=f"{namespace}-2").where
    done = into("import", str(tmp_path / "pages.jsonl"))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"imported 50 pages into {where}\n", "")
    done = into("import", str(tmp_path / "pages.jsonl"))
    assert done.stdout == f"imported 0 pages into {where}, 50 were there\n"
    assert into("check").stdout == f"{where}: sound, 50 pages\n"
    assert into("export", "-").stdout.splitlines() == lines


@pytest.mark.parametrize("store", ["file"])
def test_an_export_overwrites_nothing_and_leaves_no_part(index: Make, tmp_path: Path) -> None:
    filled(index, [entry(1)])
    target = tmp_path / "folder" / "pages.jsonl"
    with pytest.raises(SettingsError, match="can't be written: No such file or directory"):
        asyncio.run(export_pages(index(), str(target)))
    target.parent.mkdir()
    exported(index, target)
    before = target.read_bytes()
    with pytest.raises(SettingsError, match="exists; an export overwrites nothing"):
        asyncio.run(export_pages(index(), str(target)))
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(SettingsError, match="exists"):
        asyncio.run(export_pages(index(), str(tmp_path / "link")))
    assert target.read_bytes() == before
    assert os.listdir(target.parent) == ["pages.jsonl"]


@PERSISTENT
def test_an_export_tells_what_it_left_out(
    index: Make, store: str, address: str, namespace: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    filled(index, [entry(number) for number in range(5)])
    if store == "file":
        sql(address, "UPDATE pages SET simhash = 7 WHERE number = 3")
    else:
        with redis.Redis(unix_socket_path=address.removeprefix("unix://")) as client:
            client.append(f"shingleback:{{{namespace}}}:p:3", b"\xff")
            client.hset(f"shingleback:{{{namespace}}}:pending", "2", RUN)
    assert asyncio.run(export_pages(index(), str(tmp_path / "pages.jsonl"))) == 5
    left = "1 unreadable" if store == "file" else "1 pending and 1 unreadable"
    count = 4 if store == "file" else 3
    assert capfd.readouterr().err == f"exported {count} pages of {index().where}, left out {left}\n"
    assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == 1 + count


BANDED = open_index("memory:", Detector(method="minhash"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"url": HOSTILE},
        {"page_id": "\0\r\n"},
        {"simhash": 2**64 - 1, "digest": 0},
        {"called": Called(2**64 - 1, 3)},
        {"url": "http://me:secret@example.org/a%20b?c=[d]&e='f'#~"},
        {"bands": tuple(range(2**64 - BANDED.detector.finder.own_keys, 2**64))},
    ],
)
def test_a_page_survives_as_a_line(changes: dict[str, Any]) -> None:
    index = BANDED if "bands" in changes else open_index("memory:", Detector())
    filed = storable(entry(1, **changes))
    line = page_line(filed)
    assert line.isascii()
    assert "\n" not in line
    for written in (line, json.dumps(json.loads(line), indent=1)):  # by others, too
        assert read_line(written.encode(), index) == filed


def changed(**changes: Any) -> bytes:
    """The line of a page, with other fields."""
    return json.dumps(json.loads(page_line(entry(1))) | changes).encode()


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"garbage", "not a JSON object"),
    "a torn line": (page_line(entry(1)).encode()[:-9], "not a JSON object"),
    "a list": (b"[" * 100_000, "not a JSON object"),
    "objects in objects": (b'{"a":' * 100_000, "not a JSON object"),
    "a number of many digits": (b"1" * 10_000, "not a JSON object"),
    "a byte order mark": (b"\xef\xbb\xbf" + page_line(entry(1)).encode(), "not a JSON object"),
    "no field": (b"{}", "missing or unknown"),
    "another field": (changed(more=1), "unknown: 'more'"),
    "a page id that is a number": (changed(page_id=7), "page_id is 7; allowed: text"),
    "a page id that UTF-8 lacks": (changed(page_id="\ud800"), r"page_id is '\ud800'"),
    "a URL that is null": (changed(url=None), "url is None"),
    "a simhash that is a number": (changed(simhash=7), "simhash is 7; allowed: 16 hex digits"),
    "a simhash of other digits": (changed(simhash="١" * 16), "simhash is"),
    "a scope that is none": (changed(scope="\n" * 16), r"scope is '\n"),
    "bands that are text": (changed(bands="0" * 16), "bands is"),
    "bands of another method": (changed(bands=["0" * 16]), "1 bands instead of 0"),
    "a sketch that is none": (changed(sketch="\x1b[2J"), r"sketch is '\x1b[2J'; allowed: base64"),
    "a short sketch": (changed(sketch=base64.b64encode(b"12").decode()), "2 bytes instead of 136"),
    "a time that is not finite": (changed(filed=float("nan")), "filed is nan"),
    "a time to come": (changed(filed=2**32), f"filed at {2**32}"),
    "no run": (changed(run=""), "run is ''; allowed: 32 hex digits"),
    "a short rare shingle": (changed(rare="00"), "rare is '00'; allowed: 64 hex digits"),
    "a host without a table": (b'{"host": "a"}', "missing or unknown: 'chrome'"),
    "a host that is a number": (b'{"host": 7, "chrome": ""}', "host is 7; allowed: text"),
    "a table that is none": (b'{"host": "a", "chrome": "AAAA"}', "chrome is 'AAAA'; allowed: a compressed"),
    "a table of another size": (
        b'{"host": "a", "chrome": "%b"}' % base64.b64encode(packed(b"ABC")),
        "a table has 98320 bytes, not 3",
    ),
    "a line without end": (b'{"page_id": "' + b"x" * (MAX_LINE + 5), "not a JSON object"),
}


@pytest.mark.parametrize("store", ["file"])
@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_refused_with_its_number(index: Make, tmp_path: Path, kind: str) -> None:
    bad, words = BAD_LINES[kind]
    good = [page_line(entry(number)).encode() for number in (5, 6, 7)]
    path = tmp_path / "pages.jsonl"
    path.write_bytes(b"\n".join([header_line(index()).encode(), good[0], b" ", good[1], bad, good[2], b""]))
    with pytest.raises(IndexCorruptError) as refusal:
        asyncio.run(import_pages(index(), str(path)))
    text = str(refusal.value)
    assert f"pages.jsonl, line 5: {words}" in text or ("line 5: " in text and words in text)
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 400
    assert entries_in(index) == [entry(5), entry(6)]  # what came before


@pytest.mark.parametrize("store", ["file"])
def test_a_torn_last_line_is_left_out(index: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    filled(index, [])
    path = tmp_path / "pages.jsonl"
    whole = "\n".join([header_line(index()), page_line(entry(1)), page_line(entry(2))]).encode()
    start = whole.rindex(b"\n") + 1
    for cut in (start + 1, start + 50, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert asyncio.run(import_pages(index(), str(path))) == 1
        assert "left out a torn last line" in capfd.readouterr().out
        assert entries_in(index) == [entry(1)]
    path.write_bytes(whole)  # only its end of line is missing
    assert asyncio.run(import_pages(index(), str(path))) == 0
    assert entries_in(index) == [entry(1), entry(2)]


HEADERS: dict[str, tuple[Callable[[Index], bytes], str]] = {
    "nothing": (lambda index: b"", "empty"),
    "a page": (lambda index: page_line(entry(1)).encode(), "line 1: it is not the header"),
    "garbage": (lambda index: b"\x89PNG\r\n\x1a\n", "line 1: it is not a JSON object"),
    "another format": (
        lambda index: header_line(index).replace('index": 4', 'index": 5').encode(),
        "line 1: it is the header of an export of format 5, and this version reads 4",
    ),
    "no parameters": (
        lambda index: b'{"shingleback_index": 3, "parameters": 7}',
        "line 1: it is not the header",
    ),
    "a parameter lost": (
        lambda index: header_line(index).replace("min_tokens", "most_tokens").encode(),
        "min_tokens is not stored there and '30' here",
    ),
    "another parameter": (
        lambda index: header_line(index).replace('max_distance": "6"', 'max_distance": "3"').encode(),
        "max_distance is '3' there and '6' here",
    ),
    "a parameter of another type": (
        lambda index: header_line(index).replace('max_distance": "6"', 'max_distance": ["\\u001b"]').encode(),
        r"max_distance is ['\x1b'] there and '6' here",
    ),
}


@pytest.mark.parametrize("store", ["file"])
@pytest.mark.parametrize("kind", HEADERS)
def test_a_wrong_header_makes_no_index(index: Make, tmp_path: Path, kind: str) -> None:
    make, words = HEADERS[kind]
    path = tmp_path / "pages.jsonl"
    path.write_bytes(make(index()) + (b"\n" + page_line(entry(1)).encode() if kind != "nothing" else b""))
    with pytest.raises(IndexMismatchError) as refusal:
        asyncio.run(import_pages(index(), str(path)))
    assert words in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert os.listdir(tmp_path) == ["pages.jsonl"]


@pytest.mark.parametrize("store", ["file"])
def test_a_file_that_cannot_be_read_is_an_error_of_ours(index: Make, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    names = ["", "a\0b", "folder", "x" * 300]
    for work, name in [(import_pages, name) for name in (*names, "no such file")] + [
        (export_pages, name) for name in names
    ]:
        if work is export_pages:
            filled(index, [entry(1)])
        with pytest.raises(SettingsError) as refusal:
            asyncio.run(work(index(), str(tmp_path / name) if name else ""))
        assert str(refusal.value).isprintable()


@pytest.mark.parametrize("store", ["file"])
def test_pages_are_filed_in_the_scope_of_their_urls(tmp_path: Path, address: str) -> None:
    def make() -> Index:
        return open_index(address, Detector(), scope="host")

    path = tmp_path / "pages.jsonl"
    path.write_text(f"{header_line(make())}\n{page_line(entry(1))}\n")  # of scope 0
    assert asyncio.run(import_pages(make(), str(path))) == 0
    (filed,) = entries_in(make)
    assert filed
    assert filed.scope not in (0, None)


@pytest.mark.parametrize("store", ["file", pytest.param("redis", marks=pytest.mark.slow)])
def test_an_interrupted_import_goes_on(
    index: Make, command: Command, address: str, namespace: str, tmp_path: Path
) -> None:
    lines = [header_line(index()), *(page_line(entry(number)) for number in range(5010))]
    settings = options({"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace})
    program = [python(), "-m", "scrapy", "index", "import", "-", *settings]
    with subprocess.Popen(
        program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write("\n".join(lines[:5005]) + "\n")
        process.stdin.flush()
        wait_until(lambda: process.poll() is not None or len(entries_in(index)) == 5000)
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        assert process.wait(LIMIT) == 130
    assert errors.splitlines() == [
        "imported 5,000 pages before that; repeat it for the rest",
        "index: interrupted",
    ]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines))
    done = command("import", tmp_path / "pages.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"imported 10 pages into {index().where}, 5,000 were there\n"
    assert [filed and filed.url for filed in entries_in(index)][4999:] == [
        entry(n).url for n in range(4999, 5010)
    ]


# --- plan ----------------------------------------------------------------------------------------------


def test_a_plan_says_what_an_index_would_take_and_opens_none(run: Command, tmp_path: Path) -> None:
    done = run("plan", "--pages", "1e8", "-s", f"DEDUP_INDEX=file:{tmp_path}/none.sqlite")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [re.split(r"  +", line.strip()) for line in done.stdout.splitlines()]
    assert lines[0] == ["100,000,000 pages by simhash, max_distance = 6"]
    assert ["file", "Redis"] in lines
    assert ["4", "4", "tables"] in lines
    assert ["14.0 GB", "59.7 GB", "of memory"] in lines  # as docs/measured.md has it
    assert ["1", "none", "machines of 64.0 GB, 90% full"] in lines
    assert "\n- in Redis, set DEDUP_EXPECTED_PAGES = 100000000\n" in done.stdout
    assert "\n- one server of Redis does not hold this, nor does one master of a cluster\n" in done.stdout
    assert '\n- with DEDUP_SCOPE = "host" or "site", a Redis Cluster of 2 masters holds it\n' in done.stdout
    assert "with DEDUP_SHARD, Redis holds 25.0 GB more until the crawl has ended" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_one_machine_does_not_hold_is_said(run: Command) -> None:
    done = run("plan", "--pages", "1e9", "--memory", "64G", "--rate", "100", "-s", "DEDUP_SCOPE=host")
    assert done.returncode == 0
    for words in (
        " none        11  machines of 64.0 GB",
        "fit into the memory of one machine",
        "\n- a Redis Cluster of 11 masters holds it\n",
        "14 new pages a second at most",
        "a claim looks at 524,288 pages at most, so near-duplicates would be missed",
    ):
        assert words in done.stdout
    shown = run("plan", "--pages", "1e10", "--memory", "64G").stdout
    assert "10,000,000,000 pages" in shown
    assert 'with DEDUP_SCOPE = "site" or "host", 25 crawls that share out the hosts hold it' in shown
    assert "56.0 GB of memory" in shown


@pytest.mark.parametrize(
    ("recall", "method", "words"),
    [
        (".9", "simhash", "max_distance = 3\n"),
        (
            ".99",
            "simhash",
            "set DEDUP_MAX_DISTANCE = 6, the smallest measured distance that suffices: 0.9976 on",
        ),
        (".99", "minhash", "bands = 17 bands of 5 min-hashes\n"),
        (".9", "minhash", "set DEDUP_RECALL = 0.9: of the pages of resemblance 0.75, 0.9"),
    ],
)
def test_a_recall_chooses_a_distance_or_bands(recall: str, method: str, words: str, run: Command) -> None:
    done = run("plan", "--pages", "1000000", "--recall", recall, "-s", f"DEDUP_METHOD={method}")
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--pages few", "--pages is 'few'; allowed: a number from 1 to"),
        ("--pages nan", "--pages is nan; allowed"),
        ("--pages 1e16", "allowed: a number from 1 to 1e+15"),
        ("--pages 9 --recall 2", "--recall is 2.0; allowed: a number from 0.5 to 0.9999"),
        (
            "--pages 9 --recall .999",
            "DEDUP_METHOD is 'simhash'; allowed: at most 0.9982, which was measured for k = 7",
        ),
        (
            "--pages 9 --recall .9 -s DEDUP_METHOD=supershingle",
            "plans for no recall; take minhash or simhash",
        ),
        ("--pages 9 --memory lots", "--memory is 'lots'; allowed: bytes, such as 64G"),
        ("--pages 9 --memory 0", "--memory is '0'; allowed"),
        ("--pages 9 --rate -1", "--rate is -1.0; allowed: a number from 0"),
        ("--pages 9 -s DEDUP_TABLES=5", "DEDUP_TABLES is 5 and DEDUP_MAX_DISTANCE is 6"),
        ("--pages 9 --spider nobody", "--spider is 'nobody'; allowed: one of"),
    ],
)
def test_a_plan_of_wrong_values_is_refused_in_one_line(arguments: str, words: str, run: Command) -> None:
    done = run("plan", *arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
