"""`scrapy compare`: what it says of two pages, and its exit status."""

import subprocess
from pathlib import Path

import pytest

from crawler.demo import Site, serve
from tests.conftest import scrapy


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`scrapy compare` in the project."""
    return scrapy("compare", *arguments)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pages of the demo site, as files."""
    folder = tmp_path_factory.mktemp("site")
    for name, path in (
        ("article", "/articles/the-fog-signal"),
        ("print", "/print/the-fog-signal"),
        ("shop", "/shop/"),
    ):
        (folder / name).write_bytes(Site().render(path, 1)[2])
    (folder / "short").write_text("<p>Not found")
    (folder / "binary").write_bytes(bytes(999))
    return folder


def test_near_duplicates_end_with_status_0(site: Path) -> None:
    done = compare(site / "article", site / "print")
    assert done.returncode == 0, done.stderr
    assert "near-duplicates: distance and resemblance both say so" in done.stdout
    distance = int(done.stdout.split(" bits (near: up to 6)")[0].split()[-1])
    assert done.stdout.count("^") == distance


def test_other_pages_end_with_status_1_and_the_rule_that_decides(site: Path) -> None:
    done = compare(site / "article", site / "shop")
    assert done.returncode == 1
    assert "different: " in done.stdout
    assert "only in A" in done.stdout


def test_the_settings_decide(site: Path) -> None:
    done = compare(site / "article", site / "print", "-s", "DEDUP_MIN_RESEMBLANCE=1")
    assert done.returncode == 1
    assert "too few shingles in common" in done.stdout


@pytest.mark.parametrize(("name", "reason"), [("short", "short"), ("binary", "binary")])
def test_a_page_that_cannot_be_judged_says_why(site: Path, name: str, reason: str) -> None:
    done = compare(site / name, site / name)
    assert done.returncode == 1
    assert f"can't be judged: {reason}" in done.stdout


def test_a_page_may_be_a_url(site: Path) -> None:
    with serve(Site()) as url:
        done = compare(f"{url}articles/the-fog-signal", f"{url}mirror/articles/the-fog-signal")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("wrong", ["nowhere.html", "ftp://example.org/", "x" * 5000, "http://127.0.0.1:1/"])
def test_a_page_that_cannot_be_read_is_named(site: Path, wrong: str) -> None:
    done = compare(site / "article", wrong)
    assert done.returncode == 2
    assert wrong[:50] in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_two_pages_are_wanted() -> None:
    assert compare("one.html").returncode == 2
