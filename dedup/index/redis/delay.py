"""One delay for each host, which all workers keep: a lease in Redis (``SET NX PX``)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from dedup.errors import DedupError
from dedup.index.batching import end
from dedup.index.redis import client
from dedup.index.redis.client import Server, deadline

#: Seconds for which a host waits for a worker that died with its lease.
HOLD = 20.0
#: Says for how long a key is kept, if it is still ours: nothing is changed that has become another's.
KEEP = b"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"


class Delay:
    """Leases of hosts.  The key of one is ``shingleback:delay:{HOST}``; it is there while the host is not to be asked.

    Who has the lease of a host sends one request, and ends the lease when the answer is there: the host is free again
    after the delay.  So between two requests to it, whoever sends them, there is never less.
    """

    def __init__(self, address: str, seconds: float) -> None:
        self._server = Server(address)
        self._ms = round(seconds * 1000)
        self._keep = self._server.script(KEEP)
        # By host: one request asks, the others of this worker wait.
        self._queues: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def lease(self, host: str) -> AsyncIterator[None]:
        """Waits for the lease of a host, and holds it.  Raises `IndexUnavailableError` if nobody answers before."""
        name = await self.take(host)
        renewing = asyncio.create_task(self._renew(host, name))
        try:
            yield
        finally:
            await end(renewing)
            with suppress(DedupError):  # else it ends by itself
                await self.end(host, name)

    async def _renew(self, host: str, name: str) -> None:
        while True:
            await asyncio.sleep(HOLD / 4)
            with suppress(DedupError):
                await self._last(host, name, self._ms + round(HOLD * 1000))

    async def take(self, host: str) -> str:
        """Waits for the lease of a host, and gives its name.  Raises `IndexUnavailableError` if nobody answers."""
        name = uuid4().hex
        queue = self._queues.setdefault(host, asyncio.Lock())
        try:
            async with queue:
                while (left := await self._ask(host, name)) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(min(left, self._ms / 4) / 1000)
        finally:
            if not queue.locked():
                self._queues.pop(host, None)
        return name

    async def _ask(self, host: str, name: str) -> int:
        key = _key(host)
        with self._server.errors():
            async with deadline(client.DEADLINE):
                hold = self._ms + round(HOLD * 1000)
                if await self._server.client.set(key, name, nx=True, px=hold):
                    return 0
                left = int(await self._server.client.pttl(key))
                if left > hold:  # it is of a time before the clock of the server was set back
                    await self._server.client.pexpire(key, hold)
                return max(1, min(left, hold))

    async def end(self, host: str, name: str) -> None:
        """The answer is there, or none will come."""
        await self._last(host, name, max(1, self._ms))

    async def _last(self, host: str, name: str, ms: int) -> None:
        with self._server.errors():
            async with deadline(client.DEADLINE):
                await self._keep(keys=[_key(host)], args=[name, ms])

    async def close(self) -> None:
        """Lets go of the server."""
        await self._server.close()


def _key(host: str) -> str:
    return f"shingleback:delay:{{{host}}}"
