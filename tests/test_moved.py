"""`scrapy index moved URL`: where the content of a page that has vanished now lives."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint

from dedup.droplog.drops import Drops, Place
from dedup.fingerprint.detector import Detector
from dedup.index import open_index
from tests.support.crawls import words
from tests.support.logs import lines, record
from tests.support.processes import scrapy

OLD, NEW, THIRD = (f"http://{host}.example/story" for host in ("old", "new", "third"))


def drop(url: str, of: str, day: int) -> dict[str, Any]:
    """A record of a drop log."""
    return record(url, of, time=f"2026-11-{day:02}T10:00:00.000+00:00", distance=1, own=None, new=None)


RECORDS = [drop(NEW, OLD, 3), drop(THIRD, OLD, 2), drop(NEW, OLD, 9), drop("http://a/", "http://b/", 5)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "drops.jsonl"
    path.write_text(lines(*RECORDS))
    return path


def keep(address: str, **options: Any) -> str:
    """Files the old page in an index, and claims another that stays pending; returns the run."""

    async def claim() -> str:
        async with open_index(address, Detector(), **options) as index:
            for url in (OLD, "http://pending.example/"):
                page = Detector().fingerprint(f"<p>{words(url)}")
                await index.claim(fingerprint(Request(url)).hex(), url, page)
            await index.confirm(fingerprint(Request(OLD)).hex())
            return index.run

    return asyncio.run(claim())


def test_places_of_a_content_are_found_from_any_of_its_urls_the_last_seen_first() -> None:
    with Drops(RECORDS) as drops:
        new = Place(NEW, False, "2026-11-03T10:00:00.000+00:00", "2026-11-09T10:00:00.000+00:00")
        third = Place(THIRD, False, "2026-11-02T10:00:00.000+00:00", "2026-11-02T10:00:00.000+00:00")
        old = Place(OLD, True, "2026-11-02T10:00:00.000+00:00", "2026-11-09T10:00:00.000+00:00")
        assert list(drops.places(OLD)) == [new, third]
        assert list(drops.places(THIRD)) == [new, old]
        assert list(drops.places("http://unknown.example/")) == []


def test_a_lost_page_is_found_with_dates(log: Path, tmp_path: Path, address: str, namespace: str) -> None:
    if address == "memory:":
        address = f"file:{tmp_path}/none.sqlite"  # no index there yet: only the log is asked

    if "none" not in address:
        keep(address, namespace=namespace)
    done = scrapy("index", "moved", THIRD, log, DEDUP_INDEX=address, DEDUP_NAMESPACE=namespace)
    assert (done.returncode, done.stderr) == (0, "")
    heading, new, old = done.stdout.splitlines()
    assert heading == f"{THIRD}: not among the kept pages of the index"
    assert new == f"  2026-11-03 10:00 to 2026-11-09 10:00  {NEW}"
    assert old.startswith(f"  2026-11-02 10:00 to 2026-11-09 10:00  {OLD}; ")
    assert ("kept since 20" in old) == ("none" not in address)
    assert not (tmp_path / "none.sqlite").exists()


def test_nowhere_else(log: Path, tmp_path: Path) -> None:
    index = f"file:{tmp_path}/none.sqlite"
    done = scrapy("index", "moved", "http://unknown.example/", log, DEDUP_INDEX=index)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "its content was met nowhere else")
    done = scrapy("index", "moved", OLD, tmp_path / "no.jsonl", DEDUP_INDEX=index)
    assert (done.returncode, done.stderr) == (
        2,
        f"index: LOG is '{tmp_path}/no.jsonl', and no such file is here\n",
    )
    assert scrapy("index", "stolen", OLD).returncode == 2


def test_why_says_what_became_of_a_page(log: Path, tmp_path: Path) -> None:
    where = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite"}
    run = keep(where["DEDUP_INDEX"])
    done = scrapy("index", "why", NEW, log, **where)
    assert (done.returncode, done.stderr) == (0, "")
    url, filed, first, kept, last, _ = done.stdout.splitlines()
    assert (url, filed) == (NEW, "  in the index: not among its pages")
    evidence = "drop: rule simhash, distance 1, resemblance 0.90, judge index; a near-duplicate of"
    assert (first, last) == (f"  2026-11-03 10:00:00 {evidence}", f"  2026-11-09 10:00:00 {evidence}")
    assert kept.startswith(f"    {OLD}: kept, and handed over; filed 20")
    assert kept.endswith(f" by run {run}")
    done = scrapy("index", "why", OLD, log, **where)
    assert done.stdout.splitlines()[1].endswith(f" by run {run}")
    assert done.stdout.splitlines()[2] == "  in 1 drop log: never dropped"
    assert scrapy("index", "why", "http://unknown.example/", log, **where).returncode == 1
    done = scrapy("index", "forget", OLD, **where)
    assert done.returncode == 0
    gone = scrapy("index", "why", NEW, log, **where).stdout.splitlines()[3]
    assert gone.startswith(f"    {OLD}: not among its pages any more")


def test_why_without_a_drop_log(tmp_path: Path) -> None:
    where = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite", "DEDUP_LOG": tmp_path / "none.jsonl"}
    keep(str(where["DEDUP_INDEX"]))
    last = scrapy("index", "why", OLD, **where).stdout.splitlines()[-1]
    assert last == "  whether it was dropped is not known: no drop log is here; name those of its crawls"


def test_the_drops_of_one_page_are_chosen_by_its_url(log: Path) -> None:
    done = scrapy("duplicates", "--url", NEW, "--json", log)
    assert [json.loads(line)["time"] for line in done.stdout.splitlines()] == [
        f"2026-11-0{day}T10:00:00.000+00:00" for day in (3, 9)
    ]
