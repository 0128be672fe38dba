"""Redis servers for tests and benchmarks, and a line to them that can be cut."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path

import redis
from redis import utils

from tests.support.waiting import until, wait_until

#: For each connection redis-py looks up its own version on the disk, which takes longer than all that most tests ask.
utils.get_lib_version = cache(utils.get_lib_version)

#: The program of the server; None where it is not installed.
PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


class Server:
    """A redis-server on a Unix socket that may be killed: whatever it has answered, it has also written."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.address = f"unix://{self.socket}"
        self.start(*options)

    def start(self, *options: str, loaded: bool = True) -> None:
        """Starts it with what it had written, and waits until it has ``loaded`` that, or at least listens.

        A server that does not start shows its log.
        """
        assert PROGRAM, "redis-server is not installed"
        command = [PROGRAM, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        # With appendfsync everysec, a slow disk holds back what is written, and a kill loses it.
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "no"]
        log = self.folder / "redis.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen([*command, *options], stdout=output)
        self.client = redis.Redis(unix_socket_path=str(self.socket))
        try:
            wait_until(lambda: self.process.poll() is not None or self._answers(loaded))
            assert self.process.poll() is None
        except AssertionError:
            self.kill()
            raise RuntimeError(f"redis-server does not start:\n{log.read_text()}") from None

    def _answers(self, loaded: bool) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                probe.connect(str(self.socket))
                if not loaded:
                    return True
                probe.sendall(b"PING\r\n")
                return not probe.recv(100).startswith(b"-LOADING")  # it may ask for a password
            except OSError:
                return False

    def is_busy(self) -> bool:
        """Whether a script keeps it from answering anything else."""
        try:
            return not self.client.ping()
        except redis.ResponseError as error:
            return "BUSY" in str(error)

    def kill(self) -> None:
        """Kills the server (-9)."""
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def contents(self) -> dict[bytes, bytes]:
        """Reads every key with its value, byte for byte."""
        return {key: self.client.dump(key) for key in self.client.scan_iter(count=1000)}


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """Runs a server in a folder of its own; both are gone afterwards."""
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
        self._connections = 0

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Takes connections to a socket; at the end it waits until all of them are closed."""

        async with await asyncio.start_unix_server(self._connect, path):
            yield
        await until(lambda: not self._connections)

    async def ask(self, request: bytes) -> list[bytes | None]:
        """Gives the parts that are passed on instead of a request; None cuts the line."""
        return [request]

    async def reply(self, reply: bytes) -> list[bytes | None]:
        """Gives the parts that are passed on instead of a reply."""
        return [reply]

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            await self._pass_on(reader, writer)
        finally:
            self._connections -= 1

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
