"""Forged collisions: a page with junk words appended until its simhash is that of a victim.

Who knows this program can do it where there is no HASH_KEY; the second stage looks at shingles, and refuses.
"""

import random

import numpy as np
import pytest

from dedup import Detector
from dedup.fingerprint.shingles import hash_tokens
from dedup.fingerprint.simhash import distance, simhash
from dedup.page.html import Page
from tests.support import slow

SEED = 3
POOL = [f"junk{number}" for number in range(4_000)]
#: Bits of the hash of every junk word, as the forger knows them: -1 or 1, shape (n, 64).
SIGNS = np.unpackbits(hash_tokens(POOL, 0).byteswap().view(np.uint8)).reshape(-1, 64).astype(np.int64) * 2 - 1


def forge(own: list[str], victim: int) -> list[str]:
    """A page's words, and junk that brings its simhash to the victim's."""
    target = np.array([1 if victim >> (63 - bit) & 1 else -1 for bit in range(64)])
    bits = np.unpackbits(hash_tokens(own, 0).byteswap().view(np.uint8)).reshape(-1, 64)
    sums = (bits.astype(np.int64) * 2 - 1).sum(axis=0)
    words = list(own)
    while np.any(sums * target <= 0):
        short = np.maximum(0, 4 - (sums + SIGNS) * target).sum(axis=1)
        best = int(short.argmin())
        words.append(POOL[best])
        sums = sums + SIGNS[best]
        if len(words) > 5_000:
            break
    return words


def words(rng: random.Random, count: int) -> list[str]:
    return [f"word{rng.randrange(50_000)}" for _ in range(count)]


@pytest.mark.parametrize("trials", [4, slow(200)])
def test_a_forged_collision_is_no_duplicate(trials: int) -> None:
    rng = random.Random(SEED)
    unkeyed, keyed = Detector(), Detector(hash_key="a secret")
    single = Detector(min_resemblance=0.0)  # without the second stage
    near = fooled = fooled_single = fooled_keyed = 0
    for _ in range(trials):
        victim, own = words(rng, 300), words(rng, 100)
        target = unkeyed.fingerprint_page(Page(victim, 0))
        assert target.simhash is not None
        forged = forge(own, target.simhash)
        one = unkeyed.fingerprint_page(Page(forged, 0))
        assert one.simhash is not None
        near += distance(one.simhash, target.simhash) <= unkeyed.max_distance
        fooled += unkeyed.compare(one, target).duplicate
        fooled_single += single.compare(
            single.fingerprint_page(Page(forged, 0)), single.fingerprint_page(Page(victim, 0))
        ).duplicate
        a, b = (keyed.fingerprint_page(Page(some, 0)) for some in (forged, victim))
        assert a.simhash is not None
        assert b.simhash is not None
        fooled_keyed += keyed.is_candidate(a, b)
    print(
        f"seed {SEED}: {near} of {trials} forged, {fooled} taken for the victim, with a key {fooled_keyed} near"
    )
    assert near == fooled_single == trials, "the forger of this test is too weak to show anything"
    assert fooled == fooled_keyed == 0


def test_the_forger_knows_the_hash() -> None:
    assert distance(simhash(hash_tokens(["junk7"], 0)), simhash(hash_tokens([POOL[7]], 0))) == 0
