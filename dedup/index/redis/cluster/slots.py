"""Which node of a Redis Cluster has which slot, as far as is known."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from redis.crc import key_slot

#: A cluster has this many.
SLOTS = 1 << 14


class Node(NamedTuple):
    """The address of a node."""

    host: str
    port: int

    @classmethod
    def named(cls, host: bytes | str | None, port: Any, asked: str) -> "Node":
        """Returns a node as another calls it, which has the host ``asked``, and may have none to tell.

        >>> Node.named(b"10.0.0.1", 7000, "a"), Node.named("", 7000, "a")
        (Node(host='10.0.0.1', port=7000), Node(host='a', port=7000))
        """
        name = host.decode() if isinstance(host, bytes) else host
        return cls(asked if name in (None, "", "?") else name or "", int(port))


class Slots:
    """The nodes and their slots; ``seeds`` are those that are known from the start.

    >>> slots = Slots([Node("a", 7000)])
    >>> slots.take([[0, 8191, [b"a", 7000]], [8192, 16383, [b"b", 7000], [b"c", 7000]]], "a")
    >>> slots.of(b"foo").host, sorted(node.host for node in slots.masters), [node.host for node in slots.nodes]
    ('b', ['a', 'b'], ['a', 'b', 'c'])
    """

    def __init__(self, seeds: Iterable[Node]) -> None:
        self._seeds = dict.fromkeys(seeds)
        self._known: dict[Node, None] = {}  # masters and replicas
        self._masters: list[Node] = []  # by slot

    @property
    def masters(self) -> frozenset[Node]:
        """Who has slots."""
        return frozenset(self._masters)

    @property
    def nodes(self) -> Sequence[Node]:
        """All that are known, masters first."""
        return list(dict.fromkeys((*sorted(self.masters), *self._seeds, *self._known)))

    def of(self, key: bytes) -> Node:
        """Returns the master of a key."""
        return self._masters[key_slot(key)]

    def take(self, found: Any, asked: str) -> None:
        """Takes over an answer to CLUSTER SLOTS.  Raises ValueError if nobody has some of the slots."""
        masters: list[Node | None] = [None] * SLOTS
        for first, last, *nodes in found:
            shown = [Node.named(host, port, asked) for host, port, *_ in nodes]
            masters[first : last + 1] = shown[:1] * (last + 1 - first)
            self._known |= dict.fromkeys(shown)
        if None in masters:
            raise ValueError("nobody has some of the slots")
        self._masters = [master for master in masters if master]

    def move(self, slot: int, to: Node) -> None:
        """A slot has moved."""
        self._masters[slot] = to
