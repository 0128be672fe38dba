"""An index that is spread over a Redis Cluster by hosts."""

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from redis.crc import key_slot

from dedup.errors import IndexMismatchError
from dedup.index import Index, open_index
from dedup.index.lifecycle import State
from dedup.index.redis.keys import PARTS
from dedup.index.redis.spread import part_name
from tests.support.cluster import SLOTS, Cluster
from tests.support.coroutines import driven
from tests.support.stores import DETECTOR, opened_at, until_done
from tests.support.surveys import surveyed

HOSTS = [f"http://{number}.example.org/" for number in range(24)]
PAGE = DETECTOR.fingerprint(f"<p>{' '.join(f'word{number}' for number in range(60))}")
IDS = [*map(str, range(len(HOSTS)))]

Opened = Callable[..., AbstractAsyncContextManager[Index]]


@pytest.fixture
def opened(cluster_of_all: Cluster, namespace: str, patience: None) -> Opened:
    return functools.partial(opened_at, cluster_of_all.address, namespace=namespace, scope="host")


async def fill(index: Index) -> None:
    """Claims one page on each host, all alike."""
    for page_id, url in zip(IDS, HOSTS, strict=True):
        assert (await index.claim(page_id, url, PAGE)).status == "new"


def masters_of(cluster: Cluster, namespace: str) -> list[int]:
    """How many keys of an index each master has."""
    pattern = f"shingleback:{{{namespace}{{*".encode()
    return [len([*node.client.scan_iter(pattern, count=1000)]) for node in cluster.masters()]


def test_parts_share_the_slots_evenly() -> None:
    slots = [key_slot(part_name("a crawl", part).encode()) for part in range(PARTS)]
    assert [slot * PARTS // SLOTS for slot in slots] == [*range(PARTS)]


@driven
async def test_each_host_is_in_one_part_and_another_scope_is_refused(
    opened: Opened, cluster_of_all: Cluster, namespace: str
) -> None:
    async with opened() as index:
        await fill(index)
        for page_id, url in zip(IDS, HOSTS, strict=True):
            copy = await index.claim(f"copy {page_id}", f"{url}copy", PAGE)
            assert (copy.status, copy.of) == ("duplicate", url)
        assert await index.count() == len(HOSTS)
        assert min(masters_of(cluster_of_all, namespace)) > len(HOSTS)
    with pytest.raises(IndexMismatchError, match="scope"):
        async with opened(scope="site"):
            pass


@driven
async def test_pages_are_found_and_runs_finish_in_whichever_part(opened: Opened) -> None:
    async with opened() as other, opened() as index:
        await fill(index)
        await index.confirm("1")
        await index.release("2")
        assert await other.annul("3")
        assert not await other.annul("none")
        await until_done(other, ["1"])
        assert await other.states(["0", "1", "2", "3"]) == [
            State.PENDING,
            State.DONE,
            State.ABSENT,
            State.ABSENT,
        ]
        found = await other.find("1")
        assert found
        assert found.url == HOSTS[1]
        assert await other.forget(["0", "1", "2"]) == 2
        assert (await other.leases([index.run]))[0] > 0
        for page_id in IDS[4:]:
            await index.confirm(page_id)
        await index.close()
        assert await other.states(IDS[4:]) == [State.SAFE] * len(IDS[4:])
        assert (await other.leases([index.run])) == [float("inf")]


@driven
async def test_a_survey_has_all_parts(opened: Opened, cluster_of_all: Cluster, namespace: str) -> None:
    closed: dict[str, Any] = {"namespace": namespace, "scope": "host"}
    async with open_index(cluster_of_all.address, DETECTOR, **closed) as index:
        await fill(index)
        entries = [entry async for entry in index.entries()]
    async with opened() as index:
        pages, findings = await surveyed(index)
        survey = await index.survey()
        assert survey
        assert (findings, pages, await survey.count()) == ([], [], 0)  # what was pending was released
        assert await index.add(entries) == len(HOSTS)
        assert await survey.count() == len(HOSTS)
        assert sorted(entry.url for entry, _ in (await surveyed(index))[0] if entry) == sorted(HOSTS)
        assert ((await survey.stored())[0] or 0) > 100 * len(HOSTS)
        assert {known.name async for known in hosts(index)} == {url[7:-1] for url in HOSTS}


async def hosts(index: Index) -> AsyncIterator[Any]:
    survey = await index.survey()
    assert survey
    async for known in survey.hosts():
        yield known
