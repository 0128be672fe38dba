"""`scrapy evaluate`, and the audit."""

import asyncio
import json
import random
from pathlib import Path

import pytest
from scrapy.utils.test import get_crawler

from crawler.demo import Site, serve
from crawler.spiders.site import SiteSpider
from dedup import SettingsError
from dedup.intervals import wilson
from dedup.scrapy.commands.evaluate.run import read_pairs
from tests.support.pages.lookalikes import NEGATIVES
from tests.support.pages.mutations import MUTATIONS
from tests.support.processes import scrapy


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of every kind, as HTML, text and paths."""
    folder = tmp_path_factory.mktemp("pairs")
    lines = []
    for seed, (name, negative) in enumerate(NEGATIVES.items()):
        a, b = negative(random.Random(seed))
        page = folder / f"{name}.html"
        page.write_text(a)
        lines.append({"a": a, "b": b, "label": 0})
        mutated = list(MUTATIONS.values())[seed](a, random.Random(seed))
        lines.append({"a": str(page), "b": mutated, "label": "duplicate"})
    lines.append({"a": "words " * 50, "b": "words " * 51, "label": True})
    lines.append({"a": "short", "b": "short", "label": False})
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_wilson_holds_the_share_and_narrows() -> None:
    for trials in (10, 100, 1000):
        low, high = wilson(trials // 5, trials)
        assert low < 0.2 < high
    assert wilson(5, 10)[1] - wilson(5, 10)[0] > wilson(50, 100)[1] - wilson(50, 100)[0]
    assert wilson(0, 0) == (0.0, 1.0)


def test_labelled_pairs_are_read_from_both_formats(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text('a,b,label\n"<p>x, y</p>",z,near\n')
    (tmp_path / "p.jsonl").write_text('\n{"a": "<p>x, y</p>", "b": "z", "label": 1}\n')
    assert read_pairs(tmp_path / "p.csv") == read_pairs(tmp_path / "p.jsonl")


@pytest.mark.parametrize(
    "line", ["[]", '{"a": "x", "label": 1}', '{"a": "x", "b": "y", "label": "maybe"}', "{"]
)
def test_a_line_that_is_no_labelled_pair_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(SettingsError, match=r"pairs\.jsonl"):
        read_pairs(path)


def test_a_page_may_be_a_url(tmp_path: Path) -> None:
    path, text = tmp_path / "pairs.jsonl", "fog " * 99
    with serve(Site()) as url:
        path.write_text(json.dumps({"a": f"{url}articles/the-fog-signal", "b": text, "label": 0}) + "\n")
        done = scrapy("evaluate", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 pairs, 0 near-duplicates, 0 with a page not judged" in done.stdout
    assert scrapy("evaluate", path).stderr.startswith(
        f"evaluate: {url}articles/the-fog-signal can't be fetched"
    )


def table(printed: str) -> list[list[str]]:
    """The rows of numbers that were printed, without the star."""
    cells = (line.removeprefix("*").split() for line in printed.splitlines())
    return [row for row in cells if len(row) > 2 and row[0].isdigit() and row[1][0].isdigit()]


def test_pairs_are_evaluated(pairs: Path) -> None:
    done = scrapy("evaluate", pairs, "-s", "DEDUP_MIN_TOKENS=10")
    assert done.returncode == 0, done.stderr
    assert "16 pairs, 8 near-duplicates, 1 with a page not judged" in done.stdout
    rows = table(done.stdout)
    (own,) = [row for row in rows if row[:2] == ["6", "0.750"]]
    assert own[2] == "1.000"
    assert float(own[4]) >= 0.85
    recalls = [float(row[4]) for row in rows if row[1] == "0.000"]
    assert len(recalls) == 10
    assert recalls == sorted(recalls)
    assert any(line.startswith("*") and " 6 " in line for line in done.stdout.splitlines())


@pytest.mark.parametrize("is_wrong", [False, True], ids=["right", "wrong"])
def test_the_audit_checks_drops_by_exact_resemblance(tmp_path: Path, is_wrong: bool) -> None:
    settings = {"ADDONS": {"dedup.scrapy.Addon": 500}, "DEDUP_INDEX": "memory:", "DEDUP_AUDIT": 1.0}
    settings |= {"DEDUP_LOG": str(tmp_path / "drops.jsonl"), "TWISTED_REACTOR_ENABLED": False}
    if is_wrong:  # without the second stage, pages that only share the frequencies of their words are dropped
        settings |= {"DEDUP_MIN_RESEMBLANCE": 0.0, "DEDUP_MAX_DISTANCE": 7, "DEDUP_CHROME": False}
        settings |= {"CLOSESPIDER_PAGECOUNT": 40}
    with serve(Site()) as url:
        crawler = get_crawler(SiteSpider, settings)
        asyncio.run(crawler.crawl_async(start=url))
    stats = crawler.stats.get_stats()
    low, rate, high = (stats[f"dedup/audit/wrong_rate{end}"] for end in ("_low", "", "_high"))
    assert (
        stats["dedup/audit/checked"] == stats["dedup/dropped"] > (0 if is_wrong else 25)
    )  # it ends a wrong rule
    assert low <= rate <= high > low  # at most 1, where each was wrong
    assert (stats.get("dedup/audit/wrong", 0) > 0, low > 0) == (is_wrong, is_wrong)
    assert is_wrong or high < 0.15
