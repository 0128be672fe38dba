"""Spiders of strangers, unchanged: with the add-on they get every content that they got without it, in each crawl.

These are eleven of the shapes of `tests.support.foreign`, and seven that are left to long runs; ``python -m benchmarks.foreign``
crawls them all.
"""

from pathlib import Path

import pytest

from tests.support.foreign import (
    Shape,
    feeds,
    gather,
    handed,
    hidden,
    records,
    serving,
    shops,
    signs,
    stores,
    trouble,
    ways,
)

ADDON = {"ADDONS": {"dedup.scrapy.Addon": 500}}

SLOW = (
    records.meetings,
    records.jobs,
    records.opinions,
    shops.sessions,
    shops.gallery,
    shops.variants,
    signs.gauges,
)


@pytest.mark.filterwarnings("ignore:FormRequest.from_response")  # strangers do use it
@pytest.mark.parametrize(
    "shape",
    [
        stores.frames,
        stores.scripts,
        records.tickets,
        feeds.postbacks,
        ways.rules,
        trouble.captcha,
        handed.alternates,
        handed.pending,
        hidden.charts,
        hidden.stars,
        signs.ticks,
        *(pytest.param(shape, marks=pytest.mark.slow) for shape in SLOW),
    ],
    ids=lambda shape: shape.__name__,
)
def test_a_spider_that_knows_nothing_of_the_filter_loses_nothing(shape: Shape, tmp_path: Path) -> None:
    ours = ADDON | {"DEDUP_INDEX": f"file:{tmp_path / 'index'}", "DEDUP_LOG": str(tmp_path / "log.jsonl")}
    with serving() as site:
        without = gather(shape, site).contents
        assert len(without) >= 40
        assert [sorted(without - gather(shape, site, **ours).contents) for _ in range(2)] == [[], []]


def test_copies_are_dropped_all_the_same(tmp_path: Path) -> None:
    with serving() as site:
        found = gather(
            ways.domain, site, **ADDON, DEDUP_INDEX="memory:", DEDUP_LOG=str(tmp_path / "log.jsonl")
        )
    assert (len(found.contents), found.stats["dedup/dropped"]) == (40, 80)
