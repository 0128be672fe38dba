"""How links get from the worker that found them to the one that crawls their host, and how all learn that nothing is left.

Each shard has a log in Redis: the requests that were handed to it, the first of the crawl among them.  They stay
there until the crawl has ended, so they are the seeds of their shard: a worker that takes the place of one that died
reads the log from its beginning, and nothing is lost but downloads.  All that a worker asks is one `beat`, a script:

* it puts links at the ends of the logs of their shards, each once in a crawl;
* it keeps the lease of the worker's shards, or takes one that nobody holds;
* it reads what was handed to them since the last beat;
* an idle worker, which has read and crawled all that, says up to where: its shards are *done* until they get more.

If all shards are done at the same moment, no link is under way, and the crawl has *ended*: that moment exists,
because a script has the server for itself.  A shard that nobody holds is done if nothing was handed to it.

==========  ======  ===========================================================
Key         Type    What it holds
==========  ======  ===========================================================
state       hash    crawl: its name; shards: how many; began: when, in ms of the
                    server's clock; links: how many were handed over, which never
                    falls, so that a server that was set back is noticed;
                    ended; and for each shard lease: the worker, and
                    until when; done: up to where in its log; left: why its last
                    worker went
seen        set     a fingerprint of each link that was handed over
log:NUMBER  list    the links handed to a shard
==========  ======  ===========================================================

Before each key stands ``shingleback:shards:{NAMESPACE}:``.

The last to leave a crawl that has ended deletes them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple
from uuid import uuid4

from dedup.errors import IndexMismatchError, IndexUnavailableError, ShardTakenError
from dedup.frontier.partition import Shard
from dedup.index.redis.client import DEADLINE, Server, deadline

__all__ = ["Beat", "Handover", "Link"]

#: Links that one beat hands over, and reads of each log, at most.
MOST = 500


class Link(NamedTuple):
    """A request for another shard."""

    shard: int
    member: bytes  #: by which it is known that it was handed over
    request: bytes


@dataclass(frozen=True, slots=True)
class Beat:
    """What a beat has brought."""

    word: str  #: "ok", or why there is no shard: "held" by another, or an earlier crawl is "ending"
    ended: bool = False
    new: int = 0  #: links that nobody had handed over
    missing: tuple[int, int] | None = None  #: a shard that nobody holds, and how many links wait there
    requests: Sequence[bytes] = field(default=(), repr=False)
    #: Of each shard, if they were asked for: ms until its lease ends, and how many links wait there if nobody holds it.
    shards: Sequence[tuple[int, int]] = ()


class Handover:
    """A worker's share of the work.  Raises `DedupError` where the server does not answer, or the work is lost."""

    def __init__(
        self, address: str, namespace: str, shard: Shard, lease: float, crawl: str = "", cursor: int = -1
    ) -> None:
        """``lease`` is in seconds; ``crawl`` and ``cursor`` are those of a job that goes on."""
        self._server = Server(address)
        self._script = self._server.script((files("dedup.frontier") / "lua" / "beat.lua").read_bytes())
        self._prefix = f"shingleback:shards:{{{namespace}}}:"
        self._shard = shard
        self._lease = lease
        self._me = uuid4().hex
        self.crawl = crawl
        self._cursor = cursor
        self._links = 0  # that were handed over in all, as far as this worker knows
        self.held: dict[int, int] = {}  # by number, how far the log was read

    @property
    def where(self) -> str:
        """The server, and what the names of all keys begin with."""
        return f"{self._server.where} ({self._prefix}*)"

    async def beat(
        self, links: Iterable[Link] = (), *, idle: bool = False, reading: bool = True, survey: bool = False
    ) -> Beat:
        """Hands links over, and takes what others have; ``survey``: tells of all shards."""
        said = await self._say(links, idle=idle, most=MOST if reading else 0, survey=survey)
        match said:
            case [
                b"ok",
                bytes(crawl),
                int(ended),
                int(total),
                int(new),
                int(missing),
                int(waiting),
                [*logs],
                [*rows],
            ]:
                self.crawl, self._links = crawl.decode(), total
                requests = []
                for shard, cursor, found in logs:
                    self.held[shard] = cursor + len(found)
                    requests += found
                lacking = (missing, waiting) if missing >= 0 else None
                return Beat(
                    "ok", bool(ended), new, lacking, requests, [(lease, links) for lease, links in rows]
                )
            case [b"held", bytes(crawl)]:
                self.crawl = crawl.decode()
                return Beat("held")
            case [b"ending"]:
                return Beat("ending")
            case [b"other", bytes(shards)]:
                raise IndexMismatchError(
                    f"the crawl in {self.where} has {int(shards)} shards, not {self._shard.of}, and has not ended; go on "
                    "with as many, or delete these keys"
                )
            case [b"lost", bytes(shard)]:
                raise ShardTakenError(
                    f"shard {int(shard) + 1} of {self._shard.of} was taken by another worker while this one was silent"
                )
            case [b"gone"] if self.crawl and not self.held and self._shard.number is None:
                return Beat("ok", ended=True)  # there was no shard left for this worker
            case [b"older"]:
                raise IndexMismatchError(
                    f"the crawl in {self.where} was set back to an earlier state, which lacks links that were handed over; "
                    "start it anew"
                )
            case [b"gone"]:
                raise IndexMismatchError(f"the crawl in {self.where} has ended, or has vanished")
        raise IndexUnavailableError(f"{self.where} sent a reply that could not be understood")

    async def leave(self, why: str) -> None:
        """Lets go of the shards.  Unless the reason is "finished", they are not done."""
        try:
            await self._say((), leave=why)
        finally:
            self.held.clear()

    async def close(self) -> None:
        """Lets go of the server."""
        await self._server.close()

    async def _say(self, links: Iterable[Link], **more: Any) -> Any:
        ask = {
            "me": self._me,
            "crawl": self.crawl,
            "new": uuid4().hex,
            "shards": self._shard.of,
            "any": self._shard.number is None,
            "wanted": self._shard.number or 0,
            "cursor": self._cursor,
            "links": self._links,
            "lease": round(self._lease * 1000),
            "held": list(self.held.items()),
            "logs": f"{self._prefix}log:",
        }
        keys = [self._prefix + "state", self._prefix + "seen"]
        flat = [part for link in links for part in link]
        with self._server.errors():
            async with deadline(DEADLINE):
                return await self._script(keys=keys, args=[json.dumps(ask | more), *flat])
