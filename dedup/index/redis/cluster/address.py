"""The address of a Redis Cluster: some of its nodes, and what all of them have in common."""

from typing import NamedTuple
from urllib.parse import urlsplit

from dedup.index.redis.cluster.slots import Node
from dedup.printing import redact
from dedup.settings import SETTINGS


class Address(NamedTuple):
    """``redis+cluster://[user:password@]host[:port],host[:port],...[?options]``."""

    seeds: list[Node]
    scheme: str
    user: str  #: and the password, with an @; or nothing
    options: str  #: with a question mark; or nothing

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Raises `SettingsError` for a text that names no node, and ValueError if one is malformed.

        >>> address = Address.parse("redis+cluster://me:secret@a,[::1]:7001?protocol=3")
        >>> address.seeds
        [Node(host='a', port=6379), Node(host='::1', port=7001)]
        >>> address.of(address.seeds[1])
        'redis://me:secret@[::1]:7001/0?protocol=3'
        """
        scheme, _, rest = text.partition("+cluster://")
        rest, question, options = rest.partition("?")
        user, at, hosts = rest.rpartition("@")
        hosts, _, database = hosts.partition("/")
        if database not in ("", "0"):
            raise SETTINGS["index"].refusal(
                redact(text), "which names a database, and a cluster has only one"
            )
        seeds = []
        for name in hosts.split(","):
            parts = urlsplit(f"//{name}")
            if not parts.hostname:
                raise SETTINGS["index"].refusal(redact(text), "which names no host where one should be")
            seeds.append(Node(parts.hostname, parts.port or 6379))
        return cls(seeds, scheme, user + at, question + options)

    def of(self, node: Node) -> str:
        """Returns the address of one node."""
        host = f"[{node.host}]" if ":" in node.host else node.host
        return f"{self.scheme}://{self.user}{host}:{node.port}/0{self.options}"
