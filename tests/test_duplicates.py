"""`scrapy duplicates`: what it shows of drop logs, and the library that reads them."""

import csv
import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dedup import SettingsError
from dedup.droplog.drops import Drops
from dedup.droplog.reader import MAX_LINE, Reader, find_logs
from dedup.droplog.record import FIELDS, Filter, moment
from dedup.page.patterns import pattern
from dedup.scrapy.commands.duplicates import text as listing
from tests.support import ROOT
from tests.support.logs import HOSTILE, lines, record
from tests.support.processes import running, scrapy
from tests.support.waiting import LIMIT
from tests.support.warm import python


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log may be written."""
    return tmp_path / "duplicates.jsonl"


#: Records of every kind, and what the command makes of them.
MIXED = [
    record("http://b.example/p?id=1", "http://a.example/p", time="2026-11-20T23:59:59.999+00:00", distance=0),
    record("http://b.example/p?id=2", "http://a.example/p", distance=6, resemblance=0.75),
    record("http://b.example/p?id=2", "http://a.example/p", resemblance=1, links=1_234),
    record(
        "http://www.b.example:8000/p", "http://a.example/p", action="nofollow", time="2026-11-21T12:00+01:00"
    ),
    record("http://a.example/old/77", "http://a.example/new", action="mark", links=3),
    record("http://evil.example/" + HOSTILE, "http://evil.example/[red]" + HOSTILE, resemblance=0.8),
]
#: One of these was fetched again after all, and was dropped once more later.
UNDONE = [
    record(url, "http://a.example/p", time=f"2026-11-21T1{hour}:00+00:00", undone=undone)
    for url, hour, undone in (
        ("http://a.example/1", 0, None),
        ("http://a.example/2", 1, None),
        ("http://a.example/1", 2, "the page that it duplicates failed"),
        ("http://a.example/3", 3, "the page that it duplicates failed"),
        ("http://a.example/1", 4, None),
    )
]
SUMMARY = """\
LOG: 6 near-duplicates
  seen          2026-11-20 23:59:59 to 2026-11-21 11:00:00 UTC
  pages         5 URLs on 4 hosts, near-duplicates of 3 kept pages
  dropped       4: neither parsed nor followed
  not followed  1: parsed, but not followed
  marked        1: parsed, and their 3 links followed
  saved         1,274 links not followed (one on two pages counts twice)
  not saved     6 downloads of 120.0 kB, unpacked: a page is judged by its content

drops  links    bytes  host
    3  1,254  60.0 kB  b.example
    1      3  20.0 kB  a.example
    1     10  20.0 kB  evil.example
    1     10  20.0 kB  www.b.example:8000

drops     rule
    6  simhash  nearly all of it is on the kept page; found by its simhash

drops  distance
    1         0  ########
    4         2  ##############################
    1         6  ########

drops  in common
    1  0.75-0.80  ##########
    1  0.80-0.85  ##########
    3  0.90-0.95  ##############################
    1       1.00  ##########

drops  links  hosts  kept page
    4  1,264      2  http://a.example/p
    1      3      1  http://a.example/new
    1     10      1  http://evil.example/HOSTILE...
"""
CLUSTERS = """\
4 near-duplicates of http://a.example/p
  seen      2026-11-20 23:59:59 to 2026-11-21 11:00:00 UTC
  new       at most 10 shingles of their own that the kept page lacks
  hosts     3 b.example
            1 www.b.example:8000
  patterns  3 http://b.example/p?id=*
            1 http://www.b.example:8000/p

1 near-duplicate of http://a.example/new
  seen      2026-11-21 10:00:00 UTC
  new       at most 10 shingles of their own that the kept page lacks
  hosts     1 a.example
  patterns  1 http://a.example/old/*

"""


def read(*paths: Path) -> tuple[list[dict[str, Any]], int]:
    """Records of logs, and the number of unreadable lines."""
    reader = Reader()
    records = list(reader.read(paths))
    assert reader.records == len(records)
    return records, reader.unreadable


# --- What is shown ------------------------------------------------------------------------------------


def test_undone_drops_do_not_count(log: Path) -> None:
    log.write_text(lines(*UNDONE))
    said = scrapy("duplicates", log).stdout
    assert "2 of 5 near-duplicates" in said
    assert (
        "  undone        2: fetched again, since the kept page failed, was an error page, or turned out to differ; not counted here"
        in said
    )
    assert "undone (the page that it duplicates failed): http://a.example/1" in listing.as_line(UNDONE[2])


def test_a_log_is_summed_up(log: Path) -> None:
    log.with_name(f"{log.name}.crawl").touch()
    log.write_text(lines(*MIXED) + "no record\n" + lines(record())[:99])
    done = scrapy("duplicates", log)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.replace(str(log), "LOG")
    assert re.sub(r"(http://evil.example/).*(\.\.\.)", r"\1HOSTILE\2", shown) == SUMMARY
    assert done.stderr == "duplicates: 2 lines left out: no record can be read there\n"
    assert shown.replace("\n", "").isascii()
    assert shown.replace("\n", "").isprintable()
    assert max(map(len, shown.splitlines())) <= 140


def test_the_log_of_an_archive_tells_of_no_downloads(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no course of a crawl beside it."""
    with Drops([record(), record(action="drop", links=4)]) as drops:
        listing.print_summary(drops, [log], 2)
    said = capsys.readouterr().out
    assert "  dropped       2: left out\n  on them       14 links (one on two pages counts twice)\n" in said
    assert "  read anyway   2 pages of 40.0 kB, unpacked: a page is judged by its content\n" in said
    assert not {"followed", "downloads"} & set(said.replace(":", " ").split())


def test_pages_are_grouped_by_the_page_that_was_kept(log: Path) -> None:
    log.write_text(lines(*MIXED))
    done = scrapy("duplicates", "--clusters", log)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(CLUSTERS)
    assert done.stdout.replace("\n", "").isprintable()


def test_clusters_may_be_objects(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(lines(*MIXED))
    with Drops(Reader().read([log])) as drops:
        listing.print_clusters(drops, as_objects=True)
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["drops"] for each in objects] == [4, 1, 1]
    assert objects[0] == {
        "duplicate_of": "http://a.example/p",
        "drops": 4,
        "links": 1_264,
        "first": "2026-11-20T23:59:59.999+00:00",
        "last": "2026-11-21T11:00:00.000+00:00",
        "new": 10,
        "hosts": {"b.example": 3, "www.b.example:8000": 1},
        "patterns": {"http://b.example/p?id=*": 3, "http://www.b.example:8000/p": 1},
    }


def test_only_the_most_frequent_are_shown_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    urls = [(f"http://{host}.example/", f"http://kept.example/{host % 11}") for host in range(30)]
    with Drops(record(*pair) for pair in urls) as drops:
        listing.print_summary(drops, [Path("a"), Path("b")], 99)
        listing.print_clusters(drops, as_objects=False)
    shown = capsys.readouterr().out
    assert shown.startswith("2 logs: 30 of 99 near-duplicates\n")
    assert "... and 20 more" in shown
    assert "... and 1 more" in shown
    with Drops(record(f"http://{page}.example/{'x' * page}") for page in range(9)) as drops:
        listing.print_clusters(drops, as_objects=False)
    assert capsys.readouterr().out.endswith("            ... and 4 more patterns\n")


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (["http://a/1/x-2.html", "http://a/22/x-33.html"], "http://a/*/x-*.html"),
        (["http://a/p?sid=a1&b=", "http://a/p?sid=zz&b=http://b/?c#d"], "http://a/p?sid=*&b=*"),
        (["http://a/p;jsessionid=0A1B/q", "http://a/p;jsessionid=77/q"], "http://a/p;jsessionid=*/q"),
        (["http://a/deadbeef01/", "http://a/0123456789abcdef/"], "http://a/*/"),
        (["http://a/550e8400-e29b-41d4-a716-446655440000"], "http://a/*"),
        (
            ["http://a/(S(lit3py55t21z5v55vlm25s55))/x", "http://a/(S(abcde12345fghij67890kkkk))/x"],
            "http://a/(S(*))/x",
        ),
        (["http://www2.a:8000/deadlines/a%20b"], "http://www2.a:8000/deadlines/a%20b"),
        (["http://[", "http://["], "http://["),
    ],
)
def test_urls_of_one_kind_have_one_pattern(urls: list[str], expected: str) -> None:
    assert {pattern(url) for url in urls} == {expected}


def test_patterns_and_hosts_take_time_that_grows_with_the_url(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.process_time()
    for part in ("a", "1", "=", "@", "/", "-", "%", "0-", "http://", "?", ";=", "a1"):
        url = "http://" + part * (50_000 // len(part))
        with Drops([record(url, url)]) as drops:
            listing.print_clusters(drops, as_objects=False)
    assert time.process_time() - started < 2
    assert max(map(len, capsys.readouterr().out.splitlines())) < 300


@pytest.mark.parametrize(
    "form", ["", "--clusters", "--prefer=longest", "--csv", "--json", "--prefer=longest --json"]
)
def test_no_field_of_a_stranger_reaches_the_terminal_as_it_is(form: str, log: Path) -> None:
    texts = {name for name, value in record().items() if type(value) is str} - {"time", "action"}
    names = [*texts, "rule", "noise", "canonical", "undone"]
    hostile = [record(**{"url": f"http://b.example/{name}", name: HOSTILE}) for name in names]
    log.write_text(lines(record(), *hostile))
    done = scrapy("duplicates", log, *form.split())
    shown = done.stdout + done.stderr
    assert (done.returncode, shown.isascii(), shown.replace("\n", "").isprintable()) == (0, True, True)


def test_a_spreadsheet_takes_no_cell_for_a_formula() -> None:
    texts = [start + '1+1,"x' for start in "=+-@\t\r"]
    rows = csv.DictReader([listing.CSV_HEADING, *(listing.as_csv(record(text)) for text in texts)])
    for row, text in zip(rows, texts, strict=True):
        assert row["url"] == "'" + text.encode("unicode_escape").decode()
        assert row["duplicate_of"] == "http://a.example/"
        assert (row["referer"], row["distance"]) == ("", "2")


# --- Which records ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "passed"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"host": "b.example"}, [0, 1, 2, 3]),
        ({"host": "WWW.b.example"}, [3]),
        ({"host": "www.b.example:8000"}, [3]),
        ({"host": "b.example:8000"}, [3]),
        ({"host": "example"}, [0, 1, 2, 3, 4, 5]),
        ({"host": "ample"}, []),
        ({"of": "http://a.example/new"}, [4]),
        ({"min_distance": 2}, [1, 2, 3, 4, 5]),
        ({"max_resemblance": 0.8}, [1, 5]),
        ({"since": moment("2026-11-21")}, [1, 2, 3, 4, 5]),
        ({"since": moment("2026-11-21T12:00+01:00")}, [3]),
        ({"host": "b.example", "min_distance": 2, "max_resemblance": 0.99}, [1, 3]),
    ],
)
def test_a_filter_passes_what_meets_every_condition(log: Path, condition: Any, passed: list[int]) -> None:
    log.write_text(lines(*MIXED))
    wanted = Filter(**condition)
    assert [at for at, each in enumerate(read(log)[0]) if wanted.passes(each)] == passed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T10:00:00.5Z", "2026-11-21T10:00:00.500+00:00"),
        ("90s", "2026-11-20T23:58:30.000+00:00"),
        ("2h", "2026-11-20T22:00:00.000+00:00"),
        ("1w", "2026-11-14T00:00:00.000+00:00"),
    ],
)
def test_times_are_dates_or_how_long_ago(text: str, expected: str) -> None:
    assert moment(text, now=datetime(2026, 11, 21, tzinfo=UTC)) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "3", "3y", "-3d", "9" * 30 + "d", "2026-13-01", "0001-01-01T00:00+14:00"]
)
def test_other_times_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(
        SettingsError, match=r"allowed: a date such as 2026-11-21 .* or how long ago"
    ) as refused:
        moment(text)
    assert "\n" not in str(refused.value)


# --- Reading logs -------------------------------------------------------------------------------------


JSON = st.recursive(
    st.none() | st.floats() | st.text() | st.integers(), lambda some: st.lists(some, max_size=3)
)


@given(line=st.binary() | JSON.map(json.dumps).map(str.encode), name=st.sampled_from([*FIELDS]), value=JSON)
def test_whatever_a_line_holds_is_read_and_shown(
    tmp_path_factory: pytest.TempPathFactory, line: bytes, name: str, value: Any
) -> None:
    log = tmp_path_factory.getbasetemp() / "any.jsonl"
    assume(not line.startswith(b"\x1f\x8b"))  # then the whole file is one that gzip made, and damaged
    log.write_bytes(line + b"\n" + lines(record(**{name: value})).encode())
    records, unreadable = read(log)
    assert len(records) <= 1 <= len(records) + unreadable
    with Drops(records) as drops:
        assert sum(len([*drops.parts(cluster)["patterns"]]) for cluster in drops.clusters()) == len(records)
    for each in records:
        shown = listing.as_line(each) + listing.as_csv(each) + listing.as_json(each)
        assert shown.isascii()
        assert shown.isprintable()


def test_damaged_lines_are_counted_and_the_others_read(log: Path) -> None:
    good = lines(record()).encode()
    damage = [b"\xff\xfe\x00", b"[" * 100_000, b'{"depth": ' + b"9" * 5_000 + b"}", b"x" * 1_000, b"\x1b[2J"]
    log.write_bytes(good + b"\n\r\n" + b"\n".join(damage) + b"\n" + good + good[:-10])
    assert read(log) == ([record(), record()], len(damage) + 1)


def test_a_line_without_end_takes_no_memory(log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(3 * MAX_LINE)  # zeros
    with log.open("ab") as file:
        file.write(b"\n" + lines(record()).encode())
    assert read(log) == ([record()], 3)


def test_logs_of_several_processes_are_read_zipped_or_not(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl.gz", "zipped-without-saying-so")]
    paths[0].write_text(lines(record(depth=0)))
    for depth, path in enumerate(paths[1:], 1):
        path.write_bytes(gzip.compress(lines(record(depth=depth)).encode()) * 2)
    assert [each["depth"] for each in read(*paths)[0]] == [0, 1, 1, 2, 2]


def test_a_damaged_gzip_file_is_named_and_its_start_read(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(lines(record(depth=depth)).encode() for depth in range(1_000)))
    spoilt = whole[:-3_000] + bytes(1_000) + whole[-2_000:]
    paths = [tmp_path / name for name in ("cut.gz", "spoilt.gz", "header.gz", "good.gz")]
    for path, data in zip(paths, (whole[:-3_000], spoilt, b"\x1f\x8bno", whole), strict=True):
        path.write_bytes(data)
    reader = Reader()
    depths = [each["depth"] for each in reader.read(paths)]
    assert reader.damaged == paths[:3]
    assert depths[:100] == [*range(100)]
    assert depths[-1_000:] == [*range(1_000)]
    assert all("is damaged" in line for line in list(listing.left_out(reader))[-3:])


def test_a_file_that_cannot_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "x" / "\0", tmp_path / ("x" * 5_000)):
        with pytest.raises(SettingsError, match="can't be read as a drop log: ") as refused:
            read(path)
        assert "\n" not in str(refused.value)


def test_a_log_setting_with_marks_finds_the_logs_of_every_crawl(tmp_path: Path) -> None:
    for name in (
        "logs[1]/site-2026-11-21T02-56-54+00-00.jsonl",
        "logs[1]/b-2.jsonl",
        "logs[1]/b.txt",
        "b-3.jsonl",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_logs(f"{tmp_path}/logs[1]/%(name)s-%(time)s.jsonl")
    assert [path.name for path in found] == ["b-2.jsonl", "site-2026-11-21T02-56-54+00-00.jsonl"]
    assert find_logs(f"{tmp_path}/b-3.jsonl") == [tmp_path / "b-3.jsonl"]
    assert find_logs(f"{tmp_path}/none-%(name)s.jsonl") == []
    for wrong in ("%(spider)s", "%s%s", "100%"):
        with pytest.raises(SettingsError, match=re.escape(repr(wrong))):
            find_logs(wrong)


# --- New records --------------------------------------------------------------------------------------


def append(path: Path, text: str) -> None:
    """What a crawl does."""
    with path.open("a") as file:
        file.write(text)


def test_logs_are_followed_as_they_change(tmp_path: Path) -> None:
    log, later = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    log.write_text(lines(record(depth=0)))
    reader = Reader()
    rounds = iter([None] * 100)  # a record that is missed ends the test
    records = reader.follow(lambda: next(rounds) or find_logs(f"{tmp_path}/%(name)s.jsonl"), pause=0)
    append(log, lines(record(depth=1)) + lines(record(depth=2))[:50])
    assert next(records)["depth"] == 1
    append(log, lines(record(depth=2))[50:] + "damage\n\n" + lines(record(depth=3)))
    assert [each["depth"] for each in islice(records, 2)] == [2, 3]
    assert reader.unreadable == 1
    append(later, lines(record(depth=4)))
    assert next(records)["depth"] == 4
    append(log, lines(record(depth=5)))
    log.rename(tmp_path / "a.jsonl.1")
    log.write_text(lines(record(depth=6)))
    assert [each["depth"] for each in islice(records, 2)] == [5, 6]
    log.write_text("")
    for depth in (7, 8):  # two rounds, so that the first log is seen when it is empty
        append(later, lines(record(depth=depth)))
        assert next(records)["depth"] == depth
    append(log, lines(record(depth=9)))
    assert next(records)["depth"] == 9
    records.close()


def test_a_crawl_is_followed_until_ctrl_c(log: Path) -> None:
    command = [sys.executable, "-m", "scrapy", "duplicates", "--follow", "--min-distance", "2", str(log)]
    with running(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        limit = threading.Timer(LIMIT, following.kill)  # a record that is missed ends the test
        limit.start()
        assert following.stdout
        assert following.stderr
        assert "waiting" in following.stderr.readline()
        for page in range(3):
            append(log, lines(record(distance=0), record(f"http://a.example/{page}\x1b")))
            assert following.stdout.readline() == (
                f"2026-11-21 10:00:00 drop http://a.example/{page}\\x1b of http://a.example/: "
                "all of its own 120 shingles but 10 are on the kept page (10 links)\n"
            )
        following.send_signal(signal.SIGINT)
        assert following.communicate() == ("", "")
        limit.cancel()
    assert following.returncode == 0


# --- The command --------------------------------------------------------------------------------------


def test_without_a_log_those_of_the_project_are_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}-1.jsonl").write_text(
            lines(record(f"http://{name}.example/\x7f"), record(distance=1))
        )
    log = f"{tmp_path}/%(name)s-%(time)s.jsonl"
    done = scrapy("duplicates", "--json", "--min-distance", 2, "--since", "2026-11-21", DEDUP_LOG=log)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert records == [record(f"http://{name}.example/\x7f") for name in ("a", "b")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("-s DEDUP_LOG=nowhere-%(name)s.jsonl", "no drop log: DEDUP_LOG is 'nowhere-%(name)s.jsonl', and no"),
        ("pyproject.toml nowhere.jsonl", "no drop log: LOG is 'nowhere.jsonl', and no"),
        ("LOG --min-distance 65", "--min-distance is 65; allowed: a whole number from 0 to 64"),
        ("LOG --max-resemblance 1.5", "--max-resemblance is 1.5; allowed: a number from 0 to 1"),
        ("LOG --since soon", "--since is 'soon'; allowed: a date such as "),
        (
            "LOG --html x --clusters",
            "--html can't be combined with --clusters",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(log: Path, arguments: str, said: str) -> None:
    log.write_text(lines(record()))
    done = scrapy("duplicates", *arguments.replace("LOG ", f"{log} ").split())
    assert (done.returncode, done.stdout) == (2, "")
    *usage, line = done.stderr.splitlines()
    assert said in line
    assert usage[:1] in ([], ["Usage"])


def test_who_has_read_enough_may_go(log: Path) -> None:
    log.write_text(lines(record()) * 3_000)
    command = [python(), "-m", "scrapy", "duplicates", "--csv", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stderr
        assert running.stdout.readline().decode() == listing.CSV_HEADING + "\n"
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def on_a_terminal(*arguments: object, **streams: Any) -> tuple[bytes, bytes]:
    """What `scrapy duplicates` prints where its error output is a terminal of 80 columns: there, and elsewhere."""
    here, there = pty.openpty()
    command = [python(), "-m", "scrapy", "duplicates", *map(str, arguments)]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80"}
    streams = {"stdout": there, "stderr": there} | streams
    with subprocess.Popen(command, cwd=ROOT, env=environment, **streams) as running:
        os.close(there)
        output, _ = running.communicate(timeout=LIMIT)
        shown = b"".join(_chunks(here))
    assert running.returncode == 0
    return shown, output


def test_a_terminal_has_colours(log: Path) -> None:
    log.write_text(lines(*MIXED))
    shown = on_a_terminal(log)[0].decode("ascii")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain != shown
    assert plain.replace("\r\n", "").isprintable()
    table = plain.partition("drops")[2].splitlines()
    assert max(map(len, table)) <= 80


def test_a_progress_bar_keeps_out_of_the_output(log: Path) -> None:
    with log.open("w") as file:
        for _ in range(9):
            file.write(lines(record()) + " " * (MAX_LINE - 1) + "\n")
    shown, output = on_a_terminal("--json", log, stdout=subprocess.PIPE)
    assert output.decode() == lines(record()) * 9
    assert b"Reading" in shown


def _chunks(terminal: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(terminal, 4096):
            yield chunk
    except OSError:  # how a terminal ends on Linux
        pass
    finally:
        os.close(terminal)


# --- Memory -------------------------------------------------------------------------------------------
