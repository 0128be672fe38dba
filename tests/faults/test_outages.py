"""Crawls whose index goes away, comes back, or is not what it was: what ON_INDEX_FAILURE makes of it.

In every run the numbers add up, and nothing is dropped without a verdict and a record.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis
from scrapy import Request

from tests.support import slow
from tests.support.crawls import Answer, Crawl, Run, Site, Walker, listening, page
from tests.support.redis import Server
from tests.support.waiting import wait_until

SEED = 11
#: Contents of the site below, and URLs of each.
CONTENTS, COPIES = 16, 3


def large_site() -> dict[str, Answer]:
    """Contents, each under three URLs that the front page links to; copies link to nothing."""
    names = [f"/{content}/{copy}" for copy in range(COPIES) for content in range(CONTENTS)]
    pages = {name: page(name.split("/")[1], more=f"copy {name}") for name in names}
    return {"/": page("home", *names)} | pages


def contents(paths: Any) -> Counter[str]:
    """How often each content is among these."""
    return Counter(path.split("/")[1] for path in paths if path != "/")


def check(done: Crawl) -> None:
    """What holds in every run, whatever befell it."""
    figures = Counter(done.figures)
    parts = figures["new"] + figures["same"] + figures["duplicate"] + figures["unjudged"]
    assert figures["pages"] == parts
    fetched = done.stats["downloader/response_count"]
    assert fetched == figures["pages"] + figures["skipped"]
    assert figures["dropped"] == len(done.dropped) == len(done.records)
    for record in done.records:
        assert record["duplicate_of"] != record["url"]
    kept = contents(done.verdicts)
    assert len(kept) == CONTENTS, f"lost: {set(map(str, range(CONTENTS))) - set(kept)}"
    assert not [mishap for mishap in done.mishaps if "Traceback" in mishap]


def wait_for_the_late(site: Site) -> None:
    """Waits until every page that was kept while the index was away has been looked up."""

    def all_looked_up() -> bool:
        kept, filed, duplicate = (
            site.stats.get(f"dedup/{name}", 0) for name in ("unjudged/index", "late/filed", "late/duplicate")
        )
        return kept == filed + duplicate

    wait_until(all_looked_up)


def outages(site: Site, server: Server, rng: random.Random) -> Callable[[str], None]:
    """Kills the server when some page is asked for, and starts it again once the crawl has missed it, for some pages or a pause."""
    pages = CONTENTS * COPIES
    at = rng.randrange(1, pages)
    missed = rng.randint(1, pages - at)
    seen = [0]

    def start_again() -> None:
        wait_until(
            lambda: (
                site.stats.get("dedup/unjudged/index", 0) >= missed
                or site.stats.get("dedup/seconds/paused", 0)
            )
        )
        server.start()

    back = threading.Thread(target=start_again)

    def on_request(path: str) -> None:
        seen[0] += 1
        if seen[0] == at:
            server.kill()
            back.start()
        elif seen[0] == pages:  # the last page comes when all is over
            back.join()
            wait_for_the_late(site)

    return on_request


@pytest.mark.parametrize("policy", ["keep", "pause"])
@pytest.mark.parametrize("kills", [1, slow(25)])
def test_redis_killed_and_started_again_in_mid_crawl(
    crawl: Run, site: Site, server: Server, policy: str, kills: int, tmp_path: Any
) -> None:
    rng = random.Random(SEED)
    for trial in range(kills):
        site.on_request = outages(site, server, rng)
        log = tmp_path / "duplicates.jsonl"
        log.unlink(missing_ok=True)
        settings = {"DEDUP_INDEX": f"unix://{server.socket}", "DEDUP_NAMESPACE": f"trial-{trial}"}
        done = crawl(large_site(), **settings, DEDUP_ON_INDEX_FAILURE=policy)
        check(done)
        figures = Counter(done.figures)
        if policy == "pause":  # as if nothing had happened
            assert figures["dropped"] == CONTENTS * (COPIES - 1)
            assert figures["unjudged"] == 0
        else:  # every page that was kept meanwhile has been looked up and filed by now
            assert figures["unjudged/index"] == figures["late/filed"] + figures["late/duplicate"]
            assert figures["late/never"] == 0
        log.unlink()
        again = crawl(large_site(), **settings)
        check(again)
        assert again.figures.get("new", 0) == 0, "a page of the first crawl was not filed"
        assert set(done.verdicts) - set(again.verdicts) == late_twins(done, again)


def late_twins(done: Crawl, again: Crawl) -> set[str]:
    """Pages that were kept during the outage, though others with their content were kept as well."""
    several = {content for content, kept in contents(done.verdicts).items() if kept > 1}
    return {
        path
        for path in set(done.verdicts) - set(again.verdicts)
        if path.split("/")[1] in several and done.verdicts[path] == "unjudged: index"
    }


# --- An index that will not come back ----------------------------------------------------------------


def emptied(client: redis.Redis) -> None:
    client.flushall()


def of_a_wrong_type(client: redis.Redis) -> None:
    [pending] = client.keys("*:sequence")
    client.delete(pending)
    client.rpush(pending, "x")


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        ("keep", emptied),
        ("pause", emptied),
        ("stop", of_a_wrong_type),
        slow("stop", emptied),
        slow("keep", of_a_wrong_type),
        slow("pause", of_a_wrong_type),
    ],
)
def test_an_index_emptied_or_damaged_in_mid_crawl(
    crawl: Run, site: Site, server: Server, policy: str, fault: Callable[[redis.Redis], None]
) -> None:
    client = server.client
    asked = [0]

    def on_request(path: str) -> None:
        asked[0] += 1
        if asked[0] == CONTENTS:  # no copy has come yet
            fault(client)

    site.on_request = on_request
    settings = {"DEDUP_INDEX": f"unix://{server.socket}", "DEDUP_ON_INDEX_FAILURE": policy}
    done = crawl(large_site(), DEDUP_PROBE=False, **settings)  # all requests are of pages
    figures = Counter(done.figures)
    assert figures["pages"] == figures["new"] + figures["duplicate"] + figures["unjudged"]
    assert figures["dropped"] == len(done.records) == 0
    if policy == "keep":
        check(done)
        assert figures["unjudged/index"] == CONTENTS * COPIES + 1 - (CONTENTS - 1)
    else:
        reasons = {emptied: "dedup_index_mismatch", of_a_wrong_type: "dedup_index_corrupt"}
        assert done.stats["finish_reason"] == reasons[fault]
    assert not client.keys("*:i:*") or fault is of_a_wrong_type, "it was taken for a fresh index"


# --- Drops in favour of a page that then fails -------------------------------------------------------


class FailsOnce(Walker):
    """Is given the first page of a content, waits until its twin has been dropped, and fails."""

    async def parse(self, response: Any) -> Any:
        if self.path(response) == "/a":
            while not self.failures:
                await self.wait()
            raise RuntimeError("a fault of the spider")
        for output in super().parse(response):
            yield output

    async def wait(self) -> None:
        import asyncio

        await asyncio.sleep(0.02)


@pytest.mark.parametrize("store", ["memory", "file", "redis"], indirect=True)
def test_what_failed_pages_hid_is_fetched_again(crawl: Run, site: Site, address: str, namespace: str) -> None:
    def on_request(path: str) -> None:
        if path == "/b":  # a is claimed first
            wait_until(lambda: site.stats.get("dedup/new") == 2)

    site.on_request = on_request
    pages = {
        "/": page("home", "/a", "/b"),
        "/a": page("story"),
        "/b": page("story", "/behind-b", more="changed"),
        "/behind-b": page("behind b"),
    }
    settings = {"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace, "CONCURRENT_REQUESTS": 4}
    done = crawl(pages, FailsOnce, **settings)
    assert done.dropped == ["/b"]
    assert done.requests.count("/b") == 2
    assert done.verdicts == {"/": "new", "/b": "new", "/behind-b": "new"}
    assert done.figures["fetched_again"] == 1
    assert done.figures["pages"] == 5


def test_what_was_dropped_for_a_page_of_a_dead_crawler_is_fetched_again(crawl: Run, server: Server) -> None:
    """The other crawler's page: it was claimed, and its lease ends while our crawl is at its end."""
    client = server.client
    settings = {"DEDUP_INDEX": f"unix://{server.socket}", "DEDUP_NAMESPACE": "test"}
    pages = {"/": page("home", "/b"), "/b": page("story", more="changed"), "/a": page("story")}

    class Dies(Walker):
        """Keeps its page pending; what it does at its end is undone, as if it had been killed."""

        starts = ("/a",)

        def parse(self, response: Any) -> Any:
            self.before = {key: client.dump(key) for key in client.scan_iter()}
            return ()

    dead = crawl(pages, Dies, **settings)
    client.flushall()
    for key, value in dead.spider.before.items():
        client.restore(key, 0, value)
    assert client.hlen("shingleback:{test}:pending") == 1
    [dead_run] = client.zrange("shingleback:{test}:runs", 0, -1)

    def end_its_lease(**drop: Any) -> None:
        assert client.zadd("shingleback:{test}:runs", {dead_run: 1}, xx=True, ch=True) == 1

    done = crawl(pages, listening(end_its_lease), **settings)
    assert done.dropped == ["/b"]
    assert done.requests.count("/b") == 2
    assert done.verdicts == {"/": "new", "/b": "new"}


# --- The alarm ---------------------------------------------------------------------------------------


def test_a_page_that_absorbs_too_many_urls_of_a_host_absorbs_no_more(crawl: Run) -> None:
    """A login wall: the same page at every URL."""
    walls = [f"/article/{number}" for number in range(12)]
    pages = {"/": page("home", *walls)} | {wall: page("please log in") for wall in walls}
    done = crawl(pages, DEDUP_MAX_CLUSTER=5)
    assert len(done.dropped) == done.figures["fetched_again"] == 5
    assert done.figures["unjudged/alarm"] == 12 - 1
    assert done.verdicts.keys() == pages.keys()
    assert done.figures["alarms"] == 1
    alarms = [m.getMessage() for m in done.messages if "Alarm" in m.getMessage()]
    assert len(alarms) == 1
    assert "127.0.0.1" in alarms[0]
    assert "/article/0" in alarms[0]


def test_no_password_of_a_url_is_printed_logged_or_filed(crawl: Run, site: Site, tmp_path: Any) -> None:
    secret = "marker-of-a-secret"

    class Authenticates(Walker):
        def request(self, path: str, **options: Any) -> Request:
            request = super().request(path, **options)
            return request.replace(url=request.url.replace("://", f"://user:{secret}@"))

        def path(self, response: Any) -> str:
            return str(response.url.partition("@")[2].partition("/")[2])

    index = tmp_path / "index.sqlite"
    pages = {"/": page("home", "/a", "/b"), "/a": page("story"), "/b": page("story", more="changed")}
    done = crawl(pages, Authenticates, DEDUP_INDEX=f"file:{index}", DEDUP_AUDIT=1)
    assert done.figures["dropped"] == 1
    ours = [m.getMessage() for m in done.messages if m.name.startswith("dedup")]
    assert not [text for text in ours if secret in text]
    assert secret not in (tmp_path / "duplicates.jsonl").read_text()
    assert secret.encode() not in index.read_bytes()
