"""Drops -> one HTML file that needs nothing else: charts, clusters, and what differs between two pages.

The file holds its data as JSON, its style sheet and its script; its Content-Security-Policy allows these two by
their hashes and nothing from anywhere.  The script inserts every text as text.  Totals and charts cover all
drops; of pairs, `MAX_PAIRS` are listed, so that the file and the memory it takes are bounded.
"""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from string import Template
from typing import Any

from dedup.droplog.course import read_steps, read_thresholds, width
from dedup.droplog.drops import Drops, Pair
from dedup.droplog.texts import Find
from dedup.errors import SettingsError
from dedup.report.differences import edits

__all__ = ["MAX_PAIRS", "MAX_WORDS", "Source", "check_target", "report", "write_report"]

#: Pairs and hosts that are listed, and bytes of the pages' words.
MAX_PAIRS, MAX_HOSTS, MAX_WORDS = 10_000, 1_000, 16_000_000
#: By this a report is known, and may be replaced.
MARK = '<meta name="generator" content="scrapy duplicates">'

_SCRIPTS = ("charts.js", "differences.js", "report.js")
Watch = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a report comes from: what it says besides the drops."""

    logs: Sequence[str]  # their names
    read: int  # records in them
    chosen: str = ""  # which of these, in words; empty: all
    courses: Sequence[Path] = ()  # see `dedup.droplog.course`
    find: Find = field(default=lambda url, simhash: None)
    texts: str = ""  # what the words are: "stored", "fetched", "" = none are looked for
    watch: Watch = field(default=iter)  # goes through pairs while words are compared


def report(drops: Drops, source: Source, now: datetime | None = None) -> str:
    """The page, ASCII only.  O(drops) time; memory is bounded."""
    template = files("dedup.report").joinpath("templates")
    style = template.joinpath("report.css").read_text("utf-8")
    script = "\n".join(template.joinpath(name).read_text("utf-8") for name in _SCRIPTS)
    return Template(template.joinpath("report.html").read_text("utf-8")).substitute(
        mark=MARK,
        style=style,
        script=script,
        style_hash=_sha256(style),
        script_hash=_sha256(script),
        data=_json(_data(drops, source, now or datetime.now(UTC))),
    )


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: object) -> str:
    """JSON in which nothing ends a script element or begins a comment.

    >>> _json("</script><!--")
    '"\\\\u003c/script\\\\u003e\\\\u003c!--"'
    """
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(drops: Drops, source: Source, now: datetime) -> dict[str, Any]:
    totals = drops.totals()
    urls = _Numbers()
    pairs = list(drops.pairs(MAX_PAIRS))
    words, texts = _words(pairs, source)
    listed = {pair.duplicate_of for pair in pairs}
    # Which drops there are depends on the choice; how many pages were judged does not.
    steps = [] if source.chosen else source.courses
    return {
        "made": now.isoformat(timespec="seconds"),
        "logs": list(source.logs),
        "read": source.read,
        "chosen": source.chosen,
        "totals": totals._asdict(),
        "thresholds": [used._asdict() for used in islice(read_thresholds(source.courses), 10)],
        "timeline": _timeline(drops, steps),
        "grid": list(drops.grid()),
        "hosts": list(islice(drops.hosts(), MAX_HOSTS)),
        "clusters": [
            [urls[cluster.duplicate_of], cluster.drops, cluster.links, cluster.hosts]
            for cluster in drops.clusters()
            if cluster.duplicate_of in listed
        ],
        "pairs": [[*_numbered(pair, urls), differing] for pair, differing in zip(pairs, words, strict=True)],
        "pair_fields": [*Pair._fields, "words"],
        "urls": list(urls),
        "texts": texts,
        "words": source.texts,
        "max_words": MAX_WORDS,
    }


class _Numbers(dict[str, int]):
    """Texts, numbered in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _numbered(pair: Pair, urls: _Numbers) -> Iterable[Any]:
    """The fields of a pair, URLs by their numbers."""
    for name, value in pair._asdict().items():
        is_url = name in {"url", "duplicate_of", "referer"} and value is not None
        yield urls[value] if is_url else value


def _timeline(drops: Drops, courses: Sequence[Path]) -> dict[str, Any]:
    """Near-duplicates, and where it is known other pages, per step of time."""
    totals = drops.totals()
    ends = [datetime.fromisoformat(time).timestamp() for time in (totals.first, totals.last) if time]
    for step in read_steps(courses):
        ends = [min(step.time, *ends), max(step.time, *ends)] if ends else [step.time, step.time]
    if not ends:
        return {"start": 0, "width": 1, "near": [], "kept": None, "judged": None}
    wide = width(ends[-1] - ends[0])
    start = ends[0] // wide * wide
    count = int((ends[-1] - start) // wide) + 1
    near, kept, judged, known = [0] * count, [0] * count, 0, 0
    for at, number in drops.times(start, wide).items():
        near[min(max(at, 0), count - 1)] += number
    for step in read_steps(courses):
        kept[int((step.time - start) // wide)] += max(0, step.pages - step.duplicates)
        judged += step.pages
        known += step.duplicates
    return {
        "start": start,
        "width": wide,
        "near": near,
        "kept": kept if judged else None,
        "judged": judged if judged and known == totals.drops else None,  # or a run's course is missing
    }


def _words(pairs: Sequence[Pair], source: Source) -> tuple[list[Any], list[str]]:
    """Per pair the number of the kept page's text and what differs from it, None without; and these texts."""
    found: list[Any] = [None] * len(pairs)
    texts: dict[str, int] = {}
    if not source.texts:
        return found, []
    find = lru_cache(64)(source.find)
    left = MAX_WORDS
    doubtful = sorted(range(len(pairs)), key=lambda at: (pairs[at].resemblance, -pairs[at].distance))
    for at in source.watch(doubtful):
        if left < MAX_WORDS // 100:
            break  # hardly another pair would fit
        pair = pairs[at]
        kept = find(pair.duplicate_of, pair.duplicate_of_simhash)
        dropped = source.find(pair.url, pair.simhash) if kept else None
        if not kept or not dropped:
            continue
        text = " ".join(kept)
        differing = [(edit.start, edit.end, " ".join(edit.tokens)) for edit in edits(kept, dropped)]
        words = [texts.get(text, len(texts)), *(part for edit in differing for part in edit)]
        size = len(json.dumps(words)) + (0 if text in texts else len(json.dumps(text)))
        if size <= left:
            left -= size
            found[at] = words
            texts.setdefault(text, len(texts))
    return found, list(texts)


def check_target(path: Path) -> None:
    """Raises `SettingsError` if a report may not be written there."""
    if not path.parent.is_dir():
        raise SettingsError(
            f"--html is {str(path)!r}: there is no folder {str(path.parent)!r}; make it first"
        )
    try:
        with path.open("rb") as file:
            if MARK.encode() not in file.read(1_024):
                raise SettingsError(
                    f"--html is {str(path)!r}, which is there and no report of ours; name another file, or remove it"
                )
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise _unwritten(path, error) from None


def write_report(path: Path, text: str) -> None:
    """Puts a page into its place, whole or not at all.  Raises `SettingsError`."""
    check_target(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:99]}-", dir=path.parent)
        with open(handle, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        raise _unwritten(path, error) from None


def _unwritten(path: Path, error: Exception) -> SettingsError:
    why = getattr(error, "strerror", None) or error
    return SettingsError(f"--html is {str(path)!r}, which can't be written: {why}")
