"""A crawl by several workers: each host has one, links get to their worker, and all end when nothing is left."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.support.redis import Server
from tests.support.shards import Hosts, Worker, a_minute_later, kept, serve
from tests.support.waiting import LIMIT, wait_until


def test_two_workers_keep_each_content_once_and_ask_each_host_from_one_side(
    server: Server, tmp_path: Path
) -> None:
    with serve(Hosts()) as site:
        workers = [Worker(site, tmp_path, f"{number}/2", DEDUP_INDEX=server.address) for number in (1, 2)]
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    assert kept(tmp_path) == Counter(range(site.contents))
    assert max(Counter((asked.host, asked.path) for asked in site.asked).values()) == 1
    assert not server.client.keys("shingleback:shards:*")


def test_two_workers_never_ask_a_host_before_its_delay_is_over(server: Server, tmp_path: Path) -> None:
    delay = 0.15
    with serve(Hosts(2, contents=16)) as site:
        slow = {"DOWNLOAD_DELAY": delay, "RANDOMIZE_DOWNLOAD_DELAY": False, "DEDUP_INDEX": server.address}
        workers = [Worker(site, tmp_path, f"{number}/2", **slow) for number in (1, 2)]
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    assert set(kept(tmp_path).values()) == {1}
    for gaps in site.gaps().values():
        assert len(gaps) > 10
        assert min(gaps) > delay - 0.03  # the time of a request on its way differs


def test_what_a_killed_worker_was_handed_is_crawled_by_the_next(server: Server, tmp_path: Path) -> None:
    with serve(Hosts(wait=0.02)) as site:
        other = Worker(site, tmp_path, "1/2", DEDUP_INDEX=server.address)
        killed = Worker(site, tmp_path, "2/2", DEDUP_INDEX=server.address)
        wait_until(lambda: sum(asked.host in site.names[1::2] for asked in site.asked) > 10)
        assert killed.kill()
        a_minute_later(server, 1)
        again = Worker(site, tmp_path, "2/2", DEDUP_INDEX=server.address)
        assert [other.wait(LIMIT), again.wait(LIMIT)] == [0, 0]
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) <= 2
    assert again.stats()["dedup/shard/taken"] > 0


def test_free_shards_are_taken_by_workers_that_have_nothing_left_to_do(
    server: Server, tmp_path: Path
) -> None:
    with serve(Hosts()) as site:
        only = Worker(site, tmp_path, "auto/4", DEDUP_INDEX=server.address)
        wait_until(lambda: "is crawled here" in only.log.read_text())
        a_minute_later(server)
        assert only.wait(LIMIT) == 0
    assert kept(tmp_path) == Counter(range(site.contents))


def test_a_worker_that_was_silent_for_too_long_ends_and_another_crawls_its_shard(
    server: Server, tmp_path: Path
) -> None:
    with serve(Hosts(wait=0.02)) as site:
        other = Worker(site, tmp_path, "1/2", DEDUP_INDEX=server.address)
        paused = Worker(site, tmp_path, "2/2", DEDUP_INDEX=server.address)
        wait_until(lambda: sum(asked.host in site.names[1::2] for asked in site.asked) > 10)
        paused.send(signal.SIGSTOP)
        a_minute_later(server, 1)
        heir = Worker(site, tmp_path, "auto/2", DEDUP_INDEX=server.address)
        wait_until(lambda: "is crawled here" in heir.log.read_text())
        paused.send(signal.SIGCONT)
        assert [worker.wait(LIMIT) for worker in (other, paused, heir)] == [0, 4, 0]
    assert "shard 2 of 2 was taken by another worker" in paused.log.read_text()
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) <= 2


def test_jobs_that_are_stopped_go_on_where_they_were(server: Server, tmp_path: Path) -> None:
    with serve(Hosts(wait=0.02)) as site:

        def start(number: int) -> Worker:
            job = tmp_path / f"job {number}"
            return Worker(site, tmp_path, f"{number}/2", DEDUP_INDEX=server.address, JOBDIR=job)

        workers = [start(1), start(2)]
        wait_until(lambda: len(site.asked) > 30)
        for worker in workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
        assert len(kept(tmp_path)) < site.contents
        workers = [start(1), start(2)]
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) <= 2  # until the other goes on, too, its pages are those of an earlier crawl
    assert len(site.asked) < 1.2 * 2 * site.contents  # what was dropped in doubt is fetched again


@pytest.mark.parametrize(
    ("shard", "settings", "said"),
    [
        ("3/2", {}, "DEDUP_SHARD is '3/2'; allowed: 'I/N'"),
        (
            "1/2",
            {"DEDUP_INDEX": "memory:"},
            "DEDUP_SHARD is '1/2' and DEDUP_INDEX is 'memory:', but the workers",
        ),
        (
            "auto/2",
            {"JOBDIR": "job"},
            "DEDUP_SHARD is 'auto/2' and JOBDIR is 'job', but any free shard is not that",
        ),
    ],
)
def test_a_wrong_shard_is_refused(
    server: Server, tmp_path: Path, shard: str, settings: dict[str, str], said: str
) -> None:
    with serve(Hosts()) as site:
        worker = Worker(site, tmp_path, shard, **{"DEDUP_INDEX": server.address} | settings)
        assert worker.wait(LIMIT) == 2
    assert f"Crawl refused: {said}" in worker.log.read_text()
    assert site.asked == []
