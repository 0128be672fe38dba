"""Input of `scrapy evaluate`: files of labelled pairs."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dedup.errors import SettingsError
from dedup.scrapy.commands.fetch import MAX_PAGE

#: What a label may be, in lower case, and whether it says that the pages are near-duplicates.
_LABELS = {
    **dict.fromkeys(("1", "true", "yes", "duplicate", "near-duplicate", "near"), True),
    **dict.fromkeys(("0", "false", "no", "different", "distinct", "not-near"), False),
}


class Pair(NamedTuple):
    """Two pages, each a path, a URL, HTML or text, and whether they are near-duplicates."""

    a: str
    b: str
    near: bool


def read_pairs(path: Path) -> list[Pair]:
    """Returns the pairs of a JSON Lines or CSV file with the fields ``a``, ``b`` and ``label``.

    Raises `SettingsError`, which names the first line that can't be read.
    """
    pairs = []
    for number, row in _rows(path):
        label = _LABELS.get(str(row.get("label", "")).strip().lower())
        a, b = row.get("a"), row.get("b")
        if label is None or not isinstance(a, str) or not isinstance(b, str):
            raise SettingsError(
                f"{path}, line {number}: each line needs the fields a, b (a path, URL, HTML or text each) and "
                f"label (1, true, duplicate or 0, false, different), but it has {_shown(row)}"
            )
        pairs.append(Pair(a, b, label))
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                csv.field_size_limit(MAX_PAGE)
                yield from enumerate(csv.DictReader(file), 2)
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = json.loads(line)
                    yield number, row if isinstance(row, dict) else {"it": row}
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise SettingsError(f"{path} can't be read as labelled pairs: {error}") from None


def _shown(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={str(value)[:30]!r}" for name, value in row.items()) or "none"
