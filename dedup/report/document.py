"""Drops -> one HTML file: charts, clusters, and what differs between two pages.

Totals and charts cover all drops.  At most `MAX_PAIRS` pairs are listed, so that the size of the file and the
memory that it takes are bounded.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

from msgspec import structs

from dedup.droplog.course import read_missed, read_steps, read_thresholds, width
from dedup.droplog.drops import Drops
from dedup.droplog.reason import reason
from dedup.droplog.record import FIELDS, Record
from dedup.report.file import assembled
from dedup.report.noise import noise_by_pattern
from dedup.texts.differences import edits
from dedup.texts.texts import Find, Runs

#: The most pairs and hosts that are listed, and the most bytes of the pages' words.
MAX_PAIRS, MAX_HOSTS, MAX_WORDS = 10_000, 1_000, 16_000_000

_SCRIPTS = ("charts.js", "differences.js", "hosts.js", "noise.js", "timeline.js", "report.js")
#: Fields that hold a URL.
_URLS = frozenset({"url", "duplicate_of", "referer", "canonical"})
Watch = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a report comes from, and what it says besides the drops."""

    logs: Sequence[str]  #: the names of the logs
    read: int  #: the number of records in them
    chosen: str = ""  #: which of these records the report is about, in words; empty for all
    #: Seconds until a newer report takes the place of this one, while the crawl runs; 0 for never.
    renewed: float = 0
    courses: Sequence[Path] = ()  #: files of `dedup.droplog.course`
    find: Find = field(default=lambda url, simhash: None)
    has_texts: bool = False  #: whether `find` has the words of any pair
    watch: Watch = field(default=iter)  #: goes through the pairs while their words are compared


def report(drops: Drops, source: Source) -> str:
    """Returns the text of the HTML file, in ASCII.  It takes O(drops) time, and bounded memory."""
    return assembled("report.html", ["report.css"], _SCRIPTS, _data(drops, source))


def _data(drops: Drops, source: Source) -> dict[str, Any]:
    totals = drops.totals()
    urls = defaultdict[str, int](count().__next__)  # in the order in which they are first asked for
    pairs = list(drops.pairs(MAX_PAIRS))
    words, texts = _words(pairs, source)
    listed = {pair["duplicate_of"] for pair in pairs}
    # The course counts all pages that were judged, so that it doesn't go with a choice of drops.
    steps = [] if source.chosen else source.courses
    missed = read_missed(steps)
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "logs": list(source.logs),
        "totals": totals._asdict(),
        "thresholds": [structs.asdict(used) for used in islice(read_thresholds(source.courses), 10)],
        "timeline": _timeline(drops, steps),
        "missed": missed and structs.asdict(missed),
        "grid": list(drops.grid()),
        "hosts": list(islice(drops.hosts(), MAX_HOSTS)),
        "clusters": [
            [urls[cluster.duplicate_of], cluster.drops, cluster.links, cluster.hosts]
            for cluster in drops.clusters()
            if cluster.duplicate_of in listed
        ],
        "pairs": [
            [*_numbered(pair, urls), reason(pair), differing]
            for pair, differing in zip(pairs, words, strict=True)
        ],
        "pair_fields": [*FIELDS, "why", "words"],
        "noise": noise_by_pattern(pairs),
        "urls": list(urls),
        "texts": texts,
        "words": source.has_texts,
        "max_words": MAX_WORDS,
        "read": source.read,
        "chosen": source.chosen,
        "renewed": source.renewed,
    }


def _numbered(pair: Record, urls: Mapping[str, int]) -> Iterator[object]:
    """Yields the fields of a pair, with numbers for URLs."""
    for name, value in pair.items():
        yield urls[value] if name in _URLS and isinstance(value, str) else value


def _timeline(drops: Drops, courses: Sequence[Path]) -> dict[str, Any]:
    """Returns the numbers of near-duplicates, and if they are known of kept pages, in each step of time."""
    totals = drops.totals()
    ends = [datetime.fromisoformat(time).timestamp() for time in (totals.first, totals.last) if time]
    for step in read_steps(courses):
        ends = [min(step.time, *ends), max(step.time, *ends)] if ends else [step.time, step.time]
    if not ends:
        return {"start": 0, "width": 1, "near": [], "kept": None, "judged": None}
    wide = width(ends[-1] - ends[0])
    start = ends[0] // wide * wide
    steps = int((ends[-1] - start) // wide) + 1
    near, kept, judged, known = [0] * steps, [0] * steps, 0, 0
    for at, number in drops.times(start, wide).items():
        near[min(max(at, 0), steps - 1)] += number
    for step in read_steps(courses):
        kept[int((step.time - start) // wide)] += max(0, step.pages - step.duplicates)
        judged += step.pages
        known += step.duplicates
    return {
        "start": start,
        "width": wide,
        "near": near,
        "kept": kept if judged else None,
        # It is None if the course of a run is missing.
        "judged": judged if judged and known == totals.drops else None,
    }


def doubt(pair: Record) -> tuple[float, int]:
    """Returns the order of pairs by which the least alike comes first."""
    return pair["resemblance"], -pair["distance"]


def _words(pairs: Sequence[Record], source: Source) -> tuple[list[Any], list[Any]]:
    """For each pair the number of the kept page's text, the dropped page's marked chrome, the edits of the data in
    scripts and those of the words, or None; and the texts, each with its marked chrome and its data.
    """
    found: list[Any] = [None] * len(pairs)
    numbers: dict[tuple[str, str], int] = {}  # of words and data
    texts: list[Any] = []
    if not source.has_texts:
        return found, []
    find = lru_cache(64)(source.find)
    left = MAX_WORDS
    for at in source.watch(sorted(range(len(pairs)), key=lambda at: doubt(pairs[at]))):
        if left < MAX_WORDS // 100:
            break  # hardly another pair would fit
        pair = pairs[at]
        kept = find(pair["duplicate_of"], pair["duplicate_of_simhash"])
        dropped = source.find(pair["url"], pair["simhash"]) if kept else None
        if not kept or not dropped:
            continue
        said = " ".join(kept.tokens), " ".join(kept.data)
        text = [said[0], _flat(kept.chrome), said[1]]
        number = numbers.get(said, len(texts))
        in_data = _edited(kept.data, dropped.data)
        words = [number, _flat(dropped.chrome), in_data, *_edited(kept.tokens, dropped.tokens)]
        size = len(json.dumps(words)) + (0 if said in numbers else len(json.dumps(text)))
        if size <= left:
            left -= size
            found[at] = words
            if numbers.setdefault(said, number) == len(texts):
                texts.append(text)
    return found, texts


def _edited(old: Sequence[str], new: Sequence[str]) -> list[Any]:
    """Returns the edits from one to the other, each as start, end and the tokens that are new."""
    return [part for edit in edits(old, new) for part in (edit.start, edit.end, " ".join(edit.tokens))]


def _flat(runs: Runs) -> list[int]:
    """Bounds of runs: the first, and then how far each is from the one before."""
    bounds = [0, *(at for run in runs for at in run)]
    return [end - start for start, end in pairwise(bounds)]
