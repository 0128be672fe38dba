"""The plans of trials: what is crawled with the filter, by whom, and what is killed, stopped or restarted meanwhile.

Each gives the contents that its crawls have handed over.
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

from crawler.spiders.warc import WarcSpider
from dedup.contrib.archives import Cleaning
from tests.chaos.crawling import LEASE, Process, contents, crawl, has, settings
from tests.chaos.site import Site
from tests.chaos.spec import Spec
from tests.contrib.archives.test_archive import record
from tests.support.cluster import Cluster, running_cluster
from tests.support.redis import Server, running_server

#: Seconds for which a server is away.
OUTAGE = 1.0


class Servers(ExitStack):
    """The servers of trials, which are started when the first one needs them."""

    @cached_property
    def redis(self) -> Server:
        return self.enter_context(running_server())

    @cached_property
    def cluster(self) -> Cluster:
        return self.enter_context(running_cluster(replicas=0))


@dataclass
class Trial:
    """What a plan needs."""

    spec: Spec
    servers: Servers
    folder: Path
    site: Site
    url: str

    def __post_init__(self) -> None:
        self.items = max(1, int(self.spec.moment * self.spec.contents))
        self.disturbed = False  #: whether something was killed while it was at work
        self._namespace = uuid4().hex

    def file(self, name: str) -> Path:
        return self.folder / name

    @property
    def index(self) -> str:
        match self.spec.store:
            case "redis":
                return self.servers.redis.address
            case "cluster":
                return self.servers.cluster.address
            case "file":
                return f"file:{self.folder}/index.sqlite"
        return "memory:"

    def settings(self, name: str, **more: object) -> dict[str, Any]:
        """Those of a crawl with the filter, whose files have this name."""
        spec = self.spec
        later = {"DEDUP_INCREMENTAL": True} if spec.incremental and spec.store != "memory" else {}
        return (
            settings(spec)
            | later
            | {
                "ADDONS": {"dedup.scrapy.Addon": 500},
                "DEDUP_INDEX": self.index,
                "DEDUP_NAMESPACE": self._namespace,
                "DEDUP_LEASE": LEASE,
                "DEDUP_ON_INDEX_FAILURE": "pause" if spec.pauses else "keep",
                "DEDUP_ACTION": spec.action,
                "DEDUP_FOLLOW": spec.follow,
                "DEDUP_METHOD": spec.method,
                "DEDUP_SCOPE": spec.scope,
                "DEDUP_CHROME": not spec.whole,
                "DEDUP_IGNORE_CARRIED": ["page"],
                "DEDUP_LOG": f"{self.folder}/{name}-drops.jsonl",
                "DEDUP_PARKED": f"{self.folder}/{name}-parked.jsonl",
            }
            | more
        )

    def slowly(self) -> dict[str, Any]:
        return {"DOWNLOAD_DELAY": self.spec.delay, "RANDOMIZE_DOWNLOAD_DELAY": False}

    def crawl(self, name: str, **more: object) -> Callable[[], object]:
        """The work of a crawl with the filter."""
        return crawl(self.file(name), self.settings(name, **more), url=self.url)

    def got(self, *names: str) -> set[str]:
        """What was handed over by the last of these crawls; if they are incremental, by all of them together."""
        together = self.spec.incremental and self.spec.store != "memory"
        return contents(*map(self.file, names if together else names[-1:]))

    def kill(self, process: Process, enough: Callable[[], bool]) -> bool:
        """Kills a process when it is enough, if it still runs then."""
        is_killed = process.wait(enough)
        self.disturbed |= is_killed
        return is_killed


def once(trial: Trial) -> set[str]:
    Process(trial.crawl("only")).wait()
    return trial.got("only")


def again(trial: Trial) -> set[str]:
    Process(trial.crawl("first")).wait()
    trial.site.later = True
    Process(trial.crawl("second")).wait()
    return trial.got("first", "second")


def kill(trial: Trial) -> set[str]:
    """The crawl is killed, and started again at once."""
    trial.kill(Process(trial.crawl("first", **trial.slowly())), has(trial.items, trial.file("first")))
    trial.site.later = True
    Process(trial.crawl("second")).wait()
    return trial.got("first", "second")


def stop(trial: Trial) -> set[str]:
    """A job is stopped twice, and goes on."""
    job = {"JOBDIR": f"{trial.folder}/job"}
    for name in ("first", "second"):
        Process(trial.crawl(name, CLOSESPIDER_ITEMCOUNT=trial.items, **job)).wait()
    Process(trial.crawl("third", **job)).wait()
    return contents(*map(trial.file, ("first", "second", "third")))


def together(trial: Trial) -> set[str]:
    """Three crawlers on one index."""
    names = ["one", "other", "third"]
    for crawler in [Process(trial.crawl(name)) for name in names]:
        crawler.wait()
    return contents(*map(trial.file, names))


def survive(trial: Trial) -> set[str]:
    """Two crawlers on one index, of which one is killed."""
    killed = Process(trial.crawl("killed", **trial.slowly()))
    other = Process(trial.crawl("other", **trial.slowly()))
    trial.kill(killed, has(trial.items, trial.file("killed")))
    other.wait()
    return contents(trial.file("killed"), trial.file("other"))


def shards(trial: Trial) -> set[str]:
    """Two workers with a supervisor each; one is killed, and started again at once.

    So is one that has ended when the other one waits for it: where a worker begins after the crawl has ended without it, as on
    a busy machine, it begins a crawl anew.
    """
    names = ["one", "other"]

    def start(number: int) -> Process:
        settings = {"DEDUP_SHARD": f"{number + 1}/2", "DEDUP_HEIR": trial.spec.heir}
        return Process(trial.crawl(names[number], **settings, **trial.slowly()))

    victim = trial.spec.seed % 2
    is_enough = has(trial.items, trial.file(names[victim]))
    running, ended = {number: start(number) for number in (0, 1)}, dict[int, float]()
    while running:
        for number, worker in list(running.items()):
            if worker.has_ended():
                del running[number]
                ended[number] = time.monotonic()
            elif number == victim and not trial.disturbed and is_enough():
                worker.kill()
                trial.disturbed = True
                running[number] = start(number)
            elif time.monotonic() > ended.get(1 - number, math.inf) + 4 * LEASE:
                running[1 - number] = start(1 - number)
                del ended[1 - number]
        time.sleep(0.005)
    return contents(*map(trial.file, names))


def outage(trial: Trial) -> set[str]:
    """The server is killed, and started again; or a master of the cluster."""
    crawler = Process(trial.crawl("only", **trial.slowly()))
    server = (
        trial.servers.redis
        if trial.spec.store == "redis"
        else trial.servers.cluster.nodes[trial.spec.seed % 3]
    )
    is_killed, begins = False, 0.0

    def disturb() -> bool:
        nonlocal is_killed, begins
        if not begins and has(trial.items, trial.file("only"))():
            server.kill()
            is_killed, begins, trial.disturbed = True, time.monotonic(), True
        elif is_killed and time.monotonic() > begins + OUTAGE:
            server.start()
            is_killed = False
        return False

    crawler.wait(disturb)
    if is_killed:
        server.start()
    return trial.got("only")


def archive(trial: Trial) -> set[str]:
    """`scrapy dedup` is killed at some time of its run, and goes on."""
    source = _archived(trial)
    log, kept = trial.file("drops.jsonl"), trial.file("kept.warc")
    whole = time.monotonic()
    Process(Cleaning([str(source)], str(trial.file("whole.warc")), str(log) + ".whole", workers=1).run).wait()
    seconds = time.monotonic() - whole
    cleaning = Cleaning([str(source)], str(kept), str(log), workers=1)
    late = time.monotonic() + seconds * trial.spec.moment
    trial.kill(Process(cleaning.run), lambda: time.monotonic() > late)
    if not kept.exists():
        Process(cleaning.run).wait()
    written = kept.read_text()
    assert written == trial.file("whole.warc").read_text()
    return {title for title in trial.site.titles if f"<title>{title}</title>" in written}


def warc(trial: Trial) -> set[str]:
    """`scrapy crawl warc` is killed, and started again at once."""
    source = str(_archived(trial))
    spider = type(
        "Slow", (WarcSpider,), {"custom_settings": WarcSpider.custom_settings | {"DEDUP_INDEX": trial.index}}
    )
    drawn = trial.settings("first", ITEM_PIPELINES={}, DEDUP_INCREMENTAL=False)
    own = {name: value for name, value in drawn.items() if name not in spider.custom_settings}

    def start(name: str) -> Process:
        feeds = {"FEEDS": {str(trial.file(name)): {"format": "jsonlines"}}}
        return Process(crawl(trial.file(name), own | feeds, spider, path=source))

    trial.kill(start("first"), has(trial.items, trial.file("first-drops.jsonl")))
    start("second").wait()
    written = trial.file("second").read_text()
    return {title for title in trial.site.titles if f'"{title}"' in written}


def _archived(trial: Trial) -> Path:
    """All pages of the site, in any order."""
    site, path = trial.site, trial.file("site.warc")
    pages = [(address, number) for number in range(trial.spec.contents) for address in site.addresses(number)]
    pages.sort(key=lambda page: crc32(repr((trial.spec.seed, page[1] * 7919 % 31, page[0][:2])).encode()))
    with path.open("wb") as output:
        for visit, (address, number) in enumerate(pages):
            for _ in range(3):  # the first time it may fail
                status, text = site.render(address, visit)
            assert status == 200
            url = f"http://archive-{number % trial.spec.hosts}.example{address}"
            output.write(record(url, text))
    return path


#: By their names.
PLANS: dict[str, Callable[[Trial], set[str]]] = {
    plan.__name__: plan
    for plan in (once, again, kill, stop, together, survive, shards, outage, archive, warc)
}
