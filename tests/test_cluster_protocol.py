"""In every order in which three crawlers can claim pages alike over a cluster, crashes included, one is kept.

The steps are those of `dedup.index.redis.cluster.protocol` themselves (see `tests.support.interleavings`).
"""

import struct
from collections import Counter
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest

from dedup.index.entry import Entry
from dedup.index.redis.cluster.protocol import Do, File, Judgement, Outcome, claim, confirm, release
from dedup.index.redis.cluster.record import Leases, Phase, Record, decode, encode, head_of, state_of
from tests.support.interleavings import Ended, Explorer, World, run
from tests.support.surveys import entry as some_entry

#: What is added to the number of a claim that is made again.
AGAIN = 10


class Crawler(NamedTuple):
    """One of the three."""

    page: str  #: what it claims
    number: int  #: when
    like: str  #: the pages that it takes for like its own
    releases: bool = False  #: whether it takes the page back when it was kept
    annuls: bool = (
        False  #: whether it annuls a claim for which its page was dropped, and claims the page again
    )
    content: str = ""  #: what it has met there, if that is not what is always there

    @property
    def shows(self) -> str:
        return self.content or self.page


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
#: The second one does not wait until the first has said what becomes of its page.
HASTY = Crawler("a", 1, "b"), Crawler("b", 2, "a", annuls=True)
#: Likewise, and the first one fails.
HASTY_FAILS = Crawler("a", 1, "b", releases=True), Crawler("b", 2, "a", annuls=True)
#: Two are dropped for the first one's page, and neither waits; or the page is met by another crawler after that.
HASTY_TWO = Crawler("a", 1, "bc"), Crawler("b", 2, "ac", annuls=True), Crawler("c", 3, "ab", annuls=True)
HASTY_SAME = Crawler("a", 1, "b"), Crawler("b", 2, "a", annuls=True), Crawler("a", 3, "b")
#: Two have met one page with other content each, of which a twin is met; the first one may fail.
CHANGED = Crawler("a", 1, "b"), Crawler("a", 2, "", content="c"), Crawler("b", 3, "a")
CHANGED_FAILS = Crawler("a", 1, "b", releases=True), *CHANGED[1:]
slow = pytest.mark.slow

CASES = {
    "two twins": Case(TWINS),
    "two twins, a crash": Case(TWINS, crashes=1, impatience=2),
    "two twins, two crashes": Case(TWINS, crashes=2, impatience=2),
    "a twin that is annulled": Case(HASTY, crashes=1, impatience=1),
    "a twin that is annulled and fails": Case(HASTY_FAILS, crashes=1, impatience=1),
    "a twin that fails": Case(FAILS, crashes=1, impatience=1),
    "one page of two": Case((Crawler("a", 1, ""), Crawler("a", 2, "")), crashes=1, impatience=1),
    "a chain": Case(CHAIN),
    "a chain, its middle first": Case(FIRST),
    "a chain, its middle last": Case(LAST),
    "like one way": Case(ONE_WAY),
    "one page of two, and a twin": Case(SAME),
    "three twins": Case(THREE),
    "a page of two that is annulled": Case(HASTY_SAME),
    "a page with two contents, and a twin": Case(CHANGED),
    "a page with two contents, one of which fails, and a twin": Case(CHANGED_FAILS),
}
LONG = {
    "three twins, two of which annul": Case(HASTY_TWO),
    "a page of two that is annulled, impatience": Case(HASTY_SAME, impatience=1),
    "a page of two that is annulled, a crash": Case(HASTY_SAME, crashes=1),
    "three twins, impatience": Case(THREE, impatience=1),
    "a chain, a crash": Case(CHAIN, crashes=1),
    "a chain, its middle first, a crash": Case(FIRST, crashes=1),
    "a chain, its middle last, a crash": Case(LAST, crashes=1),
    "one page of two, and a twin, impatience": Case(SAME, impatience=1),
    "one page of two, and a twin, a crash": Case(SAME, crashes=1),
    "three twins, a crash": Case(THREE, crashes=1),
}


class Said(NamedTuple):
    """What a crawler was told in the end."""

    outcome: Outcome
    done: Record | None = None  #: as what its page was confirmed
    annulled: bytes = b""  #: the page whose claim it has taken back


def life(crawler: Crawler, number: int, *, is_careless: bool = False) -> Generator[Do, Any, Said]:
    """Claims a page, and then confirms or releases it."""
    page = crawler.page.encode()
    entry = Entry(crawler.page, "", 0, 0, ord(crawler.shows), (), b"", 0, run(number))

    def judge(met: dict[bytes, Record], leases: Leases) -> Judgement:
        alike = {
            page: record for page, record in sorted(met.items()) if chr(record.entry.digest) in crawler.like
        }
        shadows = (page for page, record in alike.items() if state_of(record, leases).casts_shadow)
        tried = (page for page, record in alike.items() if record.phase is Phase.TRYING)
        rivals = (
            () if is_careless else tuple(page for page in tried if leases.are_alive(alike[page].entry.run))
        )
        return Judgement(next(shadows, None), rivals)

    annulled = done = None
    outcome = yield from claim(page, entry, crawler.number, judge)
    if crawler.annuls and outcome.status == "duplicate":
        of = outcome.judgement.verdict
        if (yield from release(of, run(number), annul=True)):
            annulled = of
            outcome = yield from claim(page, entry, crawler.number + AGAIN, judge)
    if outcome.record and crawler.releases:
        yield from release(page, run(number))
    elif outcome.record:
        done, is_lost = yield from confirm(page, outcome.record)
        if is_lost:
            yield File(outcome.record.entry)
    return Said(outcome, done, annulled or b"")


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
        told = [end.value if isinstance(end, Ended) else None for end in said]
        words = [one.outcome.status if one else "crashed" for one in told]
        ends[tuple(words)] += 1
        records = dict(zip(pages, world.records, strict=True))
        annulled = {one.annulled.decode() for one in told if one}
        annulled |= {
            page
            for one, end in zip(crawlers, told, strict=True)
            if one.annuls and not end
            for page in one.like
        }
        # Where two crawlers have one page, the claim is that of the last one, and may have died with it.
        lost = {one.page for one, word in zip(crawlers, words, strict=True) if word == "crashed"}
        new = {one for one, word in zip(crawlers, words, strict=True) if word == "new" and not one.releases}
        kept = {one for one in new if one.page not in lost | annulled}
        if all(one.page == other.page or one.page in other.like for one in crawlers for other in crawlers):
            told_off = len(annulled) + len(world.crashed) + sum(one.releases for one in crawlers)
            assert words.count("new") <= 1 + told_off, "too many are kept"
        for one in kept:
            assert not any(other.shows in one.like and one.shows in other.like for other in kept), (
                "two are kept"
            )
            record = records[one.page.encode()]
            assert record
            assert record.phase is Phase.DONE
        # Of one that died before it had filed its page once more, copies may be kept: nothing is lost.
        for one, end in zip(crawlers, told, strict=True):
            page = one.page.encode()
            if end and end.done:
                assert records[page] is not None, "a page that was confirmed is gone"
                if end.done.entry.run not in {run(number) for number in world.crashed}:
                    assert {(bucket, page) for bucket in buckets if page in bucket} <= world.filed
        for one, end, word in zip(crawlers, told, words, strict=True):
            if end and word == "duplicate":
                of = end.outcome.judgement.verdict
                assert of.decode() in one.like
                mates = [
                    (word, other.releases)
                    for other, word in zip(crawlers, words, strict=True)
                    if other.page == of.decode() and other.shows in one.like
                ]
                assert {word for word, _ in mates} & {"new", "same", "crashed"}, (
                    "it was dropped for a page that was dropped"
                )
                record = records[of]
                is_done = record and record.phase is Phase.DONE and chr(record.entry.digest) in one.like
                assert not is_done or not all(fails for _, fails in mates), (
                    "it was dropped for a page that nobody keeps"
                )
        for page in pages:
            mates = [word for other, word in zip(crawlers, words, strict=True) if other.page.encode() == page]
            if set(mates) <= {"duplicate"}:
                assert records[page] is None, "a page that was dropped is left behind"
            if records[page] is None and not world.crashed and not world.impatience:
                assert page not in {filed for _, filed in world.filed}, "it is left in a bucket"

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
