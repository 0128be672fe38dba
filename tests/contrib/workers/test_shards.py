"""A crawl by several workers: each host has one, links get to their worker, and all end when nothing is left."""

import asyncio
import logging
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.settings import Settings
from scrapy.spiders import CrawlSpider, Rule
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from dedup import SettingsError
from dedup.contrib.changes.changes import changes
from dedup.contrib.changes.file import History
from dedup.contrib.workers.handover import Beat, Delivery, Handover, Note
from dedup.contrib.workers.job import FILE, Job
from dedup.contrib.workers.options import Options, shard_options
from dedup.contrib.workers.partition import Shard, owner
from dedup.contrib.workers.reminder import Reminder
from dedup.contrib.workers.shards import LEASE, ShardMiddleware
from dedup.errors import IndexInUseError
from dedup.index.batching import end
from dedup.scrapy.places import history_of
from dedup.scrapy.requests.methods import callbacks
from dedup.scrapy.requests.packing import Packing
from dedup.scrapy.requests.visits import OWN
from dedup.scrapy.settings import unheard_shard
from tests.support.coroutines import driven
from tests.support.crawls import Run, Walker, page, words
from tests.support.processes import scrapy
from tests.support.redis import Server, running_server
from tests.support.shards import Hosts, Single, Worker, a_minute_later, kept, kept_urls, serve
from tests.support.waiting import LIMIT, until, wait_until


def test_two_workers_keep_each_content_once_and_share_hosts(server: Server, tmp_path: Path) -> None:
    delay, where = 0.1, ("-s", f"DEDUP_INDEX={server.address}")
    with serve(Hosts(2, contents=16)) as site:
        slow = {"DOWNLOAD_DELAY": delay, "RANDOMIZE_DOWNLOAD_DELAY": False, "DEDUP_INDEX": server.address}
        workers = [Worker(site, tmp_path, f"{number}/2", **slow) for number in (1, 2)]
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    assert kept(tmp_path) == Counter(range(site.contents))
    assert len({(asked.host, asked.by) for asked in site.asked}) == len(site.names)
    for gaps in site.gaps().values():
        assert len(gaps) > 10
        # On a busy machine the first request is up to two delays longer on its way than the last.
        assert sum(gaps) > (len(gaps) - 2) * delay
    probes = sum(worker.stats()["dedup/probes"] for worker in workers)
    nowhere = sum(
        site.page(asked.host, asked.path) is None for asked in site.asked
    )  # asked by probes, once each
    assert len(site.asked) == len({(asked.host, asked.path) for asked in site.asked}) + probes - nowhere
    assert not server.client.keys("shingleback:shards:*")
    new, dropped = (sum(worker.stats()[f"dedup/{name}"] for worker in workers) for name in ("new", "dropped"))
    said = "".join(worker.log.read_text() for worker in workers)  # the last one of them knows of all
    assert said.count("All workers of this crawl: ") == 1
    assert f"All workers of this crawl: {new} pages kept, {dropped} dropped" in said
    # The crawl of both has one name, by which it is forgotten.
    info = scrapy("index", "info", *where).stdout
    (name,) = re.findall(r" ([0-9a-f]{16}) \(2 workers\)$", info, re.MULTILINE)
    listed = scrapy("index", "forget", "--run", name, "--dry-run", *where).stdout.splitlines()
    assert len(listed) == site.contents + 1
    assert len({line.split()[3] for line in listed[:-1]}) == 2  # runs
    assert scrapy("index", "forget", "--run", name, *where).stdout.startswith("forgot 16 pages")


class Living(Single):
    """A site that changes; it shows a page where nothing is, and says that a parameter of its addresses doesn't matter."""

    def __init__(self) -> None:
        super().__init__(contents=40)
        self.headers["No-Vary-Search"] = 'params=("from")'
        self.nights = 0

    def page(self, host: str, path: str) -> str | None:
        """The page at a path, whatever its query."""
        content = path[1:].partition("?")[0]
        found = super().page(host, f"/{content}")
        if found is None:
            return f"<title>Sorry</title><h1>Sorry</h1><p>{words('there is nothing here', 80)}</p>"
        if self.nights and content == "36":
            return None
        other = (int(content) + 8) % self.contents  # at the same host
        more = (
            "<p>It is sold since last night, to a museum far away" if self.nights and content == "7" else ""
        )
        lost = f"<a href=/lost-{content}>lost</a> " * (int(content) // 4 % 2)
        there = f"<a href=/{other}?from={content}>there</a>" * (int(content) % 2 == 0)
        return f"{found}{more}{lost} {there}"


def test_two_workers_share_what_they_have_met(server: Server, tmp_path: Path) -> None:
    settings = {"DEDUP_INDEX": server.address, "DEDUP_NAMESPACE": f"test-{uuid4().hex}", "DEDUP_CHROME": True}
    where = history_of(server.address, settings["DEDUP_NAMESPACE"])
    with serve(Living()) as site:
        try:
            for site.nights in range(2):
                (folder := tmp_path / str(site.nights)).mkdir()
                workers = [Worker(site, folder, f"{n}/2", **settings, DEDUP_KEEP_TEXT=True) for n in (1, 2)]
                assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
                contents = Counter(urlsplit(url).path[1:] for url in kept_urls(folder))
                gone = {"36"} if site.nights else set()
                assert {name for name in contents if name.isdigit()} == {*map(str, range(40))} - gone
                assert max(contents.values()) == 1, "a variant is no other page"
                assert sum(name.startswith("lost") for name in contents) <= 8, "of 20 addresses"
                stats = sum((worker.stats() for worker in workers), Counter[str]())
                assert stats["dedup/no_vary_search"] > 0
                assert stats["dedup/soft_404"] > 0
            with History(where) as history:
                crawls = history.crawls()
                told = {
                    (change.word, urlsplit(change.url).path) for change in changes(history, crawls[0].number)
                }
            told = {pair for pair in told if pair[0] != "new"}  # another variant may be met first
            assert told == {("gone", "/36"), ("changed", "/7")}
            assert [crawl.is_whole for crawl in crawls] == [1, 1]
        finally:
            where.unlink(missing_ok=True)


def test_links_that_can_t_be_handed_over_are_told(crawl: Run, tmp_path: Path) -> None:
    with running_server() as server:

        class Stops(Walker):
            def parse(self, response: Response) -> Iterator[Request]:
                server.kill()
                yield Request(self.url.replace("127.0.0.1", "127.0.0.3"))  # of the other shard
                raise CloseSpider

        done = crawl({"/": page("home")}, Stops, DEDUP_INDEX=server.address, DEDUP_SHARD="1/2")
    said = "Not handed over, since Redis is away: 1 link, to be found again by the worker that takes this shard next"
    (message,) = [each for each in done.messages if said in each.getMessage()]
    assert message.levelname == "WARNING"


def test_free_shards_are_taken_by_workers_that_are_idle(server: Server, tmp_path: Path) -> None:
    with serve(Hosts(contents=8)) as site:
        only = Worker(site, tmp_path, "auto/4", DEDUP_INDEX=server.address)
        wait_until(lambda: "is crawled here" in only.log.read_text())
        a_minute_later(server)
        assert only.wait(LIMIT) == 0
    assert kept(tmp_path) == Counter(range(site.contents))


def test_the_shard_of_a_silent_worker_is_crawled_by_another(server: Server, tmp_path: Path) -> None:
    with serve(Hosts(contents=16)) as site:
        site.most = {1: 6, 2: 1}
        other = Worker(site, tmp_path, "1/2", DEDUP_INDEX=server.address)
        paused = Worker(site, tmp_path, "2/2", DEDUP_INDEX=server.address)
        wait_until(lambda: sum(asked.by == "1" for asked in site.asked) == 6)
        wait_until(lambda: "is crawled here" in other.log.read_text())  # else its crawl would be another one
        paused.pause()
        a_minute_later(server, 1)
        heir = Worker(site, tmp_path, "auto/2", DEDUP_INDEX=server.address)
        wait_until(lambda: "is crawled here" in heir.log.read_text())
        del site.most[1]
        paused.send(signal.SIGCONT)
        assert paused.wait(LIMIT) == 4
        site.most.clear()
        assert [worker.wait(LIMIT) for worker in (other, heir)] == [0, 0]
    assert "shard 2 of 2 was taken by another worker" in paused.log.read_text()
    assert heir.stats()["dedup/shard/taken"] > 0
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    # The lease of its claims goes on here, unlike in two minutes of silence: it has kept a page, its heir keeps it as the
    # same, and the other drops its copy, even when the paused worker has ended.
    thrice = [content for content, times in counts.items() if times > 2]
    assert not thrice, "\n".join(file.read_text() for file in sorted(tmp_path.glob("*-*")))


def test_who_slept_until_the_end_fails_only_if_redis_has_lost_it(server: Server, tmp_path: Path) -> None:
    """Else Compose would start it again, and it would begin another crawl of all."""
    lease, settings = 5.0, {"DEDUP_INDEX": server.address, "DEDUP_HEIR": "rest"}
    with serve(Single(contents=12)) as site:
        site.most = {0: 1, 1: 1, 2: 1}
        workers = [Worker(site, tmp_path, "auto/3", lease=lease, **settings) for _ in range(3)]
        wait_until(lambda: {asked.by for asked in site.asked} == {"0", "1", "2"})
        for worker in workers[1:]:
            worker.pause()
        over = time.monotonic() + lease
        site.most.clear()
        a_minute_later(server, 0, 1, 2)
        assert workers[0].wait(LIMIT) == 0
        assert set(kept(tmp_path)) == set(range(site.contents))
        wait_until(lambda: time.monotonic() > over)
        for worker, status in zip(workers[1:], (0, 4), strict=True):
            worker.send(signal.SIGCONT)
            assert worker.wait(LIMIT) == status, worker.log.read_text()
            is_told = "it ended while this worker slept" in worker.log.read_text()
            assert is_told == (status == 0)
            assert not server.client.keys("shingleback:shards:*")
            server.client.flushall()


def test_a_worker_whose_crawl_is_deleted_fails(server: Server, tmp_path: Path) -> None:
    """Nobody has ended it: pages are missing."""
    with serve(Single(contents=8)) as site:
        site.most[0] = 4
        worker = Worker(site, tmp_path, "auto/1", DEDUP_INDEX=server.address)
        wait_until(lambda: sum(asked.by == "0" for asked in site.asked) == 4)
        server.client.delete(*server.client.keys("shingleback:shards:*"))
        site.most.clear()
        assert worker.wait(LIMIT) == 4
    assert "has ended, or has vanished" in worker.log.read_text()


def test_a_worker_that_lost_its_shard_sends_nothing_more(server: Server, tmp_path: Path) -> None:
    """Not even what had waited for its turn at the host."""
    with serve(Hosts(1, contents=16)) as site:
        site.most[0] = 6
        slow = {"DOWNLOAD_DELAY": 0.2, "RANDOMIZE_DOWNLOAD_DELAY": False, "DEDUP_INDEX": server.address}
        worker = Worker(site, tmp_path, "auto/1", lease=2, CONCURRENT_REQUESTS=32, **slow)
        wait_until(lambda: len(site.asked) == 6)  # links are found faster than they are sent
        worker.pause()
        wait_until(lambda: asyncio.run(is_taken(server)))
        site.most.clear()
        wait_until(lambda: not site.held)
        before = len(site.asked)  # what was under way has arrived
        worker.send(signal.SIGCONT)
        assert worker.wait(LIMIT) == 4
        assert len(site.asked) == before
    said = worker.log.read_text()
    assert "shard 1 of 1 was taken by another worker" in said
    assert "begins anew" not in said


async def is_taken(server: Server) -> bool:
    """Whether the only shard is free now, and taken by one who does nothing with it."""
    crawl = server.client.hget("shingleback:shards:{shingleback/site}:state", "crawl").decode()
    heir = Handover(server.address, "shingleback/site", Shard.read("auto/1"), 2, crawl)
    await heir.beat()
    await heir.close()
    return bool(heir.held)


def test_a_pause_beyond_a_lease_costs_one_copy_at_most(server: Server, tmp_path: Path) -> None:
    """Its pages answer for nothing meanwhile, and do so again as soon as it is back."""
    with serve(Hosts(contents=16)) as site:
        site.most[1] = 6
        settings = {"DEDUP_INDEX": server.address, "DEDUP_LEASE": 1}
        workers = [Worker(site, tmp_path, f"{number}/2", **settings) for number in (1, 2)]
        wait_until(lambda: sum(asked.by == "1" for asked in site.asked) == 6)
        workers[1].pause()
        wait_until(lambda: has_ended_lease(server))
        site.most.clear()
        workers[1].send(signal.SIGCONT)
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    counts = kept(tmp_path)
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) <= 2
    assert sum(worker.stats()["dedup/unjudged/uncertain"] for worker in workers) == 0


def has_ended_lease(server: Server) -> bool:
    """Whether a worker of the crawl does not renew the lease of its claims."""
    seconds, _ = server.client.time()
    return bool(server.client.zcount("shingleback:{shingleback/site}:runs", 1, 1000 * seconds))


def door(shard: Shard, **more: Any) -> ShardMiddleware:
    """The middleware of a worker whose Redis is asked for nothing."""
    crawler = get_crawler(Spider)
    crawler.spider = Spider("walker")
    return ShardMiddleware(crawler, Options(shard, "redis://127.0.0.1:1/0", "n", **more))


@driven
async def test_a_second_worker_of_a_shard_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def held(*_: object, **__: object) -> Beat:
        return Beat("held")

    monkeypatch.setattr(Handover, "beat", held)
    shards = door(Shard.read("1/2"))
    for _ in range(2):
        await shards._beat()
    said_before = [record.getMessage() for record in caplog.records if record.name == Reminder.__module__]
    assert said_before == [
        "Waits for shard 1/2, which another worker has, or had until it died: that shows within 90 seconds"
    ]
    shards._reminder._began -= 1.5 * LEASE
    said = "shard 1/2 is being crawled by another worker; give this one the number of another shard, or start it with auto/2"
    with pytest.raises(IndexInUseError, match=re.escape(said)):
        await shards._beat()


def test_a_job_goes_on_as_the_shard_that_it_was(tmp_path: Path) -> None:
    handover = Handover("redis://localhost", "shop", Shard.read("1/2"), 60.0)
    handover.held = {0: 7}
    Job(str(tmp_path), Shard.read("1/2")).leave(handover, {})
    for shard in ("2/2", "1/3"):
        said = f"shard is '{shard}', but its JOBDIR is that of shard 1/2; go on as that shard"
        with pytest.raises(SettingsError, match=said):
            Job(str(tmp_path), Shard.read(shard))
    for _ in range(2):  # a start that is refused changes nothing
        job = Job(str(tmp_path), Shard.read("1/2"))
        assert (job.cursor, job.outbox) == (7, {})
    job.begin()
    assert Job(str(tmp_path), Shard.read("1/2")).cursor == -1


@pytest.mark.parametrize("octets", [b"", b"{", b"{}", b"\xff", b"[" * 100_000])
def test_a_worker_whose_job_is_damaged_crawls_all_again(octets: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(octets)
    job = Job(str(tmp_path), Shard.read("1/2"))
    assert (job.cursor, job.outbox) == (-1, {})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"DEDUP_SHARD": "3/2"}, "DEDUP_SHARD is '3/2'; allowed: 'I/N'"),
        ({"DEDUP_SHARD": "0/0"}, "DEDUP_SHARD is '0/0'; allowed: 'I/N'"),
        ({"DEDUP_SHARD": "x"}, "DEDUP_SHARD is 'x'; allowed: 'I/N'"),
        ({"DEDUP_INDEX": "memory:"}, "DEDUP_SHARD is '1/2' and DEDUP_INDEX is 'memory:', but the workers"),
        (
            {"DEDUP_INDEX": None},
            "DEDUP_SHARD is '1/2' and DEDUP_INDEX is 'the file of this spider', but the workers",
        ),
        (
            {"DEDUP_SHARD": "auto/2", "JOBDIR": "job"},
            "DEDUP_SHARD is 'auto/2' and JOBDIR is 'job', but any free shard is not that",
        ),
        (
            {"DEDUP_HEIR": "rest", "JOBDIR": "job"},
            "DEDUP_HEIR is 'rest' and JOBDIR is 'job', but what is left is in Redis then",
        ),
    ],
)
def test_a_wrong_shard_is_told_in_a_line(settings: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(said)}"):
        shard_options(Settings({"DEDUP_SHARD": "1/2", "DEDUP_INDEX": "redis://localhost"} | settings))


@pytest.mark.parametrize(
    ("shard", "setting", "is_told"),
    [
        ("1/2", None, True),
        ("auto/2", None, True),
        ("1/2", "1/2", False),
        ("blue", None, False),
        (None, None, False),
    ],
)
def test_a_spider_that_takes_no_shard_says_so(shard: str | None, setting: str | None, is_told: bool) -> None:
    spider = Spider("mine", shard=shard) if shard else Spider("mine")
    said = unheard_shard(spider, Settings({"DEDUP_SHARD": setting}))
    assert said.endswith(f"start it with -s DEDUP_SHARD={shard}") if is_told else said == ""


class Following(CrawlSpider):
    name = "following"
    rules = (Rule(LinkExtractor(), callback="parse_page"),)


def comes_back(spider: Spider, request: Request, key: str = "") -> bool:
    """Whether a request is packed, and unpacked as it was."""
    packing = Packing(spider, key)
    packed = packing.pack(request)
    return packed is not None and packing.unpack(packed).to_dict(spider=spider) == request.to_dict(
        spider=spider
    )


@pytest.mark.parametrize("key", ["", "secret"])
def test_links_come_back_as_they_were(key: str) -> None:
    spider = Following.from_crawler(get_crawler(Following))
    page = HtmlResponse("http://a.org/", body=b"<a href=b>More</a>", request=Request("http://a.org/"))
    (link,) = spider._requests_to_follow(page)
    bare = Request("http://a.org", callback=spider.parse, meta={"depth": 1})
    assert all(comes_back(spider, request, key) for request in (link, bare))


@pytest.mark.parametrize(
    "given",
    [
        {"method": "POST", "body": b"a=1"},
        {"headers": {"Accept": "text/html"}},
        {"cookies": {"a": "b"}},
        {"meta": {"depth": 2}},
        {"encoding": "latin-1"},
        {"priority": 7},
        {"dont_filter": True},
        {"flags": ["a"]},
        {"cb_kwargs": {"number": 3}},
        {"callback": "parse", "errback": "parse"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_whatever_a_request_was_given_comes_back(given: dict[str, Any]) -> None:
    spider = Spider("walker")
    methods = {name: getattr(spider, given[name]) for name in ("callback", "errback") if name in given}
    request = Request("http://a.org/", **{**given, **methods})
    assert comes_back(spider, request)
    assert Packing(spider).pack(request, without={next(iter(given))}) is None


#: What somebody who can write to the Redis of a crawl may put into the log of a shard.
FORGED: dict[str, dict[str, object]] = {
    "a file": {"url": "file:///etc/hostname"},
    "a script": {"url": "javascript:alert(1)"},
    "no URL": {"url": 7},
    "a host of another shard": {"url": "http://127.0.0.3:{}/1"},
    "a class": {"url": "http://127.0.0.1:{}/forged", "_class": "forged_module.Forged"},
    "a method": {"url": "http://127.0.0.1:{}/forged", "callback": "failed_to_start"},
    "a method of Scrapy's": {"url": "http://127.0.0.1:{}/forged", "callback": "_set_crawler"},
    "what is no method": {"url": "http://127.0.0.1:{}/forged", "errback": "rules"},
    "a proxy": {"url": "http://127.0.0.1:{}/forged", "meta": {"proxy": "http://127.0.0.1:{}"}},
    "a class of a policy": {
        "url": "http://127.0.0.1:{}/forged",
        "meta": {"referrer_policy": "forged_module.Forged"},
    },
    "meta that is none": {"url": "http://127.0.0.1:{}/forged", "meta": 7},
}


def test_what_others_write_to_redis_is_neither_fetched_nor_run(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = tmp_path / "imported"
    (tmp_path / "forged_module.py").write_text(f"open({str(imported)!r}, 'w'); raise SystemExit(9)")
    monkeypatch.syspath_prepend(tmp_path)
    state = "shingleback:shards:{shingleback/site}:state"
    with serve(Hosts(contents=8)) as site:
        worker = Worker(site, tmp_path, "1/2", DEDUP_INDEX=server.address)
        wait_until(lambda: server.client.exists(state))
        for forged in FORGED.values():
            values = {**forged, "url": str(forged["url"]).format(site.port)} if forged["url"] != 7 else forged
            server.client.rpush(state.replace("state", "log:0"), msgspec.msgpack.encode(values))
            server.client.hincrby(state, "links", 1)
        other = Worker(site, tmp_path, "2/2", DEDUP_INDEX=server.address)
        assert [worker.wait(LIMIT), other.wait(LIMIT)] == [0, 0]
    assert kept(tmp_path) == Counter(range(site.contents))
    assert worker.stats()["dedup/shard/unreadable"] == len(FORGED)
    assert not [asked for asked in site.asked if asked.path == "/forged"]
    assert not imported.exists()


def test_where_a_key_is_set_only_what_is_signed_with_it_is_taken() -> None:
    spider = Spider("walker")
    request = Request("http://a.org/", callback=spider.parse)
    signed = Packing(spider, "secret").pack(request)
    assert signed
    assert Packing(spider, "secret").unpack(signed).url == request.url
    for key, packed in (
        ("secret", Packing(spider).pack(request) or b""),
        ("secret", Packing(spider, "guessed").pack(request) or b""),
        ("secret", signed[:-1] + b"!"),
        ("secret", b""),
        ("", signed),
    ):
        with pytest.raises(ValueError, match="no request of this spider"):
            Packing(spider, key).unpack(packed)


@pytest.mark.parametrize(
    "forged",
    [
        {"url": "file://me:secret@a.org/\x1b[2J"},
        {"url": "http://a.org/", "priority": "\x1b[2J" * 10_000},
        {"url": "http://me:secret@b.org/\x1b[2J", "dont_filter": True},
    ],
    ids=["scheme", "priority", "site"],
)
def test_what_others_write_to_redis_is_told_safely(forged: dict[str, object]) -> None:
    spider = Spider("walker", allowed_domains=["a.org"], start_urls=["http://a.org/"])
    with pytest.raises(ValueError, match="no request of this spider") as told:
        Packing(spider).unpack(msgspec.msgpack.encode(forged))
    text = str(told.value)
    assert "secret" not in text
    assert text.isprintable()
    assert len(text) < 600


CODE, OUTSIDE = "taken only with DEDUP_HASH_KEY", "outside of the spider's sites"


@pytest.mark.parametrize(
    ("why", "given"),
    [
        (CODE, {"meta": {"proxy": "http://b.org:3128"}}),
        (CODE, {"meta": {"splash": {"splash_url": "http://b.org"}}}),
        (CODE, {"meta": {"impersonate_args": {"proxies": {"http": "http://b.org"}}}}),
        (CODE, {"meta": {"playwright_context_kwargs": {"proxy": {"server": "http://b.org"}}}}),
        (CODE, {"meta": {"playwright_page_init_callback": "forged_module.run"}}),
        (CODE, {"meta": {"playwright_page_event_handlers": {"close": "closed"}}}),
        (CODE, {"meta": {"referrer_policy": "forged_module.Policy"}}),
        (OUTSIDE, {"url": "http://c.org/", "dont_filter": True}),
        (OUTSIDE, {"url": "http://c.org/", "meta": {"allow_offsite": True}}),
    ],
)
def test_a_request_that_names_code_has_to_be_signed(why: str, given: dict[str, Any]) -> None:
    spider = Spider("walker", allowed_domains=["a.org"], start_urls=["http://b.org/"])
    request = Request(**{"url": "http://a.org/", **given})
    assert Packing(spider).pack(request) is None
    with pytest.raises(ValueError, match=why):
        Packing(spider).unpack(msgspec.msgpack.encode({"url": request.url, **given}))
    assert comes_back(spider, request, "secret")


@pytest.mark.parametrize("leave", [{"dont_filter": True}, {"meta": {"allow_offsite": True}}])
def test_a_request_within_the_sites_of_its_spider_is_handed_over(leave: dict[str, Any]) -> None:
    spider = Spider("walker", allowed_domains=["a.org"], start_urls=["http://b.org/"])
    for url in ("http://www.a.org/1", "http://b.org/2"):
        assert Packing(spider).pack(Request(url, **leave))
    assert Packing(spider).pack(Request("http://c.org/"))  # Scrapy refuses it there as it does here
    assert Packing(Spider("walker")).pack(Request("http://c.org/", **leave))


@pytest.mark.parametrize("key", ["", "secret"])
def test_the_proxy_of_a_machine_is_not_that_of_others(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy's own middleware sets it anew, by the environment of the worker that takes the request."""
    monkeypatch.setenv("http_proxy", "http://ada:secret@b.org:3128")
    request = Request("http://a.org/", meta={"depth": 1}, headers={"Accept": "text/html"})
    HttpProxyMiddleware().process_request(request)
    assert request.meta["proxy"] == "http://b.org:3128"
    packing = Packing(Spider("walker"), key)
    packed = packing.pack(request)
    assert packed
    taken = packing.unpack(packed)
    assert (taken.meta, taken.headers.to_unicode_dict()) == ({"depth": 1}, {"Accept": "text/html"})


class Shop(Spider):
    """Its callbacks are named in every way that there is."""

    name = "shop"
    kinds = {"a": ("parse_by_text",)}  # noqa: RUF012

    def parse(self, response: Response) -> Iterator[Request]:
        """Names two."""
        yield Request("http://a.org/", self.parse_item, errback=self.failed)
        yield from (Request("http://b.org/", self.parse_nested) for _ in range(1))
        yield beside(self)

    def parse_item(self, response: Response, page: int = 1) -> None:
        """Yields nothing; nor do these."""

    parse_nested = parse_by_text = parse_beside = parse_item

    def failed(self, failure: Failure) -> None:
        """Is an errback."""

    def remove(self, failure: Failure) -> None:
        """Is none."""


def beside(spider: Shop) -> Request:
    return Request("http://c.org/", spider.parse_beside)


class Form(FormRequest):
    """A class of the project's."""


def test_requests_whose_callback_no_code_names_stay() -> None:
    spider = Shop()
    for request in (
        Request("http://a.org/", spider.parse),
        Request("http://a.org/", spider.parse_item, errback=spider.failed),
        FormRequest("http://a.org/", spider.parse_item, formdata={"a": "b"}),
    ):
        assert Packing(spider).pack(request)
    assert {"parse", "parse_item", "parse_nested", "parse_by_text", "parse_beside"} <= callbacks(spider)
    unnamed = getattr(spider, "removed"[:-1])  # this function is one of the spider's module
    for request in (
        Request("http://a.org/", errback=unnamed),
        Form("http://a.org/"),
    ):
        assert Packing(spider).pack(request) is None
        assert comes_back(spider, request, "secret")  # then nobody else can have written it
    assert Packing(spider, "secret").pack(Request("s3://bucket/a")) is None


def test_a_request_that_can_t_be_scheduled_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    shards = door(Shard(0, 2))
    scheduled: list[str] = []

    def crawl(request: Request) -> None:
        if request.url.endswith("1"):
            raise OSError(28, "No space left on device")
        scheduled.append(request.url[-1])

    async def beat(links: object, notes: object, **_: bool) -> Beat:
        requests = (shards._packing.pack(Request(f"http://me:secret@a.org/{n}")) for n in range(4))
        return Beat("ok", requests=[Delivery(0, n, request) for n, request in enumerate(requests) if request])

    shards.crawler.engine = SimpleNamespace(crawl=crawl)  # type: ignore[assignment]
    shards._handover.held = {0: 0, 1: 0}
    shards._handover.beat = beat  # type: ignore[method-assign, assignment]
    asyncio.run(shards._beat())
    assert scheduled == ["0", "2", "3"]
    assert "<GET http://a.org/1> was handed over, and can't be scheduled" in caplog.text


@driven
async def test_what_is_done_is_noted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.contrib.workers.shards.BEAT", 1000 * LIMIT)
    shards = door(Shard(0, 1), leaves_rest=True)
    beats: list[list[Note]] = []

    async def beat(links: object, notes: list[Note], **_: bool) -> Beat:
        beats.append(notes)
        return Beat("ok")

    shards._handover.beat = beat  # type: ignore[method-assign, assignment]
    beating = asyncio.create_task(shards._keep_beating())
    await until(lambda: beats)
    request = Request("http://a.org/")
    shards.journal.taken(Delivery(0, 0, b""), request)
    shards.journal.scheduled(request, 0)
    shards.journal.let_go(request)
    await until(lambda: len(beats) == 2)
    await end(beating)
    assert [len(notes) for notes in beats] == [0, 1]


def test_an_answer_to_a_sleeper_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=7.0, time=lambda: clock.now, monotonic=lambda: clock.now)
    monkeypatch.setattr("dedup.contrib.workers.shards.time", clock)
    shards = door(Shard(0, 1))

    async def beat(*_: object, **__: bool) -> Beat:
        clock.now += 100
        return Beat("ok")

    shards._handover.beat = beat  # type: ignore[method-assign, assignment]
    asyncio.run(shards._beat())
    assert shards.beaten == 7


def test_the_filter_asks_no_host_of_another_worker() -> None:
    shards = door(Shard(0, 2))
    shards._handover.held = {owner("a.org", 2): 0}
    assert owner("a.org", 2) != owner("b.org", 2)
    probe = Request("http://b.org/1", meta={OWN: True})
    shards.process_request(probe.replace(url="http://a.org/1"))
    shards.process_request(probe.replace(meta={}))  # such as a link that can't be handed over
    with pytest.raises(IgnoreRequest, match="another worker"):
        shards.process_request(probe)


def test_a_wrong_shard_is_refused_before_anything_is_fetched(crawl: Run, server: Server) -> None:
    done = crawl({"/": page("home")}, DEDUP_SHARD="3/2", DEDUP_INDEX=server.address)
    (said,) = done.mishaps
    assert said.startswith("Crawl refused: DEDUP_SHARD is '3/2'; allowed: 'I/N'")
    assert done.requests == []
