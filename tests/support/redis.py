"""Redis servers of our own, and indexes in them."""

import asyncio
import functools
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.index import Index, open_index

DETECTOR = Detector(max_distance=3, min_resemblance=0.7)


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


def page(simhash: int) -> Fingerprint:
    """A page of that simhash; their sketches are all alike."""
    return Fingerprint(simhash, b"\x55" * 128, tokens=100, links=0, digest=simhash)


def driven(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine, run to its end."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@asynccontextmanager
async def opened(address: str, namespace: str = "test", **options: Any) -> AsyncIterator[Index]:
    """An index, closed at the end."""
    index = open_index(address, options.pop("detector", DETECTOR), namespace=namespace, **options)
    try:
        await index.open()
        yield index
    finally:
        with suppress(
            DedupError
        ):  # of a server that is gone, or an index that is not the one that was opened
            await index.close()


class Server:
    """A Redis for one test alone, which may treat it as it likes."""

    def __init__(self, program: str, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.address = f"unix://{self.socket}"
        self.program = program
        self.start()

    def start(self, *options: str) -> None:
        self.process = start_redis(self.program, self.socket, *options)
        self.client = redis.Redis(unix_socket_path=str(self.socket))

    def stop(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def contents(self) -> dict[bytes, bytes]:
        """Every key, and its value byte for byte."""
        return {key: self.client.dump(key) for key in self.client.scan_iter(count=1000)}


@pytest.fixture
def server(redis_socket: Path) -> Iterator[Server]:
    """A server of one's own; skipped or an error where there is none, like `redis_socket`."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        server = Server(program, Path(folder))
        try:
            yield server
        finally:
            server.stop()


class Line:
    """A proxy between an index and a server; a subclass changes what is said, or cuts the line."""

    def __init__(self, server: Path) -> None:
        self.server = server

    async def ask(self, request: bytes) -> list[bytes | None]:
        """What is passed on instead of a request, part by part; None cuts the line."""
        return [request]

    async def reply(self, reply: bytes) -> list[bytes | None]:
        """What is passed on instead of a reply."""
        return [reply]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        server_reader, server_writer = await asyncio.open_unix_connection(self.server)

        async def pass_on(
            source: asyncio.StreamReader,
            target: asyncio.StreamWriter,
            change: Callable[[bytes], Awaitable[list[bytes | None]]],
        ) -> None:
            while said := await source.read(1 << 16):
                for part in await change(said):
                    if part is None:
                        return
                    target.write(part)
                    await target.drain()
                    await asyncio.sleep(0)

        ways = [
            asyncio.ensure_future(pass_on(reader, server_writer, self.ask)),
            asyncio.ensure_future(pass_on(server_reader, writer, self.reply)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ways:
                task.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for stream in (writer, server_writer):
                stream.close()
                with suppress(OSError):
                    await stream.wait_closed()
