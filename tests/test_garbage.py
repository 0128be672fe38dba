"""What a crawl begins with is left out of the garbage collector's work until it ends."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.crawls import TWINS, Run, Walker


@pytest.fixture(autouse=True)
def nothing_left_out() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


class Counts(Walker):
    """Notes how many objects are left out."""

    left_out = 0

    def parse(self, response: Any) -> Any:
        type(self).left_out = gc.get_freeze_count()
        yield from super().parse(response)


def test_what_a_crawl_begins_with_is_left_out_until_it_ends(crawl: Run) -> None:
    crawl(TWINS, Counts)
    assert Counts.left_out > 10_000
    assert gc.get_freeze_count() == 0


def test_what_the_program_has_left_out_stays_so(crawl: Run) -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    crawl(TWINS)
    assert 0 < gc.get_freeze_count() <= before  # what is left out is still freed when nobody refers to it


def test_a_crawl_that_is_refused_leaves_nothing_out(crawl: Run) -> None:
    crawl(TWINS, DEDUP_MAX_DISTANCE=99)
    assert gc.get_freeze_count() == 0
