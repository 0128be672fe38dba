"""Pages that have no say in each other's verdicts are judged apart, on all cores, with the verdicts of one process."""

import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks import volume
from dedup.contrib.archives import Cleaning, parts
from dedup.contrib.archives.journal import Journal
from tests.contrib.archives.test_archive import json_lines, read, write
from tests.support.crawls import words
from tests.support.pages.shops import COPIES, Shop


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shops and their mirrors; a site that shows texts of another in a frame of its own; short pages, and rows without a URL."""
    rng = random.Random(11)
    shops = [Shop(f"shop{n}.example", (100, 400)[n % 2], 80, seed=n, products=14) for n in range(6)]
    for product in range(5):  # they are found by a rare shingle alone
        shops[5].texts[product], shops[5]._titles[product] = (
            shops[0].texts[product],
            shops[0]._titles[product],
        )
    found = [shop.page(product, rng) for shop in shops for product in range(14)]
    found += [
        shop.copy(product, kind, rng)
        for shop in shops[:4]
        for kind in COPIES
        for product in rng.sample(range(14), 2)
    ]
    rows: list[dict[str, Any]] = [{"url": page.url, "html": page.html} for page in found]
    rows += [{"text": words(n % 6)} for n in range(12)] + [
        {"url": "http://short.example/", "html": "<p>Not found"}
    ]
    rng.shuffle(rows)
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl"
    return write(path, json_lines(rows))


def cleaned(folder: Path, path: Path, workers: int = 1) -> tuple[bytes, list[dict[str, Any]], dict[str, Any]]:
    """What is kept, the drop log but for its times, and the counts."""
    folder.mkdir(exist_ok=True)
    kept, log = folder / "kept.jsonl", folder / "dropped.jsonl"
    stats = Cleaning([str(path)], str(kept), str(log), workers=workers).run().stats
    drops = [drop | {"time": ""} for drop in read(log)]
    counts = {name: value for name, value in stats.items() if "seconds" not in name}
    counts["dedup/hosts/worst"] = counts.get("dedup/hosts/worst", "").partition(" ")[
        0
    ]  # of which there are several
    return kept.read_bytes(), drops, counts


@pytest.fixture(scope="module")
def together(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "SIZE", 10_000)
        return cleaned(tmp_path_factory.mktemp("together") / "out", pages)


@pytest.mark.parametrize("workers", [1, 3])
def test_verdicts_of_one_process(
    workers: int, pages: Path, together: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SIZE", 12)
    joined: list[dict[int, int]] = []
    join = Journal.join
    monkeypatch.setattr(Journal, "join", lambda journal, found: (joined.append(found), join(journal, found)))
    assert cleaned(tmp_path / "apart", pages, workers) == together
    assert any(joined), "no part has asked for what another has asked for"
    assert {drop["rule"] for drop in together[1]} >= {"exact", "simhash", "rare"}
    assert not [*tmp_path.glob("apart/*.part")]


def test_hosts_that_hang_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 such pages, 9,973 were judged together, and again with the others, which shared a rare shingle with them."""
    monkeypatch.setattr(volume, "EACH", 20)
    rows = [*volume.pages(240, seed=1, largest=0)]
    path = write(tmp_path / "pages.jsonl", json_lines(rows))
    judged: list[int] = []
    judge_part = parts.judge_part
    monkeypatch.setattr(parts, "SIZE", 20)
    monkeypatch.setattr(parts, "judge_part", lambda *task: (judged.append(task[5]), judge_part(*task)))
    cleaned(tmp_path, path)
    assert judged == [len(rows)]
