"""The audit of drops: what is counted as wrong."""

import pytest

from dedup import Detector
from dedup.filter import Counts
from dedup.filter.audit import Audit
from dedup.page.html import Page
from tests.support.coroutines import driven

WORDS = [f"word{n}" for n in range(100)]


def audit(page: Page | Exception | None, min_resemblance: float = 0.75) -> tuple[Audit, Counts, Detector]:
    """An audit of which the kept page is fetched as this one."""

    async def fetch(url: str) -> Page | None:
        if isinstance(page, Exception):
            raise page
        return page

    counts, detector = Counts(), Detector(min_resemblance=min_resemblance, shingle_size=1)
    return Audit(detector, 1.0, counts, fetch), counts, detector


@pytest.mark.parametrize(
    ("shared", "min_resemblance", "wrong"),
    [(100, 0.75, 0), (76, 0.75, 0), (74, 0.75, 1), (51, 0.2, 0), (49, 0.2, 1), (0, 0.0, 1)],
)
@driven
async def test_a_drop_is_wrong_below_the_least_resemblance(
    shared: int, min_resemblance: float, wrong: int
) -> None:
    check, counts, detector = audit(Page(WORDS[:shared], 0), min_resemblance)
    await check.check("http://example.org/b", detector.shingles(Page(WORDS, 0)), "http://example.org/a")
    assert counts == {"dedup/audit/checked": 1} | ({"dedup/audit/wrong": 1} if wrong else {})


@pytest.mark.parametrize(
    "page", [None, OSError("no network"), Page([], 0, "partial"), Page([], 0, "large"), Page([], 0, "binary")]
)
@driven
async def test_a_page_that_cant_be_fetched_or_read_is_not_compared(page: Page | Exception | None) -> None:
    check, counts, detector = audit(page)
    await check.check("http://example.org/b", detector.shingles(Page(WORDS, 0)), "http://example.org/a")
    assert counts == {"dedup/audit/failed": 1}


@driven
async def test_the_share_of_wrong_drops_is_told_with_its_interval() -> None:
    check, counts, _ = audit(None)
    counts |= {"dedup/audit/checked": 100, "dedup/audit/wrong": 5}
    check.close()
    rates = [counts[f"dedup/audit/{name}"] for name in ("wrong_rate", "wrong_rate_low", "wrong_rate_high")]
    assert rates == [0.05, 0.02154, 0.11175]


def test_without_a_check_there_is_no_share() -> None:
    check, counts, _ = audit(None)
    check.close()
    assert counts == {}


def test_the_sample_is_a_share_of_the_urls_and_the_same_every_time() -> None:
    urls = [f"http://example.org/{number}" for number in range(2_000)]
    counts, detector = Counts(), Detector()

    def picked(share: float) -> set[str]:
        audit = Audit(detector, share, counts, fetch=None)  # type: ignore[arg-type]
        return {url for url in urls if audit.picks(url)}

    assert picked(0.0) == set()
    assert picked(1.0) == set(urls)
    assert picked(0.1) <= picked(0.2)
    assert 150 < len(picked(0.1)) < 250
