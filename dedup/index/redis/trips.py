"""Calls of scripts, and other commands, that share round trips, as commits of a database are gathered.

Calls that come while others are under way wait for these, and then go together, on one connection: whatever a call
costs the client beside its own bytes, it costs once a trip.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from hiredis import pack_command
from redis import exceptions

#: Calls of one trip at most.
TOGETHER = 16
#: How often a trip is begun again after a lost connection, and seconds until then, twice as long each time.
AGAIN, PAUSE = 2, 0.05


@dataclass(slots=True, eq=False)
class _Call:
    """A call that waits for its answer."""

    words: tuple[Any, ...]  #: a command and its arguments
    answer: asyncio.Future[Any]

    def end(self, answer: Any) -> None:
        """Gives the answer, or the error, to who waits for it, if anybody still does."""
        if not self.answer.done():
            self.answer.set_result(answer)


class Trips:
    """The calls of some scripts.  First come, first served; all who wait are told at once if nobody answers."""

    def __init__(
        self,
        scripts: Sequence[Any],
        connect: Callable[[], Any],
        deadline: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        """The ``scripts`` are the client's; ``connect`` gives a connection of it, which connects when something is sent."""
        self._scripts = scripts
        self._connect = connect
        self._deadline = deadline
        self._waiting = deque[_Call]()
        self._connection: Any = None
        self._timeout: float | None = None  # seconds that an answer may take
        self._traveller: asyncio.Task[None] | None = None
        self._trip: asyncio.Future[None] | None = None  # done when the one that is under way is over

    async def ask(self, *words: Any) -> Any:
        """Returns the answer to a command; raises what the client raises.

        A call that is cancelled while it waits is never made, and one that is under way is not made again: it has
        been made, or never will be, when `settle` returns.
        """
        call = _Call(words, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if self._traveller is None or self._traveller.done():
            self._traveller = asyncio.create_task(self._travel())
        answer = await call.answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def settle(self) -> None:
        """Waits for the trip that is under way."""
        if self._trip is not None:
            await asyncio.wait([self._trip])

    async def disconnect(self) -> None:
        """Disconnects; what is sent next connects again, to whoever has the address by then."""
        if self._connection is not None:
            await self._connection.disconnect()

    async def _travel(self) -> None:
        while self._waiting:
            calls = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
            self._trip = asyncio.get_running_loop().create_future()
            try:
                async with self._deadline():
                    await self._make(calls)
            except Exception as error:  # noqa: BLE001 (garbage from the network makes the client raise anything)
                calls += self._waiting
                self._waiting.clear()
                for call in calls:
                    call.end(error)
                await self.disconnect()
            finally:
                for call in calls:  # nobody waits for an answer that nobody will give
                    call.answer.cancel()
                self._trip.set_result(None)
                self._trip = None

    async def _make(self, calls: list[_Call]) -> None:
        """Makes calls, and again those that were not answered when the connection was lost, or the scripts forgotten."""
        again = 0
        while left := [call for call in calls if not call.answer.done()]:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    # Only answers have this limit: with it, the client makes a task of whatever is sent.
                    self._timeout, self._connection.socket_timeout = self._connection.socket_timeout, None
                if not await self._answered(self._connection, left):
                    for script in self._scripts:
                        await self._connection.send_command("SCRIPT", "LOAD", script.script)
                        await self._connection.read_response(timeout=self._timeout)
            except (exceptions.ConnectionError, exceptions.TimeoutError):
                again += 1
                if again > AGAIN:
                    raise
                await asyncio.sleep(PAUSE * 2 ** (again - 1))

    async def _answered(self, connection: Any, calls: Sequence[_Call]) -> bool:
        """Makes calls once; False if the server has forgotten a script."""
        await connection.send_packed_command(b"".join(pack_command(call.words) for call in calls))
        is_known = True
        for call in calls:
            try:
                answer = await connection.read_response(timeout=self._timeout)
                if (
                    answer is None
                ):  # so the client tells that none has come, and no call of ours is answered so
                    raise TimeoutError(f"there was no answer for {self._timeout:g} seconds")
                call.end(answer)
            except exceptions.NoScriptError:
                is_known = False
            except exceptions.ResponseError as error:
                call.end(error)
        return is_known
