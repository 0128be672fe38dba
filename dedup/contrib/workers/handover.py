"""How links get from the worker that found them to the one that crawls their host, and how all learn that nothing is left.

Each shard has a log in Redis: the requests that were handed to it, the first of the crawl among them.  They stay
there until the crawl has ended, so they are the seeds of their shard: a worker that takes the place of one that died
reads the log from its beginning, and nothing is lost but downloads.  All that a worker asks is one `beat`, a script:

* it puts links at the ends of the logs of their shards, each once in a crawl;
* it keeps the lease of the worker's shards, or takes one that nobody holds;
* it reads what was handed to them since the last beat;
* it notes what the worker has scheduled in its shards, and what is done, if that is asked for: whoever takes the place of
  one that died crawls what that had left, and not all anew;
* an idle worker, which has read and crawled all that, says up to where: its shards are *done* until they get more.

If all shards are done at the same moment, no link is under way, and the crawl has *ended*: that moment exists,
because a script has the server for itself.  A shard that nobody holds is done if nothing was handed to it.

==========  ======  ===========================================================
Key         Type    What it holds
==========  ======  ===========================================================
state       hash    crawl: its name; shards: how many; began: when, in ms of the
                    server's clock; links: how many were handed over, and how
                    many notes taken, which never falls, so that a server that
                    was set back is noticed;
                    ended; and for each shard lease: the worker, and
                    until when; done: up to where in its log; left: why its last
                    worker went
seen        set     a fingerprint of each link that was handed over
log:NUMBER  list    the links handed to a shard
rest:       hash    its requests that were scheduled, and are not done, by their
NUMBER              tickets, if that is noted
past:       string  the keys of those that are done, 16 bytes each
NUMBER
items:      set     paths of the files in which the items of these are, if the
NUMBER              next worker has to have them
==========  ======  ===========================================================

Before each key stands ``shingleback:shards:{NAMESPACE}:``.

The last to leave a crawl that has ended deletes them.
"""

import asyncio
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple
from uuid import uuid4

from dedup.contrib.workers.partition import Shard
from dedup.errors import CrawlGoneError, IndexMismatchError, IndexUnavailableError, ShardTakenError
from dedup.index.redis import client
from dedup.index.redis.client import Server, deadline

#: Links that one beat hands over, and reads of each log, at most.
MOST = 500
#: Bytes of a key.
KEY = 16
#: Bytes of the keys, and number of the requests, that are read at once: 10 ms of what reads them.
PART, SOME = KEY << 14, 100
#: A scan ends with the cursor that others begin with.
BEGIN, END = -1, 0


class Link(NamedTuple):
    """A request for another shard."""

    shard: int
    member: bytes  #: by which it is known that it was handed over
    request: bytes


class Note(NamedTuple):
    """Says that a request was scheduled here, or that it is done."""

    shard: int
    ticket: bytes  #: by which it is known
    request: bytes = b""  #: empty if it is done
    key: bytes = b""  #: by which it will be known that it is done, if it may be met again


class Delivery(NamedTuple):
    """A request that was handed to a shard."""

    shard: int
    place: int  #: in the log
    request: bytes


@dataclass(frozen=True, slots=True)
class Beat:
    """What a beat has brought."""

    word: str  #: "ok", or why there is no shard: "held" by another, or an earlier crawl is "ending"
    ended: bool = False
    new: int = 0  #: links that nobody had handed over
    missing: tuple[int, int] | None = None  #: a shard that nobody holds, and how many links wait there
    requests: Sequence[Delivery] = field(default=(), repr=False)
    #: Of each shard, if they were asked for: ms until its lease ends, and how many links wait there if nobody holds it.
    shards: Sequence[tuple[int, int]] = ()


class Handover:
    """A worker's share of the work.  Raises `DedupError` where the server does not answer, or the work is lost."""

    def __init__(
        self,
        address: str,
        namespace: str,
        shard: Shard,
        lease: float,
        crawl: str = "",
        cursor: int = -1,
        *,
        journal: bool = False,
    ) -> None:
        """``lease`` is in seconds; ``crawl`` and ``cursor`` are those of a job that goes on.

        With a ``journal``, a crawl that nobody is in any more goes on, unless it has ended.
        """
        self._server = Server(address)
        self._script = self._server.script((files("dedup.contrib.workers") / "lua" / "beat.lua").read_bytes())
        self._prefix = f"shingleback:shards:{{{namespace}}}:"
        self._shard = shard
        self._lease = lease
        self._me = uuid4().hex
        self.crawl = crawl
        self._cursor = cursor
        self._journal = journal
        #: By shard: bytes of the keys that were read, and the scan of the rest.
        self._read: dict[int, tuple[int, int | None]] = {}
        self._links = 0  # that were handed over in all, as far as this worker knows
        self.held: dict[int, int] = {}  # by number, how far the log was read

    @property
    def where(self) -> str:
        """The server, and what the names of all keys begin with."""
        return f"{self._server.where} ({self._prefix}*)"

    async def beat(
        self,
        links: Collection[Link] = (),
        notes: Iterable[Note] = (),
        *,
        idle: bool = False,
        reading: bool = True,
        survey: bool = False,
        items: Collection[str] = (),
    ) -> Beat:
        """Hands links over, takes notes, of shards that are held, and reads what others have handed over.

        All of it is done, or nothing; ``survey``: tells of all shards.  ``items``: the files in which the items are of what
        is noted as done.
        """
        most = MOST if reading else 0
        said = await self._say(links, notes, idle=idle, most=most, survey=survey, items=[*items])
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
                requests = list[Delivery]()
                for shard, cursor, found in logs:
                    self.held[shard] = cursor + len(found)
                    requests += [Delivery(shard, cursor + at, request) for at, request in enumerate(found)]
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
            case [b"gone" | b"replaced"] if self.crawl and not self.held and self._shard.number is None:
                return Beat("ok", ended=True)  # there was no shard left for this worker
            case [b"older"]:
                raise IndexMismatchError(
                    f"the crawl in {self.where} was set back to an earlier state, which lacks links that were handed over; "
                    "start it anew"
                )
            case [b"replaced"]:
                raise IndexMismatchError(f"the crawl in {self.where} has ended, and another one has begun")
            case [b"gone"]:
                raise CrawlGoneError(f"the crawl in {self.where} has ended, or has vanished")
        raise IndexUnavailableError(f"{self.where} sent a reply that could not be understood")

    async def forget(self, shard: int) -> list[str]:
        """Returns which files with items of a shard are not here; if there are any, what is noted of the shard is forgotten."""
        names = [f"{self._prefix}{name}:{shard}" for name in ("items", "past", "rest")]
        with self._server.errors():
            async with deadline(client.DEADLINE):
                items = [path.decode() for path in await self._server.client.smembers(names[0])]
                missing = [
                    path for path in sorted(items) if not await asyncio.to_thread(os.path.exists, path)
                ]
                if missing:
                    await self._server.client.delete(*names)
        return missing

    async def inherit(self, shard: int) -> tuple[list[bytes], dict[bytes, bytes]] | None:
        """Returns the next part of the notes on a shard: keys of what is done, and after those the requests that are not, by ticket.

        Returns None at the end.  What has changed meanwhile may come twice.
        """
        done, cursor = self._read.get(shard, (0, None))
        with self._server.errors():
            async with deadline(client.DEADLINE):
                if cursor is None:
                    key = f"{self._prefix}past:{shard}"
                    octets = await self._server.client.getrange(key, done, done + PART - 1)
                    self._read[shard] = done + len(octets), None if octets else BEGIN
                    return [octets[at : at + KEY] for at in range(0, len(octets), KEY)], {}
                if cursor == END:
                    return None
                key = f"{self._prefix}rest:{shard}"
                cursor, found = await self._server.client.hscan(key, max(END, cursor), count=SOME)
                self._read[shard] = done, cursor
                return [], found

    async def leave(self, why: str, sums: Mapping[str, int] | None = None) -> dict[str, int]:
        """Lets go of the shards.  Unless the reason is "finished", they are not done.

        The last worker of a crawl is told the sums of all; others get an empty dict.
        """
        try:
            said = await self._say(leave=why, sums=sums or {})
        finally:
            self.held.clear()
        flat = iter(said[1])
        return {name.decode(): count for name, count in zip(flat, flat, strict=True)}

    async def close(self) -> None:
        """Lets go of the server."""
        await self._server.close()

    async def _say(self, links: Collection[Link] = (), notes: Iterable[Note] = (), **more: Any) -> Any:
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
            "prefix": self._prefix,
            "found": len(links),
            "journal": self._journal,
        }
        keys = [self._prefix + "state", self._prefix + "seen"]
        flat = [part for each in (*links, *notes) for part in each]
        with self._server.errors():
            async with deadline(client.DEADLINE):
                return await self._script(keys=keys, args=[json.dumps(ask | more), *flat])
