"""Fixtures shared by all tests: a private Redis, and addresses of empty indexes."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.crawling import crawl, own_redis, site  # noqa: F401

ROOT = Path(__file__).parents[1]

# Deterministic: the same examples in every run.
settings.register_profile("shingleback", derandomize=True, deadline=None)
settings.load_profile("shingleback")


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """The socket of a redis-server of our own.  Without one: skipped on a laptop, an error in CI."""
    server = shutil.which("redis-server") or shutil.which("valkey-server")
    if server is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing; the tests of the Redis index must not be skipped in CI")
        pytest.skip("redis-server is not installed: the Redis index is NOT tested")
    # A short path of its own: a socket's path may not exceed 107 bytes.
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        socket = Path(folder, "redis.sock")
        process = start_redis(server, socket)
        try:
            yield socket
        finally:
            process.kill()
            process.wait()


def scrapy(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command of Scrapy, run in the project."""
    command = [sys.executable, "-m", "scrapy", *map(str, arguments)]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)


def start_redis(server: str, socket: Path, *options: str) -> subprocess.Popen[bytes]:
    """A running redis-server that listens on a Unix socket only."""
    command = [server, "--port", "0", "--unixsocket", str(socket), "--dir", str(socket.parent), "--save", ""]
    with Path(socket.parent, "redis.log").open("ab") as log:
        process = subprocess.Popen([*command, "--appendonly", "yes", *options], stdout=log)
    for _ in range(500):
        if socket.exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    assert process.poll() is None, Path(socket.parent, "redis.log").read_text()
    return process


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
