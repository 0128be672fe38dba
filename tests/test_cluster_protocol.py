"""In every order in which three crawlers can claim pages alike over a cluster, crashes included, one is kept.

The steps are those of `dedup.index.redis.cluster.protocol` themselves (see `tests.support.interleavings`).
"""

import struct
from collections import Counter
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest

from dedup.index.entry import Entry
from dedup.index.redis.cluster.protocol import Do, Judgement, Outcome, claim, confirm, release
from dedup.index.redis.cluster.record import Leases, Phase, Record, decode, encode, head_of, state_of
from tests.support.interleavings import Ended, Explorer, World, run
from tests.support.surveys import entry as some_entry


class Crawler(NamedTuple):
    """One of the three."""

    page: str  #: what it claims
    number: int  #: when
    like: str  #: the pages that it takes for like its own
    releases: bool = False  #: whether it takes the page back when it was kept


class Case(NamedTuple):
    """Some crawlers, and how much may go wrong."""

    crawlers: tuple[Crawler, ...]
    crashes: int = 0  #: how many crash, at any moment; their leases end at any later one
    impatience: int = 0  #: how often one does not wait until another is through


TWINS = Crawler("a", 1, "b"), Crawler("b", 2, "a")
THREE = Crawler("a", 1, "bc"), Crawler("b", 2, "ac"), Crawler("c", 3, "ab")
#: The second is like both others, which are not like each other.
CHAIN = Crawler("a", 1, "b"), Crawler("b", 2, "ac"), Crawler("c", 3, "b")
#: The same, but the one in the middle comes first, or last.
FIRST = Crawler("a", 2, "b"), Crawler("b", 1, "ac"), Crawler("c", 3, "b")
LAST = Crawler("a", 1, "b"), Crawler("b", 3, "ac"), Crawler("c", 2, "b")
#: The first takes the second for like its own, but not the other way round.
ONE_WAY = Crawler("a", 1, "b"), Crawler("b", 2, ""), Crawler("c", 3, "ab")
#: Two crawlers have met the same page, and a third one like it.
SAME = Crawler("a", 1, "b"), Crawler("a", 2, "b"), Crawler("b", 3, "a")
FAILS = Crawler("a", 1, "b", releases=True), Crawler("b", 2, "a")
slow = pytest.mark.slow

CASES = {
    "two twins": Case(TWINS),
    "two twins, a crash": Case(TWINS, crashes=1, impatience=2),
    "two twins, two crashes": Case(TWINS, crashes=2, impatience=2),
    "a twin that fails": Case(FAILS, crashes=1, impatience=1),
    "one page of two": Case((Crawler("a", 1, ""), Crawler("a", 2, "")), crashes=1, impatience=1),
    "a chain": Case(CHAIN),
    "a chain, its middle first": Case(FIRST),
    "a chain, its middle last": Case(LAST),
    "like one way": Case(ONE_WAY),
    "one page of two, and a twin": Case(SAME),
    "three twins": Case(THREE),
}
LONG = {
    "three twins, impatience": Case(THREE, impatience=1),
    "a chain, a crash": Case(CHAIN, crashes=1),
    "a chain, its middle first, a crash": Case(FIRST, crashes=1),
    "a chain, its middle last, a crash": Case(LAST, crashes=1),
    "one page of two, and a twin, a crash": Case(SAME, crashes=1),
    "three twins, a crash": Case(THREE, crashes=1),
}


def life(
    crawler: Crawler, number: int, *, is_careless: bool = False
) -> Generator[Do, Any, tuple[Outcome, Any]]:
    """Claims a page, and then confirms or releases it."""
    entry = Entry(crawler.page, "", 0, 0, ord(crawler.page), (), b"", 0, run(number))

    def judge(met: dict[bytes, Record], leases: Leases) -> Judgement:
        alike = {page: record for page, record in sorted(met.items()) if page.decode() in crawler.like}
        shadows = (page for page, record in alike.items() if state_of(record, leases).casts_shadow)
        tried = (page for page, record in alike.items() if record.phase is Phase.TRYING)
        rivals = (
            () if is_careless else tuple(page for page in tried if leases.are_alive(alike[page].entry.run))
        )
        return Judgement(next(shadows, None), rivals)

    outcome = yield from claim(crawler.page.encode(), entry, crawler.number, judge)
    after = None
    if outcome.record and crawler.releases:
        after = yield from release(crawler.page.encode(), run(number))
    elif outcome.record:
        after = yield from confirm(crawler.page.encode(), outcome.record)
    return outcome, after


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name) for name, case in CASES.items()]
    + [pytest.param(case, id=name, marks=slow) for name, case in LONG.items()],
)
def test_in_every_order_exactly_one_of_pages_alike_is_kept(case: Case) -> None:
    states, ends = explored(case)
    assert len({words.index("new") for words in ends if "new" in words}) > 1, "there was no race"
    print(f"\n{states:,} states; {sum(ends.values())} ends: {dict(ends.most_common(5))}")


def test_a_crawler_that_does_not_look_at_what_others_try_is_found_out() -> None:
    """So the test above can fail."""
    with pytest.raises(AssertionError, match="two are kept"):
        explored(Case(TWINS), is_careless=True)


def explored(case: Case, *, is_careless: bool = False) -> tuple[int, Counter[tuple[str, ...]]]:
    """Goes through all orders of a case: how many states there are, and the ends, by what the crawlers were told."""
    crawlers = case.crawlers
    pages = sorted({crawler.page.encode() for crawler in crawlers})
    lives = [
        (
            crawler.page.encode(),
            lambda crawler=crawler, number=number: life(crawler, number, is_careless=is_careless),
        )
        for number, crawler in enumerate(crawlers)
    ]
    buckets = {frozenset((one.page.encode(), other.encode())) for one in crawlers for other in one.like}
    ends: Counter[tuple[str, ...]] = Counter()

    def check(world: World, said: list[Any]) -> None:
        """What holds when nobody can take another step."""
        words = [end.value[0].status if isinstance(end, Ended) else "crashed" for end in said]
        ends[tuple(words)] += 1
        records = dict(zip(pages, world.records, strict=True))
        # Where two crawlers have one page, the claim is that of the last one, and may have died with it.
        lost = {one.page for one, word in zip(crawlers, words, strict=True) if word == "crashed"}
        new = {one for one, word in zip(crawlers, words, strict=True) if word == "new" and not one.releases}
        kept = {one for one in new if one.page not in lost}
        for one in kept:
            assert not any(other.page in one.like and one.page in other.like for other in kept), (
                "two are kept"
            )
            record = records[one.page.encode()]
            assert record
            assert record.phase is Phase.DONE
            assert {
                (bucket, one.page.encode()) for bucket in buckets if one.page.encode() in bucket
            } <= world.filed
        for one, end, word in zip(crawlers, said, words, strict=True):
            if word == "duplicate":
                of = end.value[0].judgement.verdict.decode()
                assert of in one.like
                mates = [word for other, word in zip(crawlers, words, strict=True) if other.page == of]
                assert set(mates) & {"new", "same", "crashed"}, "it was dropped for a page that was dropped"
        for page in pages:
            mates = [word for other, word in zip(crawlers, words, strict=True) if other.page.encode() == page]
            if set(mates) <= {"duplicate"}:
                assert records[page] is None, "a page that was dropped is left behind"

    explorer = Explorer(pages, lives, buckets, crashes=case.crashes, impatience=case.impatience)
    return explorer.explore(check), ends


def test_a_record_is_made_of_its_bytes() -> None:
    earlier = Record(Phase.DONE, 1, 0, some_entry(1))
    for record in (None, earlier, Record(Phase.TRYING, 1 << 60, 3, some_entry(2), earlier)):
        octets = encode(record)
        assert decode(octets) == record
        assert octets.startswith(head_of(record))
    with pytest.raises((ValueError, struct.error)):
        decode(octets[:-1])
    with pytest.raises(ValueError, match="torn"):
        decode(octets[:20] + bytes([octets[20] ^ 1]) + octets[21:])
