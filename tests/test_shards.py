"""A crawl by several workers: each host has one, links get to their worker, and all end when nothing is left."""

from collections import Counter
from pathlib import Path

from tests.support.redis import Server
from tests.support.shards import Hosts, Worker, kept, serve
from tests.support.waiting import LIMIT


def test_two_workers_keep_each_content_once_and_ask_each_host_from_one_side(
    server: Server, tmp_path: Path
) -> None:
    with serve(Hosts()) as site:
        workers = [Worker(site, tmp_path, f"{number}/2", DEDUP_INDEX=server.address) for number in (1, 2)]
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    assert kept(tmp_path) == Counter(range(site.contents))
    assert max(Counter((asked.host, asked.path) for asked in site.asked).values()) == 1
    assert not server.client.keys("shingleback:shards:*")
