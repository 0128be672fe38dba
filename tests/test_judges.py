"""The judges of a page: their table, and the one that has decided, as the logs, `index why` and `compare` name it."""

import asyncio
import itertools
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from scrapy.settings import Settings

from crawler import demo
from dedup.droplog.kept import SUFFIX, read_kept
from dedup.filter.judges import JUDGES, Judge
from dedup.page.read import read
from dedup.scrapy.commands.compare.run import crawled
from dedup.scrapy.commands.index.why import print_reasons
from dedup.scrapy.settings import read_settings
from tests.support import ROOT
from tests.support.coroutines import driven
from tests.support.crawls import Answer, Run, Site, Walker
from tests.support.filters import filtering, fingerprint, text
from tests.support.logs import read_log
from tests.support.processes import scrapy


def test_the_documents_have_the_table() -> None:
    order = ("", "new", "same", "duplicate")
    rows = [
        f"| `{judge.name}` | {', '.join(status or 'none' for status in order if status in judge.hears)} "
        f"| {judge.says} | {judge.leaves} |"
        for judge in JUDGES
    ]
    page = (ROOT / "docs" / "what-becomes-of-a-page.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


@pytest.mark.parametrize("failing", JUDGES, ids=[judge.name for judge in JUDGES])
@driven
async def test_a_judge_that_fails_costs_no_page(
    failing: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a fault of a judge")

    judges = tuple(judge._replace(decide=fail) if judge is failing else judge for judge in JUDGES)
    monkeypatch.setattr("dedup.filter.judges.JUDGES", judges)
    async with filtering(tmp_path / "drops.jsonl") as it:
        assert (await it.judge("a")).startswith("keep")
        is_asked = failing.hears & {"", "duplicate"}  # else the first is filed as ever
        assert await it.judge("copy", "a") == ("keep: internal_error" if is_asked else "drop: /a")
    assert "can't be judged" in caplog.text


@pytest.mark.parametrize("part", ["listener.judged", "_traps.see", "_copies.follow_up"])
@driven
async def test_later_faults_cost_no_page(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    async with filtering(tmp_path / "drops.jsonl") as it:
        assert await it.judge("a") == "keep: new"
        of, _, name = part.partition(".")
        monkeypatch.setattr(getattr(it.filter, of), name, fail)
        assert await it.judge("copy", "a") == "keep: internal_error"
    assert [record["undone"] for record in read_log(tmp_path / "drops.jsonl")] == [None, "it can't be judged"]


class Museum(dict[str, Answer]):
    """The demo site, and what it has answered first."""

    def __init__(self) -> None:
        self._site, self._visits = demo.Site(), itertools.count(1)

    def get(self, path: str, default: Any = None) -> Any:
        status, kind, body = self._site.render(path, next(self._visits))
        self.setdefault(path, (status, {"Content-Type": kind}, body))
        return status, {"Content-Type": kind}, body


class Visitor(Walker):
    def links(self, response: Any) -> list[str]:
        found = (urljoin(response.url, href).partition("#")[0] for href in super().links(response))
        return [url.removeprefix(self.url) for url in found if url.startswith(f"{self.url}/")]


def test_the_judge_of_every_page_is_named(
    crawl: Run, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `index why`, by `compare`, and in the log of what was kept beside another page."""
    log = tmp_path / "duplicates.jsonl"
    given = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite", "DEDUP_LOG": str(log), "DEDUP_CHROME": True}
    done, options = crawl(Museum(), Visitor, **given), read_settings(Settings(given))
    met = {site.url + path: judged for path, judged in done.spider.judgements.items() if judged is not None}
    judges = {url: judged.verdict.judge for url, judged in met.items()}
    judges |= {record["url"]: record["judge"] for record in done.records}
    counted = Counter(judges.values())
    assert counted.keys() >= {"index", "probe", "read"}
    assert {name: done.stats[f"dedup/judges/{name}"] for name in counted} == counted
    for url, judge in judges.items():
        asyncio.run(print_reasons(options, url, []))
        said = capsys.readouterr().out
        assert (said.count("judge "), said.count(f"judge {judge}")) == (1, 1), (url, said)
        for line in crawled(options, {"A": url}):
            assert f"judge {judge}" in line
    last = done.records[-1]
    compared = scrapy(
        "compare", last["url"], last["duplicate_of"], "-s", f"DEDUP_LOG={log}", "-s", "ROBOTSTXT_OBEY=False"
    )
    [said] = [line for line in compared.stdout.splitlines() if line.startswith("crawl A")]
    assert f"judge {last['judge']}; a near-duplicate of {last['duplicate_of']}" in said
    # What two months have alone was fetched again, and stayed.
    [kept] = read_kept([Path(f"{log}{SUFFIX}")], f"{site.url}/calendar/2026/02")
    assert (kept.judge, kept.beside) == ("probe", f"{site.url}/calendar/2026/01")
    assert re.fullmatch(
        r"differs in (\d+ words?|tags or places|the attributes? .*) that (stayed when .* fetched again|were not seen to change)",
        kept.why,
    )


@driven
async def test_each_judge_leaves_its_name(tmp_path: Path) -> None:
    same = partial(read, text("a story"), "http://example.org/")
    async with filtering(tmp_path / "drops.jsonl") as it:
        await it.judge("a")
        await it.judge("short", read=lambda: read("<p>too short", "http://example.org/short"))
        await it.judge("carries", read=same, carried=1)
        await it.judge("carries something else", read=same, carried=2)
        await it.filter.asked_again("a", fingerprint("a", "a").simhash, alike=True)
        await it.judge("a")
        for number in range(8):
            await it.judge(f"wall {number}", "wall")
        judges = {name.rpartition("/")[2]: n for name, n in it.counts.items() if "/judges/" in name}
    assert judges == {"index": 8, "read": 1, "carries": 1, "asked_again": 1, "alarm": 2}
    kept = read_log(tmp_path / "drops.jsonl.kept")
    assert [(line["judge"], line["why"]) for line in kept] == [
        ("read", "short"), ("carries", "carries"), ("asked_again", "asked_again"), ("alarm", "alarm"), ("alarm", "alarm")
    ]  # fmt: skip
    assert kept[-1]["beside"] == "http://example.org/wall 0"
