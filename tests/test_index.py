"""The contract of an index, read over each store: in memory, in a file, in Redis.

Most pages here are made of a chosen simhash and sketch instead of HTML, so that every distance and
resemblance is known.  `Model` is the contract spelled out: a list of kept pages, compared one by one.
"""

import asyncio
import functools
import math
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec import structs

from dedup.errors import DedupError, IndexMismatchError, SettingsError
from dedup.fingerprint import detector
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.features import Features
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.plans import plan_for, possible_plans
from dedup.index import STORES, Index, Store, Verdict, open_index
from dedup.index.entry import scope_mask
from dedup.settings import SETTINGS
from tests.support.cluster import Cluster
from tests.support.coroutines import driven
from tests.support.fingerprints import ALL_BITS, fingerprint_of, flip
from tests.support.model import GROUPS, Model, crawl_of_verbs
from tests.support.stores import DETECTOR, ODD_IDS, PERSISTENT, RUN, opened_at
from tests.support.waiting import until

Opened = Callable[..., AbstractAsyncContextManager[Index]]


@pytest.fixture(params=["memory", "file", "redis", "documented"])
def store(request: pytest.FixtureRequest) -> str:
    """Each kind of index in turn, and the one that CONTRIBUTING.md tells of."""
    return str(request.param)


@pytest.fixture
def address(store: str, address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty index."""
    if store != "documented":
        return address
    monkeypatch.setitem(STORES, "dict", Store("dict:", "tests.support.dict_store:DictIndex"))
    return "dict:"


@pytest.fixture
def opened(address: str, namespace: str) -> Opened:
    """Opens the index of the test, as often as need be, and closes it again."""
    return functools.partial(opened_at, address, namespace=namespace)


@pytest.fixture
def contents(
    store: str, address: str, namespace: str, request: pytest.FixtureRequest
) -> Callable[[], object]:
    """Takes down, byte for byte, what a closed index has stored."""

    def contents() -> object:
        path = address.partition(":")[2]
        if store == "file":
            return Path(path).read_bytes()
        with redis.Redis(unix_socket_path=path.removeprefix("//")) as client:
            return {key: client.dump(key) for key in client.keys(f"shingleback:{{{namespace}}}:*")}

    return contents


# --- The verdict -------------------------------------------------------------------------------------


@driven
async def test_a_duplicate_names_the_first_page_and_how_near_it_is(opened: Opened) -> None:
    async with opened() as index:
        assert await index.claim("a", "http://a/", fingerprint_of(0xABC0)) == Verdict("new")
        verdict = await index.claim("b", "http://b/", fingerprint_of(0xABC3, changed=64))
        assert verdict == Verdict(
            "duplicate",
            of="http://a/",
            distance=2,
            resemblance=1 - 3 * 64 / 1024,
            of_simhash=0xABC0,
            rule="simhash",
        )


@driven
async def test_a_page_beyond_max_distance_is_new(opened: Opened) -> None:
    async with opened() as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        assert (await index.claim("b", "http://b/", fingerprint_of(0b0111))).status == "duplicate"
        assert (await index.claim("c", "http://c/", fingerprint_of(0b1111))).status == "new"


@pytest.mark.parametrize(("least", "near", "far"), [(0, 512, None), (0.7, 102, 103), (1, 0, 1)])
@driven
async def test_a_page_of_too_little_resemblance_is_new_however_near(
    opened: Opened, least: float, near: int, far: int | None
) -> None:
    async with opened(Detector(max_distance=3, min_resemblance=least)) as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        verdict = await index.claim("b", "http://b/", fingerprint_of(1, changed=near))
        assert (verdict.status, verdict.resemblance) == ("duplicate", max(0, 1 - 3 * near / 1024))
        if far is not None:
            assert (await index.claim("c", "http://c/", fingerprint_of(1, changed=far))).status == "new"


@driven
async def test_of_pages_equally_near_the_earliest_is_named(opened: Opened) -> None:
    async with opened() as index:
        for other in range(8):  # so that the numbers of the two have one digit and two
            await index.claim(
                f"other {other}", "http://other/", fingerprint_of(0xFF << 8 * other, changed=512)
            )
        await index.claim("earlier", "http://earlier/", fingerprint_of(0b000011))
        for other in range(3):
            await index.claim(
                f"more {other}", "http://other/", fingerprint_of(0xF0F << 8 * other, changed=256)
            )
        await index.claim("later", "http://later/", fingerprint_of(0b110000))
        assert (await index.claim("c", "http://c/", fingerprint_of(0))).of == "http://earlier/"


@driven
async def test_no_bit_of_an_extreme_simhash_is_lost(opened: Opened) -> None:
    async with opened(Detector(max_distance=1, min_resemblance=0)) as index:
        for simhash in (0, 1, 2**53 + 1, 2**63, 2**63 + 12345, ALL_BITS - 1, ALL_BITS):
            await index.claim("a", "http://a/", fingerprint_of(simhash))
            for bit in (0, 31, 32, 52, 53, 63):
                verdict = await index.claim("b", "http://b/", fingerprint_of(simhash ^ 1 << bit))
                assert (verdict.distance, verdict.of_simhash) == (1, simhash)
            for name, other in ("c", 3), ("d", ALL_BITS):
                assert (await index.claim(name, "http://c/", fingerprint_of(simhash ^ other))).status == "new"
            for name in "acd":
                await index.release(name)


@driven
async def test_a_page_that_cannot_be_judged_is_kept_and_not_filed(opened: Opened) -> None:
    pages = {
        "empty": DETECTOR.fingerprint("<!-- nothing --><title></title>"),
        "short": DETECTOR.fingerprint("<p>Not found"),
        "binary": DETECTOR.fingerprint(b"\x89PNG\r\n\x1a\n" + bytes(range(32)) * 30),
        "truncated": DETECTOR.fingerprint("<div>" * 5000 + "some words " * 100),
    }
    async with opened() as index:
        await index.claim("filed", "http://filed/", fingerprint_of(0))
        for reason, fingerprint in (
            *pages.items(),
            ("short", structs.replace(fingerprint_of(0), reason="short")),
        ):
            for page_id in ("a", "b", "a"):
                verdict = await index.claim(page_id, "http://a/", fingerprint)
                assert verdict == Verdict("unjudged", reason=reason)
                await index.confirm(page_id)
        assert await index.count() == 1


@driven
async def test_a_fingerprint_of_another_kind_is_refused_when_it_is_taken(opened: Opened) -> None:
    made = fingerprint_of(0)
    async with opened() as index:
        for wrong, says in (
            (structs.replace(made, sketch=made.sketch[:-8]), "its sketch has 128 bytes instead of 136"),
            (structs.replace(made, bands=(1,)), "it has 1 bands instead of 0"),
        ):
            with pytest.raises(
                ValueError, match=rf"^the page a can't be filed: {says}; make its fingerprint with "
            ):
                await index.claim("a", "http://a/", wrong)
        assert (await index.claim("a", "http://a/", made)).status == "new"
        await index.confirm("a")
        entry = await index.find("a")
        assert entry is not None
        with pytest.raises(ValueError, match="its sketch has 0 bytes instead of 136"):
            await index.add([entry._replace(page_id="b", sketch=b"")])
        assert await index.count() == 1
    async with opened() as index:
        assert await index.count() == index.persistent


#: How many pages have neighbours.
CENTRES = 6


def planted(k: int, seed: int) -> Iterator[tuple[str, str, Fingerprint]]:
    """Pages with neighbours planted at 0 to k + 2 bits, alike and less alike, in random order."""
    rng = random.Random(seed)
    pages = [
        fingerprint_of(flip(centre, distance, rng), changed=rng.choice([0, 30, 60, 90, 120, 300]))
        for centre in (rng.getrandbits(64) for _ in range(CENTRES))
        for distance in (0, *range(k + 3))
    ]
    rng.shuffle(pages)
    for number, fingerprint in enumerate(pages):
        yield f"page {number}", f"http://example.org/{number}", fingerprint


PLANS = [
    (k, plans[place].size)
    for k, plans in ((k, possible_plans(k)) for k in range(8))
    for place in sorted({0, len(plans) // 2, len(plans) - 1})
]


#: Of each store a few: tests/test_tables.py has every plan in memory, tests/test_redis_buckets.py each k in Redis.
STORED = [
    pytest.param(
        store, *plan, marks=[pytest.mark.slow] * (plan[0] not in ({3} if store == "file" else {0, 3, 7}))
    )
    for store in ("memory", "file", "redis")
    for plan in PLANS
]


@pytest.mark.parametrize(("store", "k", "tables"), STORED)
@driven
async def test_every_plan_has_the_verdicts_of_comparing_all(opened: Opened, k: int, tables: int) -> None:
    detector = Detector(max_distance=k, min_resemblance=0.7)
    model = Model(detector)
    async with opened(detector, tables=tables) as index:
        for claim in planted(k, seed=100 * k + tables):
            assert await index.claim(*claim) == model.claim(*claim)
    assert index.plan == plan_for(tables, k)
    assert CENTRES <= len(model.kept) < CENTRES * (k + 4)


@pytest.mark.parametrize(
    ("scope", "claims"),
    [("host", 90), *(pytest.param(scope, 200, marks=pytest.mark.slow) for scope in ("all", "site"))],
)
@driven
async def test_all_stores_agree_verdict_for_verdict(
    scope: str, claims: int, tmp_path: Path, redis_socket: Path, cluster_of_all: Cluster, namespace: str
) -> None:
    addresses = (
        "memory:",
        f"file:{tmp_path / 'index.sqlite'}",
        f"unix://{redis_socket}",
        cluster_of_all.address,
    )
    model = Model(DETECTOR, GROUPS[scope])
    seen: Counter[str] = Counter()
    urls: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        indexes = [
            await stack.enter_async_context(opened_at(address, namespace=namespace, scope=scope))
            for address in addresses
        ]
        for verb, page_id, *page in crawl_of_verbs(seed=7, claims=claims):
            if page:  # in a cluster, a page that changes its host is in both
                page[0] = urls.setdefault(page_id, page[0])
            arguments = page_id, *page
            right = getattr(model, verb)(*arguments)
            for index in indexes:
                assert await getattr(index, verb)(*arguments) == right, index.where
            if right:
                seen[right.status] += 1
        for index in indexes:
            assert await index.count() == len(model.kept)
    assert seen.total() == claims
    assert min(seen["new"], seen["same"], seen["duplicate"]) > claims / 32, seen


# --- The same page again -----------------------------------------------------------------------------


@driven
async def test_a_changed_page_is_the_same_even_if_it_is_now_like_another(opened: Opened) -> None:
    async with opened() as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        await index.claim("b", "http://b/", fingerprint_of(ALL_BITS))
        for _ in range(2):
            assert await index.claim("a", "http://a/", fingerprint_of(ALL_BITS)) == Verdict("same")
            assert await index.claim("a", "http://a/", fingerprint_of(0xF0F0)) == Verdict("same")
            await index.confirm("a")


# --- Pending, done, released -------------------------------------------------------------------------


@driven
async def test_a_confirmed_page_stays_done_when_it_is_released_or_fails_later(opened: Opened) -> None:
    async with opened() as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        await index.confirm("a")
        await index.release("a")
        verdict = await index.claim("a", "http://a/", fingerprint_of(0))  # the confirmation is on its way
        assert verdict == Verdict("same")
        await index.release("a")
        assert (await index.claim("twin", "http://twin/", fingerprint_of(0))).of == "http://a/"


@driven
async def test_confirming_and_releasing_unknown_pages_is_harmless(opened: Opened) -> None:
    async with opened() as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        for page_id in ("unknown", "", "\ud800", "nul\0"):
            await index.confirm(page_id)
            await index.release(page_id)
        for _ in range(2):
            await index.confirm("a")
        assert await index.count() == 1
        assert (await index.claim("twin", "http://twin/", fingerprint_of(0))).of == "http://a/"


@PERSISTENT
@driven
async def test_confirmed_pages_judge_those_of_the_same_run_when_it_goes_on(opened: Opened) -> None:
    pages = [fingerprint_of(random.Random(number).getrandbits(64), changed=number) for number in range(64)]
    async with opened(run=RUN) as index:
        for number, fingerprint in enumerate(pages):
            assert (await index.claim(str(number), f"http://{number}/", fingerprint)).status == "new"
            await index.confirm(str(number))
    async with opened(run=RUN) as index:
        assert await index.count() == 64
        for number, fingerprint in enumerate(pages):
            near = structs.replace(fingerprint, simhash=fingerprint.simhash ^ 1 << number, digest=0)
            verdict = await index.claim(f"near {number}", "http://near/", near)
            assert verdict == Verdict(
                "duplicate", f"http://{number}/", 1, 1.0, of_simhash=fingerprint.simhash, rule="simhash"
            )


@driven
async def test_closing_twice_or_unopened_is_harmless(address: str, namespace: str) -> None:
    index = open_index(address, DETECTOR, namespace=namespace)
    await index.close()
    await index.open()
    await index.close()
    await index.close()


@PERSISTENT
@pytest.mark.parametrize(("fails", "state"), [(False, "safe"), (True, "earlier")])
@driven
async def test_a_with_block_opens_an_index_and_finishes_it_unless_it_fails(
    fails: bool, state: str, opened: Opened, address: str, namespace: str
) -> None:
    async with opened() as other:
        with suppress(ZeroDivisionError):
            async with open_index(address, DETECTOR, namespace=namespace) as index:
                await index.claim("a", "http://a/", fingerprint_of(0))
                await index.confirm("a")
                assert 1 / (not fails)
        assert await other.states(["a"]) == [state]


@driven
async def test_a_closed_index_gives_no_wrong_verdict(opened: Opened) -> None:
    async with opened() as index:
        await index.claim("pending", "http://pending/", fingerprint_of(0))
        await index.claim("done", "http://done/", fingerprint_of(ALL_BITS))
        await index.confirm("done")
    try:  # either it says that it is closed, or it starts from what is stored
        verdicts = [
            await index.claim("done", "http://done/", fingerprint_of(ALL_BITS)),
            await index.claim("twin", "http://twin/", fingerprint_of(ALL_BITS)),
            await index.claim("a", "http://a/", fingerprint_of(0)),
            await index.claim("b", "http://b/", fingerprint_of(0xFFFFFFFF)),
        ]
    except DedupError:
        return
    finally:
        await index.close()
    forgotten, stored = Verdict("new"), Verdict("same")
    assert verdicts[0] in (forgotten, stored)
    assert verdicts[1] == Verdict("duplicate", "http://done/", 0, 1.0, of_simhash=ALL_BITS, rule="exact")
    assert verdicts[2:] == [Verdict("new"), Verdict("new")]


@pytest.mark.parametrize("is_open", [True, False], ids=["opened", "opened by the first claim"])
@driven
async def test_a_closed_index_leaves_no_task_behind(address: str, namespace: str, is_open: bool) -> None:
    index = open_index(address, DETECTOR, namespace=namespace)
    if is_open:
        await index.open()
    await asyncio.gather(
        *(index.claim(str(number), "http://a/", fingerprint_of(number)) for number in range(20))
    )
    await index.confirm("0")
    await index.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@driven
async def test_who_waits_for_a_sign_of_life_gets_one(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease ends later then; unless it can't die unnoticed."""
    monkeypatch.setattr("dedup.index.redis.session.LEASE_MS", 3_000)
    async with opened() as one, opened() as another:
        assert await one.leases([one.run]) == [math.inf]
        (first,) = await one.leases([another.run])

        async def is_alive() -> bool:
            (now,) = await one.leases([another.run])
            return now > first or now == math.inf

        await until(is_alive)
        assert one.is_shared == (first < math.inf)
        await another.close()
        assert await one.leases([another.run]) == [math.inf]
        if one.is_shared:
            assert await one.leases(["0" * 32]) == [0.0]


# --- Scope -------------------------------------------------------------------------------------------


# Two URLs, and the scopes in which their pages are compared.
PAIRS = [
    ("http://example.org/a", "https://example.org/b?c#d", "all host site"),
    ("http://example.org/", "http://user:password@EXAMPLE.org/", "all host site"),
    ("http://example.org:8080/a", "http://example.org:8080/b", "all host site"),
    ("http://a.example.org/", "http://b.example.org/", "all site"),
    ("http://a.example.co.uk/", "http://b.example.co.uk/", "all site"),
    ("http://a.example.org:8080/", "http://b.example.org/", "all site"),
    ("http://example.co.uk/", "http://other.co.uk/", "all"),
    ("http://example.org/", "http://example.com/", "all"),
    ("http://192.0.2.1/a", "http://192.0.2.1/b", "all host site"),
    ("http://192.0.2.1/", "http://192.0.2.2/", "all"),
    ("http://[2001:db8::1]/", "http://[2001:db8::2]/", "all"),
    ("http://localhost/", "http://intranet/", "all"),
    ("http://räksmörgås.example/", "http://smörgås.example/", "all"),
]


@pytest.mark.parametrize("scope", ["all", "host", "site"])
@driven
async def test_pages_are_compared_within_their_scope_only(opened: Opened, scope: str) -> None:
    async with opened(scope=scope) as index:
        for number, (url, other, shared) in enumerate(PAIRS):
            fingerprint = fingerprint_of(random.Random(number).getrandbits(64))
            await index.claim(f"{number}", url, fingerprint)
            verdict = await index.claim(f"other {number}", other, fingerprint)
            right = Verdict("duplicate", url, 0, 1.0, of_simhash=fingerprint.simhash, rule="exact")
            assert verdict == (right if scope in shared.split() else Verdict("new")), (url, other)


@pytest.mark.parametrize("scope", ["host", "site"])
@driven
async def test_scopes_are_not_compared_even_where_they_meet_in_the_tables(opened: Opened, scope: str) -> None:
    one, another = "http://one.example/", "http://another.example/"
    async with opened(Detector(max_distance=3, min_resemblance=0), scope=scope) as index:
        await index.claim("a", one, fingerprint_of(5))
        meeting = 5 ^ scope_mask(scope, one) ^ scope_mask(scope, another)  # the tables hold simhash ^ mask
        assert await index.claim("b", another, fingerprint_of(meeting)) == Verdict("new")


BAD_URLS = [
    "", "http://[", "http://[::1", "http://]/", "http://a:port/", "http:///nothing", "mailto:somebody",
    "http://a/\nb", "http://a\0b/", "http://\ud800/", "http://" + "a" * 300 + ".example/",
    "http://a..example./", "http://%zz/", "http://\u202eexample.org/", "http://xn--/",
    "http://example.org/" + "x" * 100_000, "http://" + "a." * 50_000 + "example/",
]  # fmt: skip


@pytest.mark.parametrize(
    "scope", ["site", *(pytest.param(scope, marks=pytest.mark.slow) for scope in ("all", "host"))]
)
@driven
async def test_odd_urls_are_judged_like_others_and_come_back(opened: Opened, scope: str) -> None:
    async with opened(scope=scope) as index:
        for number, url in enumerate(BAD_URLS):
            fingerprint = fingerprint_of(random.Random(number).getrandbits(64))
            assert (await index.claim(f"{number}", url, fingerprint)).status == "new"
            await index.confirm(f"{number}")
            verdict = await index.claim(f"twin {number}", url, fingerprint)
            assert (verdict.status, verdict.of) == ("duplicate", url.replace("\ud800", "?"))


# --- Odd page ids ------------------------------------------------------------------------------------


@driven
async def test_odd_page_ids_are_told_apart_and_come_back(opened: Opened, store: str) -> None:
    async with opened() as index:
        for number, (name, page_id) in enumerate(ODD_IDS.items()):
            fingerprint = fingerprint_of(random.Random(number).getrandbits(64))
            assert (await index.claim(page_id, "http://a/", fingerprint)).status == "new", name
            assert (await index.claim(page_id, "http://a/", fingerprint)).status == "same", name
            if number % 2:
                await index.confirm(page_id)
            else:
                await index.release(page_id)
        assert await index.count() == len(ODD_IDS) // 2
    if store in {"memory", "documented"}:
        return
    async with opened() as index:
        for number, (name, page_id) in enumerate(ODD_IDS.items()):
            verdict = await index.claim(
                page_id, "http://a/", fingerprint_of(random.Random(number).getrandbits(64))
            )
            assert verdict.status == ("same" if number % 2 else "new"), name


@driven
async def test_odd_page_ids_are_those_of_verdicts_and_of_another_index(opened: Opened) -> None:
    async with opened() as index, opened_at("memory:") as other:
        for number, (name, page_id) in enumerate(ODD_IDS.items()):
            fingerprint = fingerprint_of(random.Random(number).getrandbits(64))
            await index.claim(page_id, "http://a/", fingerprint)
            assert (await index.claim("copy", "http://b/", fingerprint)).of_id == page_id, name
            entry = await index.find(page_id)
            assert entry
            assert await other.add([entry]) == 1
            assert await other.find(page_id) == entry, name
            assert await index.forget([page_id]) == 1


# --- Parameters --------------------------------------------------------------------------------------

CHANGES: dict[str, Any] = {
    "max_distance": 4, "min_resemblance": 0.8, "shingle_size": 5, "min_tokens": 49, "keep_urls": False,
    "hash_key": "tiptoe", "ignore": (".cookies",), "ignore_text": (r"\d+ visitors",), "method": "minhash",
    "features.slots": 1024, "features.bits": 4,
}  # fmt: skip


def changed(name: str, value: object) -> Detector:
    """The detector of these tests, with one parameter changed."""
    group, _, option = name.rpartition(".")
    if group == "features":
        return replace(DETECTOR, features=replace(DETECTOR.features, **{option: value}))
    return replace(DETECTOR, **{name: value})


def test_every_parameter_of_a_detector_is_among_those_changed_below() -> None:
    options = {option.name for option in fields(Detector) if option.init} - {"features"}
    options |= {f"features.{option.name}" for option in fields(Features)}
    of_other_methods = {"recall", "supershingle_size", "megashingle_size"}  # see test_methods.py
    assert options - set(CHANGES) == of_other_methods


@PERSISTENT
@driven
async def test_an_index_of_other_parameters_is_refused_and_left_as_it_is(
    opened: Opened, contents: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(run=RUN) as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        await index.confirm("a")
    before = contents()
    for name, value in CHANGES.items():
        other = changed(name, value)
        with pytest.raises(IndexMismatchError) as refusal:
            async with opened(other):
                pass
        assert contents() == before, name
        text = str(refusal.value)
        there, here = DETECTOR.parameters[name], other.parameters[name]
        assert all(part in text for part in (f" {name} ", repr(there), repr(here), index.where)), text
        assert "\n" not in text
        assert "tiptoe" not in text
    older, newer = detector.SCHEME, detector.SCHEME + 1
    monkeypatch.setattr(detector, "SCHEME", newer)
    said = f"an older version .* its scheme of fingerprints is {older}, and this one's is {newer}; "
    with pytest.raises(IndexMismatchError, match=said):
        async with opened():
            pass
    assert contents() == before
    monkeypatch.setattr(detector, "SCHEME", older)
    async with opened(run=RUN) as index:
        assert (await index.claim("twin", "http://twin/", fingerprint_of(0))).of == "http://a/"


@pytest.mark.parametrize(
    ("store", "name", "options", "there", "here"),
    [
        ("file", "scope", {"scope": "host"}, "'all'", "'host'"),
        ("redis", "scope", {"scope": "host"}, "'all'", "'host'"),
        ("redis", "tables", {"tables": 10}, "'4'", "'5'"),  # a file holds no tables
    ],
)
@driven
async def test_another_scope_or_an_explicit_other_plan_is_refused(
    opened: Opened, contents: Callable[[], object], name: str, options: dict[str, Any], there: str, here: str
) -> None:
    async with opened() as index:
        await index.claim("a", "http://a/", fingerprint_of(0))
        await index.confirm("a")
    before = contents()
    with pytest.raises(IndexMismatchError) as refusal:
        async with opened(**options):
            pass
    assert contents() == before
    assert all(part in str(refusal.value) for part in (f" {name} ", there, here))


@PERSISTENT
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"expected_pages": 10**9}, {"expected_pages": 10}),
        ({"tables": 10}, {"expected_pages": 10**12}),
        ({}, {"tables": 4}),
    ],
    ids=str,
)
@driven
async def test_another_guess_of_the_pages_to_come_changes_no_verdict(
    opened: Opened, first: dict[str, Any], second: dict[str, Any]
) -> None:
    model = Model(DETECTOR)
    claims = list(planted(k=3, seed=3))
    for options, part in ((first, claims[:24]), (second, claims[24:])):
        async with opened(**options, run=RUN) as index:
            for claim in part:
                assert await index.claim(*claim) == model.claim(*claim)
                await index.confirm(claim[0])
                model.confirm(claim[0])


# --- Wrong options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("scope", "page", "'all', 'host', 'site'"),
        ("expected_pages", 0, "from 1 to"),
        ("expected_pages", True, "a whole number"),
        ("tables", "4", "a whole number"),
        ("tables", 5, "4, 10, 16, 20"),
        ("namespace", "", "without braces"),
        ("namespace", "a{b}", "without braces"),
        ("namespace", "a\nb", "printable"),
        ("namespace", "\ud800", "printable"),
        ("namespace", None, "printable"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_allowed(name: str, value: object, allowed: str) -> None:
    for address in "memory:", "file:index.sqlite", "redis://127.0.0.1":
        with pytest.raises(SettingsError) as refusal:
            open_index(address, DETECTOR, **{name: value})
        text = str(refusal.value)
        assert all(part in text for part in (f"{name} is {value!r}", allowed)), text
        assert "\n" not in text


@pytest.mark.parametrize(
    "address",
    [
        "", "memory", "file", "file:", "memory:there", "sqlite:x", "http://host/", "index.sqlite", "redis",
        "redis:/x", "redis:host", "redis://[", "redis://host:port", "redis://host:99999",
        "redis+cluster:host", "redis+cluster://", "redis+cluster://host,", "redis+cluster://host:port",
        "redis+cluster://host:1,other:99999", "redis+cluster://host:1/3", "redis+cluster://host:1?unknown=1",
        "redis+sentinel://host:1", "FILE:x", None, 7,
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(address: Any) -> None:
    with pytest.raises(SettingsError, match=r"^index is ") as refusal:
        open_index(address, DETECTOR)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "redis://user:tiptoe@host:port/0", "redis://user:tiptoe@host:99999", "redis://user:tiptoe@[",
        "redis://user:tiptoe/through@host:6379", "redis://user:tiptoe?through@host:6379",
        "redis://user:tiptoe#through@host:6379", "redis:user:tiptoe@host", "redis:/user:tiptoe@host",
        "Redis://user:tiptoe@host", "http://user:tiptoe@host/", "user:tiptoe@host:6379", ":tiptoe@host",
        "redis://host:1?password=tiptoe", "unix:///socket?db=1&password=tiptoe",
        "redis+cluster://user:tiptoe@host:1,other:2", "redis+cluster://user:tiptoe@host:1,other:99999",
        "rediss+cluster://host:1?password=tiptoe", "redis+cluster://user:tiptoe@host:1/3",
        "unix://user:tiptoe@/socket", "redis://host:1?db=x&password=tiptoe",
    ],
)  # fmt: skip
def test_a_password_is_shown_neither_by_an_error_nor_by_where(address: str) -> None:
    try:
        shown = open_index(address, DETECTOR).where
    except SettingsError as error:
        shown = "".join(traceback.format_exception(error))
    assert "tiptoe" not in shown


@driven
async def test_a_password_is_not_shown_when_the_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.index.redis.client.DEADLINE", 0.5)

    async def failure(address: str) -> str:
        index = open_index(address, DETECTOR)
        with pytest.raises(DedupError) as error:
            await index.open()
        await index.close()
        return "".join(traceback.format_exception(error.value))

    failures = await asyncio.gather(
        failure("redis://user:tiptoe@127.0.0.1:1/0"),
        failure("redis://:tiptoe@127.0.0.1:1"),
        failure("rediss://user:tiptoe@127.0.0.1:1"),
        failure("redis://127.0.0.1:1?password=tiptoe"),
        failure("unix://user:tiptoe@/no/such/socket"),
        failure("redis+cluster://user:tiptoe@127.0.0.1:1"),
    )
    assert [text for text in failures if "tiptoe" in text] == []


# --- At once -----------------------------------------------------------------------------------------


@driven
async def test_of_many_claims_of_one_content_at_once_exactly_one_is_new(address: str, namespace: str) -> None:
    index = open_index(address, DETECTOR, namespace=namespace)
    claims = (index.claim(str(number), f"http://{number}/", fingerprint_of(0)) for number in range(50))
    verdicts = await asyncio.gather(*claims)
    await index.close()
    (kept,) = (number for number, verdict in enumerate(verdicts) if verdict.status == "new")
    others = verdicts[:kept] + verdicts[kept + 1 :]
    assert set(others) == {Verdict("duplicate", f"http://{kept}/", 0, 1.0, of_simhash=0, rule="exact")}


# --- Kinds of stores -----------------------------------------------------------------------------------


def test_messages_name_the_addresses_of_every_kind_of_store() -> None:
    assert str(SETTINGS["index"].kind) == ", ".join(repr(store.address) for store in STORES.values())
