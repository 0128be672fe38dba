"""The fields of a record: one table, by which records are made, read, stored, shown and documented."""

import json
import re
from typing import Any

import pytest

from dedup.droplog import record as record_module
from dedup.droplog.drops import Drops
from dedup.droplog.record import FIELDS, OPTIONAL, make, parse
from dedup.scrapy.commands.duplicates.text import CSV_HEADING, as_csv
from tests.support import ROOT
from tests.support.logs import record

RECORD: Any = record()
#: What is said of a value that a field may not have.
REFUSED = r"^Expected|^Invalid|out of range"
#: For each field, a value that it may have and values that it may not have.
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "time": ("0001-01-01T00:00:00.000+00:00", [None, 7, "", "yesterday", "0001-01-01T00:00+14:00"]),
    "url": ("", [None, 7]),
    "duplicate_of": ("\ud800", [None, []]),
    "distance": (64, [None, -1, 65, 1.5, True, "1"]),
    "resemblance": (0, [None, -0.1, 1.1, float("nan"), True, "1"]),
    "own": (None, [-1, 1.5, True, "1"]),
    "matching": (1 << 32, [-1, (1 << 32) + 1, 1.0]),
    "new": (0, [-1, False, []]),
    "gone": (None, [-1, 0.5, "1"]),
    "simhash": ("0" * 16, [None, 7]),
    "duplicate_of_simhash": ("0" * 16, [None, 7]),
    "tokens": (1 << 32, [None, -1, (1 << 32) + 1, 1.0]),
    "links": (0, [None, -1, 1 << 63]),
    "bytes": (0, [None, -1, "20 kB"]),
    "rule": ("exact", [None, 7]),
    "noise": ("seen 17 times", [7, []]),
    "judge": ("probe", [None, 7]),
    "action": ("mark", [None, "", "keep", ["drop"]]),
    "referer": ("http://a.example/", [7, []]),
    "canonical": ("http://a.example/", [7, []]),
    "agrees": (False, [0, 1, "true"]),
    "depth": (0, [None, -1, False]),
    "undone": (None, [7, True]),
}


def test_what_is_made_is_what_is_read() -> None:
    assert parse(json.dumps(make(**RECORD))) == RECORD
    assert parse(json.dumps(RECORD | {"of a later version": 1}).encode()) == RECORD


def test_times_are_in_utc_and_in_milliseconds() -> None:
    for text in ("2026-11-21T12:00:00.000001+02:00", "2026-11-21T10:00Z", "2026-11-21 10:00"):
        assert make(**RECORD | {"time": text}) == RECORD


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_has_the_values_of_its_table_and_no_others(name: str) -> None:
    allowed, refused = VALUES[name]
    changed: dict[str, Any] = RECORD | {name: allowed}
    assert make(**changed) == parse(json.dumps(changed)) == changed
    for value in refused:
        changed = RECORD | {name: value}
        with pytest.raises(ValueError, match=REFUSED):
            make(**changed)
        with pytest.raises(ValueError, match=REFUSED):
            parse(json.dumps(changed))


@pytest.mark.parametrize("name", FIELDS)
def test_only_the_bytes_and_what_older_logs_lack_may_be_missing(name: str) -> None:
    others: Any = {other: value for other, value in RECORD.items() if other != name}
    if name in OPTIONAL:
        assert make(**others) == parse(json.dumps(others)) == others
    else:
        missing = f"missing required field `{name}`"
        with pytest.raises(ValueError, match=missing):
            make(**others)
        with pytest.raises(ValueError, match=missing):
            parse(json.dumps(others))
    assert {
        *("bytes", "own", "matching", "new", "gone", "noise", "judge", "canonical", "agrees", "undone")
    } == OPTIONAL


@pytest.mark.parametrize(
    "line", ["", "{", "[]", '"url"', "1", "null", "[" * 100_000, b"\xff", '{"depth": 1}']
)
def test_another_line_is_no_record(line: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (json.loads has texts of its own)
        parse(line)


def _outcome(read: Any, line: str | bytes) -> str:
    try:
        return repr(read(line))
    except ValueError as error:
        return str(error)


def _refuse(line: bytes | str) -> Any:
    raise ValueError


def test_the_fast_way_to_read_a_line_comes_to_the_same_as_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [value for allowed, refused in VALUES.values() for value in (allowed, *refused)]
    values += [-0.0, 0.0, 1, 1.0, 2**64, 1e400, "\ud83d\ude00", "\udc00\ud800", "a\0\x7f", {"url": [1]}]
    times = (
        "21T10:00:00,000+00:00",
        "21t10:00:00.000+00:00",
        "21T24:00:00.000+00:00",
        "31T10:00:00.000+00:00",
    )
    times += (
        "21T10:00:00.000-00:00",
        "21T10:00:00.000+00:00\n",
        "21 10:00:00.000+00:00",
        "21T10:00:00.000001+00:00",
    )
    values += ["２026-11-21T10:00:00.000+00:00", *(f"2026-11-{time}" for time in times)]
    lines: list[str | bytes] = [
        json.dumps(RECORD | {name: value}, ensure_ascii=plain)
        for name in [*FIELDS, "of a later version"]
        for value in values
        for plain in (True, False)
    ]
    line = json.dumps(RECORD)
    lines += [json.dumps(dict(reversed(RECORD.items()))), line + "x", f" {line}\r\n"]
    lines += [f'{line[:-1]}, "depth": {depth}}}' for depth in (2, -2)]
    lines += [line.replace("0.9", number) for number in ("0.90000000000000002", "09")]
    lines += [line.encode("utf-16"), line.encode("utf-8-sig"), line.replace("a.ex", "\xff").encode("latin-1")]
    for line in lines:
        found = _outcome(parse, line)
        with monkeypatch.context() as slow:
            slow.setattr(record_module, "_decode", _refuse)
            assert found == _outcome(parse, line), line


def test_every_field_is_in_the_database_in_csv_and_in_the_pairs_of_a_report() -> None:
    with Drops([RECORD]) as drops:
        [pair] = drops.pairs(1)
    assert pair == RECORD
    assert CSV_HEADING.split(",") == list(FIELDS)
    assert as_csv(RECORD).count(",") == len(FIELDS) - 1


def test_the_reference_has_the_table() -> None:
    part = (
        (ROOT / "docs" / "reference.md").read_text().partition("\n## Log fields\n")[2].partition("\n## ")[0]
    )
    assert re.findall(r"^\| `(\w+)` \| .+ \|$", part, re.MULTILINE) == list(FIELDS)
