"""Fixtures shared by all tests: a private Redis, and addresses of empty indexes."""

import gc
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis.strategies import none

from tests.support import (
    light,  # noqa: F401 (what it changes is all that it is for)
    processes,
)
from tests.support.cluster import Cluster, running_cluster
from tests.support.crawls import crawl, site  # noqa: F401
from tests.support.redis import PROGRAM, Server, running_server
from tests.support.waiting import LIMIT
from tests.support.warm import GARBAGE

#: The files that take longest, those that mostly wait among those that compute, so that there is always work for both
#: cores.  Forks begin with them, so that none is left with one at the end.
LONGEST = (
    "contrib/workers/test_shards.py",
    "test_crawl.py",
    "contrib/workers/test_heirs.py",
    "test_report.py",
    "faults/test_kills.py",
    "test_probe.py",
    "test_endless.py",
    "contrib/changes/test_changes.py",
    "faults/test_full_disk.py",
    "test_living.py",
    "test_index.py",
    "faults/test_redis_faults.py",
    "test_follow.py",
    "faults/test_cluster_faults.py",
    "contrib/archives/test_archive_damage.py",
    "contrib/archives/test_archive_runs.py",
    "faults/test_file_damage.py",
    "test_uncertain.py",
    "contrib/changes/test_revisits.py",
    "test_links.py",
    "test_imports.py",
    "test_deployment.py",
    "test_docs.py",
    "test_foreign.py",
)
#: What is run by processes of the tests, and imports all that Scrapy has.
collect_ignore = ["support/preloaded.py"]

PLACES = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}


def pytest_collection() -> None:
    """Nothing that is imported and collected is garbage, so nobody looks for any until all tests are there."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; all else stays in its order."""
    items.sort(key=lambda item: PLACES.get(item.path, len(PLACES)))


def pytest_collection_finish() -> None:
    """What is imported and collected stays: Python does not look through it again whenever a test makes many objects."""
    # Hypothesis warns where what holds its random numbers was frozen before there are any.
    settings(database=None)(given(none())(lambda _: None))()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()


#: How many of the processes that run now belong to fixtures that outlive a test.
_kept = 0


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Processes that a fixture of a module has started live as long as the module's tests."""
    global _kept
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            _kept = processes.started()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None, item: pytest.Item) -> Iterator[None]:
    """Whatever a test has started ends with it.  And what a file leaves is finalised behind it: in a test of another file, it might be
    where calls are as deep as they can be, which only fails."""
    global _kept
    is_last = nextitem is None or nextitem.path != item.path
    processes.kill_left(_kept)
    try:
        return (yield)
    finally:
        if is_last:
            _kept = 0
        processes.kill_left(_kept)
        if is_last:
            gc.collect()


# A job in a shell's background is told to ignore Ctrl-C, and so would be all that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nobody waits for a disk: a process that is killed loses nothing of what it has written to one in memory either.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= 4 << 30:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # it is looked for once more

# Deterministic: the same examples in every run.  `pytest --hypothesis-profile=long` draws a hundred times as many.
settings.register_profile("shingleback", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("long", derandomize=True, deadline=None, max_examples=4000)
settings.load_profile("shingleback")


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """The socket of a server that all tests share.  Where none is installed, tests are skipped; in CI they fail."""
    if PROGRAM is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing; the tests of the Redis index must not be skipped in CI")
        pytest.skip("redis-server is not installed: the Redis index is NOT tested")
    with running_server() as server:
        yield server.socket


@pytest.fixture(scope="session")
def cluster_of_all(redis_socket: Path) -> Iterator[Cluster]:
    """A cluster of two masters that all tests share: those of faults have three, and replicas."""
    with running_cluster(masters=2, replicas=0) as cluster:
        yield cluster


@pytest.fixture
def cluster(redis_socket: Path) -> Iterator[Cluster]:
    """A cluster of three masters and three replicas for one test alone, which may do with it what it likes."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def server(redis_socket: Path) -> Iterator[Server]:
    """A server for one test alone, which may do with it what it likes."""
    with running_server() as server:
        yield server


@pytest.fixture(params=["memory", "file", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    """Each kind of index in turn."""
    return str(request.param)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """What a test leaves in the environment would reach the programs of those after it."""
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    assert after | {"PYTEST_CURRENT_TEST": ""} == before | {"PYTEST_CURRENT_TEST": ""}


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call to a sound server gives up as late as a busy machine may need."""
    for name in ("client.TIMEOUT", "client.DEADLINE"):
        monkeypatch.setattr(f"dedup.index.redis.{name}", LIMIT)


@pytest.fixture
def long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease ends as late, and is not renewed in the middle of a test."""
    monkeypatch.setattr("dedup.index.redis.session.LEASE_MS", 3_000 * LIMIT)


@pytest.fixture
def address(store: str, tmp_path: Path, request: pytest.FixtureRequest, patience: None) -> str:
    """The address of an empty index."""
    if store == "memory":
        return "memory:"
    if store == "file":
        return f"file:{tmp_path / 'index.sqlite'}"
    socket = str(request.getfixturevalue("redis_socket"))
    # Where all keys are looked through, those of earlier tests would be, too.
    with redis.Redis(unix_socket_path=socket) as client:
        client.flushall()
    return f"unix://{socket}"


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}"
