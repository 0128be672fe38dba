"""kill -9 of crawlers at any moment, and their orderly end: nothing is lost but a download."""

import random
import signal
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis

from crawler.demo import serve
from tests.support import slow
from tests.support.outages import (
    CONTENTS,
    IDLE,
    Crawl,
    Twins,
    add_up,
    check,
    missing,
    processed,
    records,
    until,
)
from tests.support.waiting import LIMIT

#: Seconds after which a crawler on Redis that was killed is known to be dead.
LEASE = 3.0


@dataclass
class Site:
    """`Twins`, served."""

    url: str
    folder: Path

    @cached_property
    def progress(self) -> int:
        """How far a crawl of it goes."""
        crawl = self._crawl(enabled=True)
        assert crawl.stats()["dedup/new"] == CONTENTS
        return crawl.progress

    @cached_property
    def progress_without(self) -> int:
        """How far a crawl goes without the filter."""
        return self._crawl(enabled=False).progress

    def _crawl(self, *, enabled: bool) -> Crawl:
        folder = self.folder / str(enabled)
        crawl = Crawl(self.url, folder, DEDUP_INDEX="memory:", DEDUP_ENABLED=int(enabled))
        assert crawl.ended() == 0
        assert check(folder) == set()
        return crawl


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve(Twins()) as url:
        site = Site(url, tmp_path_factory.mktemp("let alone"))
        assert site.progress  # before trials ask for it from several threads
        yield site


@dataclass
class Store:
    """An index of a trial's own."""

    settings: dict[str, object]

    def key(self, name: str) -> str:
        return f"shingleback:{{{self.settings['DEDUP_NAMESPACE']}}}:{name}"

    @cached_property
    def client(self) -> redis.Redis | None:
        """Of the Redis, if the index is there; it is closed when this store goes."""
        if "DEDUP_NAMESPACE" not in self.settings:
            return None
        _, socket = str(self.settings["DEDUP_INDEX"]).split(":", 1)
        client = redis.Redis(unix_socket_path=socket[2:])
        weakref.finalize(self, client.close)
        return client

    def wait(self) -> None:
        """Until the leases of the runs that were killed are over."""
        if self.client is not None:
            time.sleep(LEASE)

    def pending(self) -> int:
        """Claims that are neither confirmed nor released, of runs that have ended by themselves.

        Those of the killed may stay: they shadow nothing once a lease is over, for which no crawl waits.
        """
        if self.client is None:
            return 0
        ends = dict(self.client.zrange(self.key("runs"), 0, -1, withscores=True))
        return sum(ends.get(run, -1) < 0 for run in self.client.hvals(self.key("pending")))


def store_of(kind: str, folder: Path, socket: Path) -> Store:
    if kind == "redis":
        return Store(
            {"DEDUP_INDEX": f"unix://{socket}", "DEDUP_NAMESPACE": uuid4().hex, "DEDUP_LEASE": LEASE}
        )
    index = {"off": "memory:", "file": f"file:{folder}/index.sqlite"}
    return Store({"DEDUP_INDEX": index[kind], "DEDUP_ENABLED": int(kind != "off")})


def figures(name: str, **values: Any) -> None:
    """What a whole count has come to, for `pytest -s`."""
    print(f"\n{name}: {', '.join(f'{value} {what}' for what, value in values.items())}")


# --- kill -9 ----------------------------------------------------------------------------------------


@dataclass
class Killed:
    """What came of a trial."""

    kills: int  #: of crawlers that had not yet ended
    begun: bool  #: whether pages had been dropped when the first kill came


@pytest.mark.parametrize(
    ("kind", "crawlers", "kills"),
    [("redis", 3, 1), slow("file", 1, 100), slow("redis", 1, 100), slow("redis", 3, 100)],
)
def test_a_killed_crawler_that_is_started_again_has_lost_nothing(
    site: Site, redis_socket: Path, tmp_path: Path, kind: str, crawlers: int, kills: int
) -> None:

    def trial(seed: int) -> Killed:
        rng = random.Random(f"{kind} {crawlers} {seed}")
        folder = tmp_path / str(seed)
        store = store_of(kind, folder, redis_socket)
        others = [Crawl(site.url, folder, **store.settings) for _ in range(rng.randrange(crawlers))]
        killed, begun, runs = 0, False, []
        for _ in range(1 if rng.random() < 0.7 else 2):  # some are killed again
            runs.append(Crawl(site.url, folder, **store.settings))
            killed += runs[-1].kill_at(rng.uniform(0, site.progress))
            begun = begun or "Dropped" in runs[0].log.read_text()
        if rng.random() < 0.5:
            store.wait()  # else it is started again at once, and the lease of the killed one goes on
        last = Crawl(site.url, folder, **store.settings)
        assert [crawl.ended() for crawl in (*others, last)] == [0] * (len(others) + 1)
        assert check(folder) == set()
        for ended in (*others, last):
            add_up(ended)
            assert ended.stats()["dedup/pages"] > CONTENTS
        assert store.pending() == 0
        return Killed(killed, begun)

    outcomes = until(kills, trial, lambda outcome: outcome.kills)
    total = sum(outcome.kills for outcome in outcomes)
    assert total >= kills
    figures(
        f"{kind}, 1 to {crawlers} crawlers",
        kills=total,
        trials=len(outcomes),
        of_them_in_mid_crawl=sum(outcome.begun for outcome in outcomes),
    )


@pytest.mark.parametrize(("kind", "kills"), [("redis", 1), slow("file", 50), slow("redis", 50)])
def test_nothing_is_lost_where_session_ids_change_at_each_request(
    site: Site, redis_socket: Path, tmp_path: Path, kind: str, kills: int
) -> None:
    """No page that the killed crawl kept is met again, and what it linked to was lost with the crawl.

    The next one is started at once: until its lease ends, nobody can know that the killed one is dead.
    """

    def trial(seed: int) -> tuple[int, int]:
        folder = tmp_path / str(seed)
        store = store_of(kind, folder, redis_socket)
        moment = random.Random(seed).random() * site.progress
        killed = Crawl(url, folder, **store.settings).kill_at(moment)
        assert Crawl(url, folder, **store.settings).ended() == 0
        return killed, len(missing(folder))

    with serve(Twins(fresh_sessions=True)) as url:
        outcomes = until(kills, trial, lambda outcome: outcome[0])
    losses = [lost for _, lost in outcomes]
    figures(
        f"session ids that change, {kind}",
        kills=sum(killed for killed, _ in outcomes),
        with_a_loss=sum(map(bool, losses)),
    )
    assert sum(losses) == 0


@pytest.mark.parametrize("confirmed", [4, slow(6), slow(8), slow(10)])
def test_pages_of_a_crawler_that_seems_to_live_hide_nothing(
    redis_socket: Path, tmp_path: Path, confirmed: int
) -> None:
    """They were done; but what they led to was lost with their crawler, and is met again under other addresses only."""
    store = store_of("redis", tmp_path, redis_socket)
    store.settings["DEDUP_LEASE"] = 60.0  # which this test ends, and no busy machine
    slowly = {"DOWNLOAD_DELAY": 0.05, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    assert store.client is not None

    def done() -> int:
        assert store.client is not None
        claimed = int(store.client.get(store.key("sequence")) or 0)
        return claimed - store.client.hlen(store.key("pending"))

    def never_met_again() -> set[str]:
        return {page for page in processed(tmp_path) if "sid=" in page}

    with serve(Twins(fresh_sessions=True)) as url:
        killed = Crawl(url, tmp_path, **store.settings | slowly)
        killed.wait(LIMIT, lambda: done() >= confirmed and bool(never_met_again()))
        assert killed.kill()
        (run,) = store.client.zrange(store.key("runs"), 0, -1)
        before = never_met_again()
        (tmp_path / "processed").unlink()  # what it handed over may be lost with it
        last = Crawl(url, tmp_path, **store.settings)
        last.wait(LIMIT, lambda: IDLE in last.log.read_text())  # it only waits for that lease to end
        assert any(record["duplicate_of"] in before for record in records(tmp_path))
        store.client.zadd(store.key("runs"), {run: 1}, xx=True)
        assert last.ended() == 0
    assert missing(tmp_path) == set()
    assert last.stats()["dedup/fetched_again"] > 0


def is_torn(job: Path) -> bool:
    """Whether a queue of Scrapy's has nothing on disk yet, not even its head.  With it, Scrapy waits for ever, whatever the filter."""
    return any(file.is_file() and not file.stat().st_size for file in (job / "requests.queue").rglob("*"))


@pytest.mark.parametrize(
    ("kind", "kills"), [("file", 1), slow("off", 50), slow("file", 50), slow("redis", 50)]
)
def test_what_a_killed_job_loses_comes_back_with_a_fresh_one(
    site: Site, redis_socket: Path, tmp_path: Path, kind: str, kills: int
) -> None:
    """Scrapy's JOBDIR doesn't survive a kill; the index does, and a page of its own is never a duplicate."""
    whole = site.progress_without if kind == "off" else site.progress

    def trial(seed: int) -> tuple[int, int]:
        rng = random.Random(f"job {seed}")  # the same moments for each kind
        folder = tmp_path / str(seed)
        store = store_of(kind, folder, redis_socket)
        job = {"JOBDIR": folder / "job"} | store.settings
        killed = Crawl(site.url, folder, **job).kill_at(rng.random() * whole)
        crawls = []
        if not is_torn(folder / "job"):
            crawls.append(Crawl(site.url, folder, **job))
            assert crawls[0].ended() == 0
        lost = check(folder, job=True)
        crawls.append(Crawl(site.url, folder, **job | {"JOBDIR": folder / "fresh job"}))
        assert crawls[-1].ended() == 0
        assert check(folder, job=True) == set()
        if kind != "off":
            for crawl in crawls:
                add_up(crawl)
        return killed, len(lost)

    outcomes = until(kills, trial, lambda outcome: outcome[0])
    losses = [lost for killed, lost in outcomes if killed]
    figures(
        f"JOBDIR resumed, {kind}",
        kills=len(losses),
        with_a_loss=sum(map(bool, losses)),
        contents_lost=sum(losses),
    )


# --- SIGINT and SIGTERM -----------------------------------------------------------------------------


@pytest.mark.parametrize("signals", [1, slow(50)])
def test_a_crawl_told_to_end_ends_soon_leaves_nothing_pending_and_goes_on_where_it_was(
    site: Site, redis_socket: Path, tmp_path: Path, signals: int
) -> None:
    def trial(seed: int) -> tuple[bool, float]:
        rng = random.Random(f"signal {seed}")
        folder = tmp_path / str(seed)
        store = store_of("redis" if seed % 2 else "file", folder, redis_socket)
        job = {"JOBDIR": folder / "job"} | store.settings
        first = Crawl(site.url, folder, **job)
        moment = rng.uniform(0.2, 1) * site.progress
        first.wait(LIMIT, lambda: first.progress >= moment)
        told = time.monotonic()
        first.send(signal.SIGTERM if seed % 4 < 2 else signal.SIGINT)
        status = first.wait(LIMIT)
        took = time.monotonic() - told
        assert status == 0, f"status {status} after {took:.1f} s"
        add_up(first)
        assert store.pending() == 0
        ended = "'finish_reason': 'shutdown'" in first.log.read_text()
        resumed = Crawl(site.url, folder, **job)
        assert resumed.ended() == 0
        assert check(folder) == set()
        add_up(resumed)
        return ended, took

    outcomes = until(signals, trial, lambda outcome: outcome[0])
    figures("SIGINT, SIGTERM", trials=len(outcomes), seconds=max(took for _, took in outcomes))
