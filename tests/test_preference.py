"""Which of the pages that say the same is preferred: in archives, and after a crawl that has kept the first."""

import json
from pathlib import Path
from typing import Any

import pytest

from dedup import DedupError, SettingsError
from dedup.contrib.archives import Cleaning
from dedup.droplog.drops import Drops
from dedup.droplog.representatives import Representative, representatives
from dedup.page.preference import PREFERENCES, preference
from dedup.settings import IndexSettings
from tests.support.crawls import words
from tests.support.logs import HOSTILE, lines, record
from tests.support.processes import scrapy

KEPT = "http://a.example/lamp?sort=price"
#: Near-duplicates of one page, of which three say what the site calls it; of another page; and of none.
LOG = [
    record("https://a.example/en/lamps/lamp", KEPT, canonical="http://a.example/lamp/", new=0, gone=20),
    record("http://a.example/lamp", KEPT, canonical="https://a.example/lamp", new=5, gone=5),
    record("http://a.example/print/the-lamp-of-brass", KEPT, new=40, gone=10),
    record("http://b.example/lamp", KEPT, canonical="http://b.example/other"),
    record("http://a.example/copy", "http://a.example/page", canonical="http://a.example/page"),
    record("http://a.example/gone", "http://a.example/khjdbacobgbnplai", rule="soft_404"),
    record("http://a.example/x", "http://a.example/y"),
    record("http://a.example/x", "http://a.example/y", undone="the page that it duplicates failed"),
]
CHOSEN = {
    "canonical": "http://a.example/lamp",
    "https": "https://a.example/en/lamps/lamp",
    "shortest": "http://a.example/lamp",
    "longest": "http://a.example/print/the-lamp-of-brass",
    "builtins:len": "http://a.example/print/the-lamp-of-brass",
}


def chosen(which: str, *records: dict[str, Any]) -> list[Representative]:
    with Drops(records) as drops:
        return list(representatives(drops, which))


def test_every_word_is_tried() -> None:
    assert CHOSEN.keys() > PREFERENCES.keys()


@pytest.mark.parametrize(("which", "url"), CHOSEN.items())
def test_of_pages_alike_one_is_preferred(which: str, url: str) -> None:
    lamp, page = chosen(which, *LOG)
    assert lamp == Representative(url, KEPT, 4)
    assert (page.kept, page.near_duplicates) == ("http://a.example/page", 1)


@pytest.mark.parametrize("which", CHOSEN)
def test_where_none_is_better_it_is_the_one_that_was_kept(which: str) -> None:
    of, copy = "https://a.example/a", "https://a.example/b"
    assert chosen(which, record(copy, of, new=7, gone=7, canonical=None)) == [Representative(of, of, 1)]


@pytest.mark.parametrize(
    "canonical",
    ["http://[", "x" * 2_000, "http://a.example/\udc80", HOSTILE],
    ids=["broken", "long", "bytes", "signs"],
)
def test_what_a_page_names_may_be_anything(canonical: str) -> None:
    assert chosen("canonical", record(KEPT + "&a", KEPT, canonical=canonical)) == [
        Representative(KEPT, KEPT, 1)
    ]


def test_a_function_has_to_give_numbers() -> None:
    with pytest.raises(DedupError, match="builtins:str failed on"):
        preference("builtins:str")("http://a.example/", "", 0)
    with pytest.raises(DedupError, match=r"builtins:str failed on 'http://a\.example/': ValueError"):
        preference("builtins:str")("http://me:secret@a.example/", "", 0)


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("newest", "--prefer is 'newest'; allowed: canonical, https, shortest, longest, or MODULE:FUNCTION"),
        (
            "nowhere:best",
            "'nowhere:best' names no function that can be imported: ModuleNotFoundError: No module named",
        ),
        (
            "math:best",
            "'math:best' names no function that can be imported: AttributeError: module 'math' has no attribute",
        ),
    ],
)
def test_a_wrong_preference_is_told(which: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        preference(which)
    log = tmp_path / "log"
    log.write_text(lines(*LOG))
    done = scrapy("duplicates", log, "--prefer", which)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_lists_what_would_be_another_page(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(lines(*LOG))
    assert scrapy("duplicates", log, "--prefer", "https").stdout == (
        f"https://a.example/en/lamps/lamp instead of {KEPT}\n1 of 2 kept pages with near-duplicates would be another one\n"
    )
    objects = map(json.loads, scrapy("duplicates", log, "--prefer", "https", "--json").stdout.splitlines())
    assert [*objects] == [found._asdict() for found in chosen("https", *LOG)]
    assert scrapy("duplicates", log, "--prefer", "https", "--clusters").returncode == 2


@pytest.mark.parametrize(("which", "url"), CHOSEN.items())
def test_an_archive_keeps_the_page_that_is_preferred(which: str, url: str, tmp_path: Path) -> None:
    pages = [
        (KEPT, "http://a.example/lamp", ""),
        ("http://a.example/lamp", "http://a.example/lamp", ""),
        ("https://a.example/en/lamps/lamp", "http://a.example/lamp", ""),
        ("http://a.example/print/the-lamp-of-brass", "", "and more"),
    ]
    archive, kept = tmp_path / "a.jsonl", tmp_path / "kept.jsonl"
    html = "<link rel=canonical href='{}'><p>" + words("lamp", 300) + " {}"
    archive.write_text(lines(*({"url": at, "html": html.format(*said)} for at, *said in pages)))
    Cleaning([str(archive)], str(kept), plan=IndexSettings(chrome=False), keep=which).run()
    assert [json.loads(line)["url"] for line in kept.read_text().splitlines()] == [url]


def test_a_missing_function_reads_no_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a.jsonl"
    archive.write_text(json.dumps({"url": KEPT, "html": words("lamp")}) + "\n")
    done = scrapy("dedup", archive, "-o", tmp_path / "kept.jsonl", "--keep", "nowhere:best")
    assert done.returncode == 2
    assert "'nowhere:best' names no function" in done.stderr
    assert not [*tmp_path.glob("kept*")]
