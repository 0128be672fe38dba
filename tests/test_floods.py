"""A flood of pages alike: many pages within a few bits of each other, which share no shingles.

Anybody can forge them who knows this program and not the HASH_KEY, and a large site in one frame comes near it.  A
claim looks at a bounded number of them, whoever filed them, and never hides a near-duplicate uncounted.
"""

import functools
import itertools
import random
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import redis

from dedup import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, Verdict
from dedup.index.claiming import Candidates
from dedup.index.entry import Entry
from dedup.index.local.shelf import Shelf
from dedup.index.redis.index import RedisIndex
from dedup.index.weighing import MAX_COMPARED, MAX_EQUAL, MAX_LOOKED
from dedup.scrapy.log.summary import summary
from tests.support.coroutines import driven
from tests.support.filters import filtering, fingerprint, visit
from tests.support.filters import open_index as open_local
from tests.support.fingerprints import flip
from tests.support.stores import opened_at

DETECTOR = Detector(max_distance=6, min_resemblance=0.7)
VICTIM = 0x0123456789ABCDEF
#: A run that ended before any other began.
EARLIER = "0" * 32

Opened = Callable[..., AbstractAsyncContextManager[Index]]


@pytest.fixture
def opened(address: str, namespace: str) -> Opened:
    return functools.partial(opened_at, address, DETECTOR, namespace=namespace)


def forged(rng: random.Random, simhash: int = VICTIM) -> Fingerprint:
    """A page within 6 bits of all others that are forged here."""
    return Fingerprint(flip(simhash, 3, rng), rng.randbytes(136), 100, 0, digest=rng.getrandbits(63))


def flood(number: int, run: str, simhash: int = VICTIM, digest: int | None = None) -> list[Entry]:
    """The entries of so many forged pages."""
    rng, entries = random.Random(number), []
    for n in range(number):
        page = forged(rng, simhash)
        keys = page.simhash or 0, 0, page.digest if digest is None else digest
        entries.append(
            Entry(
                f"{simhash:x} {n}", f"http://forger/{n}", *keys, (), page.sketch, 0, run, markup=page.digest
            )
        )
    return entries


def copy_of(page: Fingerprint, bits: int, rng: random.Random) -> Fingerprint:
    return Fingerprint(flip(page.simhash or 0, bits, rng), page.sketch, 100, 0, digest=rng.getrandbits(63))


async def claims_of_copies(index: Index, number: int) -> list[Verdict]:
    """A page is kept amid the flood; then come copies of it, 1 to 4 bits away.  Those that are kept are released."""
    rng, victim = random.Random(1), Fingerprint(VICTIM, random.Random(2).randbytes(136), 100, 0, digest=1)
    assert (await index.claim("victim", "http://victim/", victim)).status == "new"
    found = []
    for bits in (1, 2, 3, 4) * (number // 4):
        found.append(await index.claim("copy", "http://copy/", copy_of(victim, bits, rng)))
        await index.release("copy")
    return found


@pytest.mark.parametrize("number", [200, 1500])
@driven
async def test_no_flood_hides_a_near_duplicate_uncounted(opened: Opened, number: int) -> None:
    async with opened() as index:
        await index.add(flood(number, index.run if number == 200 else EARLIER))
        verdicts = await claims_of_copies(index, 8)
        assert all(verdict.status == "duplicate" or verdict.crowded for verdict in verdicts)
        near = [verdict for bits, verdict in zip((1, 2, 3, 4) * 2, verdicts, strict=True) if bits < 3]
        assert {verdict.of for verdict in near} == {"http://victim/"}
        assert {verdict.of for verdict in verdicts} == {"http://victim/"}
        assert (await index.claim("new", "http://new/", forged(random.Random(3)))).crowded is (number > 1000)


@driven
async def test_pages_that_are_no_more_than_are_compared_are_no_crowd(opened: Opened) -> None:
    async with opened() as index:
        await index.add(flood(MAX_COMPARED, index.run))
        far = forged(random.Random(3), VICTIM ^ 0xFF)
        verdict = await index.claim("a", "http://a/", far)
        assert (verdict.status, verdict.crowded) == ("new", False)


@driven
async def test_a_page_that_is_met_again_in_a_crowd_is_counted(opened: Opened) -> None:
    entries = flood(MAX_LOOKED + 1, EARLIER)
    async with opened() as index:
        await index.add(entries)
        page = Fingerprint(entries[7].simhash, entries[7].sketch, 100, 0, digest=entries[7].digest)
        verdict = await index.claim(entries[7].page_id, entries[7].url, page)
        assert (verdict.status, verdict.known, verdict.crowded) == ("same", True, True)


@driven
async def test_a_crowd_of_one_digest_is_counted(opened: Opened) -> None:
    async with opened() as index:
        await index.add(flood(MAX_EQUAL + 2, index.run, digest=5))
        page = Fingerprint(VICTIM ^ 2**64 - 1, bytes(136), 100, 0, digest=5)
        assert (await index.claim("a", "http://a/", page)).crowded


@pytest.mark.parametrize("copy", ["no copy", "a copy"])
@driven
async def test_a_claim_in_redis_is_judged_once_more_if_too_many_pages_were_filed_since_it_looked(
    redis_socket: Path, namespace: str, monkeypatch: pytest.MonkeyPatch, copy: str
) -> None:
    """Another client releases what was like the page meanwhile: then the second look files it, and it is new all the same."""
    rng = random.Random(1)
    page, beside = forged(rng), forged(rng)
    at = functools.partial(opened_at, f"unix://{redis_socket}", DETECTOR, namespace=namespace)
    async with at() as index, at() as other:
        assert (await other.claim("beside", "http://beside/", beside)).status == "new"
        assert isinstance(index, RedisIndex)
        look, looks = index._claims.look, list[Candidates]()

        async def look_and_lose_time(entry: Entry) -> Candidates:
            looks.append(await look(entry))
            if len(looks) == 1:
                await other.release("beside")
                await other.add(flood(MAX_LOOKED + 1, EARLIER, simhash=VICTIM ^ ((1 << 64) - 1)))
                if copy == "a copy":
                    assert (await other.claim("copy", "http://copy/", page)).status == "new"
            return looks[-1]

        monkeypatch.setattr(index._claims, "look", look_and_lose_time)
        verdict = await index.claim("page", "http://page/", page)
        assert [looked.is_filed for looked in looks] == [False, copy == "no copy"]
        expected = ("new", None) if copy == "no copy" else ("duplicate", "http://copy/")
        assert (verdict.status, verdict.of) == expected
        await index.confirm("page")
        assert (await other.claim("twin", "http://twin/", page)).status == "duplicate"


@pytest.mark.parametrize("number", [1500, pytest.param(50_000, marks=pytest.mark.slow)])
@driven
async def test_a_claim_looks_at_a_bounded_number_of_pages(
    opened: Opened, store: str, address: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50,000 cost 1.6 ms a claim in memory and 2.7 in a file (benchmarks/floods.py)."""
    async with opened() as index:
        await index.add(flood(number, EARLIER))
        page, looked = forged(random.Random(3)), 0
        if store == "redis":
            client = redis.Redis(unix_socket_path=str(Path(address.removeprefix("unix://"))))
            with client, client.monitor() as said:
                assert (await index.claim("a", "http://a/", page)).crowded
                client.echo("claimed")
                commands = itertools.takewhile(lambda one: one["command"] != "ECHO claimed", said.listen())
                looked = sum(len(re.findall(r":p:\d+", one["command"])) for one in commands)
        else:
            read = Shelf.sketches

            def sketches(shelf: Shelf, numbers: list[int]) -> list[bytes]:
                nonlocal looked
                looked += len(numbers)
                return read(shelf, numbers)

            monkeypatch.setattr(Shelf, "sketches", sketches)
            assert (await index.claim("a", "http://a/", page)).crowded
        assert MAX_COMPARED <= looked <= MAX_LOOKED + MAX_COMPARED + 100 * index.plan.size


@driven
async def test_a_crawl_counts_the_pages_that_it_keeps_in_a_crowd_and_tells_of_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = open_local("memory:", Detector())
    async with filtering(tmp_path / "drops.jsonl", index=index) as run:
        for path in ("a", "b", "c"):
            simhash = fingerprint(path, path).simhash
            assert simhash is not None
            await index.add(flood(MAX_COMPARED + 1, index.run, simhash))
            outcome = await run.filter.judge(visit(path))
            assert (outcome.action, outcome.verdict.crowded) == ("keep", True)
    assert run.counts["dedup/crowded"] == 3
    (told,) = [record.message for record in caplog.records if "dedup/crowded" in record.message]
    assert told.startswith(
        "Kept http://example.org/a without comparing it with all pages like it, which are too many"
    )
    assert "hash_key" in told
    assert "of copies among pages that share one large frame, 1 to 2% were kept" in summary(run.counts, "")
