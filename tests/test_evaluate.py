"""`scrapy evaluate`, the measures behind it, and the audit."""

import asyncio
import json
import random
import subprocess
from pathlib import Path

import pytest
from scrapy.utils.test import get_crawler

from crawler.demo import Site, serve
from crawler.spiders.site import SiteSpider
from dedup import Detector, SettingsError
from dedup.intervals import wilson
from dedup.lab.labelled import read_pairs
from dedup.lab.pairs import score_pairs
from dedup.scrapy.commands.evaluate.log import RESEMBLANCES
from tests.support.logs import record
from tests.support.pages.lookalikes import NEGATIVES
from tests.support.pages.mutations import MUTATIONS
from tests.support.processes import scrapy


def evaluate(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`scrapy evaluate` in the project."""
    return scrapy("evaluate", *arguments)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of every kind, as HTML, text and paths."""
    folder = tmp_path_factory.mktemp("pairs")
    lines = []
    for seed, (name, negative) in enumerate(NEGATIVES.items()):
        a, b = negative(random.Random(seed))
        (folder / f"{name}.html").write_text(a)
        lines.append({"a": a, "b": b, "label": 0})
        mutated = list(MUTATIONS.values())[seed](a, random.Random(seed))
        lines.append({"a": f"{name}.html", "b": mutated, "label": "duplicate"})
    lines.append({"a": "words " * 50, "b": "words " * 51, "label": True})
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_wilson_holds_the_share_and_narrows() -> None:
    for trials in (10, 100, 1000):
        low, high = wilson(trials // 5, trials)
        assert low < 0.2 < high
    assert wilson(5, 10)[1] - wilson(5, 10)[0] > wilson(50, 100)[1] - wilson(50, 100)[0]
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_pair_with_a_page_that_cannot_be_judged_is_never_called_duplicate() -> None:
    detector = Detector()
    short = detector.fingerprint("<p>too short")
    scored = score_pairs(detector, [(short, short, True)])
    assert scored.scores(10, 0.0) == (0, 0, 1)


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
    done = evaluate(pairs, "--root", pairs.parent, "-s", "DEDUP_MIN_TOKENS=10")
    assert done.returncode == 0, done.stderr
    assert "15 pairs, 8 near-duplicates, 0 with a page not judged" in done.stdout
    rows = table(done.stdout)
    (own,) = [row for row in rows if row[:2] == ["6", "0.750"]]
    assert own[2] == "1.000"
    assert float(own[4]) >= 0.85
    recalls = [float(row[4]) for row in rows if row[1] == "0.000"]
    assert len(recalls) == 10
    assert recalls == sorted(recalls)
    assert any(line.startswith("*") and " 6 " in line for line in done.stdout.splitlines())


def test_a_log_tells_what_other_thresholds_would_have_dropped(tmp_path: Path) -> None:
    log = tmp_path / "duplicates.jsonl"
    records = [record(distance=0, resemblance=0.99), record(distance=3, resemblance=0.8)]
    log.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"torn')
    done = evaluate("--from-log", log)
    assert done.returncode == 0, done.stderr
    rows = {int(k): dict(zip(RESEMBLANCES, drops, strict=True)) for k, *drops in table(done.stdout)}
    assert (rows[2][0.5], rows[3][0.5], rows[3][0.8], rows[3][0.85], rows[10][0.95]) == (
        "1",
        "2",
        "2",
        "1",
        "1",
    )
    assert "2 near-duplicates in " in done.stdout
    assert "1 line unreadable" in done.stdout


def test_the_audit_checks_drops_by_exact_resemblance(tmp_path: Path) -> None:
    settings = {"ADDONS": {"dedup.scrapy.Addon": 500}, "DEDUP_INDEX": "memory:", "DEDUP_AUDIT": 1.0}
    settings |= {"DEDUP_LOG": str(tmp_path / "drops.jsonl"), "TWISTED_REACTOR_ENABLED": False}
    with serve(Site()) as url:
        crawler = get_crawler(SiteSpider, settings)
        asyncio.run(crawler.crawl_async(start=url))
    stats = crawler.stats.get_stats()
    assert stats["dedup/audit/checked"] == stats["dedup/dropped"] > 25  # months of the calendar vary
    assert stats["dedup/audit/wrong_rate"] == 0
    assert stats["dedup/audit/wrong_rate_low"] == 0 < stats["dedup/audit/wrong_rate_high"] < 0.15


def test_the_audit_finds_wrong_drops(tmp_path: Path) -> None:
    # Without the second stage, pages that only share the frequencies of their words are dropped.
    settings = {"ADDONS": {"dedup.scrapy.Addon": 500}, "DEDUP_INDEX": "memory:", "DEDUP_AUDIT": 1.0}
    settings |= {"DEDUP_LOG": str(tmp_path / "drops.jsonl"), "TWISTED_REACTOR_ENABLED": False}
    settings |= {"DEDUP_MIN_RESEMBLANCE": 0.0, "DEDUP_MAX_DISTANCE": 7, "DEDUP_CHROME": False}
    with serve(Site()) as url:
        crawler = get_crawler(SiteSpider, settings)
        asyncio.run(crawler.crawl_async(start=url))
    stats = crawler.stats.get_stats()
    assert stats["dedup/audit/checked"] == stats["dedup/dropped"]
    assert stats["dedup/audit/wrong"] >= 1
    assert (
        stats["dedup/audit/wrong_rate_low"]
        < stats["dedup/audit/wrong_rate"]
        < stats["dedup/audit/wrong_rate_high"]
    )
