"""Masters of a Redis Cluster that are killed, and slots that are moved, while crawlers claim pages.

Whatever befalls the cluster: no page is dropped but for one with its content that is kept and processed.  What a master
had not yet sent to its replica is lost with it; then at most one more copy is kept for each loss, and that is counted.
"""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from redis.crc import key_slot

from dedup.errors import IndexUnavailableError
from dedup.fingerprint.detector import Fingerprint
from dedup.index import Index, open_index
from dedup.index.redis.cluster.index import ClusterIndex
from tests.faults.test_outages import CONTENTS, check, large_site, wait_for_the_late
from tests.faults.test_outages import COPIES as SHAPES
from tests.support.cluster import Cluster, running_cluster
from tests.support.coroutines import driven
from tests.support.crawls import Run, Site
from tests.support.fingerprints import fingerprint_of
from tests.support.stores import DETECTOR, opened
from tests.support.surveys import surveyed
from tests.support.waiting import until

#: Copies of each content.
COPIES = 4


def page(content: int) -> Fingerprint:
    return fingerprint_of(random.Random(content).getrandbits(64))


@dataclass
class Crawl:
    """Two crawlers that claim contents, each under several names, and what they were told."""

    cluster: Cluster
    rng: random.Random
    kept: dict[str, int] = field(default_factory=dict)  # contents, by the names that were kept
    dropped: dict[str, str] = field(default_factory=dict)  # for which name
    failures: int = 0
    over: bool = False

    async def run(self, namespace: str, trouble: Callable[[], object], least: int) -> "Crawl":
        """Claims pages until the trouble is over, and ``least`` contents in all."""
        thread = threading.Thread(target=trouble)
        indexes = [self.index(namespace) for _ in range(2)]
        for index in indexes:
            await index.open()
        thread.start()
        contents = iter(self.contents(thread, least))
        await asyncio.gather(*(self.crawl(indexes, contents) for _ in range(4)))
        thread.join()
        for index in indexes:
            await index.close()
        self.lost = sum(index.lost for index in indexes)
        return self

    def index(self, namespace: str) -> ClusterIndex:
        index = open_index(self.cluster.address, DETECTOR, namespace=namespace, expected_pages=1000)
        assert isinstance(index, ClusterIndex)
        return index

    def contents(self, thread: threading.Thread, least: int) -> Iterator[int]:
        number = 0
        while thread.is_alive() or number < least:
            number += 1
            yield number

    async def crawl(self, indexes: list[ClusterIndex], contents: Iterator[int]) -> None:
        rng = random.Random(self.rng.random())
        for content in contents:
            fingerprint = page(content)
            names = [f"{content}-{copy}" for copy in range(COPIES)]
            await asyncio.gather(
                *(self.claim(rng.choice(indexes), name, content, fingerprint) for name in names)
            )

    async def claim(self, index: Index, name: str, content: int, fingerprint: Fingerprint) -> None:
        while True:
            try:
                verdict = await index.claim(name, f"http://{name}/", fingerprint)
            except IndexUnavailableError:
                self.failures += 1
                await asyncio.sleep(0.05)
                continue
            break
        if verdict.kept:
            self.kept[name] = content
            await index.confirm(name)
        else:
            assert verdict.of_id
            self.dropped[name] = verdict.of_id

    def check(self) -> int:
        """What holds in every run; how many copies were kept beside the first ones."""
        for name, of in self.dropped.items():
            assert of in self.kept, f"{name} was dropped for {of}, which was not kept"
            assert name.partition("-")[0] == of.partition("-")[0], "another content"
        copies = Counter(self.kept.values())
        assert set(copies) == {int(name.partition("-")[0]) for name in (*self.kept, *self.dropped)}
        assert len(self.kept) + len(self.dropped) == COPIES * len(copies)
        return len(self.kept) - len(copies)


@pytest.fixture(scope="module")
def cluster(redis_socket: object) -> Iterator[Cluster]:
    """Three masters and three replicas, which all tests here share: each leaves it well."""
    with running_cluster() as cluster:
        yield cluster


@pytest.mark.parametrize("times", [2, pytest.param(30, marks=pytest.mark.slow)])
@driven
async def test_masters_killed_in_mid_crawl(cluster: Cluster, namespace: str, times: int) -> None:
    rng = random.Random(7)

    def trouble() -> None:
        for _ in range(times):
            victim = cluster.fail_over(rng)
            victim.start()  # as a replica of the one that has taken over
            cluster.wait()

    done = await Crawl(cluster, rng).run(namespace, trouble, 50)
    more = done.check()
    assert more <= times * len(cluster.nodes)
    print(
        f"\n{times} failovers: {len(done.kept)} kept, {len(done.dropped)} dropped, {more} copies more, {done.lost} pages "
        f"filed again, {done.failures} claims that were out of reach"
    )
    async with opened(cluster.address, namespace, expected_pages=1000) as index:
        filed, findings = await surveyed(index)
        assert {page.entry.page_id for page in filed if page.entry} == set(done.kept)
        assert [finding for finding in findings if finding.kind != "members without a page"] == []


@pytest.mark.parametrize("policy", ["keep", "pause"])
def test_a_master_killed_in_mid_crawl_of_a_site(
    crawl: Run, site: Site, cluster: Cluster, namespace: str, policy: str
) -> None:
    """What ON_INDEX_FAILURE says holds: nothing is lost, and with "pause" nothing is kept twice."""
    rng, asked = random.Random(9), [0]

    def trouble() -> None:
        cluster.fail_over(rng).start()
        cluster.wait()

    thread = threading.Thread(target=trouble)

    def on_request(path: str) -> None:
        asked[0] += 1
        if asked[0] == CONTENTS:
            thread.start()
        elif asked[0] == CONTENTS * SHAPES:  # the last page comes when all is over
            thread.join()
            wait_for_the_late(site)

    site.on_request = on_request
    settings = {"DEDUP_INDEX": cluster.address, "DEDUP_NAMESPACE": namespace}
    done = crawl(large_site(), **settings, DEDUP_ON_INDEX_FAILURE=policy)
    check(done)
    figures = Counter(done.figures)
    if policy == "pause":
        assert figures["unjudged"] == 0
    else:
        assert figures["unjudged/index"] == figures["late/filed"] + figures["late/duplicate"]
    assert figures["new"] <= 1 + CONTENTS + len(cluster.nodes)  # one more for each loss, and the front page


@driven
async def test_slots_moved_in_mid_crawl(cluster: Cluster, namespace: str) -> None:
    """Among them that of the header: its scripts have several keys, which are parted for a while."""
    rng = random.Random(8)
    shared = key_slot(f"{{{namespace}}}".encode())

    def trouble() -> None:
        masters = cluster.masters()
        for to in rng.sample(masters, 2):
            cluster.move_slots([shared, *rng.sample(range(1 << 14), 40)], to, pause=0.005)

    done = await Crawl(cluster, rng).run(namespace, trouble, 100)
    assert done.check() == 0
    assert done.failures == done.lost == 0
    async with opened(cluster.address, namespace, expected_pages=1000) as index:
        filed, findings = await surveyed(index)
        assert len(filed) == len(done.kept)
        assert findings == []


@driven
async def test_a_cluster_that_is_down_is_out_of_reach_and_goes_on_as_it_was(
    namespace: str, redis_socket: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_cluster(masters=2, replicas=0) as cluster:
        async with opened(cluster.address, namespace) as index:
            for number in range(20):
                await index.claim(f"{number}", "http://a/", page(number))
                await index.confirm(f"{number}")
            victim = cluster.of(f"shingleback+cluster:{{{namespace}}}:header".encode())
            victim.kill()
            with monkeypatch.context() as patch:
                patch.setattr("dedup.index.redis.client.DEADLINE", 0.5)
                for _ in range(3):
                    with pytest.raises(IndexUnavailableError):
                        await index.claim("x", "http://x/", page(99))
            victim.start()
            cluster.wait()

            async def answers() -> bool:
                with suppress(IndexUnavailableError):
                    return (await index.claim("x", "http://x/", page(99))).kept
                return False

            await until(answers)
            for number in range(20):
                twin = await index.claim(f"twin {number}", "http://b/", page(number))
                assert twin.of_id == f"{number}"
