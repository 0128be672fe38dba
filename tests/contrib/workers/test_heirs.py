"""Workers that are killed (-9) or stopped, and others in their places, which crawl only what was not done."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from dedup.contrib.workers.options import shard_options
from dedup.index.lifecycle import run_of_crawl
from tests.support import slow
from tests.support.redis import Server, running_server
from tests.support.shards import Hosts, Single, Worker, a_minute_later, kept, kept_urls, serve
from tests.support.stores import end_lease
from tests.support.waiting import LIMIT, wait_until

NAMESPACE = "shingleback/site"
#: Where workers note what is done.
PAST = f"shingleback:shards:{{{NAMESPACE}}}:past:%d"


def start(site: Hosts, folder: Path, server: Server, shard: str, **settings: object) -> Worker:
    """A worker that asks for its pages only, and waits until a site that holds answers back gives them."""
    settings = {"DEDUP_PROBE": False, "DOWNLOAD_TIMEOUT": 2 * LIMIT, "DEDUP_HEIR": "rest"} | settings
    return Worker(site, folder, shard, DEDUP_INDEX=server.address, **settings)


def noted(server: Server, shard: int) -> int:
    """How many pages of a shard are known to be done."""
    return int(server.client.strlen(PAST % shard)) // 16


def runs(server: Server) -> set[str]:
    """The runs of the workers that have begun."""
    found = {run.decode() for run in server.client.zrange(f"shingleback:{{{NAMESPACE}}}:runs", 0, -1)}
    return {run for run in found if run != run_of_crawl(run)}


def assert_complete(site: Hosts, folder: Path) -> None:
    """Each content was kept, and one that a dead worker had kept once more at most."""
    counts = kept(folder)
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) <= 2


def fetched(site: Hosts, *workers: int) -> set[str]:
    """The URLs that any of these workers has fetched."""
    by = {*map(str, workers)}
    return {f"http://{asked.host}:{site.port}{asked.path}" for asked in site.asked if asked.by in by}


def test_what_was_dropped_is_fetched_again(server: Server, tmp_path: Path) -> None:
    """Nobody else could take the drop back."""
    log = tmp_path / "drops-1.jsonl"
    with serve(Hosts(contents=16)) as site:
        site.most = {0: 12, 1: 12}  # of 16
        other = start(site, tmp_path, server, "1/2")
        wait_until(lambda: noted(server, 0) > 6)  # the next one meets copies of these among its 12
        before = runs(server)
        killed = start(site, tmp_path, server, "2/2")
        wait_until(lambda: noted(server, 1) > 0 and log.exists())
        assert killed.kill()
        site.most.clear()
        done = noted(server, 1)
        a_minute_later(server, 1)
        for run in runs(server) - before:  # else the other one waits 20 seconds for what it had claimed
            end_lease(server.address, NAMESPACE, run)
        heir = start(site, tmp_path, server, "2/2")
        assert [other.wait(LIMIT), heir.wait(LIMIT)] == [0, 0]
    assert_complete(site, tmp_path)
    dropped = {json.loads(line)["url"] for line in log.read_text().splitlines() if line.endswith("}")}
    assert dropped
    assert dropped <= fetched(site, 2)
    assert len(fetched(site, 1)) - len(fetched(site, 1) & fetched(site, 2)) >= done


@pytest.mark.parametrize("number", [0, slow(1)])
def test_a_death_costs_what_was_in_flight(server: Server, tmp_path: Path, number: int) -> None:
    log = tmp_path / f"drops-{number}.jsonl"
    log.touch()
    with serve(Hosts(contents=40)) as site:
        site.most = dict.fromkeys(range(2), 16)
        workers, of = list[Worker](), list[str]()
        for shard in ("1/2", "2/2"):
            before = runs(server)
            workers.append(start(site, tmp_path, server, shard))
            wait_until(lambda before=before: runs(server) - before)
            of += runs(server) - before
        wait_until(lambda: noted(server, number) + len(log.read_bytes().splitlines()) == 16)
        site.most[number] = 24
        wait_until(lambda: len(fetched(site, number)) == 24)
        assert workers.pop(number).kill()
        end_lease(server.address, NAMESPACE, of[number])
        site.most.clear()
        a_minute_later(server, number)
        workers.append(start(site, tmp_path, server, f"{number + 1}/2"))
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    assert counts.total() - len(counts) <= 8


@pytest.mark.parametrize(("workers", "job"), [(1, False), (2, True), slow(2, False)])
def test_a_stopped_crawl_goes_on_there(server: Server, tmp_path: Path, workers: int, job: bool) -> None:
    """What it has kept is not fetched again, and answers for its content."""

    def team(**more: object) -> list[Worker]:
        where = [
            {"JOBDIR": tmp_path / f"job {n}", "DEDUP_HEIR": "all"} if job else {} for n in range(workers)
        ]
        return [
            start(site, tmp_path, server, f"{n}/{workers}", **own, **more) for n, own in enumerate(where, 1)
        ]

    with serve(Hosts(contents=16)) as site:
        site.most = dict.fromkeys(range(workers), 4)
        stopped = team(CONCURRENT_REQUESTS=2)  # are under way when it is stopped
        for number in range(workers):
            wait_until(lambda number=number: len(fetched(site, number)) == 4)
            wait_until(lambda number=number: job or noted(server, number) > 0)
        for worker in stopped:
            worker.send(signal.SIGTERM)
        for worker in stopped:  # from then on it asks for nothing more
            wait_until(lambda worker=worker: "Closing spider (shutdown)" in worker.log.read_text())
        site.most.clear()
        assert [worker.wait(LIMIT) for worker in stopped] == [0] * workers
        before = {*kept_urls(tmp_path)}
        assert [heir.wait(LIMIT) for heir in team()] == [0] * workers
    counts = kept(tmp_path)
    assert 0 < len(before) < site.contents
    assert set(counts) == set(range(site.contents))
    # Until the other one goes on with its job, too, its pages are those of an earlier crawl.
    assert max(counts.values()) <= 1 + job
    assert before.isdisjoint(fetched(site, *range(workers, 2 * workers)))
    assert not server.client.keys("shingleback:shards:*")


def test_who_was_silent_notes_nothing_beside_its_heir(server: Server, tmp_path: Path) -> None:
    with serve(Single(contents=16)) as site:
        site.most = {0: 6, 1: 4}
        paused = start(site, tmp_path, server, "1/1")
        wait_until(lambda: noted(server, 0) > 2)
        paused.pause()
        a_minute_later(server, 0)
        heir = start(site, tmp_path, server, "auto/1")
        wait_until(lambda: "is crawled here" in heir.log.read_text())
        del site.most[0]
        paused.send(signal.SIGCONT)
        assert paused.wait(LIMIT) == 4
        site.most.clear()
        assert heir.wait(LIMIT) == 0
    assert_complete(site, tmp_path)


def test_while_redis_is_away_notes_wait(tmp_path: Path) -> None:
    with running_server() as server, serve(Single(contents=24)) as site:
        site.most[0] = 6
        killed = start(site, tmp_path, server, "1/1")
        wait_until(lambda: noted(server, 0) > 2)
        server.kill()
        site.most[0] = 12
        wait_until(lambda: len(fetched(site, 0)) > 6)
        server.start()
        wait_until(lambda: noted(server, 0) > 6)
        assert killed.kill()
        site.most.clear()
        a_minute_later(server, 0)
        assert start(site, tmp_path, server, "1/1").wait(LIMIT) == 0
    assert_complete(site, tmp_path)


@pytest.mark.parametrize(("workers", "outlives"), [(1, True), (1, False), slow(2, True)])
def test_heirs_of_all_workers_go_on_only_if_they_have_the_items(
    server: Server, tmp_path: Path, workers: int, outlives: bool
) -> None:
    """By default."""

    def team() -> list[Worker]:
        return [start(site, tmp_path, server, f"auto/{workers}", DEDUP_HEIR=None) for _ in range(workers)]

    with serve(Single(contents=16 * workers)) as site:
        site.most = dict.fromkeys(range(workers), 8)
        killed = team()
        for number in range(workers):
            wait_until(lambda number=number: noted(server, number) > 3)
        for worker in killed:
            assert worker.kill()
        done = sum(noted(server, number) for number in range(workers))
        if not outlives:  # as in a container that is gone
            for items in tmp_path.glob("items-*"):
                items.unlink()
        a_minute_later(server, *range(workers))
        site.most.clear()
        heirs = team()
        assert [heir.wait(LIMIT) for heir in heirs] == [0] * workers
    assert_complete(site, tmp_path)
    before = fetched(site, *range(workers))
    again = before & fetched(site, *range(workers, 2 * workers))
    assert (len(again) <= len(before) - done) == outlives
    assert any("is crawled anew" in heir.log.read_text() for heir in heirs) != outlives
    assert not server.client.keys("shingleback:shards:*")


@pytest.mark.parametrize(
    ("settings", "rest"),
    [
        ({"FEEDS": {"pages-%(time)s.jsonl": {"format": "jsonlines"}}}, True),
        ({"FEEDS": {"pages-%(time)s.csv": {"format": "csv"}}}, True),
        ({"FEEDS": {"pages-%(time)s.json": {"format": "json"}}}, False),  # a file without an end
        ({"FEEDS": {"pages.jsonl": {"format": "jsonlines"}}}, False),
        ({"FEEDS": {"s3://bucket/pages-%(time)s.jsonl": {"format": "jsonlines"}}}, False),
        ({"FEEDS": {"stdout:": {"format": "jsonlines"}}}, False),
        ({"FEEDS": {"pages-%(time)s.jsonl": {"format": "jsonlines"}}, "JOBDIR": "job"}, False),
        ({"FEEDS": {"pages-%(time)s.jsonl": {"format": "jsonlines"}}, "ITEM_PIPELINES": {"a.B": 1}}, False),
        ({"FEEDS": {"pages-%(time)s.jsonl": {"format": "jsonlines"}}, "DEDUP_HEIR": "all"}, False),
        ({}, False),
        ({"DEDUP_HEIR": "rest"}, True),
    ],
)
def test_the_rest_is_the_default_where_items_are_on_disk(settings: dict[str, Any], rest: bool) -> None:
    shared = {"DEDUP_SHARD": "1/2", "DEDUP_INDEX": "redis://localhost"}
    options = shard_options(Settings(shared | settings))
    assert options is not None
    assert options.leaves_rest == rest
