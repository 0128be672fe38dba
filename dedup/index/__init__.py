"""Where kept pages are filed: one contract, and a folder for each kind of store."""

from pkgutil import resolve_name
from typing import Any, NamedTuple

from dedup.fingerprint.detector import Detector
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.verdict import Verdict
from dedup.printing import redact
from dedup.settings import SETTINGS

__all__ = ["STORES", "Entry", "Index", "Store", "Verdict", "open_index"]


class Store(NamedTuple):
    """A kind of store, which is imported when the first index of that kind is opened."""

    address: str  #: what its addresses look like
    kind: str  #: what makes an `Index` of an address, a namespace, a detector and the options


#: Every kind of store, by the scheme of its addresses.
STORES = {
    "memory": Store("memory:", "dedup.index.local.index:LocalIndex"),
    "file": Store("file:PATH", "dedup.index.local.index:LocalIndex"),
    "redis": Store("redis://HOST:PORT/DB", "dedup.index.redis.index:RedisIndex"),
    "rediss": Store("rediss://...", "dedup.index.redis.index:RedisIndex"),
    "unix": Store("unix:///SOCKET", "dedup.index.redis.index:RedisIndex"),
    "redis+cluster": Store("redis+cluster://HOST:PORT,...", "dedup.index.redis.spread:clustered"),
    "rediss+cluster": Store("rediss+cluster://...", "dedup.index.redis.spread:clustered"),
}


def open_index(address: str, detector: Detector, *, namespace: str = "dedup", **options: Any) -> Index:
    """Returns the index at an address; ``namespace`` tells several in one Redis apart.

    ``memory:``, ``file:PATH``, ``redis://[user:password@]host[:port][/db]``, ``rediss://...`` (TLS),
    ``unix:///path/to/socket``, or, of a Redis Cluster, some of its nodes:
    ``redis+cluster://[user:password@]host[:port],host[:port],...``.  The other keywords are `IndexSettings`; and
    ``run``, the name of an earlier run that goes on (the ``run`` of its index), so that its pages count as this one's.
    The store is reached at the first claim, or by ``await index.open()``.

    >>> import asyncio
    >>> async def twice():
    ...     detector = Detector(min_tokens=3)
    ...     pages = [("a", "<p>one and the same"), ("b", "<p>One and the SAME"), ("b", "<p>else")]
    ...     async with open_index("memory:", detector) as index:
    ...         for name, page in pages:
    ...             verdict = await index.claim(name, f"http://{name}/", detector.fingerprint(page))
    ...             print(verdict.status, verdict.of, verdict.distance, verdict.reason)
    ...         await index.confirm("a")
    >>> asyncio.run(twice())
    new None None None
    duplicate http://a/ 0 None
    unjudged None None short
    """
    SETTINGS["index"].check(address)
    SETTINGS["namespace"].check(namespace)
    scheme, colon, rest = address.partition(":")
    store = STORES.get(scheme)
    if store is None or not colon or ("://" in store.address and not rest.startswith("//")):
        raise SETTINGS["index"].refusal(redact(address))
    if not namespace or not namespace.isprintable() or set(namespace) & set("{}"):
        raise SETTINGS["namespace"].refusal(namespace)
    index: Index = resolve_name(store.kind)(address, namespace, detector, **options)
    return index
