"""The plans of trials: what is crawled with the filter, by whom, and what is killed, stopped or restarted meanwhile.

Each gives the contents that its crawls have handed over.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.chaos.crawling import LEASE, Process, contents, crawl, has, settings
from tests.chaos.site import Site
from tests.chaos.spec import Spec
from tests.support.redis import Server

#: Seconds for which a server is away.
OUTAGE = 1.0


@dataclass
class Trial:
    """What a plan needs."""

    spec: Spec
    server: Server
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
                return self.server.address
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
    """The server is killed, and started again."""
    crawler = Process(trial.crawl("only", **trial.slowly()))
    is_enough = has(trial.items, trial.file("only"))
    while not (is_over := crawler.has_ended()) and not is_enough():
        time.sleep(0.005)
    if not is_over:
        trial.disturbed = True
        trial.server.kill()
        time.sleep(OUTAGE)
        trial.server.start()
        crawler.wait()
    return trial.got("only")


#: By their names.
PLANS: dict[str, Callable[[Trial], set[str]]] = {
    plan.__name__: plan for plan in (once, again, kill, stop, survive, shards, outage)
}
