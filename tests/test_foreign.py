"""Spiders of strangers, unchanged: with the add-on they get every content that they got without it, in each crawl.

These are five of the shapes of `tests.support.foreign`, and thirteen that are left to long runs; ``python -m benchmarks.foreign``
crawls them all.
"""

from pathlib import Path

import pytest

from tests.support import slow
from tests.support.foreign import SHAPES, gather, serving, ways

ADDON = {"ADDONS": {"dedup.scrapy.Addon": 500}}

FEW = ["tickets", "postbacks", "captcha", "alternates", "stars"]
SLOW = [
    "frames", "pending", "ticks", "meetings", "jobs", "opinions", "sessions", "gallery", "variants", "gauges", "scripts", "rules",
    "charts",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:FormRequest.from_response")  # strangers do use it
@pytest.mark.parametrize("name", [*FEW, *map(slow, SLOW)])
def test_a_spider_that_knows_nothing_of_the_filter_loses_nothing(name: str, tmp_path: Path) -> None:
    ours = ADDON | {"DEDUP_INDEX": f"file:{tmp_path / 'index'}", "DEDUP_LOG": str(tmp_path / "log.jsonl")}
    [shape] = [shape for shape in SHAPES if shape.__name__ == name]
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
