"""Whose pages are compared with whose, and what writes to an index: a spider's crawls, and nothing else."""

import subprocess
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.scrapy.commands.index.run import spider_meant
from dedup.scrapy.places import default_namespace, file_of
from tests.support.crawls import TWINS, Run, Site, Walker, page
from tests.support.waiting import LIMIT
from tests.support.warm import python


class Other(Walker):
    """Another spider of the project: it begins where the first one finds a twin."""

    name = "other"
    starts = ("/other",)


OTHERS = {"/other": page("another home", "/b")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a crawl without a project keeps its indexes."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".scrapy" / "dedup"


def test_by_default_no_spider_loses_a_page_to_what_another_has_kept(crawl: Run, folder: Path) -> None:
    crawl(TWINS, DEDUP_INDEX=None, BOT_NAME="shop")
    done = crawl(TWINS | OTHERS, Other, DEDUP_INDEX=None, BOT_NAME="shop")
    assert done.verdicts == {"/other": "new", "/b": "new", "/behind-b": "new"}
    assert sorted(path.name for path in (folder / "shop").glob("*.sqlite")) == [
        "other.sqlite",
        "walker.sqlite",
    ]


def test_in_redis_each_spider_has_its_namespace(crawl: Run, redis_socket: Path, namespace: str) -> None:
    shared = {"DEDUP_INDEX": f"unix://{redis_socket}", "BOT_NAME": namespace}
    crawl(TWINS, **shared)
    assert crawl(TWINS | OTHERS, Other, **shared).verdicts["/b"] == "new"


NAMES = ["shop", "Shop", "shop/a", "shop/A", "shop.a", "shop_a", "a b", "a_b", "..", "../a", "naïve", "na_ve"]
NAMES += [
    "", "/", "a.sqlite", "a.sqlite/b", "a/", "x" * 300, "x" * 301, "a\\b", "~", "nul:", "ä", "é", "书", "?",
    "\udcff",
]  # fmt: skip
NAMES += ["b", "b.sqlite.lock/c", "b.sqlite-wal/c"]


def test_namespaces_that_differ_never_share_a_default_file() -> None:
    """Not even where capitals and small letters are the same."""
    files = {file_of(name).lower() for name in NAMES}
    assert len(files) == len(NAMES)
    assert not any(".." in Path(name).parts or Path(name).is_absolute() for name in files)
    assert all(len(part.encode()) < 200 for name in files for part in Path(name).parts)
    folders = {parent for name in files for parent in Path(name).parents}
    beside = {Path(f"{name}{end}") for name in files for end in ("", "-wal", "-shm", ".lock", ".new")}
    assert not folders & beside, "a file would stand where a folder is needed"


def test_spiders_and_projects_that_differ_never_share_a_default_namespace() -> None:
    pairs = [
        ("a", "b"),
        ("a", "{b}"),
        ("a", "%7Bb%7D"),
        ("a", "b/c"),
        ("a/b", "c"),
        ("a", "é"),
        ("a", "\udcff"),
        (None, "b"),
        ("a b", "c"),
        ("a_b", "c"),
    ]
    assert len({default_namespace(*pair) for pair in pairs}) == len(pairs)
    assert all(
        name.isprintable() and not set(name) & set("{}") for name in (default_namespace(*p) for p in pairs)
    )


# --- Commands -----------------------------------------------------------------------------------------------

SPIDER = """
import scrapy
class Tale(scrapy.Spider):
    name = "{name}"
    start_urls = ["{url}/"]
    def parse(self, response):
        yield {{"url": response.url}}
        yield from response.follow_all(css="a")
"""


@pytest.fixture
def project(site: Site, tmp_path: Path) -> Path:
    """A project of one spider, with the add-on, as `scrapy startproject` makes it."""
    site.pages = dict(TWINS)
    package = tmp_path / "tales"
    (package / "spiders").mkdir(parents=True)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = tales.settings\n")
    (package / "__init__.py").touch()
    (package / "spiders" / "__init__.py").touch()
    (package / "spiders" / "tale.py").write_text(SPIDER.format(name="tale", url=site.url))
    (package / "settings.py").write_text(
        "BOT_NAME = 'tales'\nSPIDER_MODULES = ['tales.spiders']\nADDONS = {'dedup.scrapy.Addon': 500}\n"
    )
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [python(), "-m", "scrapy", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT)


@pytest.mark.parametrize("command", ["parse", "fetch", "shell"])
def test_commands_that_only_try_something_out_write_nothing(command: str, site: Site, project: Path) -> None:
    code = ["-c", "response.status"] if command == "shell" else []
    arguments = [python(), "-m", "scrapy", command, "--spider", "tale", site.url + "/a", *code]
    done = subprocess.run(arguments, cwd=project, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert site.requests[-1] == "/a"
    assert "Near-duplicate filter" not in done.stderr
    assert not (project / ".scrapy").exists()


class Books(Walker):
    name = "books"
    custom_settings = {"DEDUP_NAMESPACE": "library"}  # noqa: RUF012 (as Scrapy declares it)


def test_the_index_command_asks_which_of_several_spiders_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    def meant(spider: str = "", **values: str) -> str | None:
        settings = Settings({"SPIDER_LOADER_CLASS": loader, "SPIDER_MODULES": [], **values})
        return spider_meant(settings, spider) or settings.get("DEDUP_NAMESPACE")

    spiders: dict[str, type[Spider]] = {"books": Books}
    loader = type("Loader", (), {"from_settings": classmethod(lambda cls, _: cls())})
    loader.list = lambda _: list(spiders)  # type: ignore[attr-defined]
    loader.load = lambda _, name: spiders[name]  # type: ignore[attr-defined]
    assert meant() == "books"
    spiders["other"] = Other
    with pytest.raises(SettingsError, match="say which is meant by --spider: books, other"):
        meant()
    with pytest.raises(SettingsError, match="--spider is 'nobody'; allowed: one of books, other"):
        meant("nobody")
    assert meant("other") == "other"
    assert meant(DEDUP_INDEX="file:books.sqlite") is None
    assert meant(DEDUP_NAMESPACE="library") == "library"
    assert meant("books", DEDUP_INDEX="redis://localhost") == "books"
    settings = Settings({"SPIDER_LOADER_CLASS": loader})
    spider_meant(settings, "books")
    assert settings["DEDUP_NAMESPACE"] == "library", "a spider's own settings count"
