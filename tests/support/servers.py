"""Programs that answer over HTTP, such as scrapyd: started on a free port, and ended with the test."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import ROOT
from tests.support.waiting import wait_until


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def answering(port: int, folder: Path, *arguments: str) -> Iterator[str]:
    """Runs ``python -m ARGUMENTS`` in a folder, as a user would; gives its address once it listens on the port."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
