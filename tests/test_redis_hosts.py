"""The index in Redis judges by what is a page's own as the one in memory does, and crawlers share what they learn."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from dedup.fingerprint.chrome import COPIES, KNOWN, Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.evidence import Evidence
from dedup.fingerprint.features import Features
from dedup.fingerprint.fingerprint import UNCALLED, Called, Fingerprint, Own
from dedup.fingerprint.shingles import ascending
from dedup.index import Index, Verdict
from dedup.index.redis import hosts as shared
from dedup.index.redis.hosts import SharedHosts, pack_table, unpack_table
from dedup.index.redis.index import RedisIndex
from dedup.page.siblings import apart
from tests.support.coroutines import driven
from tests.support.fingerprints import Claim
from tests.support.pages.prose import Prose
from tests.support.redis import Server
from tests.support.stores import opened, opened_at
from tests.support.waiting import until


def shop(name: str, seed: int, products: int = 21) -> Iterator[tuple[str, str]]:
    """Addresses and HTML of products in large chrome; some come again with another counter, some from a mirror."""
    rng = random.Random(seed)
    prose = Prose(rng)
    menu = f"<nav>{prose.text(150)}</nav>" if seed % 2 else f"<div>{prose.text(150)}</div>"
    for product in range(products):
        title, text = prose.text(3), prose.text(rng.choice((10, 40, 120)))
        word = "".join(rng.choices("abcdefgh", k=6))
        for copy in range(1 + product % 3):
            host = f"mirror.{name}" if product % 7 == 6 else name
            named = f"{word}.html" if product % 2 else f"{product}"
            yield (
                f"http://{host}/p/{named}?{copy}" if copy else f"http://{host}/p/{named}",
                f"<title>{title} {word if product % 4 else ''}</title>{menu}<p>{text}<p>seen {rng.randrange(9999)} times",
            )


def claims_of_shops(detector: Detector, shops: int = 4) -> list[Claim]:
    found = [page for seed in range(shops) for page in shop(f"shop{seed}.example", seed)]
    random.Random(5).shuffle(found)
    return [(f"{n}", url, detector.fingerprint(html, url)) for n, (url, html) in enumerate(found)]


def told(verdict: Verdict) -> tuple[object, ...]:
    """A verdict with what takes no part in its being equal to another."""
    return verdict, verdict.of_id, verdict.evidence, verdict.near


async def judged(index: Index, claims: list[Claim]) -> list[tuple[object, ...]]:
    return [told(await index.claim(*claim)) for claim in claims]


@pytest.mark.parametrize("method", ["simhash", "minhash"])
@driven
async def test_redis_judges_shops_as_memory_does(server: Server, method: str) -> None:
    detector = Detector(method=method)
    claims = claims_of_shops(detector, shops=2)
    async with opened_at("memory:", detector) as memory, opened(server.address, detector=detector) as shop:
        expected = await judged(memory, claims)
        assert await judged(shop, claims) == expected
    assert {told[0].status for told in expected} == {"new", "duplicate"}  # type: ignore[attr-defined]


def random_claims(detector: Detector, seed: int, number: int) -> list[Claim]:
    """Claims of fingerprints whose every part is drawn: shingles, names, headings, places, hosts."""
    rng = np.random.default_rng(seed)
    common = rng.integers(0, 2**63, 300, np.uint64)
    families = [
        np.concatenate((common, rng.integers(0, 2**63, size, np.uint64)))
        for size in (5, 20, 60, 200, 800)
        for _ in range(6)
    ]
    choose = random.Random(seed).choice
    found = []
    for n in range(number):
        values = choose((common, choose(families), choose(families))).copy()
        changed = rng.random(len(values)) < choose((0.0, 0.004, 0.02, 0.05, 0.1, 0.15))
        values[changed] = rng.integers(0, 2**63, int(changed.sum()), np.uint64)
        values = ascending(values[rng.random(len(values)) >= choose((0.0, 0.0, 0.1))] * np.uint64(2))
        called = Called(choose((0, 1, 2, 1 << 40)), choose((0, 5, 6)))
        page = Fingerprint(
            choose((0, 1, 3)), detector.sketcher.pack(values), 100, 0, digest=n, called=called, own=Own(values),
            markup=choose((0, 0, 0, 7, 8)),
        )  # fmt: skip
        url = choose(
            (
                "http://a.example/", "HTTP://u:p@A.example/", "http://www.a.example/?ref=1",
                "http://a.example/?utm_source=1", "http://a.example/?ref=2", "http://a.example/other/?id=7",
                "http://a.example/other/?id=8", "http://b.example:80/", "http://c.example?", "/x", "",
            )
        )  # fmt: skip
        found.append((f"{n}", url, page))
    return found


@pytest.mark.parametrize(
    ("seed", "bits"), [(0, 2), pytest.param(1, 4, marks=pytest.mark.slow), (2, 8)]
)  # and each threshold
@driven
async def test_redis_judges_whatever_it_is_told_as_memory_does(
    server: Server, bits: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way to decide is taken by each seed."""
    taken = set()
    decide = Evidence.suffices

    def suffices(evidence: Evidence, least: float) -> bool:
        taken.add((evidence.siblings, decide(evidence, least)))
        return decide(evidence, least)

    monkeypatch.setattr(Evidence, "suffices", suffices)
    detector = Detector(features=Features(slots=256, bits=bits))
    claims = random_claims(detector, seed, 150 if seed == 1 else 110)
    options = {"detector": detector, "min_containment": (0.6, 0.85, 0.9)[seed % 3]}
    async with opened_at("memory:", **options) as memory, opened(server.address, **options) as index:  # type: ignore[arg-type]
        expected = await judged(memory, claims)
        assert await judged(index, claims) == expected
    assert taken >= {(False, True), (False, False), (True, False)}


@driven
async def test_what_is_learned_of_a_host_outlives_the_run_and_reaches_other_crawlers(server: Server) -> None:
    detector = Detector()
    pages = [claim for claim in claims_of_shops(detector) if claim[1].startswith("http://shop1.example")]
    async with (
        opened(server.address, detector=detector) as one,
        opened(server.address, detector=detector) as other,
    ):
        assert isinstance(one, RedisIndex)
        kept = [claim for claim in pages if (await one.claim(*claim)).status == "new"]
        assert len(kept) > 2 * KNOWN
        await one.claim(*pages[0])

        async def known() -> bool:
            return server.client.zcard("shingleback:{test}:hosts") == 1

        await until(known)
        verdict = await other.claim(
            "copy", f"{kept[0][1].partition('?')[0]}?ref=1", replace(kept[0][2], digest=1)
        )
        assert (verdict.status, verdict.evidence is not None) == ("duplicate", True)
    async with opened(server.address, detector=detector) as third:
        survey = await third.survey()
        assert survey is not None
        hosts = [found async for found in survey.hosts()]
        assert {name: table.pages for name, table in hosts if table} == {"shop1.example": len(kept)}
        assert [finding async for finding in survey.findings()] == []


@driven
async def test_what_two_crawlers_learn_at_once_is_counted_once_each(server: Server) -> None:
    detector = Detector()
    claims = random_claims(detector, 3, 60)
    claims = [
        (f"{n}", "http://a.example/", replace(page, simhash=n * 2**40 * 977, called=UNCALLED))
        for n, (_, _, page) in enumerate(claims)
    ]
    async with (
        opened(server.address, detector=detector) as one,
        opened(server.address, detector=detector) as other,
    ):
        for number, claim in enumerate(claims):
            await (one, other)[number % 2].claim(*claim)
        filed = await one.count()
    (key,) = server.client.keys("shingleback:{test}:h:*")
    name, table = unpack_table(server.client.get(key))
    assert (name, table.pages) == ("a.example", filed)


@driven
async def test_a_table_that_was_written_while_it_was_read_is_known_better(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = Detector()
    pages = [page for _, _, page in random_claims(detector, 3, KNOWN)]
    async with opened(server.address, detector=detector) as index:
        assert isinstance(index, RedisIndex)
        hosts = index.hosts
        assert hosts is not None
        read = index._server.values

        async def read_late(keys: list[bytes]) -> object:
            found = await read(keys)
            await hosts.flush()
            return found

        monkeypatch.setattr(index._server, "values", read_late)
        for number, page in enumerate(pages):
            hosts.learn_kept(page, "http://a.example/")
            await hosts.bring(["http://a.example/"])
            assert hosts.table("a.example").pages == number + 1


@driven
async def test_which_folders_hold_copies_is_shared_and_outlives_what_others_write(server: Server) -> None:
    detector, (a, b) = Detector(), ("http://a.example", "http://a.example/print")
    first, *pages = [page for _, _, page in random_claims(detector, 3, KNOWN + 1)]
    async with (
        opened(server.address, detector=detector) as one,
        opened(server.address, detector=detector) as other,
    ):
        assert isinstance(one.hosts, SharedHosts)
        assert isinstance(other.hosts, SharedHosts)
        for page in pages:
            one.hosts.learn_kept(page, f"{a}/")
        await one.hosts.flush()
        for number in range(COPIES):
            one.hosts.learn_near(f"{a}/p/{number}", f"{b}/p/{number}", Evidence(9, 0, 0))
        await other.hosts.bring([a])
        other.hosts.learn_kept(first, f"{a}/")
        await other.hosts.flush()
        await one.hosts.flush()
        found = apart(f"{a}/p/7", f"{b}/p/7")
        assert found is not None
        (parts,) = found.parts
        assert one.hosts.table("a.example").has_copies(parts)
    async with opened(server.address, detector=detector) as later:
        assert later.hosts is not None
        await later.hosts.bring([a])
        assert later.hosts.table("a.example").has_copies(parts)


@driven
async def test_of_too_many_tables_the_oldest_goes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MAX_TABLES", 3)
    detector = Detector()
    for number, (page_id, _, page) in enumerate(random_claims(detector, 3, 5)):
        async with opened(server.address, detector=detector) as index:
            far = replace(page, simhash=number * 0x1111111111111111)
            await index.claim(page_id, f"http://{number}.example/", far)
        now = server.client.time()[1] // 1000
        await until(
            lambda now=now: server.client.time()[1] // 1000 != now
        )  # tables are ordered by milliseconds
    tables = [unpack_table(server.client.get(key))[0] for key in server.client.keys("*:h:*")]
    assert sorted(tables) == ["2.example", "3.example", "4.example"]
    assert server.client.zcard("shingleback:{test}:hosts") == 3


def test_a_table_that_is_torn_is_none() -> None:
    octets = pack_table(b"version ", "example.org", Chrome())
    for stored in [*(octets[:cut] for cut in range(0, len(octets), 9)), octets + b"x"]:
        with pytest.raises(ValueError, match=r"table|stream|header|decompress|incomplete"):
            unpack_table(stored)


@driven
async def test_the_check_names_tables_that_can_not_be_read(server: Server) -> None:
    detector = Detector()
    async with opened(server.address, detector=detector) as index:
        for page_id, url, page in random_claims(detector, 3, 20):
            await index.claim(page_id, url, page)
    one, another, *_ = sorted(server.client.keys("shingleback:{test}:h:*"))
    octets = server.client.get(one)
    server.client.set(one, octets[:-5])
    server.client.zrem("shingleback:{test}:hosts", another.removeprefix(b"shingleback:{test}:h:"))
    async with opened(server.address, detector=detector) as index:
        survey = await index.survey()
        assert survey is not None
        kinds = sorted([finding.kind async for finding in survey.findings()])
        assert kinds == ["tables of hosts that are not listed", "unreadable tables of hosts"]
        assert None in [found.table async for found in survey.hosts()]
