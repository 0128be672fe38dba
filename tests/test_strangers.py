"""No content is lost at sites that nobody has chosen."""

import pytest

from tests.support import slow
from tests.support.coroutines import driven
from tests.support.living import crawl, shuffled
from tests.support.strangers import Site

#: Sites that have lost something once, and whatever comes.
SEEDS = 81, 86, 95, 139, 198, 227, 366, 641, 738, 1106, 1611, 1, 2, 3, 4, 5


@pytest.mark.parametrize("seed", [*SEEDS, *map(slow, range(300, 360))])
@driven
async def test_a_site_of_a_stranger_loses_nothing(seed: int) -> None:
    pages = Site(seed).pages()
    assert (await crawl(shuffled(pages, 0), seed=0)).lost() == set()
    assert (await crawl(shuffled(pages, 1), seed=1, at_once=8)).lost() == set()
