"""Surveys of a Redis Cluster: each damage is made once, and has to be named; nothing is changed by looking."""

from collections.abc import Callable

import pytest

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError
from dedup.index.lifecycle import State
from dedup.index.redis.cluster import protocol
from dedup.index.redis.cluster.index import ClusterIndex
from dedup.index.redis.cluster.record import Phase, Record
from tests.support.cluster import Cluster
from tests.support.coroutines import driven
from tests.support.stores import opened_at
from tests.support.surveys import TYPES, claim_of, entry, surveyed, unopened


class Stored:
    """The keys of 20 pages, numbered from 1."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.common = f"shingleback+cluster:{{{namespace}}}:"
        self.entries = {number: entry(number) for number in range(1, 21)}
        self.index: ClusterIndex

    def at(self, name: str, *command: object) -> object:
        """Asks for something about a common key."""
        return self.ask(f"{self.common}{name}".encode(), *command)

    def ask(self, key: bytes, name: object, *arguments: object) -> object:
        return self.cluster.of(key).client.execute_command(name, key, *arguments)

    def record(self, number: int) -> bytes:
        keys = self.index._store.keys
        return keys.record(keys.name(f"id {number}"))

    def bucket(self, number: int) -> bytes:
        """The bucket of table 2 that has a page."""
        return list(self.index._store.keys.probes(self.entries[number]))[2].bucket

    def to_string(self, key: bytes) -> None:
        self.ask(key, "DEL")
        self.ask(key, "SET", "x")


#: What is damaged, which kinds of findings tell, words of one of them, and pages that can't be read any more.
DAMAGES: dict[str, tuple[Callable[[Stored], object], set[str], str, set[int]]] = {
    "a torn record": (
        lambda at: at.ask(at.record(3), "SETRANGE", 60, "xx"),
        {TYPES},
        "torn or changed",
        {3},
    ),
    "a record cut short": (
        lambda at: at.ask(at.record(3), "SET", "x" * 40),
        {TYPES},
        "torn or changed",
        {3},
    ),
    "a record lost": (
        lambda at: at.ask(at.record(3), "DEL"),
        {"entries that do not belong there"},
        " in ",
        {3},
    ),
    "a record of another type": (
        lambda at: (at.ask(at.record(3), "DEL"), at.ask(at.record(3), "SADD", "x")),
        {"keys of another type", "entries that do not belong there"},
        "is not a string",
        {3},
    ),
    "a bucket lost": (
        lambda at: at.ask(at.bucket(3), "DEL"),
        {"pages missing from tables"},
        ": 2 of 10",
        set(),
    ),
    "a bucket of another type": (
        lambda at: at.to_string(at.bucket(3)),
        {"pages missing from tables", "keys of another type"},
        "is not a zset",
        set(),
    ),
    "leases of another type": (
        lambda at: (at.at("runs", "DEL"), at.at("runs", "SET", "x")),
        {"keys of another type"},
        "is not a zset",
        set(),
    ),
    "a lease of no run": (
        lambda at: at.at("runs", "ZADD", 5, "somebody"),
        {"leases that no crawl can have"},
        "somebody",
        set(),
    ),
    "a record that will expire": (
        lambda at: at.ask(at.record(3), "EXPIRE", 1000),
        {"keys that will expire"},
        "shingleback",
        set(),
    ),
    "a key that nobody knows": (lambda at: at.at("note", "SET", "x"), {"unknown keys"}, "note", set()),
}


@pytest.fixture
def stored(cluster_of_all: Cluster, namespace: str) -> Stored:
    cluster_of_all.empty()  # the contents of all are compared
    return Stored(cluster_of_all, namespace)


@pytest.mark.parametrize("damage", DAMAGES)
@driven
async def test_each_damage_of_an_index_over_a_cluster_is_named(
    stored: Stored, namespace: str, damage: str
) -> None:
    harm, kinds, words, lost = DAMAGES[damage]
    address = stored.cluster.address
    async with opened_at(address, namespace=namespace) as index:
        assert isinstance(index, ClusterIndex)
        stored.index = index
        await index.add(list(stored.entries.values()))
        assert (await surveyed(index))[1] == []
    harm(stored)
    before = stored.cluster.contents()
    async with unopened(address, namespace=namespace) as index:
        pages, findings = await surveyed(index)
    assert {finding.kind for finding in findings} == kinds, findings
    assert any(words in finding.what for finding in findings), findings
    assert all(finding.what.isprintable() and finding.repair for finding in findings)
    assert stored.cluster.contents() == before
    read = {filed for filed, _ in pages if filed}
    assert read == {filed for number, filed in stored.entries.items() if number not in lost}


@driven
async def test_an_import_that_was_killed_between_a_record_and_its_buckets_is_completed_by_the_next(
    stored: Stored, namespace: str
) -> None:
    async with opened_at(stored.cluster.address, namespace=namespace) as index:
        assert isinstance(index, ClusterIndex)
        half = stored.entries[3]
        to_do = protocol.add(index._store.name(half.page_id), Record(Phase.DONE, 1, 0, half))
        first = next(to_do)
        assert isinstance(first, protocol.Swap)
        assert await index._store._swap(*first) is None
        assert [finding.kind for finding in (await surveyed(index))[1]] == ["pages missing from tables"]
        assert await index.add(list(stored.entries.values())) == len(stored.entries) - 1
        assert (await surveyed(index))[1] == []
        assert (await index.claim(*claim_of(half))).status == "same"
        _, _, twin = claim_of(half)
        assert (await index.claim("twin", "http://twin/", twin)).of == half.url


@driven
async def test_a_claim_that_meets_a_torn_record_fails_and_leaves_nothing(
    stored: Stored, namespace: str
) -> None:
    async with opened_at(stored.cluster.address, namespace=namespace) as index:
        assert isinstance(index, ClusterIndex)
        stored.index = index
        await index.add([stored.entries[3]])
        whole = stored.ask(stored.record(3), "GET")
        stored.ask(stored.record(3), "SET", "x" * 40)
        _, _, twin = claim_of(stored.entries[3]._replace(page_id="twin"))
        with pytest.raises(IndexCorruptError, match="is damaged: the record of a page is torn"):
            await index.claim("twin", "http://twin/", twin)
        stored.ask(stored.record(3), "SET", whole)
        assert await index.states(["twin"]) == [State.ABSENT]
        assert (await index.claim("twin", "http://twin/", twin)).kept  # and the earlier one gives way to it


#: Headers that nobody can make sense of, and what is said of them when the index is looked at, and when it is opened.
HEADERS: dict[str, tuple[Callable[[Stored], object], type[DedupError], str]] = {
    "odd bits": (lambda at: at.at("header", "HSET", "bucket_bits", "99"), IndexCorruptError, "'99'"),
    "no number": (lambda at: at.at("header", "HSET", "bucket_bits", "x"), IndexCorruptError, "'x'"),
    "lost": (lambda at: at.at("header", "DEL"), IndexCorruptError, "has keys, but no header"),
    "another type": (
        lambda at: (at.at("header", "DEL"), at.at("header", "SET", "x")),
        IndexMismatchError,
        "not the header of an index",
    ),
}


@pytest.mark.parametrize("damage", HEADERS)
@driven
async def test_an_index_over_a_cluster_that_nobody_can_make_sense_of_is_refused(
    stored: Stored, namespace: str, damage: str
) -> None:
    harm, kind, words = HEADERS[damage]
    address = stored.cluster.address
    async with opened_at(address, namespace=namespace) as index:
        await index.add(list(stored.entries.values()))
    harm(stored)
    async with unopened(address, namespace=namespace) as index:
        with pytest.raises(kind, match=words):
            await index.survey()
        with pytest.raises((IndexCorruptError, IndexMismatchError), match=f"{words}|not the header"):
            await index.open()
