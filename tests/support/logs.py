"""Drop logs, read and made by hand."""

import json
from pathlib import Path
from typing import Any

from dedup.droplog.record import FIELDS

#: A text that could harm a terminal, a spreadsheet or the layout.
HOSTILE = "\x1b[2J\x1b]0;pwned\x07[red]:bomb:\u202e\u2028\x9b\x7f\r\n\ud800" + "x" * 2_000


def read_log(path: Path) -> list[dict[str, Any]]:
    """The objects on the lines of a file; a drop log is not there if nothing is in it."""
    return [json.loads(line) for line in (path.read_text("ascii").splitlines() if path.exists() else [])]


def record(url: str = "http://a.example/1", of: str = "http://a.example/", **changes: Any) -> dict[str, Any]:
    """Makes a record as a crawl writes it, with these fields changed."""
    written = {
        "time": "2026-11-21T10:00:00.000+00:00", "url": url, "duplicate_of": of, "distance": 2,
        "resemblance": 0.9, "own": 120, "matching": 110, "new": 10, "gone": None,
        "simhash": "ca06817b1cf29d7d", "duplicate_of_simhash": "ca06817b1ce29d7d", "tokens": 600, "links": 10,
        "bytes": 20_000, "rule": "simhash", "noise": None, "judge": "index", "action": "drop",
        "referer": None, "canonical": None, "agrees": None, "depth": 1, "undone": None,
    }  # fmt: skip
    assert written.keys() == set(FIELDS) >= changes.keys()
    return written | changes


def lines(*records: dict[str, Any]) -> str:
    """Makes the text of a log."""
    return "".join(json.dumps(each) + "\n" for each in records)
