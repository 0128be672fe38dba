"""`scrapy evaluate`, the measures behind it, and the audit."""

import asyncio
import gzip
import json
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scrapy.utils.test import get_crawler

from crawler.demo import Site, serve
from crawler.spiders.site import SiteSpider
from dedup import Detector, Fingerprint, SettingsError, open_index
from dedup.intervals import wilson
from dedup.lab.evaluation import Stream, measure, score_pairs
from dedup.lab.identity import measure_identity
from dedup.lab.labelled import read_collection, read_pairs
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


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo site's pages and which of them are alike."""
    folder = tmp_path_factory.mktemp("collection")
    site = Site()
    paths = [path for path in site.truth if "?" not in path and not path.endswith("/")][:60]
    for path in paths:
        page = folder / f"demo{path}"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(site.render(path, 1)[2])
    with gzip.open(folder / "demo.docs.txt.gz", "wt") as docs:
        docs.writelines(f"demo{path}\n" for path in paths)
    with gzip.open(folder / "demo.pairs.tsv.gz", "wt") as truth:
        truth.write("a\tb\tJ3\n")
        for at, a in enumerate(paths):
            for b in paths[:at]:
                if site.truth[a] == site.truth[b]:
                    truth.write(f"demo{a}\tdemo{b}\t0.95\n")
    return folder / "demo.pairs.tsv.gz"


def test_wilson_holds_the_share_and_narrows() -> None:
    for trials in (10, 100, 1000):
        low, high = wilson(trials // 5, trials)
        assert low < 0.2 < high
    assert wilson(5, 10)[1] - wilson(5, 10)[0] > wilson(50, 100)[1] - wilson(50, 100)[0]
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_filter_of_a_stream_gives_the_verdicts_of_an_index() -> None:
    rng = random.Random(3)
    stored = [rng.getrandbits(64) for _ in range(60)]
    sketches = [rng.randbytes(128) for _ in range(3)]
    fingerprints = []
    for _ in range(400):
        simhash = rng.choice(stored) ^ (1 << rng.randrange(64)) ^ (1 << rng.randrange(64))
        fingerprints.append(Fingerprint(simhash, rng.choice(sketches), 99, 0, digest=simhash))
    fingerprints[7] = Fingerprint(None, b"", 0, 0, "empty")
    detector = Detector(max_distance=4, min_resemblance=0.5)

    async def claims() -> list[int]:
        index = open_index("memory:", detector)
        verdicts = [await index.claim(str(at), str(at), page) for at, page in enumerate(fingerprints)]
        await index.close()
        return [int(verdict.of) if verdict.of else -1 for verdict in verdicts]

    assert Stream(fingerprints, detector).filter(4, 0.5).tolist() == asyncio.run(claims())


def test_a_pair_with_a_page_that_cannot_be_judged_is_never_called_duplicate() -> None:
    detector = Detector()
    short = detector.fingerprint("<p>too short")
    scored = score_pairs(detector, [(short, short, True)])
    assert scored.scores(10, 0.0) == (0, 0, 1)


def test_the_inline_measure_counts_only_pages_kept_before() -> None:
    truth = {0: {1: 0.8}, 1: {0: 0.8, 2: 0.95}, 2: {1: 0.95}}
    found = measure(np.array([-1, 0, -1]), truth)
    assert (found.drops, found.grey, found.false, found.could, found.missed) == (1, 1, 0, 0, 0)


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


def test_a_collection_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"x\.pairs\.tsv\.gz"):
        read_collection(tmp_path / "x.pairs.tsv.gz")


def test_pairs_are_evaluated(pairs: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = evaluate(pairs, "--root", pairs.parent, "--json", figures, "-s", "DEDUP_MIN_TOKENS=10")
    assert done.returncode == 0, done.stderr
    assert "15 pairs, 8 near-duplicates, 0 with a page not judged" in done.stdout
    rows = json.loads(figures.read_text())["rows"]
    (own,) = [row for row in rows if (row["k"], row["min_resemblance"]) == (6, 0.75)]
    assert own["precision"] == 1.0
    assert own["recall"] >= 0.85
    assert [row["recall"] for row in rows[::2]] == sorted(row["recall"] for row in rows[::2])
    assert any(line.startswith("*") and " 6 " in line for line in done.stdout.splitlines())


def test_a_collection_is_evaluated_and_every_index_agrees(collection: Path, redis_socket: Path) -> None:
    options = ("-s", "DEDUP_CHROME=False", "-s", f"DEDUP_INDEX=unix://{redis_socket}")
    done = evaluate(collection, "--root", collection.parent, "--through-index", *options)
    assert done.returncode == 0, done.stderr
    assert "60 pages" in done.stdout
    assert "the same verdicts" in done.stdout
    (own,) = [line.split() for line in done.stdout.splitlines() if line.startswith("*")]
    assert (own[1], own[2], own[4], own[-2]) == ("6", "0.750", "0", "1.0000")


def test_an_index_is_measured_with_the_rule_of_own_content(collection: Path) -> None:
    done = evaluate(collection, "--root", collection.parent, "--quick", "--through-index")
    assert done.returncode == 0, done.stderr
    assert ", 0 false (0.00 %), recall " in done.stdout
    assert "with the rule of own content" in done.stdout


def test_the_measure_by_identity_tells_pages_by_their_names() -> None:
    names, alike = (
        ["a", "a", "b", "b"],
        {0: {1: 0.95, 2: 0.92}, 1: {0: 0.95}, 2: {0: 0.92, 3: 1.0}, 3: {2: 1.0}},
    )
    judged = [True] * 4

    def found(*of: int) -> tuple[int, ...]:
        return measure_identity(of, range(4), names, alike, judged)[1:]

    assert found(-1, 0, -1, 2) == (2, 0, 0, 2, 0)  # drops, false, far, could, missed
    assert found(-1, -1, -1, -1) == (0, 0, 0, 2, 2)
    assert found(-1, 0, 0, -1) == (2, 1, 0, 1, 0)  # b was not kept before: it could not be found
    assert found(-1, 0, 1, 1) == (3, 2, 2, 1, 0)
    assert (
        measure_identity([-1, -1], [1, 0], ["a", "a"], {0: {1: 1.0}, 1: {0: 1.0}}, [True, False]).could == 0
    )


def test_a_collection_is_evaluated_by_identity(collection: Path, tmp_path: Path) -> None:
    with gzip.open(collection.with_name("demo.docs.txt.gz"), "rt") as lines:
        paths = [line.strip() for line in lines]
    truth = Site().truth
    with gzip.open(tmp_path / "demo.same.docs.txt.gz", "wt") as docs:
        docs.writelines(f"{path}\t{truth[path.removeprefix('demo')]}\n" for path in paths)
    same = tmp_path / "demo.same.pairs.tsv.gz"
    same.write_bytes(collection.read_bytes())
    figures = tmp_path / "figures.json"
    done = evaluate(same, "--root", collection.parent, "--json", figures)
    assert done.returncode == 0, done.stderr
    rows = json.loads(figures.read_text())["rows"]
    assert [row["seed"] for row in rows] == [42, 43, 44, 45, 46, None]
    assert all(row["false"] == 0 < row["drops"] and row["recall"] > 0.6 for row in rows)


def test_a_method_with_bands_is_evaluated_by_resemblance(collection: Path, redis_socket: Path) -> None:
    options = (
        "-s",
        "DEDUP_METHOD=minhash",
        "-s",
        "DEDUP_CHROME=False",
        "-s",
        f"DEDUP_INDEX=unix://{redis_socket}",
    )
    done = evaluate(collection, "--root", collection.parent, "--through-index", *options)
    assert done.returncode == 0, done.stderr
    assert "17 bands of 5 min-hashes, of which one is shared with a probability of" in done.stdout
    assert "the same verdicts" in done.stdout
    rows = [line.lstrip("* ").split() for line in done.stdout.splitlines()]
    thresholds = [float(row[1]) for row in rows if row and row[0] == "6"]  # k, which is of no account
    assert thresholds == [0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]


def test_features_can_be_varied_and_wrong_ones_are_refused(collection: Path) -> None:
    wrong = evaluate(collection, "--root", collection.parent, "--features", "weight=log")
    assert wrong.returncode == 2
    assert "weight" in wrong.stderr
    assert "simhash_size" in wrong.stderr
    assert (wrong.stdout, wrong.stderr.count("\n")) == ("", 1)


def test_a_log_tells_what_other_thresholds_would_have_dropped(tmp_path: Path) -> None:
    log = tmp_path / "duplicates.jsonl"
    records = [record(distance=0, resemblance=0.99), record(distance=3, resemblance=0.8)]
    log.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"torn')
    figures = tmp_path / "figures.json"
    done = evaluate("--from-log", log, "--json", figures)
    assert done.returncode == 0, done.stderr
    result = json.loads(figures.read_text())
    rows = {row[0]: dict(zip(result["thresholds"], row[1:], strict=True)) for row in result["rows"]}
    assert (rows[2][0.5], rows[3][0.5], rows[3][0.8], rows[3][0.85], rows[10][0.95]) == (1, 2, 2, 1, 1)
    assert "2 near-duplicates in " in done.stdout
    assert "1 line unreadable" in done.stdout


def test_the_audit_checks_drops_by_exact_resemblance(tmp_path: Path) -> None:
    settings = {"ADDONS": {"dedup.scrapy.Addon": 500}, "DEDUP_INDEX": "memory:", "DEDUP_AUDIT": 1.0}
    settings |= {"DEDUP_LOG": str(tmp_path / "drops.jsonl"), "TWISTED_REACTOR_ENABLED": False}
    with serve(Site()) as url:
        crawler = get_crawler(SiteSpider, settings)
        asyncio.run(crawler.crawl_async(start=url))
    stats = crawler.stats.get_stats()
    assert stats["dedup/audit/checked"] == stats["dedup/dropped"] > 30
    assert stats["dedup/audit/wrong_rate"] == 0
    assert stats["dedup/audit/wrong_rate_low"] == 0 < stats["dedup/audit/wrong_rate_high"] < 0.12


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
