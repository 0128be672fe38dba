"""The methods "minhash" and "supershingle": their formulas, and their verdicts through every store."""

import asyncio
import hashlib
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from benchmarks.quality.measures import Stream
from dedup.errors import IndexMismatchError, SettingsError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.methods import Bands, Megashingles, plan_bands
from dedup.fingerprint.plans import EXACT
from dedup.fingerprint.signatures import signature
from dedup.index import open_index

DETECTORS = {
    "simhash": Detector(min_tokens=5),
    "minhash": Detector(min_tokens=5, method="minhash"),
    "supershingle": Detector(min_tokens=5, method="supershingle"),
    "Bing's supershingle": Detector(
        min_tokens=5, method="supershingle", supershingle_size=5, megashingle_size=4
    ),
}
EVERY = pytest.mark.parametrize("detector", DETECTORS.values(), ids=DETECTORS)
BANDED = pytest.mark.parametrize("detector", list(DETECTORS.values())[1:], ids=list(DETECTORS)[1:])


def pages(seed: int, families: int = 12, versions: int = 12) -> list[str]:
    """Families of texts of 200 words: of the versions three are equal, in the others up to a 30th of the words change."""
    rng = random.Random(seed)
    found = []
    for family in range(families):
        words = [f"w{rng.randrange(3000)}" for _ in range(200)]
        for version in range(versions):
            changed = [
                f"x{family}.{version}.{at}" if rng.random() < max(0, version - 2) / versions / 25 else word
                for at, word in enumerate(words)
            ]
            found.append(f"<p>{' '.join(changed)}</p>")
    rng.shuffle(found)
    return found


# --- The chance to share a key: the formula, and what happens ----------------------------------------

SCHEMES = [Bands(20, 5), plan_bands(0.75, 0.99), Megashingles(14, 2), Megashingles(5, 4)]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("resemblance", [0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
def test_sets_share_a_key_as_often_as_the_formula_says(scheme: Any, resemblance: float) -> None:
    rng = np.random.default_rng(11)
    size, trials, shared = 400, 400, 0
    common = round(2 * size * resemblance / (1 + resemblance))
    for _ in range(trials):
        every = rng.integers(0, 2**64, 2 * size - common, np.uint64)
        a, b = (
            scheme.keys(signature(some, scheme.selectors, 5))
            for some in (every[:size], every[size - common :])
        )
        shared += any(x == y for x, y in zip(a, b, strict=True))
    right = scheme.probability(common / (2 * size - common))
    error = 4 * (right * (1 - right) / trials) ** 0.5 + 1 / trials
    assert abs(shared / trials - right) <= error


@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("resemblance", [0.5, 0.6, 0.75, 0.9, 0.99, 1.0])
def test_planned_bands_have_their_recall(resemblance: float, recall: float) -> None:
    bands = plan_bands(resemblance, recall)
    assert bands.probability(resemblance) >= recall - 1e-12
    if bands.count > 1:
        assert replace(bands, count=bands.count - 1).probability(resemblance) < recall


def test_bands_that_cannot_be_had_are_refused() -> None:
    for least in (0.0, 0.05, 0.2):
        with pytest.raises(
            SettingsError, match=r"^min_resemblance is .*, recall is 0.99 and method is 'minhash'"
        ):
            Detector(method="minhash", min_resemblance=least)
    with pytest.raises(SettingsError, match=r"^tables is 10, but .* a table for each of its 17 bands"):
        open_index("memory:", Detector(method="minhash"), tables=10)


# --- What is stored --------------------------------------------------------------------------------------

#: What indexes have stored of every method so far, byte for byte: they have to go on opening.
HEADER = {
    "format": "5", "scope": "all", "tables": "1", "scheme": "7", "min_resemblance": "0.75",
    "shingle_size": "6", "min_tokens": "5", "keep_urls": "True", "hash_key": "f73f191a4b3d2404",
    "features.simhash_size": "1", "features.simhash_urls": "False", "features.weights": "count",
    "features.sketch_urls": "True", "features.slots": "512", "features.bits": "2",
}  # fmt: skip
HEADERS = {
    "simhash": HEADER | {"method": "simhash", "max_distance": "6", "tables": "4+1"},
    "minhash": HEADER | {"method": "minhash", "bands": "17 bands of 5 min-hashes"},
    "supershingle": HEADER
    | {"method": "supershingle", "bands": "15 megashingles, of 2 of 6 supershingles of 14 min-hashes"},
    "Bing's supershingle": HEADER
    | {"method": "supershingle", "bands": "15 megashingles, of 4 of 6 supershingles of 5 min-hashes"},
}
#: The digest, and a hash of the bands, of one page, without a key and with one.
GOLDEN = {
    ("simhash", ""): ("a2e6a542eab603e3", "e3b0c44298fc1c14"),
    ("simhash", "secret"): ("1fce700224656ae6", "e3b0c44298fc1c14"),
    ("minhash", ""): ("a2e6a542eab603e3", "cd4ce1917ce5d5fb"),
    ("minhash", "secret"): ("1fce700224656ae6", "ad7be2ea42ed6f40"),
    ("supershingle", ""): ("a2e6a542eab603e3", "02286ebf8f3e372e"),
    ("supershingle", "secret"): ("1fce700224656ae6", "0af9058771d4282b"),
    ("Bing's supershingle", ""): ("a2e6a542eab603e3", "51b71edafb0fadac"),
    ("Bing's supershingle", "secret"): ("1fce700224656ae6", "89f2deb410c29c84"),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_the_header_of_an_index_stays_what_it_was(name: str) -> None:
    index = open_index("memory:", DETECTORS[name])
    assert index.parameters.texts == HEADERS[name] | {"ignore": "[]", "ignore_text": "[]"}


@pytest.mark.parametrize(("name", "key"), GOLDEN)
def test_golden_keys_of_a_page(name: str, key: str) -> None:
    page = "<p>" + " ".join(f"word{n}" for n in range(200)) + "<a href='/docs/'>"
    found = replace(DETECTORS[name], hash_key=key).fingerprint(page, "http://example.org/")
    packed = b"".join(band.to_bytes(8, "big") for band in found.bands)
    assert (f"{found.digest:016x}", hashlib.sha256(packed).hexdigest()[:16]) == GOLDEN[name, key]


# --- Through the index -------------------------------------------------------------------------------


async def claims(address: str, namespace: str, detector: Detector, found: list[Fingerprint]) -> list[Any]:
    index = open_index(address, detector, namespace=namespace, chrome=False)  # whole pages are compared
    try:
        return [await index.claim(str(at), str(at), one) for at, one in enumerate(found)]
    finally:
        await index.close()


@EVERY
def test_every_store_gives_the_right_verdicts(address: str, namespace: str, detector: Detector) -> None:
    found = [detector.fingerprint(page) for page in pages(seed=3, families=8)]
    verdicts = asyncio.run(claims(address, namespace, detector, found))
    right = Stream(found, detector).filter(detector.max_distance, detector.min_resemblance).tolist()
    assert [int(verdict.of) if verdict.of else -1 for verdict in verdicts] == right
    assert 20 < sum(of >= 0 for of in right) < len(right)
    for at, verdict in enumerate(verdicts):
        if verdict.of is not None:
            compared = detector.compare(found[at], found[int(verdict.of)])
            assert compared.duplicate
            assert (verdict.distance, verdict.resemblance) == (compared.distance, compared.resemblance)
            assert verdict.rule == (
                "exact" if verdict.resemblance == 1 and verdict.distance == 0 else detector.method
            )


@EVERY
def test_confirmed_pages_are_found_but_no_released(address: str, namespace: str, detector: Detector) -> None:
    if address == "memory:":
        pytest.skip("keeps nothing")
    first, second = (detector.fingerprint(page) for page in pages(seed=5, families=2, versions=1))

    async def crawl() -> list[str]:
        run = "0f" * 16  # one crawl, in two parts
        index = open_index(address, detector, namespace=namespace, run=run)
        for name, one in (("first", first), ("second", second)):
            await index.claim(name, f"http://{name}/", one)
        await index.confirm("first")
        await index.release("second")
        await index.close()
        index = open_index(address, detector, namespace=namespace, run=run)
        entry = await index.find("first")
        assert entry is not None
        assert (entry.url, entry.bands, entry.digest) == ("http://first/", first.bands, first.digest)
        assert await index.find("second") is None
        found = [(await index.claim("again", "http://again/", one)).status for one in (first, second)]
        await index.close()
        return found

    assert asyncio.run(crawl()) == ["duplicate", "new"]


@BANDED
def test_pages_of_another_scope_share_no_key(detector: Detector) -> None:
    (page,) = pages(seed=7, families=1, versions=1)
    one = detector.fingerprint(page)

    async def crawl() -> list[str]:
        index = open_index("memory:", detector, scope="host")
        urls = ("http://a/", "http://b/", "http://a/x")
        found = [(await index.claim(url, url, one)).status for url in urls]
        await index.close()
        return found

    assert asyncio.run(crawl()) == ["new", "new", "duplicate"]


CHANGES = [
    ("minhash", "recall", 0.999, "bands"),
    ("minhash", "method", "supershingle", "method"),
    ("supershingle", "supershingle_size", 5, "bands"),
    ("supershingle", "megashingle_size", 4, "bands"),
]


@pytest.mark.parametrize(("method", "option", "value", "name"), CHANGES)
def test_other_keys_are_refused(tmp_path: Any, method: str, option: str, value: object, name: str) -> None:
    detector = Detector(method=method)
    path = f"file:{tmp_path}/index.sqlite"

    async def open_with(chosen: Detector) -> None:
        index = open_index(path, chosen)
        try:
            await index.open()
        finally:
            await index.close()

    asyncio.run(open_with(detector))
    with pytest.raises(IndexMismatchError, match=f" {name} is "):
        asyncio.run(open_with(replace(detector, **{option: value})))
    asyncio.run(open_with(replace(detector, max_distance=2)))  # of no account without simhash tables


# --- Exact first -------------------------------------------------------------------------------------


@EVERY
def test_an_equal_page_costs_no_fingerprint(detector: Detector) -> None:
    detector = replace(detector)  # one that remembers nothing yet
    page = "<p>" + " ".join(f"word{n}" for n in range(100))
    first = detector.fingerprint(page)
    again = detector.fingerprint(page + "<!-- 12:05 -->")
    assert again.sketch is detector.fingerprint(page.upper()).sketch is first.sketch  # not computed anew
    assert again == first == replace(detector).fingerprint(page)


def test_a_digest_that_collides_is_no_duplicate() -> None:
    detector = Detector(min_tokens=5)
    a, b = (detector.fingerprint(page) for page in pages(seed=9, families=2, versions=1))
    forged = structs.replace(b, digest=a.digest)

    async def crawl() -> list[str]:
        index = open_index("memory:", detector)
        found = [(await index.claim(str(at), str(at), one)).status for at, one in enumerate((a, forged))]
        await index.close()
        return found

    assert asyncio.run(crawl()) == ["new", "new"]
    assert {table.prefix for table in EXACT} == {64}
