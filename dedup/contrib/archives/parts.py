"""Judges on all cores.  Pages that can't influence each other's verdicts are judged in separate parts.

The pages of one host stay together.  So do hosts that have pages which are equal or near.  A page
may also be found by a rare shingle, but which shingles are rare is known only while the host is judged.  So each part
reports which ones it looked up, and parts that share one are judged again, together.  Where most pages hang together anyway,
all of them are one part at once.  In the end the verdicts are those of one process that judges all pages one after another.

A part that is finished stays finished, even if the run is killed.
"""

import asyncio
import gc
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dedup.batch.hamming import clusters
from dedup.batch.pairs import Clusters, Numbers
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.judging import RecallingIndex, judge_all
from dedup.contrib.archives.workers import cores, pool
from dedup.filter import Counts
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.shingles import Hashes
from dedup.index.hosts import MAX_HOSTS
from dedup.page.urls import host
from dedup.settings import FilterSettings, IndexSettings

#: Pages of a part, but for what its last host has more.  An index of them may be in memory: it knows as many hosts.
SIZE = MAX_HOSTS


def judge_apart(
    journal: Journal,
    folder: Path,
    detector: Detector,
    plan: IndexSettings,
    policy: FilterSettings,
    workers: int,
    advance: Callable[[int], None],
) -> Counts:
    """Judges the pages of a journal, from where an earlier call has ended, and returns the stats."""
    if not journal.get("planned"):
        journal.plan(_planned(journal.keys(), detector))
    task = folder, detector, plan, policy

    def advance_in_part(number: int) -> None:
        advance(done + number)

    while True:
        left = journal.left()
        done = journal.count() - sum(left.values())
        at_once = min(len(left), workers or cores())
        if at_once > 1:
            with pool(at_once, detector, "judges pages") as submit:
                futures = {submit(judge_part, *task, part, pages): part for part, pages in left.items()}
                for future in as_completed(futures):
                    future.result()
                    _take(journal, folder, part := futures[future])
                    advance(done := done + left[part])
        else:
            for part, pages in left.items():
                judge_part(*task, part, pages, advance_in_part)
                _take(journal, folder, part)
                done += pages
        if not (clashing := _clashing(journal.asked())):
            break
        for part in clashing:  # left over if a run was killed after it had taken the part
            shutil.rmtree(_own(folder, part), ignore_errors=True)
        journal.join(clashing)
    stats = Counts()
    for counts in journal.counted():
        merge(stats, counts)
    return stats


def _own(folder: Path, part: int) -> Path:
    return folder / f"judging{part}"


def _take(journal: Journal, folder: Path, part: int) -> None:
    own = _own(folder, part)
    journal.take(part, own / "journal")
    shutil.rmtree(own)


def merge(stats: Counts, counts: dict[str, Any]) -> None:
    """Adds the stats of a part.  If both have a text by the same name, the one with the greater number in front stays."""
    for name, value in counts.items():
        if isinstance(value, int | float):
            stats.inc_value(name, value)  # seconds are floats
        else:
            stats.set_value(name, max(stats.get_value(name, ""), value, key=_number))


def _number(text: str) -> int:
    return int("0" + text.partition(" ")[0].replace(",", "")) if text[:1].isdigit() else 0


def judge_part(
    folder: Path,
    detector: Detector,
    plan: IndexSettings,
    policy: FilterSettings,
    part: int,
    pages: int,
    advance: Callable[[int], None] = lambda number: None,
) -> None:
    """Judges a part.  The verdicts go into a journal of its own."""
    gc.collect()  # the index of the part before is in a cycle, and a process judges a thousand parts
    own = _own(folder, part)
    own.mkdir(exist_ok=True)
    stats = Counts()
    with closing(Journal(own / "journal")) as journal:
        journal.show(folder / "journal", part)
        index = RecallingIndex(own, detector, plan, journal, in_memory=pages <= SIZE)
        journal.begin_verdicts()
        asyncio.run(judge_all(journal, index, stats, policy, advance))
        rare = np.unique(np.frombuffer(index.rare, np.uint64)).tobytes().hex()
        journal.end_verdicts(stats=stats, rare=rare)


def _planned(pages: Iterable[tuple[int, str, bytes]], detector: Detector) -> Iterator[tuple[int, int]]:
    """Returns the part of each page.  It is given positions, URLs, and the keys by which the pages are found."""
    positions, first_of, judged, keys = array("q"), array("q"), array("q"), bytearray()
    hosts: dict[str, int] = {}
    for row, (position, url, found) in enumerate(pages):
        positions.append(position)
        name = host(url)
        first_of.append(hosts.setdefault(name, row) if name else row)
        if found:
            judged.append(row)
            keys += found
    joined = Clusters(len(positions))
    joined.join(np.arange(len(positions)), np.array(first_of))
    rows = np.array(judged)
    if len(rows):
        columns = np.frombuffer(keys, np.uint64).reshape(len(rows), -1).T
        for number, column in enumerate(columns):
            is_simhash = number == 2 and not detector.finder.own_keys
            joined.join(rows, rows[clusters(column, detector.radius if is_simhash else 0)])
    _, which, sizes = np.unique(joined.lowest(), return_inverse=True, return_counts=True)
    parts = (np.cumsum(sizes) - sizes) // SIZE
    # Most hang together: with a rare shingle of another part, all these would be judged again.
    if 3 * sizes.max(initial=0) > 2 * len(positions):
        parts[:] = 0
    return zip(positions, parts[which].tolist(), strict=True)


def _clashing(asked: Iterable[tuple[int, Hashes]]) -> dict[int, int]:
    """Returns, for each part that shares a lookup with others, the part that it is merged into: the one with the least number."""
    parts: list[int] = []
    keys: list[Hashes] = []
    for part, rare in asked:
        parts.append(part)
        keys.append(rare)
    if not parts:
        return {}
    every = np.concatenate(keys)
    owners: Numbers = np.repeat(np.arange(len(parts)), [len(rare) for rare in keys])
    order = every.argsort(kind="stable")
    twice = np.flatnonzero(every[order][1:] == every[order][:-1])
    joined = Clusters(len(parts))
    joined.join(owners[order[twice]], owners[order[twice + 1]])
    lowest = joined.lowest()
    several = np.bincount(lowest, minlength=len(parts))[lowest] > 1
    return {parts[n]: parts[lowest[n]] for n in np.flatnonzero(several).tolist()}
