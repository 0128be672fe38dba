"""Masters of a Redis Cluster that are killed while crawlers claim pages, and slots that are moved between claims.

Whatever befalls the cluster: no page is dropped but for one with its content that is kept and processed.  What a master
had not yet sent to its replica is lost with it; then at most one more copy is kept for each loss.
"""

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from redis.crc import key_slot

from dedup.errors import IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, open_index
from tests.faults.test_outages import CONTENTS, check, large_site, wait_for_the_late
from tests.faults.test_outages import COPIES as SHAPES
from tests.support import ROOT, slow
from tests.support.cluster import SILENCE, Cluster, Node, running_cluster
from tests.support.coroutines import driven
from tests.support.crawls import Run, Site
from tests.support.fingerprints import fingerprint_of
from tests.support.servers import free_port
from tests.support.stores import DETECTOR, opened, until_done
from tests.support.surveys import surveyed
from tests.support.waiting import until, wait_until

#: Copies of each content.
COPIES = 4


def page(content: int) -> Fingerprint:
    return fingerprint_of(random.Random(content).getrandbits(64))


@dataclass
class Crawl:
    """Two crawlers that claim contents, each under several names, and what they were told."""

    cluster: Cluster
    rng: random.Random
    scope: str = "all"
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
        return self

    def index(self, namespace: str) -> Index:
        return open_index(self.cluster.address, DETECTOR, namespace=namespace, scope=self.scope)

    def contents(self, thread: threading.Thread, least: int) -> Iterator[int]:
        number = 0
        while thread.is_alive() or number < least:
            number += 1
            yield number

    async def crawl(self, indexes: list[Index], contents: Iterator[int]) -> None:
        rng = random.Random(self.rng.random())
        for content in contents:
            fingerprint = page(content)
            names = [f"{content}-{copy}" for copy in range(COPIES)]
            await asyncio.gather(
                *(self.claim(rng.choice(indexes), name, content, fingerprint) for name in names)
            )
            await asyncio.sleep(0.03)  # a trouble lasts as long, and other tests have work to do

    async def claim(self, index: Index, name: str, content: int, fingerprint: Fingerprint) -> None:
        while True:
            try:
                verdict = await index.claim(name, f"http://{content}/{name}", fingerprint)
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


@pytest.mark.parametrize("times", [1, slow(30)])
@pytest.mark.parametrize("scope", ["all", "host"])
@driven
async def test_masters_killed_in_mid_crawl(cluster: Cluster, namespace: str, times: int, scope: str) -> None:
    rng = random.Random(7)

    def trouble() -> None:
        for _ in range(times):
            victim = cluster.fail_over(rng)
            victim.start()  # as a replica of the one that has taken over
            cluster.wait()
            there = len(crawled.kept)
            wait_until(lambda there=there: len(crawled.kept) >= there + 10)

    crawled = Crawl(cluster, rng, scope)
    done = await crawled.run(namespace, trouble, 30)
    more = done.check()
    assert more <= times * len(cluster.nodes)
    print(
        f"\n{times} failovers: {len(done.kept)} kept, {len(done.dropped)} dropped, {more} copies more, "
        f"{done.failures} claims that were out of reach"
    )
    async with opened(cluster.address, namespace, scope=scope) as index:
        filed, findings = await surveyed(index)
        assert {page.entry.page_id for page in filed if page.entry} == set(done.kept)
        assert [finding for finding in findings if finding.kind != "entries that do not belong there"] == []


@driven
async def test_what_a_replica_had_missed_is_kept_once_more(cluster: Cluster, namespace: str) -> None:
    """No number of a page is given out twice, so no crawler takes the index for one that was set back."""
    numbers = range(40)
    async with opened(cluster.address, namespace) as index, opened(cluster.address, namespace) as other:
        for number in numbers[:10]:
            await index.claim(f"{number}", "http://a/", page(number))
            await index.confirm(f"{number}")
        await until_done(index, [f"{number}" for number in numbers[:10]])
        victim = cluster.of(f"{{{namespace}}}".encode())
        replica = cluster.cut_off(victim)
        for number in numbers[10:]:
            assert (await index.claim(f"{number}", "http://b/", page(number))).kept
        victim.kill()
        await asyncio.to_thread(wait_until, replica.is_master)
        assert (await index.claim("next", "http://c/", page(99))).kept
        for number in reversed(numbers):
            twin = await other.claim(f"first {number}", "http://c/", page(number))
            assert twin.of_id == (f"{number}" if number < 10 else None)
        for number in numbers:
            twin = await index.claim(f"second {number}", "http://d/", page(number))
            assert twin.of_id == (f"{number}" if number < 10 else f"first {number}")
        replica.client.config_set("masterauth", "")
        victim.start()
        await asyncio.to_thread(cluster.wait)
    async with opened(cluster.address, namespace) as index:
        _, findings = await surveyed(index)
        assert findings == []


@pytest.mark.parametrize("policy", [slow("keep"), "pause"])
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
async def test_a_slot_moved_between_claims(cluster: Cluster, namespace: str) -> None:
    async with opened(cluster.address, namespace) as index:
        for number in range(20):
            await index.claim(f"{number}", "http://a/", page(number))
        owner = cluster.of(f"{{{namespace}}}".encode())
        heir = next(node for node in cluster.masters() if node is not owner)
        cluster.move_slots([key_slot(f"{{{namespace}}}".encode())], heir)
        for number in range(20):
            assert (await index.claim(f"twin {number}", "http://b/", page(number))).of_id == f"{number}"
            await index.confirm(f"{number}")
        assert await index.count() == 20
    async with opened(cluster.address, namespace) as index:
        filed, findings = await surveyed(index)
        assert (len(filed), findings) == (20, [])


@driven
async def test_a_cluster_that_was_down_goes_on_as_it_was(
    namespace: str, redis_socket: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_cluster(masters=2, replicas=0) as cluster:
        async with opened(cluster.address, namespace) as index:
            for number in range(20):
                await index.claim(f"{number}", "http://a/", page(number))
                await index.confirm(f"{number}")
            victim = cluster.of(f"shingleback:{{{namespace}}}:header".encode())
            victim.kill()
            with monkeypatch.context() as patch:
                patch.setattr("dedup.index.redis.client.DEADLINE", 0.5)
                for _ in range(2):
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


# --- Addresses, users ------------------------------------------------------------------------------------------


@driven
async def test_one_line_tells_a_cluster_from_a_single_server(
    cluster: Cluster, redis_socket: object, namespace: str
) -> None:
    elsewhere = next(
        node for node in cluster.masters() if node is not cluster.of(f"{{{namespace}}}".encode())
    )
    alone = Node(cluster.nodes[0].folder / "alone", free_port(), SILENCE, "--cluster-enabled", "no")
    await until(alone.answers)
    try:
        for address, line in (
            (f"redis://127.0.0.1:{elsewhere.port}", r"is a node of a cluster; .* redis\+cluster://"),
            (f"redis+cluster://127.0.0.1:{alone.port}", "is no cluster, but a single server; .* redis://"),
        ):
            with pytest.raises(IndexMismatchError, match=line) as error:
                async with opened(address, namespace):
                    pass
            assert "\n" not in str(error.value)
    finally:
        alone.kill()


RIGHTS = (ROOT / "docs" / "reliability.md").read_text()


@driven
async def test_a_user_needs_the_rights_that_the_page_lists(cluster: Cluster, namespace: str) -> None:
    one = re.search(
        r"^ACL SETUSER crawler on >PASSWORD \S+ resetchannels (.*?)\n```", RIGHTS, re.MULTILINE | re.DOTALL
    )
    more = re.search(r"and `(\+eval [^`]*)` beside them", RIGHTS)
    assert one
    assert more
    rights = f"{one[1]} {more[1]}".replace("\\\n", " ").split()
    for node in cluster.nodes:
        node.client.execute_command("ACL", "SETUSER", "crawler", "on", ">secret", "~shingleback:*", *rights)
    address = cluster.address.replace("://", "://crawler:secret@")
    async with opened(address, namespace) as index:
        await index.claim("a", "http://a/", page(1))
        await index.confirm("a")
        assert (await index.claim("b", "http://b/", page(1))).of_id == "a"
        await index.claim("c", "http://c/", page(2))
        await index.release("c")
        assert await index.forget(["a"]) == 1
    async with opened(cluster.address, namespace) as index:
        assert await index.count() == 0
