"""Fixtures shared by all tests: a private Redis, and addresses of empty indexes."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.crawls import crawl, own_redis, site  # noqa: F401
from tests.support.forked import Scrapy
from tests.support.redis import server, start_redis  # noqa: F401

ROOT = Path(__file__).parents[1]

# Deterministic: the same examples in every run.
settings.register_profile("shingleback", derandomize=True, deadline=None)
settings.load_profile("shingleback")


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """The socket of a redis-server of our own.  Without one: skipped on a laptop, an error in CI."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing; the tests of the Redis index must not be skipped in CI")
        pytest.skip("redis-server is not installed: the Redis index is NOT tested")
    # A short path of its own: a socket's path may not exceed 107 bytes.
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        socket = Path(folder, "redis.sock")
        process = start_redis(program, socket)
        try:
            yield socket
        finally:
            process.kill()
            process.wait()


def scrapy(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command of Scrapy, run in the project."""
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        output = Path(folder)
        status = Scrapy(*arguments, output=output).wait(120)
        assert status is not None, f"{arguments} takes too long"
        printed = ((output / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, status, *printed)


@pytest.fixture(params=["memory", "file", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    """Each kind of index in turn."""
    return str(request.param)


@pytest.fixture
def address(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of an empty index."""
    if store == "memory":
        return "memory:"
    if store == "file":
        return f"file:{tmp_path / 'index.sqlite'}"
    return f"unix://{request.getfixturevalue('redis_socket')}"


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}"
