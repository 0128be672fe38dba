"""The protocol of workers, without any crawl: whatever the order of beats, deaths and new workers, every link is crawled."""

import asyncio
import random
from collections import Counter
from uuid import uuid4

import pytest

from dedup.contrib.workers.handover import Beat, Handover, Link, Note
from dedup.contrib.workers.partition import Shard
from dedup.errors import IndexMismatchError
from tests.support.coroutines import driven
from tests.support.redis import Server

#: Link n leads to these; the shard of a link is its rest.
LINKS = 60


def behind(link: int) -> list[int]:
    return [other for other in (2 * link + 1, 2 * link + 2) if other < LINKS]


def link_of(number: int, shards: int) -> Link:
    return Link(number % shards, b"%d" % number, b"%d" % number)


class Worker:
    """Crawls one link at a turn; with a journal, it notes some beats later what it has found and crawled in its shards."""

    def __init__(self, address: str, namespace: str, shard: str, journal: bool) -> None:
        self.shard = Shard.read(shard)
        self.handover = Handover(address, namespace, self.shard, lease=60, journal=journal)
        self.journal = journal
        self.queue: list[int] = []
        self.outbox = {b"0": link_of(0, self.shard.of)}  # the crawl begins with 0
        self.met: set[int] = set()
        self.has_ended = False
        self.notes: list[Note] = []
        self.unsaid = 0  #: how many links were crawled of which nobody knows
        self.done: set[bytes] = set()
        self.legacies: set[int] = set()

    async def turn(self, rng: random.Random) -> list[int]:
        """Beats, or crawls; returns what was crawled."""
        if self.queue and rng.random() < 0.7:
            done = self.queue.pop(rng.randrange(len(self.queue)))
            for number in behind(done):
                if number % self.shard.of in self.handover.held:
                    if self.meet(number):
                        self.note(number, b"%d" % number)
                else:
                    link = link_of(number, self.shard.of)
                    self.outbox[link.member] = link
            self.note(done, b"", b"%016d" % done)
            self.unsaid += 1
            return [done]
        links, notes = list(self.outbox.values()), self.notes[: rng.randint(0, len(self.notes))]
        before = set(self.handover.held)
        idle = not links and not self.notes and not self.queue and not self.legacies
        beat = await self.handover.beat(links, notes, idle=idle, reading=not self.legacies)
        if beat.word == "ok":
            for link in links:
                del self.outbox[link.member]
            del self.notes[: len(notes)]
            self.unsaid -= sum(not note.request for note in notes)
            self.legacies |= set(self.handover.held) - before if self.journal else set()
            for taken in beat.requests:
                self.meet(int(taken.request))
            for shard in [*self.legacies]:
                await self.inherit(shard)
            self.has_ended = beat.ended and not self.queue and not self.outbox and not self.notes
        return []

    def note(self, number: int, request: bytes, key: bytes = b"") -> None:
        if self.journal:
            self.notes.append(Note(number % self.shard.of, b"%d" % number, request, key))

    async def inherit(self, shard: int) -> None:
        if (part := await self.handover.inherit(shard)) is None:
            self.legacies.remove(shard)
            return
        keys, rest = part
        self.done |= set(keys)
        for request in rest.values():
            self.meet(int(request))

    def meet(self, number: int) -> bool:
        if b"%016d" % number in self.done or number in self.met:
            return False
        self.met.add(number)
        self.queue.append(number)
        return True


def names_of(kind: str, shards: int) -> list[str]:
    """What each of so many workers is told to crawl."""
    return [f"auto/{shards}"] * shards if kind == "auto" else [f"{n + 1}/{shards}" for n in range(shards)]


@pytest.mark.parametrize("kind", ["fixed", "auto"])
@pytest.mark.parametrize(("journal", "deaths"), [(False, 0), (False, 3), (True, 3)])
def test_a_crawl_ends_when_all_links_were(server: Server, kind: str, journal: bool, deaths: int) -> None:
    async def trial(seed: int) -> int:
        rng, namespace = random.Random(seed), uuid4().hex
        shards = rng.randint(1, 4)
        names = names_of(kind, shards)
        workers = [Worker(server.address, namespace, name, journal) for name in names]
        crawled: Counter[int] = Counter()
        left, unsaid = deaths, 0
        while not all(worker.has_ended for worker in workers):
            dies = left and rng.random() < 0.02 and not any(each.has_ended for each in workers)
            die_all = dies and journal and rng.random() < 0.3
            left -= bool(dies)
            for place in range(shards) if die_all else [rng.randrange(shards)]:
                worker = workers[place]
                if dies:
                    await worker.handover.close()
                    unsaid += worker.unsaid
                    for number in worker.handover.held:  # a minute later
                        server.client.hdel(f"shingleback:shards:{{{namespace}}}:state", f"lease:{number}")
                    workers[place] = Worker(server.address, namespace, names[place], journal)
                elif not worker.has_ended:
                    crawled.update(await worker.turn(rng))
                    if worker.has_ended:
                        assert set(crawled) == set(range(LINKS)), f"seed {seed} ended too early"
        for worker in workers:
            await worker.handover.leave("finished")
            await worker.handover.close()
        assert not server.client.keys(f"shingleback:shards:{{{namespace}}}:*")
        again = crawled.total() - LINKS
        assert not journal or again == unsaid, f"seed {seed}"
        return again

    again = [asyncio.run(trial(seed)) for seed in range(4 if journal else 2)]
    assert any(again) == bool(deaths)


async def one(server: Server, shard: str, *links: int, **more: object) -> tuple[Handover, Beat]:
    """A new worker after its first beat."""
    read = Shard.read(shard)
    handover = Handover(server.address, "crawl", read, 60, **more)  # type: ignore[arg-type]
    try:
        return handover, await handover.beat([link_of(number, read.of) for number in links])
    except IndexMismatchError:
        await handover.close()
        raise


@driven
async def test_a_shard_is_held_by_one_worker(server: Server) -> None:
    first, _ = await one(server, "1/2")
    second, beat = await one(server, "1/2")
    assert (beat.word, second.held) == ("held", {})
    any_, _ = await one(server, "auto/2")
    assert any_.held == {1: 0}
    spare, beat = await one(server, "auto/2")
    assert (beat.word, spare.held) == ("ok", {})
    with pytest.raises(IndexMismatchError, match="has 2 shards, not 3"):
        await one(server, "1/3")
    for each in (first, second, any_, spare):
        await each.close()


@driven
async def test_who_was_silent_learns_that_another_has_its_shard(server: Server) -> None:
    silent, _ = await one(server, "1/1", 0, 1)
    server.client.hset("shingleback:shards:{crawl}:state", "lease:0", "00 1")
    fresh, beat = await one(server, "auto/1", 1, 2)
    assert ([taken.request for taken in beat.requests], beat.new) == (
        [b"1", b"2"],
        2,
    )  # nobody was there: the crawl begins anew
    with pytest.raises(IndexMismatchError, match="has ended, and another one has begun"):
        await silent.beat()
    server.client.hset("shingleback:shards:{crawl}:state", "lease:0", "00 1")
    joined, _ = await one(server, "1/1", crawl=fresh.crawl)
    with pytest.raises(IndexMismatchError, match="shard 1 of 1 was taken by another worker"):
        await fresh.beat()
    for each in (silent, fresh, joined):
        await each.close()


@driven
async def test_what_a_worker_has_not_read_is_left_when_it_stops(server: Server) -> None:
    found, _ = await one(server, "2/2", 0, 2, 4)
    stopped = Handover(server.address, "crawl", Shard.read("1/2"), 60)
    await stopped.beat(reading=False)
    assert stopped.held == {0: 0}
    for each in (found, stopped):
        await each.close()


@driven
async def test_a_lease_that_is_too_long_has_run_out(server: Server) -> None:
    """The clock of the server was set back."""
    first, _ = await one(server, "1/1")
    server.client.hset("shingleback:shards:{crawl}:state", "lease:0", "00 9999999999999")
    second, beat = await one(server, "1/1")
    assert (beat.word, second.held) == ("ok", {0: 0})
    for each in (first, second):
        await each.close()


@driven
async def test_a_server_that_was_set_back_is_noticed(server: Server) -> None:
    first, _ = await one(server, "1/2", 0, 1, 2)
    second, _ = await one(server, "2/2")
    server.client.hincrby("shingleback:shards:{crawl}:state", "links", -1)
    for each in (first, second):
        with pytest.raises(IndexMismatchError, match="was set back to an earlier state"):
            await each.beat()
        await each.close()
