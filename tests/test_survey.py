"""Surveys: what is stored, looked at without opening it, and found sound where nothing is wrong."""

import asyncio
import os
import random
from pathlib import Path

import pytest
import redis

from dedup.fingerprint.detector import Detector
from dedup.index import Index
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.model import crawl_of_verbs
from tests.support.stores import ODD_IDS, PERSISTENT, opened_at, until_done
from tests.support.surveys import entry, surveyed, unopened
from tests.support.waiting import until


@PERSISTENT
@driven
async def test_of_nothing_there_is_no_survey_and_looking_makes_nothing(
    address: str, namespace: str, store: str, tmp_path: Path
) -> None:
    async with unopened(address, namespace=namespace) as index:
        assert await index.survey() is None
    assert os.listdir(tmp_path) == []
    if store == "redis":
        with redis.Redis(unix_socket_path=address.removeprefix("unix://")) as client:
            assert client.keys(f"shingleback:{{{namespace}}}:*") == []


#: Pages of the next test.
CLAIMS = 50


@PERSISTENT
@driven
async def test_a_survey_gives_what_was_claimed_in_the_order_of_claims_and_finds_nothing(
    address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More are claimed than are read at once.
    monkeypatch.setattr("dedup.index.redis.reading.batches.__defaults__", (20,))
    async with opened_at(address, namespace=namespace) as index:
        for number in range(CLAIMS):
            await index.claim(
                f"{number}", f"http://{number}/", fingerprint_of(random.Random(number).getrandbits(64))
            )
            await index.confirm(f"{number}")
        run = index.run
    async with unopened(address, namespace=namespace) as index:
        pages, findings = await surveyed(index)
    assert findings == []
    assert {state for _, state in pages} == {"done"}
    entries = [filed for filed, _ in pages if filed]
    assert [filed.page_id for filed in entries] == [f"{number}" for number in range(CLAIMS)]
    assert {filed.run for filed in entries} == {run}
    assert [filed.simhash for filed in entries] == [
        random.Random(number).getrandbits(64) for number in range(CLAIMS)
    ]


#: Each store with one scope; the other pairs are long runs.
SCOPES = [
    pytest.param(
        store, scope, marks=[pytest.mark.slow] * ((store, scope) not in {("file", "all"), ("redis", "host")})
    )
    for store in ("file", "redis")
    for scope in ("all", "host", "site")
]


@pytest.mark.parametrize(("store", "scope"), SCOPES)
@driven
async def test_a_survey_of_any_crawl_finds_nothing(address: str, namespace: str, scope: str) -> None:
    async with opened_at(address, namespace=namespace, scope=scope) as index:
        for number, page_id in enumerate(ODD_IDS.values()):
            await index.claim(page_id, "http://odd/", fingerprint_of(random.Random(number).getrandbits(64)))
            await index.confirm(page_id)
        for verb, *arguments in crawl_of_verbs(seed=11, claims=90):
            await getattr(index, verb)(*arguments)
        async with unopened(address, namespace=namespace, scope=scope) as beside:  # while it is open
            pages, findings = await surveyed(beside)
    assert findings == []
    assert all(filed for filed, _ in pages)
    async with unopened(address, namespace=namespace, scope=scope) as index:
        pages, findings = await surveyed(index)
        assert (len(pages), findings) == (len({filed.page_id for filed, _ in pages if filed}), [])
        assert len(pages) > 24


@pytest.mark.parametrize("method", ["minhash", "supershingle"])
@PERSISTENT
@driven
async def test_a_survey_of_methods_with_bands_is_clean(address: str, namespace: str, method: str) -> None:
    detector = Detector(method=method, min_tokens=3)
    async with opened_at(address, detector, namespace=namespace) as index:
        for number in range(12):
            words = " ".join(f"word{number}-{place}" for place in range(40))
            await index.claim(f"{number}", f"http://{number}/", detector.fingerprint(f"<p>{words}"))
            await index.confirm(f"{number}")
    async with unopened(address, detector, namespace=namespace) as index:
        pages, findings = await surveyed(index)
    assert findings == []
    assert {len(filed.bands) for filed, _ in pages if filed} == {
        len(detector.fingerprint("<p>a b c d").bands)
    }


@driven
async def test_a_survey_tells_the_states_of_pages(redis_socket: Path, namespace: str) -> None:
    address = f"unix://{redis_socket}"
    async with opened_at(address, namespace=namespace) as one, opened_at(address, namespace=namespace) as two:
        for number, index in enumerate((one, one, two)):
            await index.claim(f"{number}", f"http://{number}/", fingerprint_of(0xFFFF << 16 * number))
        await one.confirm("0")
        await until_done(one, ["0"])
        with redis.Redis(unix_socket_path=str(redis_socket)) as client:
            client.zadd(f"shingleback:{{{namespace}}}:runs", {two.run: 1})
        pages, findings = await surveyed(one)
        assert [(filed and filed.page_id, state) for filed, state in pages] == [
            ("0", "done"),
            ("1", "pending"),
            ("2", "dead"),
        ]
        assert findings == []


@pytest.mark.parametrize("surveys", [2, pytest.param(20, marks=pytest.mark.slow)])
@PERSISTENT
@driven
async def test_a_survey_during_a_crawl_finds_nothing(address: str, namespace: str, surveys: int) -> None:
    """Pages come, are confirmed, released and forgotten while each of many surveys is taken."""
    stop, written = asyncio.Event(), 0

    async def write(index: Index) -> None:
        nonlocal written
        rng, number = random.Random(3), 0
        while not stop.is_set():
            number += 1
            await index.claim(f"{number}", f"http://{number}/", fingerprint_of(rng.getrandbits(64)))
            await getattr(index, rng.choice(["confirm", "release"]))(f"{number - rng.randrange(5)}")
            if number % 5 == 0:
                await index.forget([f"{rng.randrange(number)}"])
            written = number
            await asyncio.sleep(0)

    async with opened_at(address, namespace=namespace) as index:
        await index.add([entry(number) for number in range(100)])
        writer = asyncio.create_task(write(index))
        async with unopened(address, namespace=namespace) as beside:
            for survey in range(1, surveys + 1):
                pages, findings = await surveyed(beside)
                assert findings == []
                assert len(pages) >= 100
                await until(lambda survey=survey: written > 10 * survey or writer.done())  # type: ignore[misc]
        stop.set()
        await writer
