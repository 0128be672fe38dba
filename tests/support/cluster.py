"""A Redis Cluster for tests: masters and replicas on loopback, of which any may be killed, and slots that can be moved."""

import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from redis.crc import key_slot

from tests.support.redis import PROGRAM
from tests.support.waiting import wait_until

SLOTS = 1 << 14
#: A node that says nothing for so long, in ms, is replaced by its replica; where there is none, it is only waited for.
SILENCE, WAITED = 1000, 120_000


class Node:
    """A redis-server of a cluster: whatever it has answered, it has also written."""

    def __init__(self, folder: Path, port: int, silence: int, *options: str) -> None:
        self.folder = folder
        self.port = port
        self.options = ("--cluster-node-timeout", str(silence), *options)
        folder.mkdir(exist_ok=True)
        self.client = redis.Redis(port=port)
        self.start()

    def start(self) -> None:
        assert PROGRAM, "redis-server is not installed"
        command = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--cluster-enabled", "yes", "--save", ""]
        command += ["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"]
        command += ["--appendonly", "yes", "--appendfsync", "no", "--protected-mode", "no", *self.options]
        with (self.folder / "redis.log").open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "redis.log").read_text()
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    @property
    def name(self) -> str:
        return str(self.client.execute_command("CLUSTER", "MYID").decode())

    def kill(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()

    def is_master(self) -> bool:
        try:
            return bool(self.client.role()[0] == b"master") and self._has_slots()
        except redis.RedisError:
            return False

    def _has_slots(self) -> bool:
        return any(b"myself" in line and len(line.split()) > 8 for line in self.nodes())

    def nodes(self) -> list[bytes]:
        found = self.client.connection_pool
        with redis.Redis(connection_pool=found) as client:
            client.response_callbacks.pop("CLUSTER NODES", None)
            return bytes(client.execute_command("CLUSTER NODES")).splitlines()


class Cluster:
    """Masters, each with as many replicas."""

    def __init__(self, folder: Path, masters: int = 3, replicas: int = 1, *options: str) -> None:
        ports = free_ports(masters * (1 + replicas))
        silence = SILENCE if replicas else WAITED
        self.nodes = [
            Node(folder / str(number), port, silence, *options) for number, port in enumerate(ports)
        ]
        wait_until(lambda: all(node.answers() for node in self.nodes))
        self._masters = masters
        first, starts = self.nodes[0], [SLOTS * number // masters for number in range(masters + 1)]
        for number in range(masters):
            node = self.nodes[number]
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", starts[number], starts[number + 1] - 1)
            node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.port)
        wait_until(lambda: all(len(node.nodes()) == len(self.nodes) for node in self.nodes))
        for place, node in enumerate(self.nodes[masters:]):
            master = self.nodes[place % masters].name
            wait_until(lambda node=node, master=master: master.encode() in b"".join(node.nodes()))
            node.client.execute_command("CLUSTER", "REPLICATE", master)
        self.wait()

    @property
    def address(self) -> str:
        """As `DEDUP_INDEX` has it."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def masters(self) -> list[Node]:
        return [node for node in self.nodes if node.process.poll() is None and node.is_master()]

    def wait(self) -> None:
        """Waits until every slot is served by one master, and every replica has what its master has."""

        def is_well(node: Node) -> bool:
            try:
                if b"cluster_state:ok" not in node.client.execute_command("CLUSTER", "INFO"):
                    return False
                link = node.client.info("replication")
            except redis.RedisError:
                return False
            return bool(link["role"] == "master" or link["master_link_status"] == "up")

        # Two seconds pass until a cluster takes requests: meanwhile one node is asked, and not all of them.
        wait_until(lambda: all(is_well(node) for node in self.nodes if node.process.poll() is None))
        # One that was started again takes itself for a master until it hears who has taken over.
        wait_until(lambda: len(self.masters()) == self._masters)

    def fail_over(self, rng: random.Random) -> Node:
        """Kills a master (-9) whose replica has all that was written by now, and waits until that has taken over.

        Returns the one that was killed.
        """
        written = {node: node.client.info("replication")["master_repl_offset"] for node in self.masters()}
        found = dict[Node, set[int]]()

        def have_heirs() -> bool:
            for node, offset in written.items():
                told = node.client.info("replication")
                each = [told[f"slave{n}"] for n in range(told.get("connected_slaves", 0))]
                if each and all(replica["offset"] >= offset for replica in each):
                    found[node] = {replica["port"] for replica in each}
            return bool(found)

        wait_until(have_heirs)
        victim = rng.choice([*found])
        # On a busy machine, a replica of another master may take over, too.
        heirs = found[victim]
        victim.kill()
        wait_until(lambda: heirs & {node.port for node in self.masters()})
        return victim

    def cut_off(self, master: Node) -> Node:
        """Has a master's replica miss all that the master is told from now on; the replica."""
        port = master.client.info("replication")["slave0"]["port"]
        replica = next(node for node in self.nodes if node.port == int(port))
        replica.client.config_set("masterauth", "none")  # which the master refuses
        master.client.execute_command("CLIENT", "KILL", "TYPE", "replica")
        wait_until(lambda: replica.client.info("replication")["master_link_status"] == "down")
        return replica

    def move_slots(self, slots: Sequence[int], to: Node, pause: float = 0.0) -> None:
        """Moves slots and their keys to another master, as redis-cli does, key by key."""
        masters = self.masters()
        for slot in slots:
            owner = next(node for node in masters if self.has(node, slot))
            if owner is to:
                continue
            to.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", owner.name)
            owner.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.name)
            while keys := owner.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1):
                with suppress(redis.ResponseError):
                    owner.client.execute_command("MIGRATE", "127.0.0.1", to.port, keys[0], 0, 5000)
                time.sleep(pause)
            for node in (to, owner, *masters):
                node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", to.name)

    def has(self, node: Node, slot: int) -> bool:
        for first, last, master, *_ in node.client.execute_command("CLUSTER SLOTS"):
            if first <= slot <= last:
                return int(master[1]) == node.port
        return False

    def of(self, key: bytes) -> Node:
        """The master of a key."""
        return next(node for node in self.masters() if self.has(node, key_slot(key)))

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on, nor on those 10,000 above, which a cluster needs, too."""
    found: list[int] = []
    while len(found) < number:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as one, socket.socket() as other, suppress(OSError):
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 10_000))
            found.append(port)
    return found


@contextmanager
def running_cluster(masters: int = 3, replicas: int = 1, *options: str) -> Iterator[Cluster]:
    """Runs a cluster in a folder of its own; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="shingleback-", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(Path(folder), masters, replicas, *options)
        try:
            yield cluster
        finally:
            cluster.kill()
