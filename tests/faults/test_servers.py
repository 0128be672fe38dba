"""What real servers do in operation, each tried for real: replicas, promotions, limits, rights, busy scripts.

docs/reliability.md tells what a crawl makes of each.
"""

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from dedup.errors import IndexMismatchError, IndexUnavailableError
from dedup.index import Index, open_index
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.redis import Line, running_server
from tests.support.servers import free_port
from tests.support.stores import DETECTOR, opened, opened_at
from tests.support.waiting import until, wait_until


async def said(index: Index, number: int) -> str:
    """What a claim of one of some pages that are far from each other says."""
    simhash = number * 0x9E3779B97F4A7C15 % 2**64
    return (await index.claim(f"{number}", f"http://{number}/", fingerprint_of(simhash))).status


# --- Replicas ----------------------------------------------------------------------------------------


@driven
async def test_a_replica_is_refused_in_one_line() -> None:
    told = pytest.raises(IndexMismatchError, match=r"^unix:\S+ is a replica, .* the address of its master$")
    with running_server("--replicaof", "127.0.0.1 1") as replica, told:
        async with opened(replica.address):
            pass


@pytest.mark.slow
@driven
async def test_a_replica_is_refused_and_once_promoted_goes_on_with_the_index() -> None:
    one, two = free_port(), free_port()
    options = ("--replicaof", f"127.0.0.1 {one}", "--repl-diskless-sync-delay", "0")
    with (
        running_server("--port", str(one)) as master,
        running_server("--port", str(two), *options) as replica,
    ):
        wait_until(lambda: replica.client.info("replication")["master_link_status"] == "up")
        async with opened(f"redis://127.0.0.1:{one}/0") as index:
            assert [await said(index, number) for number in (1, 2)] == ["new", "new"]
            assert master.client.execute_command("WAIT", 1, 5000) == 1
            with pytest.raises(
                IndexMismatchError, match=r"^redis://\S+ is a replica, .* the address of its master$"
            ):
                async with opened(f"redis://127.0.0.1:{two}/0"):
                    pass
            master.client.execute_command("FAILOVER")
            wait_until(lambda: replica.client.info("replication")["role"] == "master")
            wait_until(lambda: master.client.info("replication")["role"] == "slave")
            with pytest.raises(IndexUnavailableError, match="read only replica"):  # it may be promoted again
                await said(index, 3)
            async with opened(f"redis://127.0.0.1:{two}/0", run=index.run) as promoted:
                assert [await said(promoted, number) for number in (1, 2, 3)] == ["same", "same", "new"]


@driven
async def test_an_address_that_leads_to_another_master_by_now_is_followed(tmp_path: Path) -> None:
    """The connections to the one that has become a replica stay open, as those of a virtual address do."""
    address = tmp_path / "address"
    with running_server() as one, running_server() as two:
        line = Line(one.socket)
        async with line.listening(address), opened(f"unix://{address}") as index:
            assert await said(index, 1) == "new"
            for key, octets in one.contents().items():
                two.client.restore(key, 0, octets)
            one.client.replicaof("127.0.0.1", "1")
            line.server = two.socket
            assert await index.forget(["1"]) == 1
            assert [await said(index, number) for number in (1, 2)] == ["new", "new"]
            assert await index.states(["1", "2"]) == ["pending", "pending"]


# --- Limits ------------------------------------------------------------------------------------------


@driven
async def test_a_server_that_closes_idle_connections_costs_no_verdict() -> None:
    with running_server("--timeout", "1") as server:
        async with opened(server.address) as index:
            assert await said(index, 1) == "new"
            wait_until(lambda: server.client.info("clients")["connected_clients"] == 1)
            assert [await said(index, number) for number in (1, 2)] == ["same", "new"]


@driven
async def test_when_the_memory_is_full_claims_fail_and_what_was_claimed_is_confirmed() -> None:
    with running_server() as server:
        async with opened(server.address) as index:
            assert await said(index, 1) == "new"
            server.client.config_set("maxmemory", "1mb")
            with pytest.raises(IndexUnavailableError, match="maxmemory"):
                await said(index, 2)
            await index.confirm("1")

            async def done() -> bool:
                return await index.states(["1", "2"]) == ["done", "absent"]

            await until(done)
            server.client.config_set("maxmemory", "0")
            assert await said(index, 2) == "new"


@driven
async def test_a_limit_of_output_buffers_costs_no_verdict() -> None:
    with running_server("--client-output-buffer-limit", "normal 96kb 96kb 1") as server:
        async with opened(server.address) as index:
            assert [await said(index, number) for number in range(300)] == ["new"] * 300
            assert len(await index.states([f"{number}" for number in range(5000)])) == 5000
            survey = await index.survey()
            assert survey is not None
            assert [finding async for finding in survey.findings()] == []


# --- Loops, threads, descriptors ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_index_is_used_from_one_event_loop_after_another(store: str, address: str, namespace: str) -> None:
    """One in Redis says that it can't be; its connections belong to the loop."""
    index = open_index(address, DETECTOR, namespace=namespace)
    assert asyncio.run(said(index, 1)) == "new"
    if store != "redis":
        assert asyncio.run(said(index, 1)) == "same"
        asyncio.run(index.close())
        return
    for work in (partial(said, index, 1), partial(index.states, ["1"]), index.close):
        with pytest.raises(IndexUnavailableError, match="another event loop"):
            asyncio.run(work())
    del index, work
    gc.collect()  # its connections are closed here, with warnings


@driven
async def test_an_index_is_used_from_another_thread(store: str, address: str, namespace: str) -> None:
    found: list[str] = []

    def elsewhere() -> None:
        try:
            found.append(asyncio.run(said(index, 1)))
        except IndexUnavailableError as error:
            found.append(str(error))

    async with opened_at(address, namespace=namespace) as index:
        assert await said(index, 1) == "new"
        await asyncio.to_thread(elsewhere)
        assert await said(index, 2) == "new"
    assert ("another event loop" in found[0]) if store == "redis" else found == ["same"]


@pytest.mark.parametrize("opens", [10, slow(1000)])
@driven
async def test_nothing_is_left_of_an_index_that_was_closed(address: str, namespace: str, opens: int) -> None:
    descriptors: Callable[[], int] = lambda: len(list(Path("/proc/self/fd").iterdir()))
    # The loop's own has more threads the busier the machine is.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with opened_at(address, namespace=namespace) as index:
        await said(index, 1)
    before, threads = descriptors(), threading.active_count()
    for number in range(opens):
        async with opened_at(address, namespace=namespace) as index:
            await said(index, number)
            await index.confirm(f"{number}")
    assert descriptors() <= before
    assert threading.active_count() <= threads + 1
