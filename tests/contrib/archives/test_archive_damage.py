"""Archives that are damaged, or were never right: the damage costs its own record, and is told."""

import gzip
import json
import tracemalloc
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from dedup.contrib.archives import Cleaning, open_input, streams, warc
from dedup.contrib.archives.capture import MAX_BODY
from dedup.contrib.archives.commands import Command
from dedup.contrib.archives.lines import Lines
from dedup.contrib.archives.streams import Member
from dedup.contrib.archives.warc import Warc
from tests.contrib.archives.test_archive import PAGES, record, records, rows, urls, zipped

RECORDS = records()[:6]


def bad(changed: bytes, at: int = 2) -> list[bytes]:
    """The records with another one in the place of one."""
    return [*RECORDS[:at], changed, *RECORDS[at + 1 :]]


def packed(parts: list[bytes]) -> list[bytes]:
    """Each in a member of its own; and the octets are the same in every run."""
    return [gzip.compress(part, mtime=0) for part in parts]


def flipped(member: bytes) -> bytes:
    return member[:200] + bytes([member[200] ^ 0xFF]) + member[201:]


PARTS = packed(RECORDS)
URL = "http://example.org/2"
ALL = [*"012345"]
WITHOUT_2 = ["0", "1", None, "3", "4", "5"]
#: The parts of files, what is found in them (None: damage, or no page), and why the rest is none.
WARCS: dict[str, tuple[list[bytes], list[str | None], str]] = {
    "a member cut off at the end": ([*PARTS[:5], PARTS[5][:-20]], ["0", "1", "2", "3", "4", None], "cut_off"),
    "a member cut off in the middle": ([*PARTS[:2], PARTS[2][:-30], *PARTS[3:]], WITHOUT_2, "packed"),
    "a bit flipped in a member": ([*PARTS[:2], flipped(PARTS[2]), *PARTS[3:]], WITHOUT_2, "packed"),
    "a wrong checksum": ([*PARTS[:2], PARTS[2][:-8] + bytes(8), *PARTS[3:]], WITHOUT_2, "packed"),
    "garbage between members": ([*PARTS[:2], b"garbage" * 20, *PARTS[2:]], ["0", "1", None, *ALL[2:]], "no_record"),
    "an empty member before all": ([gzip.compress(b""), *PARTS], ALL, ""),
    "a record that is not packed behind some that are": ([*PARTS[:2], bytes(40000), RECORDS[2], *PARTS[3:]], ALL, ""),
    "a length that is too small": (bad(record(URL, PAGES[URL], Content_Length="100")), WITHOUT_2, "length"),
    "a length that is too large": (bad(record(URL, PAGES[URL], Content_Length="5000")), WITHOUT_2, "length"),
    "a length that is far too large": (bad(record(URL, "<p>", Content_Length=str(1 << 40))), WITHOUT_2, "length"),
    "a length of many digits": (bad(record(URL, "<p>", Content_Length="9" * 5000)), WITHOUT_2, "length"),
    "a length that is no number": (bad(record(URL, "<p>", Content_Length="-1")), WITHOUT_2, "head"),
    "no type": (bad(record(URL, "<p>", WARC_Type="")), WITHOUT_2, "head"),
    "no record": (bad(b"<html>Hello\r\n"), WITHOUT_2, "no_record"),
    "no URL": (bad(record("", "<p>")), WITHOUT_2, "no_url"),
    "no HTTP": (bad(record(URL, "20 A 1.2.3.4", "metadata", WARC_Type="response")), WITHOUT_2, "not_http"),
    "another status": (bad(RECORDS[2].replace(b" 200 OK", b" 404 NO")), WITHOUT_2, "status"),
    "another type": (bad(RECORDS[2].replace(b"text/html", b"image/png")), WITHOUT_2, "type"),
    "another kind": (bad(record(URL, "a: b", "metadata")), WITHOUT_2, "kind"),
    "too long": (bad(record(URL, b"<p>" + bytes(MAX_BODY))), WITHOUT_2, "large"),
    "nothing": ([], [], ""),
}  # fmt: skip


def found(path: Path) -> list[str | None]:
    return [item.capture.url[-1] if item.capture else None for item in Warc(path)]


@pytest.mark.parametrize("name", WARCS)
@pytest.mark.parametrize("pack", [False, True])
def test_damaged_records(name: str, pack: bool, tmp_path: Path) -> None:
    parts, wanted, why = WARCS[name]
    octets = b"".join(parts)
    path = tmp_path / "x.warc"
    path.write_bytes(octets)
    if pack and not octets.startswith(b"\x1f"):  # all in one member, through which nothing can be sought
        path.write_bytes(gzip.compress(octets))
    assert found(path) == wanted
    assert {item.why for item in Warc(path) if item.why} == ({why} if why else set())


@pytest.mark.parametrize("size", [50, 700, 5000])
@pytest.mark.parametrize("name", ["x.warc.gz", "x.jsonl.gz"])
def test_gzip_blocks_of_one_size(name: str, size: int, tmp_path: Path) -> None:
    """As by bgzip: records and lines go on from one member of gzip to the next."""
    octets = rows() if "jsonl" in name else b"".join(RECORDS)
    parts = packed([octets[at : at + size] for at in range(0, len(octets), size)])
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    path.write_bytes(b"".join(parts) + gzip.compress(b""))
    result = Cleaning([str(path)], str(kept)).run()
    assert (result.damage, result.others) == ({}, {})
    assert len(urls(kept)) == 6
    assert [item.capture and item.capture.body for item in open_input(kept)] == [
        item.capture and item.capture.body for item in [*open_input(path)][:6]
    ]
    at = len(parts) // 2
    path.write_bytes(b"".join([*parts[:at], parts[at][:-9] + bytes(9), *parts[at + 1 :]]))
    found = [item.capture.url for item in open_input(path) if item.capture]
    assert len(found) == len({*found})  # nothing is read twice
    assert {"http://example.org/0"} <= {*found} < {*PAGES}


@pytest.mark.parametrize("length", [1 << 40, MAX_BODY + 1, 99_999_999])
def test_wrong_lengths_in_one_member(length: int, tmp_path: Path) -> None:
    """Longer ones than are held: they are passed over, and gone back over."""
    wrong = record("http://example.org/x", "<p>", Content_Length=str(length))
    long = record("http://example.org/y", b"<p>" + bytes(MAX_BODY))
    path = tmp_path / "x.warc.gz"
    path.write_bytes(gzip.compress(b"".join([*bad(wrong, 0), wrong, long, *RECORDS, wrong, *RECORDS[:2]])))
    rest = [None, None, *"012345", None, *"01"]
    assert found(path) == [None, *"12345", *rest]
    assert [item.why for item in Warc(path) if item.why] == ["length", "length", "large", "length"]


def test_cost_of_wrong_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "MAX_BODY", 10_000)
    monkeypatch.setattr(streams, "TWICE", 1 << 16)
    unpacked = 0
    take = Member.take

    def counted(member: Member, count: int) -> bytes:
        nonlocal unpacked
        taken = take(member, count)
        unpacked += len(taken)
        return taken

    monkeypatch.setattr(Member, "take", counted)
    costs = []
    size = len(record("http://example.org/x", "<p>", Content_Length="99999"))
    for times in (400, 800, 1600):
        parts = [record("http://example.org/x", "<p>", Content_Length=str(times // 2 * size - 9))] * times
        path = tmp_path / f"{times}.warc.gz"
        path.write_bytes(gzip.compress(b"".join([*parts, *RECORDS])))
        unpacked = 0
        assert found(path) == [None] * times + list("012345")
        costs.append(unpacked)
    assert costs[2] < 2.5 * costs[1]


def test_any_byte_may_be_wrong(tmp_path: Path) -> None:
    """At most the record with that byte is lost, and its neighbour where it is unclear which of them it belongs to."""
    path = tmp_path / "x.warc.gz"
    for whole, step in ((b"".join(PARTS), 97), (b"".join(RECORDS), 211)):
        for at in range(0, len(whole), step):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            assert len(set(found(path)) - {None}) >= 5


def test_a_file_may_end_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    for parts, step in ((PARTS, 97), (RECORDS, 211)):
        whole = b"".join(parts)
        for end in range(1, len(whole), step):
            path.write_bytes(whole[:end])
            complete = sum(end >= len(b"".join(parts[: n + 1])) for n in range(len(parts)))
            numbers = [each for each in found(path) if each is not None]
            assert numbers[:complete] == list("012345")[:complete]
            most = complete + (parts is RECORDS)  # without the empty lines after it, a record is whole
            assert len(numbers) <= most


#: A page like any other.
SOME = next(iter(PAGES.values()))

LINES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{'url'}\n", "no_json"),
    "no object": (b"[1]\n", "no_json"),
    "too deep": (b"[" * 100_000 + b"\n", "no_json"),
    "no UTF-8": (b'{"url": "\xff"}\n', "no_json"),
    "too long": (b'{"html": "' + b"x" * (2 * MAX_BODY) + b'"}\n', "large"),
    "much else": (b'{"url": "", "x": [' + b"[]," * (1 << 20) + b'[]], "fetched": {}}\n', "no_page"),
    "no page": (b'{"url": "http://example.org/x", "html": 7}\n', "no_page"),
}


@pytest.mark.parametrize("name", LINES)
def test_damaged_lines(name: str, tmp_path: Path) -> None:
    line, why = LINES[name]
    path = tmp_path / "pages.jsonl"
    first, *rest = rows().splitlines(keepends=True)
    path.write_bytes(b"\n".join([first, line, b"", *rest]))
    items = list(Lines(path))
    assert [item.why for item in items] == ["", why, *[""] * 9]
    assert [item.damaged for item in items].count(True) == (why != "no_page")


@pytest.mark.parametrize(
    "more",
    [
        {"html": SOME + "\ud800"},
        {"url": "http://example.org/\udfff"},
        {"fetched": 10**400},
        {"fetched": float("-inf")},
    ],
    ids=lambda more: f"{next(iter(more))} {next(iter(more.values()))!a:.20}",
)
def test_json_of_python(more: dict[str, object], tmp_path: Path) -> None:
    path, kept = tmp_path / "pages.jsonl", tmp_path / "kept.jsonl"
    line = json.dumps({"url": "http://example.org/x", "html": SOME} | more) + "\n"
    path.write_text(line, "ascii")
    assert [item.why for item in Lines(path)] == [""]
    assert Cleaning([str(path)], str(kept)).run().stats["dedup/new"] == 1
    assert kept.read_text("ascii") == line


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + rows())
    assert urls(path) == list(PAGES)


def test_lines_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl.gz"
    path.write_bytes(gzip.compress(rows(), 0)[:-3000])
    items = list(Lines(path))
    assert [bool(item.capture) for item in items] == [True] * 8 + [False, False]
    assert [item.why for item in items[8:]] == ["cut_off", "packed"]


@pytest.mark.parametrize("make", [lambda body: body, gzip.compress], ids=["as it is", "packed"])
def test_long_records_are_copied(
    make: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc, "MAX_BODY", 10_000)
    path, kept = tmp_path / "x.warc", tmp_path / "kept.warc.gz"
    long = record("http://example.org/2", b"<p>" + bytes(1 << 25))
    path.write_bytes(b"".join(map(make, bad(long))))
    tracemalloc.start()
    result = Cleaning([str(path)], str(kept)).run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24  # of which an index in a file may take the half
    assert result.others == {"large": (1, str(path))}
    with gzip.open(kept) as file:
        assert file.read() == b"".join(bad(long))


def test_record_of_ten_gigabytes(tmp_path: Path) -> None:
    path, size = tmp_path / "x.warc", 10 << 30
    with path.open("wb") as file:
        head = record("http://example.org/2", b"", Content_Length=str(size)).partition(b"\r\n\r\n")[0]
        file.write(RECORDS[0] + head + b"\r\n\r\n")
        file.seek(size, 1)  # a hole
        file.write(b"\r\n\r\n" + RECORDS[1])
    result = Cleaning([str(path)], str(tmp_path / "kept.jsonl")).run()
    assert urls(tmp_path / "kept.jsonl") == ["http://example.org/0", "http://example.org/1"]
    assert (result.others, result.unwritten) == ({"large": (1, str(path))}, {"large": 1})


UNKNOWN = (
    "-o is '{}/%s', whose format is not known; allowed: a name that ends with .jsonl, .ndjson, .warc, .wacz, "
)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["{}/none"], 2, "the input {}/none can't be read: there is no such file"),
        (["{}"], 2, "the input {} has an unknown format; allowed: a WARC file, "),
        (["{}/x.bin"], 2, "the input {}/x.bin has an unknown format; allowed: a WARC file, "),
        (["{}/x.zip"], 2, "the input {}/x.zip can't be read: File is not a zip file"),
        (["{}/y.zip"], 2, "the input {}/y.zip can't be read: it has no WARC file in its folder archive/, as WACZ has"),
        (["{}/x.jsonl", "-o", "{}/x.jsonl"], 2, "-o is '{}/x.jsonl', which exists; nothing is overwritten"),
        (["{}/x.jsonl", "-o", "{}/y.csv", "--duplicates", "{}/y.csv"], 2, "-o and --duplicates are both '{}/y.csv'; give "),
        (["{}/x.jsonl", "-o", "{}/y.csv", "--duplicates", "{}/./y.csv"], 2, "-o and --duplicates are both '{}/y.csv'; give "),
        (["{}/x.jsonl", "-o", "{}/no/x.jsonl"], 8, "{}/no/x.jsonl.part can't be written: No such file"),
        (["{}/x.jsonl", "-o", "{}/y"], 2, UNKNOWN % "y"),
        (["{}/x.jsonl", "-o", "{}/y.csv.gz"], 2, UNKNOWN % "y.csv.gz"),
        (["{}/x.jsonl", "-o", "{}/y.jsonl", "--cdxj", "i"], 2, "--cdxj is 'i', an index of the WARC file that is written, but "),
        (["{}/x.jsonl", "--index", "memory:"], 2, "--index is 'memory:', which ends with its crawl"),
        (["{}/x.jsonl", "--index", "redis://127.0.0.1:1/0"], 3, "the index redis://127.0.0.1:1/0 "),
        (["{}/x.jsonl", "--against", "memory:"], 2, "--against is 'memory:', which ends with its crawl"),
        (["{}/x.jsonl", "--against", "file:{}/index"], 2, "--against is file:{}/index, where no index is; "),
        (["{}/x.jsonl", "--against", "{}/none"], 2, "the input {}/none can't be read: there is no such file"),
        (["{}/x.jsonl", "-o", "{}/o.jsonl", "--keep", "longst"], 2, "--keep is 'longst', and no row has a number or a time in "),
        (["{}/t.jsonl", "-o", "{}/o.jsonl", "--keep", "newest"], 2, "--keep is 'newest', and of no page it is known when it was fetched"),
        (["{}/t.jsonl", "-o", "{}/o.jsonl", "--id", "nmae"], 2, "--id is 'nmae', and no row without a url has anything in a field"),
        (["{}/t.jsonl", "-o", "{}/o.jsonl", "--text", "txt"], 2, "no page is in 1 record (1 no_page): a row needs html or text, or "),
        (["{}/x.warc", "-o", "{}/o.jsonl"], 2, "no page is in 2 records (1 kind, 1 type): a row needs html or text, or "),
    ],
)  # fmt: skip
def test_mistakes_in_one_line(
    arguments: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "x.bin": b"\x00\x01",
        "x.zip": zipped({"readme": b""})[:30],
        "y.zip": zipped({"readme": b"nothing"}),
        "x.jsonl": rows(),
        "t.jsonl": b'{"text": "one"}\n',
        "x.warc": record("http://a/", "GET / HTTP/1.1\r\n\r\n", "request")
        + record("http://a/", b"\x89PNG", "resource", Content_Type="image/png"),
    }
    for name, octets in files.items():
        (tmp_path / name).write_bytes(octets)
    command = Command()
    command.settings = Settings()
    parser = ArgumentParser()
    command.add_options(parser)
    opts, inputs = parser.parse_known_args([argument.format(tmp_path) for argument in arguments])
    command.run(inputs, opts)
    printed = capsys.readouterr()
    assert (command.exitcode, printed.out) == (status, "")
    assert printed.err.startswith("dedup: " + said.format(tmp_path))
    assert printed.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {*files}  # nothing is left behind
