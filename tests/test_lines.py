"""What Scrapy's log says of near-duplicates, and where a project's files are."""

import logging
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from dedup.droplog.log import DropLog
from dedup.filter.change import WORDS
from dedup.scrapy.log.lines import FIRST, LOGGER, Lines
from dedup.scrapy.log.summary import _DROPPED, _KEPT, summary
from dedup.scrapy.metrics import COUNTED, MEASURED, PARTED
from dedup.scrapy.settings import read_settings
from tests.support.crawls import TWINS, Run, Site, page
from tests.support.logs import record
from tests.support.waiting import wait_until


def told(caplog: pytest.LogCaptureFixture, count: int) -> list[str]:
    """The lines about so many near-duplicates."""
    caplog.set_level(logging.INFO)
    crawler: Any = SimpleNamespace(spider=None)
    lines = Lines(crawler, show_all=False)
    for number in range(count):
        lines.add(record(f"http://a.example/{number}"))  # type: ignore[arg-type]
    return [message.getMessage() for message in caplog.records if message.name == LOGGER]


def test_the_first_drops_have_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    *first, hint, hundred, thousand = told(caplog, 1_500)
    assert len(first) == FIRST
    assert first[3] == (
        "Dropped near-duplicate http://a.example/3 of http://a.example/: all of its own 120 shingles but 10 are on "
        "the kept page"
    )
    assert "set DEDUP_SHOW_ALL" in hint
    assert [hundred, thousand] == ["100 near-duplicates so far", "1,000 near-duplicates so far"]


def test_a_crawl_shows_as_many_as_it_is_told_to(crawl: Run) -> None:
    pages = {"/": page("home", *(f"/?page={number}" for number in range(13)))}
    pages |= {f"/?page={number}": page("twin", more=str(number)) for number in range(13)}
    for show_all, shown in ((False, FIRST), (True, 12)):
        done = crawl(pages, DEDUP_SHOW_ALL=show_all)
        lines = [m for m in done.messages if m.getMessage().startswith("Dropped near-duplicate")]
        assert (len(lines), done.figures["dropped"]) == (shown, 12)
        assert {message.name for message in lines} == {"dedup.drops"}


def test_a_resumed_crawl_says_what_it_kept(crawl: Run, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    line = "Near-duplicate filter: 2 pages kept, 1 dropped (33%); 1 link not followed, 0 extra requests to learn what is noise"

    def hold(path: str) -> None:
        if path == "/behind-a":  # the last page comes when the line has been seen
            wait_until(lambda: line in [message.getMessage() for message in caplog.records])

    site.on_request = hold
    assert crawl(TWINS, LOGSTATS_INTERVAL=0.01).figures["new"] == 3


def test_a_project_without_lines_of_scrapy_has_none_of_ours(crawl: Run) -> None:
    done = crawl(TWINS, LOGSTATS_INTERVAL=0)
    assert "dedup.scrapy.log.progress" not in str([message.getMessage() for message in done.messages])


def test_a_crawl_may_have_no_drop_log(crawl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = crawl(TWINS, DEDUP_LOG="")
    assert (done.dropped, done.records, done.mishaps) == (["/b"], [], [])
    [text] = [text for m in done.messages if "pages fetched" in (text := m.getMessage())]
    assert text.endswith("  drop log  none")
    assert list(tmp_path.iterdir()) == []


def test_log_and_index_are_those_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / "spiders").mkdir(parents=True)
    (tmp_path / "project" / "scrapy.cfg").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def places(folder: str, **settings: str) -> tuple[str, ...]:
        monkeypatch.chdir(tmp_path / folder)
        options = read_settings(Settings({"BOT_NAME": "bot"} | settings))
        index = options.index.where.removeprefix("file:")
        return tuple(os.path.relpath(os.path.abspath(path), tmp_path) for path in (options.crawl.log, index))

    inside = "project/duplicates.jsonl", "project/.scrapy/dedup/bot.sqlite"
    assert places("project") == places("project/spiders") == inside
    assert places(".") == ("duplicates.jsonl", ".scrapy/dedup/bot.sqlite")
    named = {"DEDUP_LOG": "logs/drops.jsonl", "DEDUP_INDEX": "file:kept.sqlite"}
    assert places("project/spiders", **named) == ("project/logs/drops.jsonl", "project/kept.sqlite")
    at_home = {"DEDUP_LOG": str(tmp_path / "drops.jsonl"), "DEDUP_INDEX": "file:~/kept.sqlite"}
    assert places("project/spiders", **at_home) == ("drops.jsonl", "home/kept.sqlite")


def test_the_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    log = DropLog("~/logs/%(name)s.jsonl", "news")
    log.write({"url": "http://a.example/"})
    log.close()
    assert (tmp_path / "logs" / "news.jsonl").exists()


def test_the_drop_log_needs_nothing_windows_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pread", "pwrite", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "fork", "getuid"):
        monkeypatch.delattr(os, name, raising=False)
    log = tmp_path / "drops.jsonl"
    log.write_bytes(b'{"torn')
    for _ in range(2):
        writer = DropLog(str(log))
        writer.write({"url": "http://a.example/"})
        writer.close()
    assert log.read_bytes() == b'{"torn\n' + 2 * b'{"url": "http://a.example/"}\n'


@pytest.mark.parametrize("harm", ["removed", "renamed", "replaced"])
def test_a_log_that_is_taken_away_is_made_again(tmp_path: Path, harm: str) -> None:
    log, drops = tmp_path / "drops.jsonl", DropLog(str(tmp_path / "drops.jsonl"))
    drops.write({"url": "a"})
    if harm == "removed":
        log.unlink()
    else:
        log.rename(tmp_path / "drops.jsonl.1")
        if harm == "replaced":
            log.touch()
    for url in ("b", "c"):
        drops.write({"url": url})
    drops.close()
    assert log.read_text() == '{"url": "b"}\n{"url": "c"}\n'
    if harm != "removed":
        assert (tmp_path / "drops.jsonl.1").read_text() == '{"url": "a"}\n'


def test_a_log_that_cant_be_made_again_is_told(tmp_path: Path) -> None:
    log, drops = tmp_path / "drops.jsonl", DropLog(str(tmp_path / "drops.jsonl"))
    drops.write({"url": "a"})
    log.unlink()
    log.mkdir()
    with pytest.raises(IsADirectoryError):
        drops.write({"url": "b"})
    log.rmdir()
    drops.write({"url": "c"})
    drops.close()
    assert log.read_text() == '{"url": "c"}\n'


def test_each_line_of_the_summary_has_its_figures() -> None:
    """They are stats that Prometheus is told, too, all 1 here; links are saved where none lead on."""
    parts = [f"{name}/{each}" for name, (_, known) in PARTED.items() for each in known.split()]
    stats: dict[str, Any] = dict.fromkeys([*COUNTED.split(), *MEASURED.split(), *parts, *PARTED], 1)
    stats |= {
        "hosts/worst": "b.org",
        "audit/off": "simhash",
        "trap": "/a",
        "changes/since": "then",
        "hosts/led_on": 1,
    }
    stats |= dict.fromkeys(["not_modified_bytes", *(f"changes/{word}" for word in WORDS)], 1) | {
        "carries/keys": "a (1)"
    }
    text = summary({f"dedup/{name}": value for name, value in stats.items()}, "drops.jsonl")
    told = {line[2:12].strip() for line in text.splitlines()[1:]}
    lines = {line[2:12].strip() for line in (*_KEPT.values(), *_DROPPED.values())}
    assert told - lines == {"kept", "judges", "dropped", "drop log", "to see"}
    assert lines - told == {"saved"}
    assert not re.search(r"(?<![.\d])0 ", text)
    assert "1 near-duplicate; if they were dropped, 1 link on them" in text
