"""Archives are cleaned into tables: Parquet with the types that it had, and CSV; an input without pages is no success."""

import csv
import json
import tracemalloc
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dedup import SettingsError
from dedup.contrib.archives import Cleaning, open_input, tables
from tests.contrib.archives.test_archive import FORMATS, KEPT, PAGES, json_lines, read, write
from tests.support.crawls import words
from tests.support.processes import scrapy

#: The first two of these texts are alike.
TEXTS = [words(0), words(0).upper(), words(1)]
#: Columns of other types than JSON has.
OWN = {
    "day": pa.array([date(2026, 11, n) for n in (1, 2, 3)]),
    "price": pa.array([Decimal("1.10"), Decimal("2.20"), None]),
    "taken": pa.array([datetime(2026, 11, 1, tzinfo=UTC)] * 3, pa.timestamp("ns", "UTC")),
    "raw": pa.array([b"\xff", b"", None]),
    "lists": pa.array([[1], [], None], pa.list_(pa.int8())),
    "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kept", ["kept.parquet", "kept.csv"])
def test_table_of_every_format(name: str, kept: str, tmp_path: Path) -> None:
    Cleaning([str(FORMATS[name](tmp_path / name))], str(tmp_path / kept)).run()
    if kept == "kept.csv":
        with (tmp_path / kept).open(newline="", encoding="utf-8") as file:
            found = [*csv.DictReader(file)]
    else:
        found = pq.read_table(tmp_path / kept).to_pylist()
    assert [row["html"] for row in found] == [*PAGES.values()][:6]
    if name != "pages":
        assert [row["url"] for row in found] == KEPT


def test_parquet_types(tmp_path: Path) -> None:
    before = pa.table({"text": TEXTS, **OWN})
    pq.write_table(before, source := tmp_path / "x.parquet", row_group_size=2)
    done = scrapy("dedup", source, "-o", tmp_path / "y.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert pq.read_table(tmp_path / "y.parquet").equals(before.take([0, 2]))


def test_parquet_of_other_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS", 2)
    pq.write_table(pa.table({"text": TEXTS, "n": pa.array([1, 2, 3], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": [0.5], "text": [words(2)], "more": ["x"]}), tmp_path / "b.parquet")
    Cleaning([str(tmp_path / f"{name}.parquet") for name in "ab"], str(tmp_path / "c.parquet")).run()
    found = pq.read_table(tmp_path / "c.parquet")
    assert found.select(["n", "more"]).to_pylist() == [
        {"n": 1, "more": None},
        {"n": 3, "more": None},
        {"n": 0.5, "more": "x"},
    ]


@pytest.mark.parametrize("kept", ["kept.parquet", "kept.csv"])
def test_table_of_lines(kept: str, tmp_path: Path) -> None:
    objects = [
        {"text": words(0), "n": 1, "x": 1, "yes": True, "of": {"a": [1]}, "big": 1 << 70},
        {"text": words(1), "n": 0.5, "x": "one", "lone": "\ud800", 'a,"\n': "b,\n"},
        {"text": words(2), "n": None, "x": [None]},
        {"price": 1},
    ]
    Cleaning([str(write(tmp_path / "x.jsonl", json_lines(objects)))], str(tmp_path / kept)).run()
    if kept == "kept.parquet":
        found = pq.read_table(tmp_path / kept)
        assert [found.schema.field(name).type for name in ("n", "yes", "price")] == [
            "double",
            "bool",
            "int64",
        ]
        table = found.to_pylist()
        assert [row["n"] for row in table] == [1.0, 0.5, None, None]
    else:
        with (tmp_path / kept).open(newline="", encoding="utf-8") as file:
            table = [*csv.DictReader(file)]
        assert [row["n"] for row in table] == ["1", "0.5", "", ""]
    assert [row["x"] or None for row in table] == ["1", "one", "[null]", None]
    assert (table[0]["of"], table[0]["big"]) == ('{"a": [1]}', str(1 << 70))
    assert (table[1]["lone"], table[1]['a,"\n']) == ("?", "b,\n")


def test_text_field(tmp_path: Path) -> None:
    objects = [{"body": text, "html": "<p>menu", "n": n} for n, text in enumerate(TEXTS)]
    source = write(tmp_path / "x.jsonl", json_lines(objects))
    pq.write_table(pa.Table.from_pylist(objects), tmp_path / "x.parquet")
    for path in (source, tmp_path / "x.parquet"):
        kept = path.with_name(f"{path.name}.jsonl")
        done = scrapy("dedup", path, "--text", "body", "-o", kept)
        assert (done.returncode, done.stderr) == (0, "")
        assert [row["n"] for row in read(kept)] == [0, 2]
    with pytest.raises(SettingsError, match="has no column content, but body, html, n"):
        Cleaning([str(tmp_path / "x.parquet")], text="content").run()


def test_empty_input(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", b"")
    for keep in ("first", "newest", "score"):
        kept = tmp_path / f"{keep}.jsonl"
        assert "dedup/pages" not in Cleaning([str(empty)], str(kept), keep=keep).run().stats
        assert kept.read_bytes() == b""


# --- Parquet that is damaged or odd

SOME = next(iter(PAGES.values()))


def test_parquet_damaged_row_group(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"url": list(PAGES), "html": list(PAGES.values())}), path, row_group_size=5)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    octets, at = path.read_bytes(), column.dictionary_page_offset
    path.write_bytes(
        octets[:at] + bytes(column.total_compressed_size) + octets[at + column.total_compressed_size :]
    )
    items = list(open_input(path))
    assert [item.why for item in items] == ["packed", *[""] * 5]
    assert [item.capture.url for item in items[1:] if item.capture] == list(PAGES)[5:]


def test_parquet_any_byte_wrong(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"html": [f"<p>{n}" for n in range(6)]})
    pq.write_table(table, path, row_group_size=2, write_page_checksum=True, write_statistics=False)
    octets = path.read_bytes()
    untold = dict[int, int]()
    for at in range(4, len(octets)):
        path.write_bytes(octets[:at] + bytes([octets[at] ^ 0x1E]) + octets[at + 1 :])
        try:
            items = list(open_input(path))
        except SettingsError:  # it can't be opened
            continue
        if not any(item.damaged for item in items) and len(items) != 6:
            untold[at] = len(items)
    assert not untold


def test_parquet_long_values(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"html": pa.array(["<p>" * (1 << 20)] * 64)}), path)  # which is there once
    assert path.stat().st_size < 1 << 18
    tracemalloc.start()
    assert [len(item.capture.body) for item in open_input(path) if item.capture] == [3 << 20] * 64
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 25


def test_parquet_two_columns_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table([[SOME], ["<p>"]], names=["html", "html"]), path)
    with pytest.raises(SettingsError, match=r"can't be read: it has more than one column html$"):
        open_input(path)


def test_parquet_odd_values(tmp_path: Path) -> None:
    path, kept = tmp_path / "x.parquet", tmp_path / "kept.jsonl"
    html = pa.array([SOME.encode() + b"<p>\xff"], pa.binary())
    columns = {
        "url": ["http://example.org/"],
        "html": pa.Array.from_buffers(pa.string(), 1, html.buffers()),
        "fetched": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")),
        "year": pa.array([10**7], pa.date32()),
        "length": pa.array([1 << 60], pa.duration("ms")),
        "zone": pa.array([0], pa.timestamp("s", tz="No/Where")),
        "nested": pa.array([[{"at": 123_456_789}]], pa.list_(pa.struct([("at", pa.time64("ns"))]))),
    }
    pq.write_table(pa.table(columns), path)
    (item,) = open_input(path)
    assert item.capture
    assert item.capture.body == html[0].as_py()
    assert item.capture.fetched // 1000 == 1_700_000_000_123
    assert Cleaning([str(path)], str(kept)).run().stats["dedup/new"] == 1
    assert json.loads(kept.read_text())["year"].startswith("29349-")


def test_parquet_without_pages(tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [1]}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has no column html or text, but price"):
        open_input(tmp_path / "x.parquet")
    pq.write_table(pa.table({"\x1b[2J" * 1_000: [1]}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has no column html or text, but") as told:
        open_input(tmp_path / "x.parquet")
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 600 + len(str(tmp_path))
