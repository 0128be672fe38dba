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
from tests.support.shards import Hosts, Single, Worker, a_minute_later, kept, serve
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


def fetched(site: Hosts, worker: int) -> set[tuple[str, str]]:
    return {(asked.host, asked.path) for asked in site.asked if asked.by == str(worker)}


def test_an_heir_fetches_nothing_that_was_noted_as_done(server: Server, tmp_path: Path) -> None:
    with serve(Single(contents=80)) as site:
        site.most[1] = 35  # of 40
        other, killed = [start(site, tmp_path, server, f"{number}/2") for number in (1, 2)]
        wait_until(lambda: noted(server, 1) >= 10)
        assert killed.kill()
        done = noted(server, 1)
        a_minute_later(server, 1)
        heir = start(site, tmp_path, server, "2/2")
        assert [other.wait(LIMIT), heir.wait(LIMIT)] == [0, 0]
    assert_complete(site, tmp_path)
    assert len(fetched(site, 1) & fetched(site, 2)) <= len(fetched(site, 1)) - done
    assert not server.client.keys("shingleback:shards:*")


def test_what_was_dropped_is_fetched_again_since_nobody_else_could_take_that_back(
    server: Server, tmp_path: Path
) -> None:
    log = tmp_path / "drops-1.jsonl"
    with serve(Hosts()) as site:
        site.most = {0: 30, 1: 30}  # of 40
        other = start(site, tmp_path, server, "1/2")
        wait_until(lambda: noted(server, 0) > 20)  # the next one meets copies of these among its 30
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
    again = {f"http://{host}:{site.port}{path}" for host, path in fetched(site, 2)}
    assert dropped
    assert dropped <= again
    assert len(fetched(site, 1)) - len(fetched(site, 1) & fetched(site, 2)) >= done


def test_when_all_workers_have_died_the_next_go_on(server: Server, tmp_path: Path) -> None:
    with serve(Single(contents=80)) as site:
        site.most = {0: 30, 1: 30}  # of 40
        killed = [start(site, tmp_path, server, f"{number}/2") for number in (1, 2)]
        wait_until(lambda: noted(server, 0) > 5 and noted(server, 1) > 5)
        for worker in killed:
            assert worker.kill()
        done = noted(server, 0) + noted(server, 1)
        a_minute_later(server, 0, 1)
        heirs = [start(site, tmp_path, server, "auto/2") for _ in (1, 2)]
        assert [heir.wait(LIMIT) for heir in heirs] == [0, 0]
    assert_complete(site, tmp_path)
    before, after = fetched(site, 0) | fetched(site, 1), fetched(site, 2) | fetched(site, 3)
    assert len(before & after) <= len(before) - done
    assert not server.client.keys("shingleback:shards:*")


@pytest.mark.parametrize("number", [0, slow(1), slow(2)])
def test_a_death_costs_what_was_in_flight(server: Server, tmp_path: Path, number: int) -> None:
    log = tmp_path / f"drops-{number}.jsonl"
    log.touch()
    with serve(Hosts(contents=240)) as site:
        site.most = dict.fromkeys(range(3), 80)
        workers, of = list[Worker](), list[str]()
        for shard in ("1/3", "2/3", "3/3"):
            before = runs(server)
            workers.append(start(site, tmp_path, server, shard))
            wait_until(lambda before=before: runs(server) - before)
            of += runs(server) - before
        wait_until(lambda: noted(server, number) + len(log.read_bytes().splitlines()) == 80)
        site.most[number] = 88
        wait_until(lambda: len(fetched(site, number)) == 88)
        assert workers.pop(number).kill()
        end_lease(server.address, NAMESPACE, of[number])
        site.most.clear()
        a_minute_later(server, number)
        workers.append(start(site, tmp_path, server, f"{number + 1}/3"))
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0, 0]
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    assert counts.total() - len(counts) <= 8


def test_a_crawl_that_is_stopped_goes_on_without_a_jobdir(server: Server, tmp_path: Path) -> None:
    with serve(Single()) as site:
        site.most[0] = 20  # of 40
        stopped = start(site, tmp_path, server, "1/1")
        wait_until(lambda: noted(server, 0) > 5)
        stopped.send(signal.SIGTERM)
        wait_until(lambda: "Received SIGTERM" in stopped.log.read_text())
        site.most.clear()
        assert stopped.wait(LIMIT) == 0
        lines = [line for file in tmp_path.glob("items-*") for line in file.read_text().splitlines()]
        before = {json.loads(line)["url"] for line in lines}
        assert start(site, tmp_path, server, "1/1").wait(LIMIT) == 0
    assert_complete(site, tmp_path)
    again = {f"http://{host}:{site.port}{path}" for host, path in fetched(site, 1)}
    assert before
    assert not before & again


@pytest.mark.parametrize("workers", [slow(1), 2])
def test_what_a_stopped_crawl_has_kept_answers_for_its_content_when_it_goes_on(
    server: Server, tmp_path: Path, workers: int
) -> None:
    with serve(Hosts()) as site:
        shards = [f"{number}/{workers}" for number in range(1, workers + 1)]
        site.most = dict.fromkeys(range(workers), 6)  # and 16 requests are under way at most, of 40 contents
        stopped = [start(site, tmp_path, server, shard) for shard in shards]
        for number in range(workers):
            wait_until(lambda number=number: len(fetched(site, number)) == 6 and noted(server, number) > 0)
        for worker in stopped:
            worker.send(signal.SIGTERM)
        for worker in stopped:  # from then on it asks for nothing more
            wait_until(lambda worker=worker: "Closing spider (shutdown)" in worker.log.read_text())
        site.most.clear()
        assert [worker.wait(LIMIT) for worker in stopped] == [0] * workers
        before = kept(tmp_path)
        heirs = [start(site, tmp_path, server, shard) for shard in shards]
        assert [heir.wait(LIMIT) for heir in heirs] == [0] * workers
    counts = kept(tmp_path)
    assert 0 < len(before) < site.contents
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) == 1
    assert not server.client.keys("shingleback:shards:*")


def test_a_worker_that_was_silent_for_too_long_notes_nothing_beside_its_heir(
    server: Server, tmp_path: Path
) -> None:
    with serve(Single(contents=80)) as site:
        site.most = {1: 20, 2: 10}  # of 40
        other, paused = [start(site, tmp_path, server, f"{number}/2") for number in (1, 2)]
        wait_until(lambda: noted(server, 1) > 5)
        paused.pause()
        a_minute_later(server, 1)
        heir = start(site, tmp_path, server, "auto/2")
        wait_until(lambda: "is crawled here" in heir.log.read_text())
        del site.most[1]
        paused.send(signal.SIGCONT)
        assert paused.wait(LIMIT) == 4
        site.most.clear()
        assert [worker.wait(LIMIT) for worker in (other, heir)] == [0, 0]
    assert_complete(site, tmp_path)


def test_while_redis_is_away_notes_wait(tmp_path: Path) -> None:
    with running_server() as server, serve(Single(contents=160)) as site:
        site.most[1] = 40  # of 80
        other, killed = [start(site, tmp_path, server, f"{number}/2") for number in (1, 2)]
        wait_until(lambda: noted(server, 1) > 20)
        server.kill()
        site.most[1] = 60
        wait_until(lambda: len(fetched(site, 1)) > 40)
        server.start()
        wait_until(lambda: noted(server, 1) > 40)
        killed.kill()
        site.most.clear()
        a_minute_later(server, 1)
        heir = start(site, tmp_path, server, "2/2")
        assert [other.wait(LIMIT), heir.wait(LIMIT)] == [0, 0]
    assert_complete(site, tmp_path)


@pytest.mark.parametrize("outlives", [True, False])
def test_by_default_an_heir_goes_on_only_if_it_has_the_items(
    server: Server, tmp_path: Path, outlives: bool
) -> None:
    with serve(Single(contents=80)) as site:
        site.most[1] = 35  # of 40
        default = {"DEDUP_HEIR": None}
        other, killed = [start(site, tmp_path, server, f"{number}/2", **default) for number in (1, 2)]
        wait_until(lambda: noted(server, 1) >= 10)
        assert killed.kill()
        done = noted(server, 1)
        if not outlives:  # as in a container that is gone
            for items in tmp_path.glob("items-1-*"):
                items.unlink()
        a_minute_later(server, 1)
        heir = start(site, tmp_path, server, "2/2", **default)
        assert [other.wait(LIMIT), heir.wait(LIMIT)] == [0, 0]
    assert set(kept(tmp_path)) == set(range(site.contents))
    again = fetched(site, 1) & fetched(site, 2)
    assert (len(again) <= len(fetched(site, 1)) - done) == outlives
    assert ("is crawled anew" in heir.log.read_text()) != outlives
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
def test_the_rest_is_the_default_where_items_are_seen_on_disk(settings: dict[str, Any], rest: bool) -> None:
    shared = {"DEDUP_SHARD": "1/2", "DEDUP_INDEX": "redis://localhost"}
    options = shard_options(Settings(shared | settings))
    assert options is not None
    assert options.leaves_rest == rest


def test_a_jobdir_beside_what_is_noted_is_refused_before_anything_is_fetched(
    server: Server, tmp_path: Path
) -> None:
    with serve(Hosts()) as site:
        refused = start(site, tmp_path, server, "1/2", JOBDIR=tmp_path / "job")
        assert refused.wait(LIMIT) == 2
    assert "DEDUP_HEIR is 'rest' and JOBDIR is '" in refused.log.read_text()
    assert not site.asked
