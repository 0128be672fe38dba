"""What a trial is: a few numbers and words, drawn from a seed, each of which has a value that does nothing."""

import random
from dataclasses import asdict, dataclass, fields, replace

#: What is done by several processes at once, or to a server: these need an index that they share.
SHARED = {"survive", "shards", "outage"}


@dataclass(frozen=True)
class Spec:
    """A trial.  The defaults are as harmless as can be; ``seed`` makes the words and chooses what fails."""

    seed: int = 0
    # The site
    contents: int = 12
    words: int = 150
    chrome: int = 0  #: words that all pages share
    copies: tuple[str, ...] = ()  #: further addresses of each page: "print", "mirror", "query"
    hosts: int = 1
    sessions: bool = False  #: visitors without a session id are given one, and links carry it
    counter: bool = False  #: each page says how often pages were asked for
    errors: float = 0.0  #: this share of the pages answers with status 500 at first
    changes: float = (
        0.0  #: this share of the contents is another, or is gone at its first address, at the second crawl
    )
    # The spider
    callback: str = "plain"  #: or "async", "list", or a way to build an item of some pages
    raises: float = 0.0  #: on this share of the pages, the callback fails at its end
    # The pipeline
    fails: float = 0.0  #: it fails on the items of this share of the pages
    slow: float = 0.0  #: seconds that it takes for an item at most
    refuses: float = 0.0  #: a middleware refuses this share of the pages
    # The crawl
    index: str = "memory"  #: or "file", "redis"
    plan: str = "once"  #: or another one of `tests.chaos.plans`
    moment: float = 0.5  #: after which share of the items, or of the time, something is killed or stopped
    delay: float = 0.0  #: seconds between two requests of a crawl that is killed or stopped
    at_once: int = 1  #: requests
    breadth: bool = False
    incremental: bool = False
    pauses: bool = False  #: while the index is away
    action: str = "drop"
    follow: str = "never"
    method: str = "simhash"
    scope: str = "all"
    whole: bool = False  #: whether whole pages are compared, chrome and all
    heir: str = "all"  #: what a worker crawls that takes the shard of another

    def __str__(self) -> str:
        return ", ".join(
            f"{name}={value!r}" for name, value in asdict(self).items() if value != DEFAULTS[name]
        )

    @property
    def store(self) -> str:
        """The kind of index, which is one that the plan can have."""
        return "redis" if self.plan in SHARED else self.index


DEFAULTS = asdict(Spec())
#: What is drawn; a value that does nothing comes up more often where it is there more than once.
CHOICES: dict[str, tuple[object, ...]] = {
    "contents": (12, 20, 30),
    "words": (60, 150, 400),
    "chrome": (0, 40, 200),
    "copies": ((), ("print",), ("mirror",), ("print", "mirror"), ("query", "print")),
    "hosts": (1, 1, 2, 4),
    "sessions": (False, True),
    "counter": (False, False, True),
    "errors": (0.0, 0.0, 0.2),
    "changes": (0.0, 0.0, 0.3),
    "callback": ("plain", "plain", "async", "list", "kwargs", "meta", "chain", "numbered", "inline"),
    "raises": (0.0, 0.0, 0.1, 0.4),
    "fails": (0.0, 0.0, 0.1, 0.4),
    "slow": (0.0, 0.0, 0.1, 1.0),
    "refuses": (0.0, 0.0, 0.2),
    "index": ("memory", "file", "file", "redis"),
    "plan": ("once", "again", "kill", "stop", "survive", "shards", "outage"),
    "moment": (0.1, 0.3, 0.5, 0.7, 0.9),
    "delay": (0.0, 0.0, 0.1),
    "at_once": (1, 4, 16),
    "breadth": (False, True),
    "incremental": (False, False, True),
    "pauses": (False, True),
    "action": ("drop", "drop", "drop", "nofollow", "mark"),
    "follow": ("never", "never", "yield", "all"),
    "method": ("simhash", "simhash", "minhash", "supershingle"),
    "scope": ("all", "all", "host"),
    "whole": (False, True),
    "heir": ("all", "rest"),
}


def draw(seed: int) -> Spec:
    """The trial of a seed."""
    rng = random.Random(f"trial {seed}")
    return Spec(seed, **{name: rng.choice(values) for name, values in CHOICES.items()})  # type: ignore[arg-type]


def simpler(spec: Spec) -> list[Spec]:
    """Trials in which one thing less is done."""
    names = [field.name for field in fields(spec) if field.name != "seed"]
    changed = [name for name in names if getattr(spec, name) != DEFAULTS[name]]
    return [replace(spec, **{name: DEFAULTS[name]}) for name in changed]
