"""A crawl with a wrong setting, argument, index or log does not begin: one line says what is wrong.

Each test runs ``scrapy crawl site`` and looks at its exit status, at what it printed, and at whether the
site was asked for anything.
"""

import os
import socket
import sqlite3
from asyncio import run
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawler.demo import serve
from dedup import Detector, SettingsError, open_index
from dedup.scrapy.settings import read_settings
from dedup.settings import SETTINGS
from tests.support.processes import scrapy
from tests.support.redis import running_server

# --- Running scrapy ---------------------------------------------------------------------------------


@dataclass
class Ended:
    """How a command line ended."""

    status: int
    output: str
    requests: list[str]

    @property
    def complaint(self) -> str:
        """The one line that says what is wrong, of a crawl that made no request and shows no traceback."""
        assert self.requests == []
        assert "Traceback" not in self.output
        [line] = [line for line in self.output.splitlines() if " ERROR: " in line]
        assert "Crawl refused: " in line
        return line


Crawl = Callable[..., Ended]


class Site:
    """Has only one page, and notes what it is asked for."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        self.requests.append(path)
        return 200, "text/html", b"<p>Welcome"


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[str, Site]]:
    site = Site()
    with serve(site) as url:  # type: ignore[arg-type]
        yield url, site


@pytest.fixture
def crawl(site: tuple[str, Site], tmp_path: Path) -> Crawl:
    """Crawls the site: ``crawl("-a", "allow=...", SETTING=value, ...)``."""
    url, asked = site

    def crawl(*arguments: str, **settings: object) -> Ended:
        defaults = {"DEDUP_INDEX": "memory:", "DEDUP_LOG": tmp_path / "duplicates.jsonl", "DOWNLOAD_DELAY": 0}
        asked.requests.clear()
        done = scrapy("crawl", "site", *(arguments or ("-a", f"start={url}")), **defaults | settings)
        return Ended(done.returncode, done.stdout + done.stderr, list(asked.requests))

    return crawl


def test_with_nothing_wrong_the_crawl_begins(crawl: Crawl) -> None:
    done = crawl()
    assert done.status == 0
    assert done.requests == ["/robots.txt", "/"]
    assert "ERROR" not in done.output


# --- Settings: exit status 2 ------------------------------------------------------------------------

ADDRESSES = "'memory:', 'file:PATH', 'redis://HOST:PORT/DB'"
#: Setting of each kind, or with a rule of its own -> wrong values, and what the complaint says of those that are allowed.
#: The others have their values from docs/reference.md, see tests/test_project.py.
WRONG = {
    "ENABLED": (["maybe", "", "2"], "True, False"),
    "ACTION": (["delete", "", "DROP"], "'drop', 'nofollow', 'mark'"),
    "INDEX": (["postgres://host/db", "crawl.sqlite", "redis://host:port/", "redis://host:99999/"], ADDRESSES),
    "NAMESPACE": (["my{crawl}", "a\nb"], "printable text without braces"),
    "MAX_DISTANCE": (["8", "-1", "3.5", "three", ""], "a whole number from 0 to 7"),
    "MIN_RESEMBLANCE": (["1.5", "-0.1", "nan", "high", ""], "a number from 0 to 1"),
    "MIN_TOKENS": (["-1", "1e3", "few", ""], "a whole number from 0 to 1,000,000"),
    "TABLES": (["0", "four", "2.5"], "a whole number from 1"),
    "IGNORE": (["a >> b", "p:first-child", "a + b", "a::text", "a:not(b c)"], "a tuple of CSS selectors"),
    "IGNORE_TEXT": (["(", "[a-"], "a tuple of regular expressions"),
}
EVERY_WRONG = [(name, value, allowed) for name, (values, allowed) in WRONG.items() for value in values]


@pytest.mark.parametrize(("name", "value", "allowed"), EVERY_WRONG)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(SettingsError, match=f"^DEDUP_{name} is ") as caught:
        read_settings(Settings({"DEDUP_INDEX": "memory:", f"DEDUP_{name}": value}))
    assert repr(value)[1:-1] in str(caught.value)
    assert allowed in str(caught.value)


EPOLL = "twisted.internet.epollreactor.EPollReactor"
#: Settings, and what the one line says of them and its exit status; TMP is a folder with a file called "file".
REFUSED: list[tuple[dict[str, object], str, int]] = [
    ({"MAX_DISTANCE": 8}, "DEDUP_MAX_DISTANCE is 8; allowed: a whole number from 0 to 7", 2),
    ({"INDEX": "memory:here"}, "DEDUP_INDEX is 'memory:here'", 2),
    ({"INDEX": "file:"}, "DEDUP_INDEX is 'file:'", 2),
    ({"INDEX": "redis://127.0.0.1:1/0?colour=red"}, "DEDUP_INDEX is 'redis://127.0.0.1:1/0'", 2),
    ({"INDEX": "redis://:wrongpassword@host:port/"}, "DEDUP_INDEX is", 2),
    ({"INDEX": "postgres://me:wrongpassword@host/"}, "DEDUP_INDEX is", 2),
    ({"INDEX": "file:TMP"}, "DEDUP_INDEX is 'file:TMP', which is a directory", 2),
    (
        {"INDEX": "file:TMP/file/index.sqlite"},
        "it is no folder; mend that, or give the index another path",
        3,
    ),
    ({"INDEX": "file:TMP/" + "x" * 300}, "x" * 300, 3),
    ({"TABLES": 5, "MAX_DISTANCE": 3}, "DEDUP_TABLES is 5 and DEDUP_MAX_DISTANCE is 3, for which", 2),
    ({"TABLES": 5, "MAX_DISTANCE": 3}, "4, 10, 16, 20", 2),
    ({"MIN_RESEMBLANCE": 0.9}, "DEDUP_CHROME is True, so what is own to each page has to match", 2),
    ({"MIN_CONTAINMENT": 0.9, "CHROME": False}, "DEDUP_MIN_RESEMBLANCE says how much of it must", 2),
    ({"MAX_DISTNCE": 3}, "DEDUP_MAX_DISTNCE is not a setting; did you mean DEDUP_MAX_DISTANCE?", 2),
    ({"on_index_failure": 3}, "did you mean DEDUP_ON_INDEX_FAILURE?", 2),
    ({"XYZZY": 3}, "the settings are DEDUP_ENABLED, DEDUP_PROFILE", 2),
    ({"LOG": "TMP"}, "DEDUP_LOG is 'TMP', which is a directory", 2),
    ({"LOG": "TMP/100%.jsonl"}, "in which a % stands alone: a plain one is written %%", 2),
    ({"LOG": "TMP/%(spider)s.jsonl"}, "in which %(spider)s stands for nothing; allowed: a path, in which", 2),
    ({"FOLLOW": "yield", "PARKED": "TMP/%(spider)s"}, "DEDUP_PARKED is 'TMP/%(spider)s', in which", 2),
    ({"LOG": "TMP/file/drops.jsonl"}, "the log TMP/file/drops.jsonl can't be written: [Errno ", 3),
    ({"LOG": "TMP/file/drops.jsonl"}, "give the log another path (DEDUP_LOG)", 3),
]


@pytest.mark.parametrize(("settings", "said", "status"), REFUSED)
def test_refused(crawl: Crawl, tmp_path: Path, settings: dict[str, object], said: str, status: int) -> None:
    (tmp_path / "file").touch()
    done = crawl(
        **{f"DEDUP_{name}": str(value).replace("TMP", str(tmp_path)) for name, value in settings.items()}
    )
    assert said.replace("TMP", str(tmp_path)) in done.complaint
    assert "wrongpassword" not in done.output
    assert done.status == status


def test_a_reactor_that_can_not_wait_for_redis_is_refused(crawl: Crawl) -> None:
    done = crawl(TWISTED_REACTOR=EPOLL)
    assert f"TWISTED_REACTOR is '{EPOLL}'" in done.complaint
    assert "AsyncioSelectorReactor" in done.complaint
    assert done.status == 2


@pytest.mark.parametrize("name", [name.upper() for name in SETTINGS])
def test_no_setting_takes_a_value_of_a_wrong_type(name: str) -> None:
    for wrong in (b"bytes", [3], {"a": 1}, object()):
        with pytest.raises(SettingsError, match=f"^DEDUP_{name} is .*; allowed: .") as caught:
            read_settings(Settings({"DEDUP_INDEX": "memory:", f"DEDUP_{name}": wrong}))
        assert "\n" not in str(caught.value)


def test_the_hash_key_is_never_shown() -> None:
    with pytest.raises(SettingsError, match="DEDUP_HASH_KEY is not text") as caught:
        read_settings(Settings({"DEDUP_INDEX": "memory:", "DEDUP_HASH_KEY": 7391}))
    assert "7391" not in str(caught.value)


# --- Arguments of the spider: exit status 2 ---------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        *((f"start={start}", "start is ") for start in ("", " , ", "example.org", "ftp://example.org/")),
        *((f"start=http://{rest}", "https://") for rest in ("", "/path", "[", "a:99999/", "a:port/")),
        ("allow=x", "start is missing"),
        ("allow=(unclosed", "allow is '(unclosed', which is not a regular expression"),
        ("deny=(unclosed", "deny is '(unclosed', which is not a regular expression"),
    ],
)
def test_a_wrong_argument_is_refused(crawl: Crawl, site: tuple[str, Site], argument: str, said: str) -> None:
    start = ("-a", f"start={site[0]}") if "(" in argument else ()
    done = crawl(*start, "-a", argument)
    assert said in done.complaint
    assert done.status == 2


# --- Index files ------------------------------------------------------------------------------------


def test_an_index_in_use_names_its_process(crawl: Crawl, tmp_path: Path) -> None:
    address = f"file:{tmp_path / 'index.sqlite'}"

    async def while_it_is_held() -> Ended:
        index = open_index(address, Detector())
        await index.open()
        try:
            return crawl(DEDUP_INDEX=address)
        finally:
            await index.close()

    done = run(while_it_is_held())
    assert f"{address} is in use by another crawl (process {os.getpid()})" in done.complaint
    assert done.status == 6
    assert crawl(DEDUP_INDEX=address).status == 0  # now that it is free


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """What is refused is left as it is."""
    before = path.read_bytes()
    yield
    assert path.read_bytes() == before


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE header (name TEXT, value TEXT)")


@pytest.mark.parametrize(
    ("make", "status", "complaint"),
    [
        (
            lambda path: path.write_text("A shopping list.\n" * 100),
            4,
            "is not an index; give the index another path (DEDUP_INDEX)",
        ),
        (
            lambda path: path.write_bytes(b"\x1f\x8b\x08\x00" + bytes(range(256)) * 20),
            4,
            "is not an index",
        ),
        (foreign_database, 4, "is an SQLite database, but not an index"),
        (lambda path: path.touch(), 5, "is an empty file; delete it to start anew"),
    ],
    ids=["a text", "an archive", "another database", "an empty file"],
)
def test_a_file_that_is_no_index_is_refused_and_left_as_it_is(
    crawl: Crawl, tmp_path: Path, make: Callable[[Path], Any], status: int, complaint: str
) -> None:
    path = tmp_path / "index.sqlite"
    make(path)
    with unchanged(path):
        done = crawl(DEDUP_INDEX=f"file:{path}")
    assert str(path) in done.complaint
    assert complaint in done.complaint
    assert done.status == status


def test_a_damaged_index_is_refused_and_left_as_it_is(crawl: Crawl, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    assert crawl(DEDUP_INDEX=f"file:{path}").status == 0
    path.write_bytes(path.read_bytes()[:5_000])
    with unchanged(path):
        done = crawl(DEDUP_INDEX=f"file:{path}")
    assert str(path) in done.complaint
    assert done.status == 5


@pytest.mark.parametrize("store", ["file", "redis"], indirect=True)
def test_other_parameters_are_named(crawl: Crawl, address: str, namespace: str) -> None:
    index = {"DEDUP_INDEX": address, "DEDUP_NAMESPACE": namespace}
    assert crawl(DEDUP_SHINGLE_SIZE=6, **index).status == 0
    done = crawl(DEDUP_SHINGLE_SIZE=5, **index)
    assert "shingle_size is '6' there and '5' here" in done.complaint
    assert "(DEDUP_SHINGLE_SIZE, DEDUP_INDEX, DEDUP_NAMESPACE)" in done.complaint
    assert address in done.complaint
    assert done.status == 4
    done = crawl(DEDUP_HASH_KEY="a secret", **index)
    assert "hash_key is " in done.complaint
    assert "a secret" not in done.output
    assert done.status == 4
    assert crawl(DEDUP_SHINGLE_SIZE=6, **index).status == 0


# --- Redis ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def locked_redis(redis_socket: Path) -> Iterator[Path]:
    """A Redis with the password "sesame" that evicts keys (where there is a Redis at all)."""
    with running_server("--requirepass", "sesame", "--maxmemory-policy", "allkeys-lru") as server:
        yield server.socket


def test_a_redis_that_is_not_there_is_refused_soon(crawl: Crawl) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens
        address = f"redis://127.0.0.1:{unused.getsockname()[1]}/0"
        done = crawl(DEDUP_INDEX=address)
    assert f"the index {address} can't be reached" in done.complaint
    assert done.status == 3


def test_a_redis_that_evicts_keys_is_refused(crawl: Crawl, locked_redis: Path) -> None:
    done = crawl(DEDUP_INDEX=f"unix://:sesame@{locked_redis}")
    assert f"unix://{locked_redis} has maxmemory-policy 'allkeys-lru'" in done.complaint
    assert "noeviction" in done.complaint
    assert "sesame" not in done.output
    assert done.status == 4


@pytest.mark.parametrize("user", [":wrongpassword@", "nobody:wrongpassword@", ""])
def test_a_wrong_password_is_not_shown(crawl: Crawl, locked_redis: Path, user: str) -> None:
    done = crawl(DEDUP_INDEX=f"unix://{user}{locked_redis}")
    assert str(locked_redis) in done.complaint
    assert "wrongpassword" not in done.output
    assert done.status == 3
