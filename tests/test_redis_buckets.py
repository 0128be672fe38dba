"""The buckets of an index in Redis: whichever way they are read, every page within k bits is found, or a crowd counted."""

import random
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest

from dedup.errors import IndexUnavailableError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.plans import EXACT
from dedup.index.redis import buckets, copies
from dedup.index.verdict import Verdict
from tests.support.coroutines import driven
from tests.support.fingerprints import ALL_BITS, fingerprint_of, flip
from tests.support.redis import Line, Server
from tests.support.stores import opened
from tests.support.surveys import entry, surveyed

#: How buckets are read, by the limits of which that is a matter.
WAYS = {
    "compared by the script": {},
    "compared by the caller": {"MAX_HERE": 0},
    "copied by the caller": {"MAX_HERE": 0, "CROWD": 0, "PART": 2},
}
VICTIM = 0x0123_4567_89AB_CDEF


@pytest.fixture
def address(redis_socket: Path) -> str:
    """The address of the server that is shared with all tests."""
    return f"unix://{redis_socket}"


def limit(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for name, number in limits.items():
        monkeypatch.setattr(buckets if hasattr(buckets, name) else copies, name, number)


def spread(bits: int, rng: random.Random) -> int:
    """Chooses so many bits, as evenly over the four blocks as they can be."""
    order = rng.sample(range(4), 4)
    return sum(1 << 16 * order[n % 4] + 8 * (n // 4) + rng.randrange(8) for n in range(bits))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "k", [pytest.param(k, marks=[] if k in {0, 3, 7} else [pytest.mark.slow]) for k in range(8)]
)
@driven
async def test_every_page_within_k_bits_is_found_and_none_beyond(
    address: str, namespace: str, k: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, **WAYS[way])
    rng = random.Random(k)
    async with opened(address, namespace, Detector(max_distance=k)) as index:
        assert (await index.claim("victim", "http://victim/", fingerprint_of(VICTIM))).status == "new"
        for block in range(4):  # pages that share a block with the victim, so that buckets are unlike in size
            shared, mask = VICTIM & 0xFFFF << 16 * block, ALL_BITS ^ 0xFFFF << 16 * block
            crowd = [shared | rng.getrandbits(64) & mask for _ in range(2 * block)]
            await index.add([entry(n, page_id=f"{block} {n}", simhash=one) for n, one in enumerate(crowd)])
        for bits in range(k + 2):
            for differing in (spread(bits, rng), flip(0, bits, rng)):
                verdict = await index.claim("copy", "http://copy/", fingerprint_of(VICTIM ^ differing, 1))
                assert verdict.status == ("duplicate" if bits <= k else "new"), f"{differing:016x}"
                assert not verdict.crowded
                await index.release("copy")


@driven
async def test_pages_beyond_what_is_read_are_counted(
    address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, MAX_HERE=0, MAX_READ=50)
    rng = random.Random(1)
    async with opened(address, namespace) as index:
        for crowded in (False, True):
            verdict = await index.claim("new", "http://new/", fingerprint_of(rng.getrandbits(48)))
            assert (verdict.status, verdict.crowded) == ("new", crowded)
            await index.release("new")
            await index.add([entry(n, simhash=rng.getrandbits(48)) for n in range(60)])  # alike in one block


class Interrupted(Line):
    """Does something before one of the next requests."""

    def __init__(self, server: Path) -> None:
        super().__init__(server)
        self.deeds: dict[int, Callable[[], Awaitable[None]]] = {}  #: by how many requests pass before

    async def ask(self, request: bytes) -> list[bytes | None]:
        deed = self.deeds.pop(0, None)
        self.deeds = {before - 1: each for before, each in self.deeds.items()}
        if deed:
            await deed()
        return [request]


@pytest.mark.parametrize("filed", [2, *(pytest.param(filed, marks=pytest.mark.slow) for filed in (1, 3))])
@driven
async def test_a_page_that_is_filed_before_any_request_of_a_claim_is_met(
    redis_socket: Path,
    address: str,
    namespace: str,
    filed: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    limit(monkeypatch, MAX_HERE=0)

    async def verdict_amid_rivals(name: str, before: int, like: int) -> Verdict | None:
        """The verdict on a copy of a rival that is filed with others after so many requests; None if it has no more."""
        line, proxy = Interrupted(redis_socket), tmp_path / "proxy"
        async with (
            line.listening(proxy),
            opened(f"unix://{proxy}", name) as index,
            opened(address, name) as other,
        ):
            await index.add([entry(n, simhash=0xFF7F | n << 40) for n in range(9)])  # which are many

            async def file_rivals() -> None:
                for n in range(filed):
                    rival = fingerprint_of(ALL_BITS >> 20 * n)
                    assert (await other.claim(f"rival {n}", f"http://rival {n}/", rival)).status == "new"

            line.deeds = {before: file_rivals}
            copy = fingerprint_of(ALL_BITS >> 20 * like ^ 1 << 7, changed=1)
            verdict = await index.claim("copy", "http://copy/", copy)
            was_interrupted = not line.deeds
            line.deeds.clear()
            return verdict if was_interrupted else None

    for like in range(filed):
        for before in count():
            if (verdict := await verdict_amid_rivals(f"{namespace}-{like}-{before}", before, like)) is None:
                break
            assert verdict.of == f"http://rival {like}/"
        assert before > 0


@driven
async def test_what_is_copied_of_a_bucket_follows_it(
    address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of one block are filed and forgotten by another crawler: each that is there is found, and no other."""
    limit(monkeypatch, MAX_HERE=0, CROWD=0, PART=8)
    rng, there, gone = random.Random(1), list[int](), list[int]()
    here = address, namespace, Detector(max_distance=3)
    async with opened(*here) as index, opened(*here) as other:
        for step in range(41):
            new = [rng.getrandbits(48) for _ in range(rng.randrange(12))]
            same = {"sketch": fingerprint_of(0).sketch, "run": other.run}
            await other.add([entry(0, page_id=f"{one}", simhash=one, digest=one, **same) for one in new])
            there += new
            rng.shuffle(there)
            out = [there.pop() for _ in range(min(len(there), rng.randrange(12 if step % 20 else 400)))]
            await other.forget([f"{one}" for one in out])
            gone += out
            for pages, status in ((there, "duplicate"), (gone, "new")):
                for one in rng.sample(pages, min(len(pages), 2)):
                    differing = sum(1 << below + rng.randrange(16) for below in (0, 16, 32))
                    copy = fingerprint_of(one ^ differing, 1)  # only their first blocks are equal
                    assert (await index.claim("copy", "http://copy/", copy)).status == status
                    await index.release("copy")


@driven
async def test_a_copy_that_ends_with_a_gap_is_not_continued_at_another_gap(
    address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page 41, the last, leaves a gap, which is there no more when 12 is taken out; then 45 leaves one in its place."""
    limit(monkeypatch, MAX_HERE=0, CROWD=0)
    rng = random.Random(1)
    same = {"sketch": fingerprint_of(0).sketch, "digest": 0}
    async with opened(address, namespace) as index, opened(address, namespace) as other:
        entries = {n: entry(n, simhash=rng.getrandbits(48), run=other.run, **same) for n in range(1, 46)}

        async def found_like(n: int) -> str | None:
            copy = fingerprint_of(
                entries[n].simhash ^ 1 << 40 ^ 1 << 24 ^ 1 << 8, 1
            )  # only the first block is equal
            return (await index.claim("copy", "http://copy/", copy)).of

        await other.add([entries[n] for n in range(1, 42)])
        await other.forget(["id 41"])
        assert await found_like(40) == entries[40].url
        await other.forget(["id 12"])
        await other.add([entries[44], entries[45]])
        await other.forget(["id 45"])
        assert await found_like(44) == entries[44].url


@driven
async def test_entries_that_are_taken_out_of_a_large_bucket_leave_gaps_for_a_while(server: Server) -> None:
    """A bucket of 100 pages in one block, of which more and more are forgotten."""
    rng = random.Random(1)
    entries = [entry(n, simhash=rng.getrandbits(48)) for n in range(100)]
    key = f"shingleback:{{test}}:t:{len(EXACT)}:0"
    async with opened(server.address) as index:
        await index.add(entries)
        assert server.client.strlen(key) == 1200
        sizes = set()
        while entries:
            forgotten = [entries.pop(rng.randrange(len(entries))) for _ in range(20)]
            assert await index.forget([one.page_id for one in forgotten]) == 20
            sizes.add(server.client.strlen(key) // 12 - len(entries))
            assert (await surveyed(index))[1] == []
            for one in rng.sample(entries, min(5, len(entries))):
                copy = await index.claim("copy", "http://copy/", fingerprint_of(one.simhash))
                assert copy.status == "new"  # of another sketch
                await index.release("copy")
                assert await index.find(one.page_id) == one
            assert [await index.find(one.page_id) for one in forgotten] == [None] * 20
        assert max(sizes) < 30
        assert server.client.keys("shingleback:{test}:[pit]:*") == []


@driven
async def test_an_index_that_has_given_out_all_numbers_files_no_more(server: Server) -> None:
    async with opened(server.address) as index:
        server.client.set("shingleback:{test}:sequence", 2**32 - 3)
        assert (await index.claim("a", "http://a/", fingerprint_of(1))).status == "new"
        before = server.contents()
        for _ in range(2):
            with pytest.raises(IndexUnavailableError, match="is full"):
                await index.claim("b", "http://b/", fingerprint_of(ALL_BITS))
            with pytest.raises(IndexUnavailableError, match="is full"):
                await index.add([entry(1)])
        assert server.contents() == before
        assert (await index.claim("twin", "http://twin/", fingerprint_of(1))).of == "http://a/"
