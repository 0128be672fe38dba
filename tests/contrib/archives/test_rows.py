"""Rows that have no URL, and which pages of an archive are kept."""

from pathlib import Path
from typing import Any

import pytest

from dedup.contrib.archives import Cleaning, open_input
from tests.contrib.archives.test_archive import json_lines, read, write
from tests.support.crawls import words
from tests.support.processes import scrapy

Rows = list[dict[str, Any]]


def lines(path: Path, rows: Rows) -> Path:
    return write(path, json_lines(rows))


def story(number: int, more: str = "") -> str:
    return f"{words(number)} {more}"


#: Rows of three contents: one with ids of its own, one with those of another field, one without any.
WITH_IDS: Rows = [{"id": n, "text": story(n % 2), "score": n} for n in (7, 8, 9)]
OTHER_IDS: Rows = [{"key": "x y", "text": story(0)}, {"key": "z", "text": story(3)}]
WITHOUT: Rows = [{"text": story(3)}, {"text": story(4)}, {"text": story(4)}]


def cleaned(folder: Path, *paths: Path, **how: Any) -> tuple[Rows, dict[str, str]]:
    """What is kept, and for which row each other was dropped."""
    kept, log = folder / "kept.jsonl", folder / "dropped.jsonl"
    for path in (kept, log):
        path.unlink(missing_ok=True)
    Cleaning([*map(str, paths)], str(kept), str(log), **how).run()
    found = read(log)
    return read(kept), {record["url"]: record["duplicate_of"] for record in found}


def test_rows_without_url(tmp_path: Path) -> None:
    files = [
        lines(tmp_path / name, rows)
        for name, rows in (("a.jsonl", WITH_IDS), ("b.jsonl", OTHER_IDS), ("c.jsonl", WITHOUT))
    ]
    kept, dropped = cleaned(tmp_path, *files)
    assert [row.get("id", row.get("key")) for row in kept] == [7, 8, "z", None]
    assert dropped == {
        "9": "7",
        f"{files[1]}:1": "8",
        f"{files[2]}:1": f"{files[1]}:2",
        f"{files[2]}:3": f"{files[2]}:2",
    }
    assert cleaned(tmp_path, *files[::-1], id="id")[1] == dropped  # whatever the order of the files
    assert cleaned(tmp_path, *files, id="key")[1]["x y"] == f"{files[0]}:2"
    told = scrapy("duplicates", tmp_path / "dropped.jsonl", "--clusters").stdout
    assert f"{files[0]}:1" in told
    assert scrapy("duplicates", tmp_path / "dropped.jsonl", "--html", tmp_path / "r.html").returncode == 0
    assert f"{files[0]}:2" in (tmp_path / "r.html").read_text()


def test_rows_are_no_wall(tmp_path: Path) -> None:
    rows = [{"id": f"folder{n}/row{n}", "text": story(1)} for n in range(500)]
    kept, dropped = cleaned(tmp_path, lines(tmp_path / "a.jsonl", rows))
    assert (len(kept), len(dropped)) == (1, 499)


def test_second_run_joins_by_index(tmp_path: Path) -> None:
    first, second = lines(tmp_path / "a.jsonl", WITH_IDS), lines(tmp_path / "b.jsonl", OTHER_IDS)
    index = f"file:{tmp_path / 'index'}"
    assert "0 pages known before, 2 filed" in scrapy("dedup", first, "--index", index).stdout
    log = tmp_path / "dropped.jsonl"
    told = scrapy("dedup", second, "--index", index, "--duplicates", log, "--id", "key").stdout
    assert "2 pages known before, 1 filed" in told
    assert [(found["url"], found["duplicate_of"]) for found in read(log)] == [("x y", "8")]
    assert "3 pages known before, 0 filed" in scrapy("dedup", first, "--index", index).stdout


@pytest.mark.parametrize(
    ("keep", "kept"), [("first", [8, 7]), ("longest", [9, 7]), ("newest", [10, 7]), ("score", [9, 7])]
)
def test_keep(keep: str, kept: list[int], tmp_path: Path) -> None:
    rows = [
        {"id": 10, "text": story(1), "fetched": "2026-11-03T00:00:00Z", "score": None},
        {"id": 7, "text": story(2)},
        {"id": 8, "text": story(1, "one"), "fetched": "2026-11-01T00:00:00Z", "score": 0.5},
        {"id": 9, "text": story(1, "one two"), "fetched": "2026-11-02T00:00:00Z", "score": 1},
    ]
    path = lines(tmp_path / "a.jsonl", rows)
    assert sorted(row["id"] for row in cleaned(tmp_path, path, keep=keep)[0]) == sorted(kept)


def test_against(tmp_path: Path) -> None:
    first, second = lines(tmp_path / "a.jsonl", WITHOUT), lines(tmp_path / "b.jsonl", WITH_IDS + OTHER_IDS)
    kept, dropped = cleaned(tmp_path, first, against=str(second))
    assert [row["text"] for row in kept] == [story(4), story(4)]  # not for each other
    assert dropped == {f"{first}:1": f"{second}:5"}
    index = f"file:{tmp_path / 'index'}"
    scrapy("dedup", second, "--index", index)
    for against in (second, index):
        told = scrapy("dedup", first, "--against", against, "-o", tmp_path / "kept.warc").stdout
        assert told.startswith("3 pages judged\n  kept      2: 2 new\n  dropped   1 near-duplicate\n")
        assert "filed" not in told
        found = [item.raw for item in open_input(tmp_path / "kept.warc")]
        assert [one.fields["warc-type"] for one in found] == ["revisit", "resource", "resource"]
        assert found[0].fields["warc-refers-to-target-uri"] == f"urn:x-shingleback:row:{second}:5".replace(
            ":5", "%3A5"
        )
        assert found[1].block == story(4).encode()
        (tmp_path / "kept.warc").unlink()
    assert "3 pages known before, 1 filed" in scrapy("dedup", first, "--index", index).stdout
