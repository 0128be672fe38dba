"""Redis servers for tests and benchmarks, and a line to them that can be cut."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

__all__ = ["PROGRAM", "Line", "Server", "running_server"]

#: The server's program; None where none is installed.
PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")
#: A server has this many seconds to start; an idle machine takes 0.02.
PATIENCE = 60


class Server:
    """A redis-server that listens on a Unix socket, writes a log of its commands, and can be killed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.address = f"unix://{self.socket}"
        self.start(*options)

    def start(self, *options: str) -> None:
        """Starts it, with what it had written; a server that does not start shows its log."""
        assert PROGRAM, "redis-server is not installed"
        command = [PROGRAM, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        log = self.folder / "redis.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "--save", "", "--appendonly", "yes", *options], stdout=output
            )
        end = time.monotonic() + PATIENCE
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self.process.wait()
                raise RuntimeError(f"redis-server does not start:\n{log.read_text()}")
            time.sleep(0.005)
        self.client = redis.Redis(unix_socket_path=str(self.socket))

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def kill(self) -> None:
        """kill -9."""
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def contents(self) -> dict[bytes, bytes]:
        """Every key, and its value byte for byte."""
        return {key: self.client.dump(key) for key in self.client.scan_iter(count=1000)}


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """A server in a folder of its own, both gone afterwards."""
    # A short path: that of a socket may not exceed 107 bytes.
    with tempfile.TemporaryDirectory(prefix="shingleback-") as folder:
        server = Server(Path(folder), *options)
        try:
            yield server
        finally:
            server.kill()


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
